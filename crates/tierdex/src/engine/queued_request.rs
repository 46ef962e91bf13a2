//! A queued request, with the snapshot that it searches and the reply to its ticket.

use super::request::SearchRequest;
use super::{pool::Reservation, priority::Priority, snapshot::Snapshot, ticket::Reply};
use crate::{Error, eval::explanation_memory, eval::leaf_memory, query::Query};
use std::{sync::Arc, time::Instant};

/// A request from its arrival until a thread takes it.
pub(super) struct QueuedRequest {
    pub(super) request: SearchRequest,
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) reply: Reply,
    pub(super) arrived: Instant,
    /// Number of requests that were queued before.
    pub(super) number: u64,
    /// Memory of the request and of its plan.
    pub(super) reserved: Reservation,
}

impl QueuedRequest {
    pub(super) fn priority(&self) -> Priority {
        self.request.priority
    }

    /// Whether it was cancelled, or its deadline has passed.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.reply.is_cancelled() || self.request.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// Answers a request that [`QueuedRequest::is_due`], without an evaluation.
    pub(super) fn expire(self) {
        let QueuedRequest { request, snapshot, reply, arrived, reserved, .. } = self;
        drop((request, snapshot, reserved));
        let queued = arrived.elapsed();
        let error = if reply.is_cancelled() { Error::Cancelled } else { Error::Expired { queued } };
        reply.send_without_hits(Err(error));
    }
}

impl SearchRequest {
    /// Bytes of memory of the request while it is queued, and of its plan until it is answered. Words of a
    /// prefix or of a fuzzy term are counted when they are known.
    pub(super) fn memory(&self, snapshot: &Snapshot) -> u64 {
        let statistics = self.statistics.as_ref().map_or(0, |statistics| statistics.memory());
        (size_of::<QueuedRequest>() + self.query.memory() + statistics) as u64 + self.plan_memory(snapshot)
    }

    /// The part of it for the plan.
    pub(super) fn plan_memory(&self, snapshot: &Snapshot) -> u64 {
        (self.terms() * leaf_memory(snapshot.index().segments().len())) as u64
    }

    /// Bytes of an explanation, without hits. Words of a prefix or of a fuzzy term are not counted.
    pub(super) fn explanation_memory(&self, snapshot: &Snapshot) -> u64 {
        explanation_memory(self.terms(), snapshot.index().segments().len())
    }

    /// Number of terms, at most: each is a query of its own.
    fn terms(&self) -> usize {
        self.query.memory() / size_of::<Query>()
    }
}
