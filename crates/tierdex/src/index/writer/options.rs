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
    /// Whether a new index is updatable: its documents are found by their ids, and of documents with the same
    /// id the last one replaces the others. Takes 8 bytes a document. An existing index keeps what it is.
    pub updatable: bool,
    /// Number of threads that encode posting lists when a segment is written or merged, at most what the
    /// memory permits; by default the number of processors. The index does not depend on it.
    pub threads: usize,
    /// The signal that another thread raises to stop the writer: the call in progress then returns
    /// [`Error::Interrupted`], and nothing is committed.
    pub stop: StopSignal,
}

impl Default for WriterOptions {
    fn default() -> WriterOptions {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        WriterOptions { memory: 1 << 30, updatable: false, threads, stop: StopSignal::default() }
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
