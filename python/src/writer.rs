//! `tierdex.Writer`: adds documents to an index and commits them.

use crate::documents::{CopiedPiece, DocumentReader, Piece};
use crate::errors::{Failure, guard, usage};
use crate::ingest::{Ingest, pieces_max};
use crate::process::OwnedHere;
use crate::wait;
use pyo3::prelude::*;
use pyo3_arrow::input::AnyRecordBatch;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tierdex::index::Stop;
use tierdex::{IndexWriter, Merge, WriterOptions};

/// Time between two calls of a progress function.
pub const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// Adds documents to an index; see `tierdex.Index.writer`.
///
/// As a context manager it commits at the end, or discards all documents since the last commit when an
/// exception leaves the block.
#[pyclass(frozen, module = "tierdex")]
pub struct Writer {
    on_commit: OnCommit,
    threads: usize,
    merge: Option<bool>,
    /// Locked only while the GIL is held, so that a fork never copies a locked mutex.
    state: Mutex<OwnedHere<WriterState>>,
}

/// Called after a commit.
pub type OnCommit = Box<dyn Fn(Python<'_>) -> PyResult<()> + Send + Sync>;

/// The engine's writer, or the thread that has it.
struct WriterState {
    stage: Stage,
    piece: CopiedPiece,
    /// Documents since the last commit.
    added: u64,
    bytes_max: usize,
}

enum Stage {
    /// No thread runs.
    Idle(Box<IndexWriter>),
    /// A thread analyses documents.
    Running(Ingest),
    /// A call works on it.
    Taken,
    /// After [`Writer::close`], [`Writer::rollback`] or an error.
    Closed(String),
}

impl Writer {
    /// Opens a writer of the index in `path`; waits up to `wait_for` for another one to end.
    pub fn open(
        py: Python<'_>,
        path: PathBuf,
        (memory, threads): (usize, usize),
        (merge, wait_for): (Option<bool>, Duration),
        on_commit: OnCommit,
    ) -> PyResult<Writer> {
        let options = WriterOptions { memory, stop: Stop::default() };
        let stop = options.stop.clone();
        let until = Instant::now() + wait_for;
        let writer = wait::run(py, Some(&stop.clone()), move || {
            loop {
                match IndexWriter::append(&path, options.clone()) {
                    Err(tierdex::Error::Busy(_)) if Instant::now() < until => {
                        stop.check()?;
                        std::thread::sleep(LOCK_RETRY);
                    }
                    other => return Ok(other?),
                }
            }
        })?;
        let bytes_max = writer.document_bytes_max();
        let stage = Stage::Idle(Box::new(writer));
        let state = WriterState { stage, piece: CopiedPiece::default(), added: 0, bytes_max };
        let state = Mutex::new(OwnedHere::new(state));
        Ok(Writer { on_commit, threads, merge, state })
    }

    fn lock(&self) -> MutexGuard<'_, OwnedHere<WriterState>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `body` with the state; `body` must not release the GIL.
    fn with<T>(&self, py: Python<'_>, body: impl FnOnce(&mut WriterState) -> PyResult<T>) -> PyResult<T> {
        let mut state = self.lock();
        match state.get_mut() {
            Some(state) => body(state),
            None => Err(usage(py, "the writer belongs to the parent process; open one in this process")),
        }
    }

    /// Takes the stage out; the caller puts another one in.
    fn take(&self, py: Python<'_>) -> PyResult<Stage> {
        self.with(py, |state| {
            if let Stage::Closed(why) = &state.stage {
                return Err(usage(py, why.clone()));
            }
            match std::mem::replace(&mut state.stage, Stage::Taken) {
                Stage::Taken => Err(usage(py, "another thread is using this writer")),
                stage => Ok(stage),
            }
        })
    }

    fn put(&self, py: Python<'_>, stage: Stage) -> PyResult<()> {
        self.with(py, |state| {
            state.stage = stage;
            Ok(())
        })
    }

    /// Closes the writer because of an error.
    fn fail(&self, py: Python<'_>, error: PyErr) -> PyErr {
        let why = error.value(py).str().map_or_else(|_| "an error".to_string(), |text| text.to_string());
        let why = format!("the writer stopped after an error; open it again ({why})");
        let closed = self.put(py, Stage::Closed(why));
        closed.err().unwrap_or(error)
    }

    /// Passes the documents that were read to the threads.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        let piece = self.with(py, |state| Ok(std::mem::take(&mut state.piece)))?;
        if piece.is_empty() { Ok(()) } else { self.push(py, Piece::Copied(piece)) }
    }

    /// Passes a piece to the threads; waits for space in their queue.
    fn push(&self, py: Python<'_>, piece: Piece) -> PyResult<()> {
        let ingest = match self.take(py)? {
            Stage::Running(ingest) => ingest,
            Stage::Idle(writer) => Ingest::start(*writer, self.threads)
                .map_err(|error| self.fail(py, error.into_exception(py)))?,
            Stage::Taken | Stage::Closed(_) => unreachable!("take() returns neither"),
        };
        while !py.detach(|| ingest.wait(pieces_max(self.threads))) {
            if let Err(signal) = py.check_signals() {
                self.put(py, Stage::Running(ingest))?;
                return Err(signal);
            }
        }
        let documents = piece.documents() as u64;
        if ingest.push(piece) {
            self.with(py, |state| {
                state.added += documents;
                Ok(())
            })?;
            return self.put(py, Stage::Running(ingest));
        }
        // The thread has ended with an error.
        let (_, result) = py.detach(|| ingest.finish());
        let failure =
            result.err().unwrap_or_else(|| Failure::Panic("the writer's thread has ended".to_string()));
        Err(self.fail(py, failure.into_exception(py)))
    }

    /// Ends the thread: all documents are in the engine's writer then.
    fn join(&self, py: Python<'_>) -> PyResult<Box<IndexWriter>> {
        self.flush(py)?;
        let ingest = match self.take(py)? {
            Stage::Idle(writer) => return Ok(writer),
            Stage::Running(ingest) => ingest,
            Stage::Taken | Stage::Closed(_) => unreachable!("take() returns neither"),
        };
        let stop = ingest.stop().clone();
        let finished = wait::run(py, Some(&stop), move || {
            let (writer, result) = ingest.finish();
            result?;
            writer.map(Box::new).ok_or_else(|| Failure::Panic("the writer's thread has panicked".to_string()))
        });
        finished.map_err(|error| self.fail(py, error))
    }

    /// Discards what was not committed.
    fn discard(&self, py: Python<'_>, why: &str) -> PyResult<()> {
        let stage = match self.take(py) {
            Ok(stage) => stage,
            // It is closed already.
            Err(_) => return Ok(()),
        };
        self.with(py, |state| {
            state.piece = CopiedPiece::default();
            Ok(())
        })?;
        py.detach(|| match stage {
            Stage::Running(ingest) => {
                ingest.stop().raise();
                drop(ingest.finish());
            }
            stage => drop(stage),
        });
        self.put(py, Stage::Closed(why.to_string()))
    }
}

/// Time between two attempts to take the lock of an index.
const LOCK_RETRY: Duration = Duration::from_millis(20);

#[pymethods]
impl Writer {
    /// Adds a document: a dict with `id` and optionally `title` and `text`.
    fn add(&self, py: Python<'_>, document: &Bound<'_, PyAny>) -> PyResult<()> {
        guard(py, || {
            let is_full = self.with(py, |state| {
                if let Stage::Closed(why) = &state.stage {
                    return Err(usage(py, why.clone()));
                }
                let reader = DocumentReader::new(py, ["id", "title", "text"], state.bytes_max);
                let number = state.added + state.piece.documents();
                reader.read(document, number, &mut state.piece)?;
                Ok(state.piece.is_full())
            })?;
            if is_full { self.flush(py) } else { Ok(()) }
        })
    }

    /// Adds the documents of an iterable of dicts; returns their number. `progress` is called with the
    /// number of documents so far.
    #[pyo3(signature = (documents, *, id="id", title="title", text="text", progress=None))]
    fn add_dicts(
        &self,
        py: Python<'_>,
        documents: &Bound<'_, PyAny>,
        id: &str,
        title: &str,
        text: &str,
        progress: Option<Bound<'_, PyAny>>,
    ) -> PyResult<u64> {
        guard(py, || {
            let bytes_max = self.with(py, |state| Ok(state.bytes_max))?;
            let reader = DocumentReader::new(py, [id, title, text], bytes_max);
            let (mut number, mut progress) = (0, Progress::new(progress));
            // The piece of single documents goes first.
            self.flush(py)?;
            let mut piece = CopiedPiece::default();
            for document in documents.try_iter()? {
                let read = document.and_then(|document| reader.read(&document, number, &mut piece));
                if let Err(error) = read {
                    // The documents before it are added.
                    self.push_copied(py, piece)?;
                    return Err(error);
                }
                number += 1;
                if piece.is_full() {
                    self.push_copied(py, std::mem::take(&mut piece))?;
                    py.check_signals()?;
                    progress.at(number)?;
                }
            }
            self.push_copied(py, piece)?;
            progress.end(number)?;
            Ok(number)
        })
    }

    /// Adds the rows of an Arrow table, record batch or stream; returns their number.
    #[pyo3(signature = (table, *, id="id", title="title", text="text", progress=None))]
    fn add_arrow(
        &self,
        py: Python<'_>,
        table: AnyRecordBatch,
        id: &str,
        title: &str,
        text: &str,
        progress: Option<Bound<'_, PyAny>>,
    ) -> PyResult<u64> {
        guard(py, || {
            let bytes_max = self.with(py, |state| Ok(state.bytes_max))?;
            let reader = DocumentReader::new(py, [id, title, text], bytes_max);
            let (mut number, mut progress) = (0, Progress::new(progress));
            self.flush(py)?;
            let mut batches = table.into_reader()?;
            while let Some(batch) = py.detach(|| batches.next()) {
                let batch = batch.map_err(|error| usage(py, format!("cannot read the table: {error}")))?;
                for piece in reader.rows(py, &batch, number)? {
                    number += piece.documents() as u64;
                    self.push(py, piece)?;
                    py.check_signals()?;
                    progress.at(number)?;
                }
            }
            progress.end(number)?;
            Ok(number)
        })
    }

    /// Makes all added documents durable and visible; returns the generation of the commit. `merge` merges
    /// all segments into one, which is the fastest to search, but writes the whole index again.
    #[pyo3(signature = (*, merge=None))]
    fn commit(&self, py: Python<'_>, merge: Option<bool>) -> PyResult<u64> {
        guard(py, || {
            let mut writer = self.join(py)?;
            let added = self.with(py, |state| Ok(state.added))?;
            let is_first = writer.documents() == added;
            let merge = merge.or(self.merge).unwrap_or(is_first);
            let policy = if merge { Merge::One } else { Merge::Keep };
            let stop = writer.stop().clone();
            let committed = wait::run(py, Some(&stop), move || {
                let generation = writer.commit(policy)?;
                Ok((writer, generation))
            });
            let (writer, generation) = committed.map_err(|error| self.fail(py, error))?;
            self.with(py, |state| {
                (state.stage, state.added) = (Stage::Idle(writer), 0);
                Ok(())
            })?;
            (self.on_commit)(py)?;
            Ok(generation)
        })
    }

    /// Discards the documents since the last commit and closes the writer.
    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        guard(py, || self.discard(py, "the writer was rolled back"))
    }

    /// Commits and closes the writer. A closed writer rejects all calls.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        guard(py, || {
            if self.with(py, |state| Ok(matches!(state.stage, Stage::Closed(_))))? {
                return Ok(());
            }
            self.commit(py, None)?;
            self.discard(py, "the writer is closed")
        })
    }

    /// Number of documents since the last commit.
    #[getter]
    fn added(&self, py: Python<'_>) -> PyResult<u64> {
        let waiting = |state: &mut WriterState| Ok(state.added + state.piece.documents());
        guard(py, || self.with(py, waiting))
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        if kind.is_none() {
            self.close(py)?
        } else {
            self.rollback(py)?
        }
        Ok(false)
    }
}

impl Writer {
    fn push_copied(&self, py: Python<'_>, piece: CopiedPiece) -> PyResult<()> {
        if piece.is_empty() { Ok(()) } else { self.push(py, Piece::Copied(piece)) }
    }
}

impl Drop for Writer {
    /// Discards what was not committed. In a forked child it does nothing.
    fn drop(&mut self) {
        let mut state = self.lock();
        let Some(state) = state.get_mut() else { return };
        if let Stage::Running(ingest) = std::mem::replace(&mut state.stage, Stage::Taken) {
            ingest.stop().raise();
            Python::attach(|py| py.detach(|| drop(ingest.finish())));
        }
    }
}

/// Calls a progress function from time to time.
pub struct Progress<'py> {
    function: Option<Bound<'py, PyAny>>,
    last: Instant,
}

impl<'py> Progress<'py> {
    pub fn new(function: Option<Bound<'py, PyAny>>) -> Progress<'py> {
        Progress { function, last: Instant::now() }
    }

    /// Reports `done`, unless the last report was a short time ago.
    pub fn at(&mut self, done: u64) -> PyResult<()> {
        if self.function.is_none() || self.last.elapsed() < PROGRESS_INTERVAL {
            return Ok(());
        }
        self.last = Instant::now();
        self.end(done)
    }

    /// Reports `done`.
    pub fn end(&self, done: u64) -> PyResult<()> {
        self.function.as_ref().map_or(Ok(()), |function| function.call1((done,)).map(drop))
    }
}
