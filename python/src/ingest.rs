//! The thread of a writer: it takes pieces of documents from a bounded queue, and analyses them on several
//! threads while Python makes the next ones.

use crate::documents::Piece;
use crate::errors::{Failure, catch};
use crate::wait::{SIGNAL_CHECK, thread_error};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use tierdex::index::{IndexWriter, Stop, ingest};

/// Pieces that wait for each thread of analysis.
const PIECES_WAITING: usize = 2;

/// An ingest in progress.
pub struct Ingest {
    queue: Arc<PieceQueue>,
    stop: Stop,
    thread: JoinHandle<(IndexWriter, Result<(), Failure>)>,
}

#[derive(Default)]
struct PieceQueue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Default)]
struct QueueState {
    pieces: VecDeque<Piece>,
    /// No more pieces will follow.
    closed: bool,
    /// The thread has ended: nobody takes pieces any more.
    ended: bool,
}

impl Ingest {
    /// Starts the thread.
    pub fn start(mut writer: IndexWriter, threads: usize) -> Result<Ingest, Failure> {
        let queue = Arc::new(PieceQueue::default());
        let (stop, taken) = (writer.stop().clone(), queue.clone());
        let signal = stop.clone();
        let threads = threads.min(writer.threads_max());
        let started = Builder::new().name("tierdex writer".to_string()).spawn(move || {
            let end = EndOnDrop(taken.clone());
            let result = catch(|| {
                let next = || taken.take(&signal);
                let parse = |piece: Piece, add: &mut dyn FnMut(&str, &str, &str) -> tierdex::Result<()>| {
                    piece.each(add)
                };
                Ok(ingest(&mut writer, threads, next, parse, |()| Ok(()))?)
            });
            drop(end);
            (writer, result)
        });
        let thread = started.map_err(|error| thread_error(&error))?;
        Ok(Ingest { queue, stop, thread })
    }

    /// Waits for space in the queue, for a short time. False if there is none yet; true also when the thread
    /// has ended.
    pub fn wait(&self, pieces_max: usize) -> bool {
        let state = self.queue.lock();
        let is_full = |state: &mut QueueState| state.pieces.len() >= pieces_max && !state.ended;
        let waited = self.queue.changed.wait_timeout_while(state, SIGNAL_CHECK, is_full);
        !is_full(&mut waited.unwrap_or_else(PoisonError::into_inner).0)
    }

    /// Appends a piece. False if the thread has ended with an error.
    pub fn push(&self, piece: Piece) -> bool {
        let mut state = self.queue.lock();
        if !state.ended {
            state.pieces.push_back(piece);
            self.queue.changed.notify_all();
        }
        !state.ended
    }

    /// The stop signal of the writer.
    pub fn stop(&self) -> &Stop {
        &self.stop
    }

    /// Waits until all pieces were added. The writer is gone if its thread has panicked.
    pub fn finish(self) -> (Option<IndexWriter>, Result<(), Failure>) {
        self.queue.lock().closed = true;
        self.queue.changed.notify_all();
        match self.thread.join() {
            Ok((writer, result)) => (Some(writer), result),
            Err(panic) => (None, Err(Failure::Panic(crate::errors::panic_message(&*panic)))),
        }
    }
}

/// Pieces that may wait in the queue of a writer with this number of threads.
pub fn pieces_max(threads: usize) -> usize {
    PIECES_WAITING * threads.max(1)
}

impl PieceQueue {
    /// The next piece; `None` after the last.
    ///
    /// # Errors
    /// [`tierdex::Error::Interrupted`] when `stop` is raised: another thread of the ingest may have failed.
    fn take(&self, stop: &Stop) -> tierdex::Result<Option<Piece>> {
        let waits = |state: &mut QueueState| state.pieces.is_empty() && !state.closed;
        let mut state = self.lock();
        while waits(&mut state) {
            stop.check()?;
            let waited = self.changed.wait_timeout_while(state, SIGNAL_CHECK, waits);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let piece = state.pieces.pop_front();
        self.changed.notify_all();
        Ok(piece)
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells the adding thread that no more pieces are taken.
struct EndOnDrop(Arc<PieceQueue>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.lock().ended = true;
        self.0.changed.notify_all();
    }
}
