//! Reads by a thread pool; each thread makes one system call at a time.

use super::in_flight::{Completion, InFlightRead};
use super::{backend::Backend, options::ReadOptions};
use std::io;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// Two channels and the threads between them.
pub(super) struct Pread {
    /// `None` only during drop: the threads then end after the last read.
    reads: Option<SyncSender<InFlightRead>>,
    completed: Receiver<Completion>,
    threads: Vec<JoinHandle<()>>,
}

impl Pread {
    /// Holds up to `depth` reads.
    pub(super) fn new(depth: usize, direct: bool) -> io::Result<Pread> {
        let (read_sender, read_receiver) = sync_channel(depth);
        let (completed_sender, completed) = channel();
        let read_receiver = Arc::new(Mutex::new(read_receiver));
        // Created first, so that the threads already started end when a later one fails to start.
        let mut pread = Pread { reads: Some(read_sender), completed, threads: Vec::new() };
        for number in 0..depth.min(ReadOptions::THREADS_MAX) {
            let (reads, completed) = (Arc::clone(&read_receiver), completed_sender.clone());
            let thread = thread::Builder::new().name(format!("pread-{number}"));
            pread.threads.push(thread.spawn(move || work(&reads, &completed, direct))?);
        }
        Ok(pread)
    }
}

impl Backend for Pread {
    fn start(&mut self, read: InFlightRead) -> Option<Completion> {
        // Neither blocks nor fails: the channel has capacity for `depth` reads, and the threads live as long
        // as it does.
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
            // `InFlightRead::pread` catches panics of other `ReadFile`s: no thread ends before the last
            // read.
            let _ = thread.join();
        }
    }
}

fn work(reads: &Mutex<Receiver<InFlightRead>>, completed: &Sender<Completion>, direct: bool) {
    loop {
        // One thread waits in `recv` and holds the lock; the others wait for the lock. Each read wakes one
        // thread.
        let read = reads.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(mut read) = read else { return };
        read.choose_path(direct);
        if completed.send(read.pread()).is_err() {
            return;
        }
    }
}
