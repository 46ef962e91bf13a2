//! What handlers add to their answers for the end of a request: its record in logs, and its memory.

use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

/// Bytes of a query in the log, at most.
pub(crate) const LOGGED_QUERY_BYTES: usize = 512;

/// What the answer of a search adds to logs.
#[derive(Clone, Debug, Default)]
pub(crate) struct SearchRecord {
    pub(crate) index: String,
    pub(crate) query: String,
    pub(crate) took: Duration,
    pub(crate) queued: Duration,
    pub(crate) memory: u64,
    pub(crate) pages: u64,
    pub(crate) pages_read: u64,
    pub(crate) parts: usize,
    pub(crate) timed_out: bool,
}

/// Memory of an answer, kept until the answer was written.
#[derive(Clone)]
pub(crate) struct AnswerMemory {
    permits: Vec<Arc<OwnedSemaphorePermit>>,
}

impl AnswerMemory {
    pub(crate) fn new(permit: OwnedSemaphorePermit) -> AnswerMemory {
        AnswerMemory { permits: vec![Arc::new(permit)] }
    }

    /// Adds the memory of another part of the answer.
    pub(crate) fn add(&mut self, other: AnswerMemory) {
        self.permits.extend(other.permits);
    }

    /// An answer with its memory.
    pub(crate) fn with(self, answer: impl IntoResponse) -> Response {
        let mut response = answer.into_response();
        response.extensions_mut().insert(self);
        response
    }
}
