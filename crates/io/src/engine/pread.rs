//! Reading by threads, each with one system call at a time.

use std::io;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use super::job::Job;
use super::{Completion, EngineOptions, Method};

/// Two channels and the threads between them.
pub(super) struct Pread {
    /// None only while it is dropped: the threads then end when all jobs are done.
    jobs: Option<SyncSender<Job>>,
    ended: Receiver<Completion>,
    threads: Vec<JoinHandle<()>>,
}

impl Pread {
    /// Takes up to `depth` jobs at a time.
    pub(super) fn new(depth: usize, direct: bool) -> io::Result<Pread> {
        let (job_sender, job_receiver) = sync_channel(depth);
        let (ended_sender, ended) = channel();
        let job_receiver = Arc::new(Mutex::new(job_receiver));
        // Made first, so that threads which have started end when a later one does not start.
        let mut pread = Pread { jobs: Some(job_sender), ended, threads: Vec::new() };
        for number in 0..depth.min(EngineOptions::THREADS_MAX) {
            let (jobs, ended) = (Arc::clone(&job_receiver), ended_sender.clone());
            let thread = thread::Builder::new().name(format!("pread-{number}"));
            pread.threads.push(thread.spawn(move || work(&jobs, &ended, direct))?);
        }
        Ok(pread)
    }
}

impl Method for Pread {
    fn start(&mut self, job: Job) -> Option<Completion> {
        // The channel holds `depth` jobs, and the threads are there for as long as it is: neither waits nor fails.
        let sent = self.jobs.as_ref().map(|jobs| jobs.send(job).is_ok());
        debug_assert_eq!(sent, Some(true));
        None
    }

    fn finish(&mut self, wait: bool) -> Option<Completion> {
        if wait { self.ended.recv().ok() } else { self.ended.try_recv().ok() }
    }
}

impl Drop for Pread {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            // What reads others' files catches their panics: no thread ends before the last job.
            let _ = thread.join();
        }
    }
}

fn work(jobs: &Mutex<Receiver<Job>>, ended: &Sender<Completion>, direct: bool) {
    loop {
        // Held while waiting: the others wait for the lock instead, and one of them is woken by each job.
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(mut job) = job else { return };
        job.decide(direct);
        if ended.send(job.pread()).is_err() {
            return;
        }
    }
}
