//! Calls that add many documents: their progress, and what they pass to the writer.

use crate::writer_handle::{WriterHandle, writer_ended_error};
use crate::{errors::issue_warning, pieces::Piece};
use pyo3::prelude::*;
use std::time::{Duration, Instant};
use tierdex_python_writer::Changes;

/// Time between two calls of a progress function.
pub const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// The progress of one call from Python that adds many documents.
pub struct DocumentUpload<'c, 'py> {
    writer: &'c WriterHandle,
    py: Python<'py>,
    progress: Progress<'py>,
    /// Number of documents that were added so far.
    pub added: u64,
    /// Number of values in which invalid bytes were replaced by U+FFFD.
    pub replaced: u64,
}

impl<'c, 'py> DocumentUpload<'c, 'py> {
    /// Starts with no document added.
    pub fn new(
        writer: &'c WriterHandle,
        py: Python<'py>,
        progress: Option<Bound<'py, PyAny>>,
    ) -> DocumentUpload<'c, 'py> {
        DocumentUpload { writer, py, progress: Progress::new(progress), added: 0, replaced: 0 }
    }

    /// Passes the documents of a piece to the writer. After a signal the writer keeps them for its next call,
    /// as an iterator cannot yield them again.
    pub fn add_piece(&mut self, piece: Piece) -> PyResult<()> {
        if piece.documents() == 0 {
            return Ok(());
        }
        let (changes, mut piece) = (piece.count(), Some(piece));
        let pushed = self.writer.wait(self.py, |state| state.add_piece(&mut piece, changes));
        let pushed = pushed.inspect_err(|_| {
            if let Ok(thread) = self.writer.thread(self.py) {
                // If the writer has ended, the next call says so.
                let _ = thread.step(|state| state.keep_piece(&mut piece, changes));
            }
        });
        let before = format!("; {} documents of this call were added before", self.added);
        pushed?.map_err(|end| writer_ended_error(self.py, end, &before))?;
        self.added += changes.documents;
        Ok(())
    }

    /// Checks for signals, and calls the progress function if the interval has passed.
    pub fn show_progress(&mut self) -> PyResult<()> {
        self.py.check_signals()?;
        self.progress.report_if_due(self.added)
    }

    /// Calls the progress function a last time and warns of replaced bytes; returns the number of documents.
    pub fn finish_upload(self) -> PyResult<u64> {
        self.progress.report_now(self.added)?;
        warn_of_replaced(self.py, self.replaced)?;
        Ok(self.added)
    }
}

/// Warns of values in which invalid bytes were replaced.
pub fn warn_of_replaced(py: Python<'_>, replaced: u64) -> PyResult<()> {
    if replaced == 0 {
        return Ok(());
    }
    let what = "had bytes that are not UTF-8, or lone surrogates: U+FFFD is indexed in their place";
    issue_warning(py, &format!("{replaced} of the values {what}"))
}

/// Calls the progress function of the caller, at most once in [`PROGRESS_INTERVAL`].
pub struct Progress<'py> {
    function: Option<Bound<'py, PyAny>>,
    last: Instant,
}

impl<'py> Progress<'py> {
    pub fn new(function: Option<Bound<'py, PyAny>>) -> Progress<'py> {
        Progress { function, last: Instant::now() }
    }

    /// Calls the function with `done`, unless the last call was less than [`PROGRESS_INTERVAL`] ago.
    pub fn report_if_due(&mut self, done: u64) -> PyResult<()> {
        if self.function.is_none() || self.last.elapsed() < PROGRESS_INTERVAL {
            return Ok(());
        }
        self.last = Instant::now();
        self.report_now(done)
    }

    /// Calls the function with `done`.
    pub fn report_now(&self, done: u64) -> PyResult<()> {
        self.function.as_ref().map_or(Ok(()), |function| function.call1((done,)).map(drop))
    }
}
