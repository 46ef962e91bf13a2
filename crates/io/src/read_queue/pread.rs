//! Reads by a thread pool. Each thread makes one blocking system call at a time.

use super::in_flight::{Completion, InFlightRead};
use super::{backend::Backend, options::ReadOptions};
use std::io;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// Threads that receive reads from a channel and send completions to another one.
pub(super) struct Pread {
    /// `None` only during drop: the threads end after the last read when this sender is dropped.
    reads: Option<SyncSender<InFlightRead>>,
    completed: Receiver<Completion>,
    threads: Vec<JoinHandle<()>>,
}

impl Pread {
    /// Starts the threads for up to `depth` reads in flight.
    pub(super) fn new(depth: usize, direct: bool) -> io::Result<Pread> {
        let (read_sender, read_receiver) = sync_channel(depth);
        let (completed_sender, completed) = channel();
        let read_receiver = Arc::new(Mutex::new(read_receiver));
        // Created first: if a thread cannot be started, dropping this ends those before it.
        let mut pread = Pread { reads: Some(read_sender), completed, threads: Vec::new() };
        for number in 0..depth.min(ReadOptions::THREADS_MAX) {
            let (reads, completed) = (Arc::clone(&read_receiver), completed_sender.clone());
            let thread = thread::Builder::new().name(format!("pread-{number}"));
            pread.threads.push(thread.spawn(move || run_reads(&reads, &completed, direct))?);
        }
        Ok(pread)
    }
}

impl Backend for Pread {
    fn start(&mut self, read: InFlightRead) -> Option<Completion> {
        // Neither blocks nor fails: the channel has capacity for `depth` reads, and its receivers live as
        // long as this sender.
        let sent = self.reads.as_ref().map(|reads| reads.send(read).is_ok());
        debug_assert_eq!(sent, Some(true));
        None
    }

    fn next_completion(&mut self, wait: bool) -> Option<Completion> {
        if wait { self.completed.recv().ok() } else { self.completed.try_recv().ok() }
    }
}

impl Drop for Pread {
    fn drop(&mut self) {
        self.reads = None;
        for thread in self.threads.drain(..) {
            // The threads do not panic: `InFlightRead::read_blocking` catches panics of files.
            let _ = thread.join();
        }
    }
}

/// Completes reads from the channel `reads` until its sender is dropped.
fn run_reads(reads: &Mutex<Receiver<InFlightRead>>, completed: &Sender<Completion>, direct: bool) {
    loop {
        // Idle threads wait for the lock, except for one that holds it and waits for a read. So each read
        // wakes one thread.
        let read = reads.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(mut read) = read else { return };
        read.choose_path(direct);
        if completed.send(read.read_blocking()).is_err() {
            return;
        }
    }
}
