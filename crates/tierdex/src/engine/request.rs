//! Requests to an engine, and their results.

use super::preview::{Preview, PreviewOptions};
use super::{priority::Priority, snapshot::Snapshot};
use crate::index::{Explanation, HitIds, SearchHit, SearchOptions, SearchResult};
use crate::rank::{Scorer, Statistics};
use crate::{Error, Result, query::Query};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A query, and the options of its search: number of hits, counting, ranking, deadline.
///
/// ```
/// use std::time::{Duration, Instant};
/// use tierdex::{Query, Schema, SearchRequest};
///
/// let query = Query::parse("+solid +state", &Schema::default())?;
/// let deadline = Instant::now() + Duration::from_millis(200);
/// let request = SearchRequest::new(query).k(20).count(true).deadline(deadline);
/// # Ok::<(), tierdex::Error>(())
/// ```
#[derive(Clone)]
pub struct SearchRequest {
    pub(super) query: Query,
    pub(super) snapshot: Option<Arc<Snapshot>>,
    pub(super) options: SearchOptions,
    pub(super) previews: Option<PreviewOptions>,
    pub(super) explains: bool,
    pub(super) statistics: Option<Arc<Statistics>>,
    /// Whether the statistics of the query are requested, not hits.
    pub(super) collects: bool,
    pub(super) deadline: Option<Instant>,
    pub(super) priority: Priority,
}

impl SearchRequest {
    /// The ten best documents in the newest snapshot of the engine; matches are not counted, and there is no
    /// deadline.
    pub fn new(query: Query) -> SearchRequest {
        SearchRequest {
            query,
            snapshot: None,
            options: SearchOptions { ids: true, ..SearchOptions::default() },
            previews: None,
            explains: false,
            statistics: None,
            collects: false,
            deadline: None,
            priority: Priority::Interactive,
        }
    }

    /// Sets the number of hits to return, at most: 10 by default; 0 only counts.
    #[must_use]
    pub fn k(mut self, k: usize) -> SearchRequest {
        self.options.k = k;
        self
    }

    /// Sets whether every matching document is counted. If not, which is the default, documents that cannot
    /// be among the best are skipped, and [`Hits::total`] is a lower bound. Counting takes longer.
    #[must_use]
    pub fn count(mut self, count: bool) -> SearchRequest {
        self.options.count = count;
        self
    }

    /// Sets how documents are scored: [`Bm25`](crate::Bm25) with other parameters, or [`Scorer::Dot`].
    #[must_use]
    pub fn scorer(mut self, scorer: impl Into<Scorer>) -> SearchRequest {
        self.options.scorer = scorer.into();
        self
    }

    /// Sets whether the external ids of the hits are read with the hits, which is the default: the engine
    /// reads them through its cache. Otherwise [`Hits::ids`] reads them, while its caller waits.
    #[must_use]
    pub fn ids(mut self, ids: bool) -> SearchRequest {
        self.options.ids = ids;
        self
    }

    /// Requests titles and snippets of the hits, [`Hits::previews`]. The engine reads them through its cache,
    /// within its memory budget and until the deadline; by default none are read.
    #[must_use]
    pub fn previews(mut self, options: PreviewOptions) -> SearchRequest {
        self.previews = Some(options);
        self
    }

    /// Sets whether the evaluation is recorded, [`Hits::explanation`]; by default it is not. Then one thread
    /// evaluates it, slower.
    #[must_use]
    pub fn explain(mut self, explain: bool) -> SearchRequest {
        self.explains = explain;
        self
    }

    /// Sets number of hits, counting, ranking and reading of ids together; unlike requests, options do not
    /// read ids by default.
    #[must_use]
    pub fn options(mut self, options: SearchOptions) -> SearchRequest {
        self.options = options;
        self
    }

    /// Sets the statistics to score by, those of all shards; those of the index itself by default. For
    /// [`Engine::statistics`](crate::Engine::statistics) sets the question that is answered.
    #[must_use]
    pub fn statistics(mut self, statistics: Arc<Statistics>) -> SearchRequest {
        self.statistics = Some(statistics);
        self
    }

    /// Requests the statistics of the query instead of hits.
    pub(super) fn collect_statistics(mut self) -> SearchRequest {
        self.collects = true;
        self
    }

    /// Sets the commit to search; the newest that the engine has opened by default.
    #[must_use]
    pub fn snapshot(mut self, snapshot: Arc<Snapshot>) -> SearchRequest {
        self.snapshot = Some(snapshot);
        self
    }

    /// Sets when to stop. The result then has the best documents that were evaluated until then
    /// ([`Hits::timed_out`]); a request whose deadline passes in the queue gets [`Error::Expired`].
    #[must_use]
    pub fn deadline(mut self, deadline: Instant) -> SearchRequest {
        self.deadline = Some(deadline);
        self
    }

    /// Sets the priority; [`Priority::Interactive`] by default.
    #[must_use]
    pub fn priority(mut self, priority: Priority) -> SearchRequest {
        self.priority = priority;
        self
    }
}

/// Number of documents that match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TotalHits {
    /// Exactly this many.
    Exact(u64),
    /// This many or more: matches were not counted, or the deadline passed.
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

/// What the evaluation of a request took beside time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestCost {
    /// Bytes of memory that an evaluation of its plan reserves, beside the request and its result.
    pub memory: u64,
    /// Pages of 4 KiB that were requested from the cache; one that was requested again counts again.
    pub pages: u64,
    /// Those that were not cached, or still being read for another request.
    pub pages_missed: u64,
}

/// The result of a request.
#[derive(Clone)]
#[non_exhaustive]
pub struct Hits {
    /// The best documents in order of decreasing score; equal scores in order of documents.
    pub hits: Vec<SearchHit>,
    /// External ids that were read with the hits.
    pub(super) ids: HitIds,
    /// Titles and snippets of the hits, in their order, if they were requested and the index stores values.
    /// If the deadline passed, only the first hits have one, or none has.
    pub previews: Vec<Preview>,
    /// How the query was evaluated, if that was requested; `None` if the deadline passed. Its result is that
    /// of the hits, without ids. Its reads are those from the cache of the engine, whether pages were cached
    /// or not.
    pub explanation: Option<Box<Explanation>>,
    /// The scores of the hits as integers, by which they are ordered; empty unless the request has statistics
    /// ([`SearchRequest::statistics`]).
    pub units: Vec<u32>,
    /// The scores are [`Hits::units`] times 2 to the power of minus this number. The scale is that of the
    /// query and of the statistics: scores of shards with the same statistics have the same.
    pub scale: i32,
    /// Number of documents that match.
    pub total: TotalHits,
    /// Whether the deadline passed: hits are the best of the documents that were evaluated until then, or
    /// previews are missing.
    pub timed_out: bool,
    /// Number of evaluations, each of one range of documents: more than one if other threads were idle.
    #[doc(hidden)]
    pub parts: usize,
    /// What the evaluation took beside time.
    pub cost: RequestCost,
    /// Time from the arrival of the request to its result.
    pub took: Duration,
    /// The part of that time in which the request waited for a thread.
    pub queued: Duration,
    /// The statistics by which the documents are scored, if they were given.
    pub(super) given: Option<Arc<Statistics>>,
    /// The statistics, if they were requested.
    pub(super) statistics: Option<Box<Statistics>>,
    /// The commit that was searched; [`SearchHit::document`] is a document number of this commit.
    pub snapshot: Arc<Snapshot>,
}

impl Hits {
    /// The external ids of the hits, in their order. Those that were not read with the hits
    /// ([`SearchRequest::ids`]) are read from disk.
    ///
    /// # Errors
    /// As [`Snapshot::ids`].
    pub fn ids(&self) -> Result<Vec<String>> {
        self.snapshot.ids_after(&self.hits, &self.ids)
    }

    /// Calls `body` with each hit and its external id, in the order of the hits. Ids that were not read with
    /// the hits are read from disk; at most 64 KiB of them, or a single longer one, are in memory at a time.
    ///
    /// # Errors
    /// As [`Snapshot::ids`], and those of `body`, which end the calls.
    pub fn for_each_id<E: From<Error>>(
        &self,
        body: impl FnMut(SearchHit, &str) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        self.snapshot.searcher().for_each_id(&self.hits, &self.ids, body)
    }

    /// The result as a searcher returns it, with the ids that were read.
    #[doc(hidden)]
    pub fn into_result(self) -> SearchResult {
        SearchResult { total: self.total.value(), hits: self.hits, ids: self.ids }
    }
}
