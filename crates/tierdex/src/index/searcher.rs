//! Evaluates queries over all segments of a commit, on the calling thread, with the collection statistics of
//! the whole commit.
//!
//! A query is planned once. Each evaluation searches a range of documents, segment by segment. The
//! evaluations of a query share its top-k threshold, and their results are merged.

use super::{
    kept_prefixes::KeptPrefixes,
    reader::Index,
    search_result::{PartialResult, SearchOptions, SearchResult},
};
use crate::{
    Error, Result,
    eval::{
        Collector, DocumentRange, EvaluationLog, InitialThreshold, Scratch, Search, SearchPlan,
        initial_threshold,
    },
    query::{
        Marks, Query, QueryPlan, RankingInputs, SegmentLists, Suggestions, TermStats, collect_statistics,
        suggest, terms_after,
    },
    rank::{Bm25, CollectionStats, LengthNorms, Scorer, SharedThreshold, Statistics, TopK},
    segment::read::{BUFFER_BYTES_MAX, BUFFER_BYTES_MIN, BlockSource, FILES, Files, OpenSegment},
};
use std::{
    borrow::Cow,
    ops::Range,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Bytes of memory for the read buffers of a query that no memory budget bounds: enough for long reads of a
/// few lists.
const READ_BUFFERS_BYTES: usize = 16 << 20;

/// Bytes of the prefixes that a searcher keeps which no memory budget bounds.
pub(crate) const KEPT_PREFIXES_BYTES: u64 = 16 << 20;

/// Evaluates queries over one commit.
pub struct Searcher {
    index: Index,
    /// First document of each segment.
    bases: Vec<u32>,
    /// Statistics without terms.
    totals: Statistics,
    /// Statistics of each field.
    collections: Vec<CollectionStats>,
    /// The BM25 parameters of the last query, and with them the length normalization of each field.
    lengths: Mutex<(Bm25, Arc<[Arc<LengthNorms>]>)>,
    /// Buffers of finished queries for reuse, at most `buffers_max`.
    buffers: BufferPool,
    buffers_max: usize,
    /// Prefixes of recent queries.
    kept: KeptPrefixes,
}

/// Buffers of finished queries, shared by the searchers of an engine.
#[allow(clippy::vec_box, reason = "a query takes a box without a copy of its contents")]
type BufferPool = Arc<Mutex<Vec<Box<QueryBuffers>>>>;

/// Scratch buffers of one query.
#[derive(Default)]
pub(crate) struct QueryBuffers {
    scratch: Scratch,
    top: TopK,
}

impl QueryBuffers {
    /// Those of an evaluation.
    pub(crate) fn scratch(&mut self) -> &mut Scratch {
        &mut self.scratch
    }
}

/// A planned query, with the options of its plan and the source of bytes that are not resident.
#[derive(Clone, Copy)]
pub(crate) struct PlannedQuery<'a> {
    pub(crate) plan: &'a SearchPlan,
    pub(crate) options: &'a SearchOptions,
    pub(crate) source: &'a dyn BlockSource,
}

impl Index {
    /// A searcher, which evaluates queries on the calling thread. It reads files through the page cache of
    /// the operating system.
    #[doc(hidden)]
    pub fn searcher(&self) -> Searcher {
        self.searcher_within(usize::MAX, KEPT_PREFIXES_BYTES as usize)
    }

    /// As [`Index::searcher`]; the searcher reuses the buffers of at most `buffers_max` finished queries, and
    /// keeps `prefixes_bytes` of their prefixes.
    pub(crate) fn searcher_within(&self, buffers_max: usize, prefixes_bytes: usize) -> Searcher {
        let kept = KeptPrefixes::new(prefixes_bytes);
        Searcher::with_buffers(self.clone(), buffers_max, BufferPool::default(), kept)
    }
}

impl Searcher {
    /// A searcher of another commit that shares the buffers of this one, and the memory for prefixes.
    pub(crate) fn for_commit(&self, index: Index) -> Searcher {
        Searcher::with_buffers(index, self.buffers_max, self.buffers.clone(), self.kept.for_commit())
    }

    /// A searcher of another index that shares the buffers of this one, and keeps no prefixes.
    pub(crate) fn for_other(&self, index: Index) -> Searcher {
        Searcher::with_buffers(index, self.buffers_max, self.buffers.clone(), KeptPrefixes::new(0))
    }

    fn with_buffers(index: Index, buffers_max: usize, buffers: BufferPool, kept: KeptPrefixes) -> Searcher {
        let mut bases = Vec::with_capacity(index.segments().len());
        let mut next = 0;
        for segment in index.segments() {
            bases.push(next);
            next += segment.documents();
        }
        let totals = totals_of_fields(&index);
        let fields = 0..index.schema().fields.len();
        let collections: Vec<_> = fields.map(|field| totals.collection(field)).collect();
        let lengths = Mutex::new((Bm25::default(), length_norms(&collections, Bm25::default())));
        Searcher { index, bases, totals, collections, lengths, buffers, buffers_max, kept }
    }

    /// Finds the best matches of `query`.
    pub fn search(&self, query: &Query, options: &SearchOptions) -> Result<SearchResult> {
        let plan = self.plan(query, options, &FILES)?;
        if let Some(counted) = self.known_count(&plan, options, &self.documents()) {
            return Ok(counted.into_result(options, plan.query.scale));
        }
        // Each list has a buffer for documents and one for frequencies, and all share one for skip records.
        let buffers = 2 * plan.query.leaves.len() + 1;
        let read_ahead = (READ_BUFFERS_BYTES / buffers).clamp(BUFFER_BYTES_MIN, BUFFER_BYTES_MAX);
        self.answer(&plan, options, &Files::new(read_ahead))
    }

    /// Evaluates a query that was planned with these options. Blocks that are not resident are read from
    /// `source`.
    pub fn answer(
        &self,
        plan: &SearchPlan,
        options: &SearchOptions,
        source: &dyn BlockSource,
    ) -> Result<SearchResult> {
        let (query, mut buffers) = (PlannedQuery { plan, options, source }, self.take_buffers());
        let threshold = self.shared_threshold(query, &mut buffers.scratch)?;
        let documents = self.documents();
        let mut found = self.search_range(query, documents.clone(), &threshold, &mut buffers)?;
        if found.was_initial_threshold_too_high(options.k, &self.index, &threshold) {
            found = self.search_range(query, documents, &Arc::default(), &mut buffers)?;
        }
        self.return_buffers(buffers);
        Ok(found.into_result(options, plan.query.scale))
    }

    /// The number of matches among these documents, if no hits are requested and the number follows from the
    /// dictionary. A range that contains the first document of a segment counts the whole segment.
    pub(crate) fn known_count(
        &self,
        plan: &SearchPlan,
        options: &SearchOptions,
        documents: &Range<u32>,
    ) -> Option<PartialResult> {
        if options.k > 0 {
            return None;
        }
        let count = |number: usize| {
            let count = plan.strategy(number).known_count()?;
            Some(if documents.contains(&self.bases[number]) { count } else { 0 })
        };
        let total = (0..self.bases.len()).map(count).sum::<Option<u64>>()?;
        Some(PartialResult { hits: Vec::new(), total, complete: true })
    }

    /// The top-k threshold that the evaluations of a query share, at its initial value.
    pub(crate) fn shared_threshold(
        &self,
        query: PlannedQuery<'_>,
        scratch: &mut Scratch,
    ) -> Result<Arc<SharedThreshold>> {
        let initial = self.initial_threshold(query, scratch)?;
        Ok(Arc::new(SharedThreshold::new(initial.score, initial.guess)))
    }

    /// The range of all documents.
    pub(crate) fn documents(&self) -> Range<u32> {
        0..self.bases.last().map_or(0, |base| base + self.index.segments()[self.bases.len() - 1].documents())
    }

    /// Finds the best matches in a range of documents, which the source may shorten
    /// ([`BlockSource::checkpoint`]). If the source interrupts the evaluation, returns the best matches so
    /// far.
    pub(crate) fn search_range(
        &self,
        query: PlannedQuery<'_>,
        documents: Range<u32>,
        threshold: &Arc<SharedThreshold>,
        buffers: &mut QueryBuffers,
    ) -> Result<PartialResult> {
        let (QueryBuffers { scratch, top }, k) = (buffers, query.options.k);
        top.restart(k, self.index.documents());
        top.share_threshold(threshold.clone());
        let documents = DocumentRange::new(documents);
        let mut total = 0_u64;
        let done = (0..self.bases.len()).try_for_each(|number| {
            let collector = Collector::of(k, top);
            let matches = self.search_segment(query, &documents, number, scratch, collector, None)?;
            total = total.wrapping_add(matches);
            Ok(())
        });
        let hits = top.take();
        match done {
            Ok(()) => Ok(PartialResult { hits, total, complete: true }),
            Err(Error::Interrupted) => Ok(PartialResult { hits, total, complete: false }),
            Err(error) => Err(error),
        }
    }

    /// Buffers for a query, which the caller passes to [`Searcher::return_buffers`] afterwards.
    pub(crate) fn take_buffers(&self) -> Box<QueryBuffers> {
        self.buffers().pop().unwrap_or_default()
    }

    /// Stores the buffers for reuse by the next query.
    pub(crate) fn return_buffers(&self, mut buffers: Box<QueryBuffers>) {
        buffers.scratch.trim_retained();
        let mut kept = self.buffers();
        if kept.len() < self.buffers_max {
            kept.push(buffers);
        }
    }

    #[allow(clippy::vec_box, reason = "a query takes one without a copy")]
    fn buffers(&self) -> MutexGuard<'_, Vec<Box<QueryBuffers>>> {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Plans a query: looks up its terms and computes their weights.
    pub fn plan(
        &self,
        query: &Query,
        options: &SearchOptions,
        source: &dyn BlockSource,
    ) -> Result<SearchPlan> {
        self.plan_with_statistics(None, query, options, source)
    }

    /// As [`Searcher::plan`], with the statistics of a larger collection if given.
    pub(crate) fn plan_with_statistics(
        &self,
        statistics: Option<&Statistics>,
        query: &Query,
        options: &SearchOptions,
        source: &dyn BlockSource,
    ) -> Result<SearchPlan> {
        // A scorer without document lengths does not use the parameters.
        let bm25 = if let Scorer::Bm25(bm25) = options.scorer { bm25 } else { Bm25::default() };
        let (collections, lengths) = match statistics {
            Some(statistics) => {
                let fields = 0..self.collections.len();
                let collections: Vec<_> = fields.map(|field| statistics.collection(field)).collect();
                let lengths = length_norms(&collections, bm25);
                (Cow::Owned(collections), lengths)
            }
            None => (Cow::Borrowed(&self.collections[..]), self.length_norms(bm25)),
        };
        let ranking = RankingInputs {
            collections: &collections,
            lengths: &lengths,
            statistics,
            scorer: options.scorer,
        };
        let lists = self.lists(source);
        let plan = QueryPlan::new(query, self.index.schema(), lists, ranking, options.k > 0, options.count)?;
        Ok(SearchPlan::new(plan, self.index.segments(), options.evaluation_options()))
    }

    /// The statistics of this index that the scores of `query` depend on, as a part of those of all shards;
    /// `question` is what [`Statistics::merge`] asks.
    pub fn statistics(
        &self,
        query: &Query,
        scorer: Scorer,
        question: Option<&Statistics>,
        source: &dyn BlockSource,
    ) -> Result<Statistics> {
        collect_statistics(query, self.lists(source), scorer, self.totals.clone(), question)
    }

    /// Checks statistics that a caller gives: complete ones to search by, otherwise those of a question.
    pub(crate) fn check_statistics(&self, given: &Statistics, must_be_complete: bool) -> Result<()> {
        self.totals.check_schema(given)?;
        if must_be_complete { given.check_complete() } else { Ok(()) }
    }

    /// Length normalization of each field, computed again only if the parameters have changed.
    fn length_norms(&self, bm25: Bm25) -> Arc<[Arc<LengthNorms>]> {
        let mut last = self.lengths.lock().unwrap_or_else(PoisonError::into_inner);
        if last.0 != bm25 {
            *last = (bm25, length_norms(&self.collections, bm25));
        }
        last.1.clone()
    }

    fn lists<'a>(&'a self, source: &'a dyn BlockSource) -> SegmentLists<'a> {
        SegmentLists { segments: self.index.segments(), source, kept: Some(&self.kept) }
    }

    /// The commit that is searched.
    pub(crate) fn index(&self) -> &Index {
        &self.index
    }

    /// First document of each segment.
    pub(super) fn bases(&self) -> &[u32] {
        &self.bases
    }

    /// A lower bound of the k-th best score that skip records guarantee or make likely, before any segment is
    /// searched.
    fn initial_threshold(&self, query: PlannedQuery<'_>, scratch: &mut Scratch) -> Result<InitialThreshold> {
        let PlannedQuery { plan, options, source } = query;
        match options.exhaustive {
            true => Ok(InitialThreshold::default()),
            false => initial_threshold(&plan.query, self.lists(source), options.k, scratch),
        }
    }

    /// Evaluates a query on those of the `documents` that are in one segment; the matches are passed to
    /// `collector`. Returns the number of matches, modulo 2^64: only the sum over ranges that make up the
    /// whole segment is its number of matches.
    pub(super) fn search_segment(
        &self,
        query: PlannedQuery<'_>,
        documents: &DocumentRange,
        number: usize,
        scratch: &mut Scratch,
        collector: Collector<'_>,
        mut log: Option<&mut EvaluationLog>,
    ) -> Result<u64> {
        let PlannedQuery { plan, source, .. } = query;
        let (view, base) = (plan.view(number, &self.index.segments()[number]), self.bases[number]);
        if documents.of_segment(base, view.segment.documents()).is_empty() {
            return Ok(0);
        }
        let strategy = plan.strategy(number);
        let mut root = strategy.open(view, source, &plan.options, scratch)?;
        if let Some(log) = &mut log {
            log.start_recording(strategy.kind, &mut root);
        }
        let mut search = Search::new(view, base, documents, &plan.options, source, scratch, collector);
        let matches = strategy.find_matches(&mut root, &mut search);
        if let (Some(log), Ok(_)) = (log, &matches) {
            log.finish_recording(view, self.index.schema(), &mut root);
        }
        root.close(scratch);
        matches
    }

    /// The terms of `query` in a field, for highlighting; dictionaries are read from `source`.
    pub fn marks(&self, query: &Query, field: usize, source: &dyn BlockSource) -> Result<Marks> {
        Marks::of(query, field, self.lists(source))
    }

    /// The first `limit` terms of a field with `prefix` that are greater than `after`, in byte order.
    pub fn terms(
        &self,
        field: usize,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<TermStats>> {
        terms_after(self.lists(&FILES), field, prefix, after, limit)
    }

    /// What a user may mean by a text that is searched in a field.
    pub fn suggest(&self, field: usize, text: &str, limit: usize) -> Result<Suggestions> {
        suggest(self.lists(&FILES), field, &self.index.schema().fields[field], text, limit)
    }

    /// The segment that contains a document, and the number of the document in it.
    pub(super) fn locate(&self, document: u32) -> Result<(&OpenSegment, u32)> {
        let number = self.bases.partition_point(|&base| base <= document).checked_sub(1);
        let found = number.map(|number| (&self.index.segments()[number], document - self.bases[number]));
        let exists =
            |segment: &OpenSegment, local: u32| local < segment.documents() && segment.is_live(local);
        let found = found.filter(|(segment, local)| exists(segment, *local));
        found.ok_or_else(|| Error::Usage(format!("the index has no document {document}")))
    }
}

/// Length normalization of each field.
fn length_norms(collections: &[CollectionStats], bm25: Bm25) -> Arc<[Arc<LengthNorms>]> {
    collections.iter().map(|collection| Arc::new(LengthNorms::new(bm25, *collection))).collect()
}

/// The statistics of an index without terms.
fn totals_of_fields(index: &Index) -> Statistics {
    let totals = |field: usize| {
        let stats = || index.segments().iter().map(|segment| segment.live_stats(field));
        (stats().map(|stats| u64::from(stats.documents)).sum(), stats().map(|stats| stats.tokens).sum())
    };
    Statistics::part(index.schema().checksum(), (0..index.schema().fields.len()).map(totals))
}
