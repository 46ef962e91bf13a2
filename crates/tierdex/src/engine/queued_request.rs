//! A queued request, with the snapshot that it searches and the reply to its ticket.

use super::request::{Hits, Priority, SearchRequest};
use super::snapshot::Snapshot;
use super::ticket::Reply;
use crate::error::Error;
use std::sync::Arc;
use std::time::Instant;

/// A request from its arrival until a thread takes it.
pub(super) struct QueuedRequest {
    pub(super) request: SearchRequest,
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) reply: Reply,
    pub(super) arrived: Instant,
}

impl QueuedRequest {
    pub(super) fn priority(&self) -> Priority {
        self.request.priority
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.request.deadline
    }

    /// Whether it was cancelled, or its deadline has passed.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.reply.is_cancelled() || self.request.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// Answers a request that [`QueuedRequest::is_due`], without an evaluation.
    pub(super) fn expire(self) {
        let QueuedRequest { snapshot, reply, arrived, .. } = self;
        let result = if reply.is_cancelled() {
            Err(Error::Cancelled)
        } else {
            Ok(Hits::expired(snapshot, arrived.elapsed()))
        };
        reply.send(result);
    }

    /// Bytes of memory while it is queued.
    pub(super) fn memory(&self) -> u64 {
        let statistics = self.request.statistics.as_ref().map_or(0, |statistics| statistics.memory());
        (size_of::<QueuedRequest>() + self.request.query.memory() + statistics) as u64
    }
}
