//! The options of a writer.

use crate::index::stop::StopSignal;
use crate::{Error, Result, limits::MEMORY_MIN};

/// Options of an [`IndexWriter`](crate::IndexWriter).
///
/// ```
/// use tierdex::WriterOptions;
///
/// let options = WriterOptions { memory: 64 << 20, ..WriterOptions::default() };
/// ```
#[derive(Clone, Debug)]
pub struct WriterOptions {
    /// Bytes of memory for postings and for batches of documents, at least 16 MiB; 1 GiB by default. More
    /// memory gives fewer and larger segments.
    pub memory: usize,
    /// Whether a new index is updatable: its segments have keys, by which documents are found by their ids.
    /// No two of its documents may then have the same id. An existing index keeps what it is.
    pub updatable: bool,
    /// The signal that another thread raises to stop the writer: the call in progress then returns
    /// [`Error::Interrupted`], and nothing is committed.
    pub stop: StopSignal,
}

impl Default for WriterOptions {
    fn default() -> WriterOptions {
        WriterOptions { memory: 1 << 30, updatable: false, stop: StopSignal::default() }
    }
}

impl WriterOptions {
    pub(super) fn check(&self) -> Result<()> {
        if self.memory < MEMORY_MIN {
            let (memory, min) = (self.memory, MEMORY_MIN >> 20);
            return Err(Error::Usage(format!(
                "memory of {memory} bytes is too little; {min}M is the minimum"
            )));
        }
        Ok(())
    }
}
