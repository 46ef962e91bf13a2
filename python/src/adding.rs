//! Calls that add many documents: their progress, and what they pass to the writer.

use crate::writer_handle::{WriterHandle, ended};
use crate::{errors::warn, pieces::Piece};
use pyo3::prelude::*;
use std::time::{Duration, Instant};
use tierdex_python_writer::Documents;

/// Time between two calls of a progress function.
pub const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// A call that adds many documents.
pub struct Adding<'c, 'py> {
    writer: &'c WriterHandle,
    py: Python<'py>,
    progress: Progress<'py>,
    /// Documents that were added.
    pub added: u64,
    /// Titles and texts in which U+FFFD was put.
    pub replaced: u64,
}

impl<'c, 'py> Adding<'c, 'py> {
    /// A call that has added nothing.
    pub fn new(
        writer: &'c WriterHandle,
        py: Python<'py>,
        progress: Option<Bound<'py, PyAny>>,
    ) -> Adding<'c, 'py> {
        Adding { writer, py, progress: Progress::new(progress), added: 0, replaced: 0 }
    }

    /// Adds a piece, if it has documents; after a signal too, as they cannot be read again.
    pub fn push(&mut self, piece: Piece) -> PyResult<()> {
        if piece.documents() == 0 {
            return Ok(());
        }
        let (documents, mut piece) = (piece.documents(), Some(piece));
        let pushed = self.writer.wait(self.py, |state| state.add_piece(&mut piece, documents));
        let pushed = pushed.inspect_err(|_| {
            if let Ok(thread) = self.writer.thread(self.py) {
                // If the writer has ended, the next call says so.
                let _ = thread.step(|state| state.keep_piece(&mut piece, documents));
            }
        });
        let before = format!("; {} documents of this call were added before", self.added);
        pushed?.map_err(|end| ended(self.py, end, &before))?;
        self.added += documents;
        Ok(())
    }

    /// Checks for signals and reports progress, from time to time.
    pub fn show_progress(&mut self) -> PyResult<()> {
        self.py.check_signals()?;
        self.progress.at(self.added)
    }

    /// Reports the end; returns the number of documents.
    pub fn end(self) -> PyResult<u64> {
        self.progress.end(self.added)?;
        warn_of_replaced(self.py, self.replaced)?;
        Ok(self.added)
    }
}

/// Warns of titles and texts that are not what they were.
pub fn warn_of_replaced(py: Python<'_>, replaced: u64) -> PyResult<()> {
    if replaced == 0 {
        return Ok(());
    }
    let what = "had bytes that are not UTF-8, or lone surrogates: U+FFFD is indexed in their place";
    warn(py, &format!("{replaced} of the titles and texts {what}"))
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
