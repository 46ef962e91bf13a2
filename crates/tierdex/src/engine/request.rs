//! What an engine is asked, and what it answers.

use super::snapshot::Snapshot;
use crate::index::{SearchHit, SearchOptions};
use crate::query::Query;
use crate::rank::{Bm25, Statistics};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Which requests go first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Somebody waits for this one answer.
    #[default]
    Interactive,
    /// One of many: interactive requests do not wait for it.
    Batch,
}

/// A query, and how to answer it.
#[derive(Clone)]
pub struct Request {
    pub(super) query: Query,
    pub(super) snapshot: Option<Arc<Snapshot>>,
    pub(super) options: SearchOptions,
    pub(super) statistics: Option<Arc<Statistics>>,
    pub(super) deadline: Option<Instant>,
    pub(super) priority: Priority,
}

impl Request {
    /// Asks for the ten best documents, uncounted, in the engine's newest snapshot, without a deadline.
    pub fn new(query: Query) -> Request {
        Request {
            query,
            snapshot: None,
            options: SearchOptions { count: false, ..SearchOptions::default() },
            statistics: None,
            deadline: None,
            priority: Priority::Interactive,
        }
    }

    /// Hits to return, at most; 0 to count only.
    #[must_use]
    pub fn k(mut self, k: usize) -> Request {
        self.options.k = k;
        self
    }

    /// Whether every matching document is counted: else documents that cannot be hits are skipped, and the
    /// total is a lower bound.
    #[must_use]
    pub fn count(mut self, count: bool) -> Request {
        self.options.count = count;
        self
    }

    /// The parameters of the ranking.
    #[must_use]
    pub fn bm25(mut self, bm25: Bm25) -> Request {
        self.options.bm25 = bm25;
        self
    }

    /// All options of a search.
    #[must_use]
    pub fn options(mut self, options: SearchOptions) -> Request {
        self.options = options;
        self
    }

    /// Statistics to score by, such as those of all shards together ([`Searcher::statistics`]).
    ///
    /// [`Searcher::statistics`]: crate::index::Searcher::statistics
    #[must_use]
    pub fn statistics(mut self, statistics: Arc<Statistics>) -> Request {
        self.statistics = Some(statistics);
        self
    }

    /// The commit to search.
    #[must_use]
    pub fn snapshot(mut self, snapshot: Arc<Snapshot>) -> Request {
        self.snapshot = Some(snapshot);
        self
    }

    /// When to stop: the answer is then what was found until then ([`Answer::timed_out`]).
    #[must_use]
    pub fn deadline(mut self, deadline: Instant) -> Request {
        self.deadline = Some(deadline);
        self
    }

    /// Which requests go first.
    #[must_use]
    pub fn priority(mut self, priority: Priority) -> Request {
        self.priority = priority;
        self
    }
}

/// How many documents match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TotalHits {
    /// Exactly this many.
    Exact(u64),
    /// This many or more: they were not counted, or the deadline passed.
    AtLeast(u64),
}

impl TotalHits {
    /// The number.
    pub fn value(self) -> u64 {
        match self {
            TotalHits::Exact(value) | TotalHits::AtLeast(value) => value,
        }
    }
}

impl Answer {
    /// The deadline passed before a thread took the request.
    pub(super) fn expired(snapshot: Arc<Snapshot>, took: Duration) -> Answer {
        let total = TotalHits::AtLeast(0);
        Answer { hits: Vec::new(), total, timed_out: true, parts: 0, took, queued: took, snapshot }
    }
}

/// The answer to a request.
#[derive(Clone)]
pub struct Answer {
    /// The best documents, best first; equal scores by document.
    pub hits: Vec<SearchHit>,
    /// How many documents match.
    pub total: TotalHits,
    /// The deadline passed: hits are the best of the documents that were evaluated until then.
    pub timed_out: bool,
    /// Parts in which the documents were evaluated: several if threads had nothing else to do.
    pub parts: usize,
    /// From the arrival of the request to its answer.
    pub took: Duration,
    /// How much of that it waited for a thread.
    pub queued: Duration,
    /// The commit that was searched; [`SearchHit::document`] is a document number of this commit.
    pub snapshot: Arc<Snapshot>,
}
