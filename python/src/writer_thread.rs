//! The thread of a writer: it has the engine's writer, takes pieces of changes, analyses their documents on
//! several threads while Python makes the next ones, applies deletes, and commits.
//!
//! The state is locked for a step alone. A thread that has locked it neither calls Python nor waits for the
//! GIL, so that the GIL may be held while it is locked. In a forked child it must not be locked.

use crate::deletes::Deletes;
use crate::errors::{Failure, catch_panic};
use crate::pieces::Piece;
use crate::wait::{SIGNAL_CHECK_INTERVAL, thread_error};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{task::Poll, thread::Builder};
use tierdex::{DocumentRef, IndexWriter, Merge, StopSignal};
use tierdex_python_writer::{Task, WriterState};

/// Pieces that wait for each thread of analysis.
const PIECES_WAITING: usize = 2;

/// A wait of the thread for calls, which always wake it.
const IDLE_WAIT: Duration = Duration::from_secs(3600);

/// The state of a writer of the engine.
pub type State = WriterState<Piece, Piece, WriterFailure>;

/// Why the thread has ended.
#[derive(Clone)]
pub struct WriterFailure {
    /// The error or panic.
    pub failure: Failure,
    /// Whether a commit failed so late that it may be durable.
    pub in_doubt: bool,
}

/// A writer that has a thread.
pub struct WriterThread {
    shared: Arc<SharedState>,
    stop: StopSignal,
}

struct SharedState {
    state: Mutex<State>,
    changed: Condvar,
}

impl WriterThread {
    /// Starts the thread; it analyses documents on up to `threads` threads.
    pub fn start(writer: IndexWriter, threads: usize) -> Result<WriterThread, Failure> {
        let threads = threads.clamp(1, writer.threads_max());
        let state = Mutex::new(State::new(PIECES_WAITING * threads));
        let shared = Arc::new(SharedState { state, changed: Condvar::new() });
        let (stop, of_thread) = (writer.stop().clone(), shared.clone());
        let started = Builder::new().name("tierdex writer".to_string()).spawn(move || {
            let _exit = ExitOnDrop(&of_thread);
            let mut writer = writer;
            if let Err(failure) = catch_panic(|| of_thread.work(&mut writer, threads)) {
                let failure = WriterFailure { failure, in_doubt: writer.in_doubt() };
                drop(of_thread.step(|state| state.failed(failure)));
            }
        });
        started.map_err(|error| thread_error(&error))?;
        Ok(WriterThread { shared, stop })
    }

    /// Runs a step.
    pub fn step<T>(&self, step: impl FnOnce(&mut State) -> T) -> T {
        self.shared.step(step)
    }

    /// Repeats a step until it is ready, for about `time`. To be called without the GIL.
    pub fn wait<T>(&self, time: Duration, step: impl FnMut(&mut State) -> Poll<T>) -> Poll<T> {
        self.shared.wait(time, step)
    }

    /// The stop signal of the engine's writer.
    pub fn stop(&self) -> &StopSignal {
        &self.stop
    }
}

impl Drop for WriterThread {
    /// Discards what was not committed; the thread ends soon.
    fn drop(&mut self) {
        drop(self.step(State::abort));
        self.stop.raise();
    }
}

impl SharedState {
    /// Does the tasks of the thread until the writer ends.
    fn work(&self, writer: &mut IndexWriter, threads: usize) -> Result<(), Failure> {
        loop {
            match self.wait(IDLE_WAIT, State::next_task) {
                Poll::Pending => (),
                Poll::Ready(Task::Exit) => return Ok(()),
                Poll::Ready(Task::Analyse) => self.analyse(writer, threads)?,
                Poll::Ready(Task::Commit(order, changes)) => {
                    let is_first = writer.documents() == changes.documents;
                    let merges = order.merge.unwrap_or(is_first);
                    let generation = writer.commit(if merges { Merge::One } else { Merge::Keep })?;
                    self.step(|state| state.committed(generation));
                    // A signal that came too late to stop the commit ends the writer all the same.
                    writer.stop().check()?;
                }
            }
        }
    }

    /// Analyses the documents of pieces, then applies their deletes.
    fn analyse(&self, writer: &mut IndexWriter, threads: usize) -> tierdex::Result<()> {
        let (before, stop) = (writer.documents(), writer.stop().clone());
        let (mut deletes, mut documents) = (Deletes::default(), 0);
        let (mut ids_bytes, mut are_due) = (0, false);
        let next = || {
            let piece = if are_due { None } else { self.take(&stop)? };
            if let Some(piece) = &piece {
                are_due = piece.deletes.are_due(ids_bytes);
                ids_bytes += piece.deletes.ids_bytes();
            }
            Ok(piece)
        };
        let parse = |piece: Piece, add: &mut dyn FnMut(DocumentRef<'_>) -> tierdex::Result<()>| {
            piece.for_each_document(add)?;
            Ok((piece.documents(), piece.deletes))
        };
        let report = |(of_piece, following)| {
            deletes.append(following, documents);
            documents += of_piece;
            Ok(())
        };
        writer.ingest(threads, next, parse, report)?;
        deletes.apply(writer, before)
    }

    /// The next piece; `None` after the last.
    ///
    /// # Errors
    /// [`tierdex::Error::Interrupted`] when `stop` is raised: another thread of the analysis may have failed.
    fn take(&self, stop: &StopSignal) -> tierdex::Result<Option<Piece>> {
        loop {
            if let Poll::Ready(piece) = self.wait(SIGNAL_CHECK_INTERVAL, State::next_piece) {
                return Ok(piece);
            }
            stop.check()?;
        }
    }

    fn step<T>(&self, step: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let done = step(&mut state);
        self.unlock(state);
        done
    }

    fn wait<T>(&self, time: Duration, mut step: impl FnMut(&mut State) -> Poll<T>) -> Poll<T> {
        let start = Instant::now();
        let mut state = self.lock();
        loop {
            let done = step(&mut state);
            let left = time.saturating_sub(start.elapsed());
            if done.is_ready() || left.is_zero() {
                self.unlock(state);
                return done;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Unlocks the state. If it has changed, wakes all threads that wait for a change.
    fn unlock(&self, mut state: MutexGuard<'_, State>) {
        let changed = state.take_changed();
        drop(state);
        if changed {
            self.changed.notify_all();
        }
    }
}

/// Tells the calls that the thread has dropped the engine's writer, even if that has panicked.
struct ExitOnDrop<'s>(&'s SharedState);

impl Drop for ExitOnDrop<'_> {
    fn drop(&mut self) {
        let failure = Failure::Panic("the thread of the writer has panicked".to_string());
        drop(self.0.step(|state| state.failed(WriterFailure { failure, in_doubt: false })));
        self.0.step(State::exited);
    }
}
