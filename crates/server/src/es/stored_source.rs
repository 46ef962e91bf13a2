//! Reads the sources of documents within the memory of answers and until a deadline.

use super::source::SourceFilter;
use crate::api_error::{ApiError, ApiErrorKind};
use crate::record::AnswerMemory;
use crate::search::{blocking, more_answer_memory};
use crate::state::{ServerState, UNIT};
use crate::stored::DOCUMENT_BYTES;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::Instant;
use tierdex::Snapshot;

/// Bytes of a document that is read at once. Longer ones are read again, with memory for them.
const SHORT_BYTES: usize = 32 << 10;

/// Bytes of the document that is being read, as values and as text. The caller of a reader has them.
pub(super) const READER_BYTES: usize = 2 * SHORT_BYTES;

/// Bytes by which the memory of an answer grows.
const STEP: usize = 64 << 10;

/// Reads sources, and has the memory of those that were read.
pub(super) struct SourceReader {
    state: Arc<ServerState>,
    until: Instant,
    memory: Option<AnswerMemory>,
    reserved: usize,
    used: usize,
}

impl SourceReader {
    /// Runs a function that reads documents on a thread of its own. Returns its result, and the memory of the
    /// sources in it. The caller has reserved [`READER_BYTES`] of the memory of answers, so that no request
    /// waits for memory while it has some.
    pub(super) async fn run<T: Send + 'static>(
        state: &Arc<ServerState>,
        until: Instant,
        read: impl FnOnce(&mut SourceReader) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<(T, Option<AnswerMemory>), ApiError> {
        let mut reader = SourceReader { state: state.clone(), until, memory: None, reserved: 0, used: 0 };
        blocking(state, move || Ok((read(&mut reader)?, reader.memory))).await
    }

    /// Whether there is no time for another document.
    pub(super) fn is_late(&self) -> bool {
        Instant::now() >= self.until
    }

    /// The source of a document; `None` if the index stores none.
    pub(super) fn read(
        &mut self,
        snapshot: &Snapshot,
        document: u32,
        filter: &SourceFilter,
    ) -> Result<Option<Box<RawValue>>, ApiError> {
        let Some(mut stored) = snapshot.stored_within(document, SHORT_BYTES)? else { return Ok(None) };
        let mut long_memory = None;
        if stored.is_cut() {
            long_memory = Some(more_answer_memory(&self.state, 2 * DOCUMENT_BYTES)?);
            stored = snapshot.stored_within(document, DOCUMENT_BYTES)?.unwrap_or_default();
        }
        if stored.is_cut() {
            let message = format!(
                "a document is longer than {DOCUMENT_BYTES} bytes, which is the most that is shown; search \
                 without [_source]"
            );
            return Err(ApiError::new(ApiErrorKind::Limit, message));
        }
        let source = filter.source_of(&stored, self.until)?;
        self.add(source.get().len())?;
        drop(long_memory);
        Ok(Some(source))
    }

    /// Counts the bytes of a source: as text, and in the answer.
    fn add(&mut self, bytes: usize) -> Result<(), ApiError> {
        self.used += 2 * bytes;
        let most = self.state.answers.max as usize * UNIT / 2;
        if self.used > most {
            let message = format!(
                "the sources of all hits take more than {} bytes; ask for fewer hits, or for less of [_source]",
                most / 2
            );
            return Err(ApiError::new(ApiErrorKind::Limit, message));
        }
        while self.used > self.reserved {
            let more = more_answer_memory(&self.state, STEP)?;
            self.reserved += STEP;
            match &mut self.memory {
                Some(memory) => memory.add(more),
                None => self.memory = Some(more),
            }
        }
        Ok(())
    }
}
