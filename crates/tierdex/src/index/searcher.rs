//! Evaluates queries over all segments of a commit, on the calling thread, with the collection statistics of
//! the whole commit.
//!
//! A query is planned once. Each evaluation searches a range of documents, segment by segment, with one
//! top-k threshold for all; partial results are merged. Also reads ids and stored text of hits.

use super::reader::Index;
use crate::eval::{
    Collector, DocumentRange, EvaluationLog, EvaluationOptions, Scratch, Search, SearchPlan, Tuning,
    initial_threshold,
};
use crate::query::{Marks, Query, QueryPlan, RankingInputs, SegmentLists, TermStats, terms_after};
use crate::rank::{
    Bm25, CollectionStats, Hit, LengthNorms, ScoreScale, Scorer, SharedThreshold, Statistics, TopK,
};
use crate::segment::read::{BUFFER_MAX, BUFFER_MIN, BlockSource, FILES, Files, Segment, StoredDocument};
use crate::{Error, Result, limits::ID_BYTES_MAX};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of external ids that are read at a time after a search, at most.
pub(crate) const IDS_BYTES: usize = 64 << 10;

/// Bytes of an external id for which memory is planned; longer ones cost more reads.
const ID_BYTES_TYPICAL: usize = 32;

/// Bytes of external ids in a result of `hits` hits, at most.
pub(crate) fn result_ids_bytes(hits: usize) -> usize {
    hits.saturating_mul(ID_BYTES_TYPICAL).max(4 << 10)
}

/// Bytes of the read buffers of a query without a budget: enough to read far ahead in a few lists.
const READ_BUFFERS_BYTES: usize = 16 << 20;

/// Number of hits, ranking and counting of a search.
#[derive(Clone, Copy, Debug)]
pub struct SearchOptions {
    /// Number of hits to return, at most; 0 only counts.
    pub k: usize,
    /// How documents are scored.
    pub scorer: Scorer,
    /// Whether every matching document is scored, without pruning. The result is the same.
    pub exhaustive: bool,
    /// Whether every matching document is counted. If not, documents that cannot be among the best are
    /// pruned.
    pub count: bool,
    /// Whether the engine reads the external ids of the hits.
    pub ids: bool,
    /// Sizes from which on long lists are evaluated in another way. Tests make them small.
    #[doc(hidden)]
    pub tuning: Tuning,
}

impl Default for SearchOptions {
    fn default() -> SearchOptions {
        SearchOptions {
            k: 10,
            scorer: Scorer::default(),
            exhaustive: false,
            count: false,
            ids: false,
            tuning: Tuning::default(),
        }
    }
}

impl SearchOptions {
    /// What they request of an evaluation.
    #[doc(hidden)]
    pub fn evaluation_options(&self) -> EvaluationOptions {
        let SearchOptions { k, count, exhaustive, tuning, .. } = *self;
        EvaluationOptions { k, count, exhaustive, tuning }
    }

    /// Whether a search that returned `hits` hits knows the exact number of matches: they were counted, or
    /// all of them are hits.
    pub fn is_exact(&self, hits: usize) -> bool {
        self.count || self.k == 0 || hits < self.k
    }
}

/// The result of a query.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchResult {
    /// Number of matching documents; a lower bound, at least the number of hits, unless they were counted.
    pub total: u64,
    /// The `k` best, best first; equal scores by document.
    pub hits: Vec<SearchHit>,
    /// External ids that were read with the hits.
    pub ids: HitIds,
}

/// External ids of hits of a search, by document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HitIds {
    text: String,
    /// Documents in increasing order, each with the start of its id in `text`. Ids are contiguous.
    starts: Vec<(u32, u32)>,
}

impl HitIds {
    /// The id of a document, if it was read.
    pub fn get(&self, document: u32) -> Option<&str> {
        let at = self.starts.binary_search_by_key(&document, |(document, _)| *document).ok()?;
        let end = self.starts.get(at + 1).map_or(self.text.len(), |(_, start)| *start as usize);
        Some(&self.text[self.starts[at].1 as usize..end])
    }
}

/// A matching document and its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchHit {
    /// Number of the document in its commit, from 0, in the order in which documents were added.
    pub document: u32,
    /// Score, times boosts.
    pub score: f32,
}

/// Evaluates queries over one commit.
pub struct Searcher {
    index: Index,
    /// Number of the first document of each segment.
    bases: Vec<u32>,
    collections: Vec<CollectionStats>,
    /// Length normalization of each field, for the BM25 parameters of the last query.
    lengths: Mutex<(Bm25, Arc<[Arc<LengthNorms>]>)>,
    /// Buffers for reuse, at most `buffers_max`.
    buffers: BufferPool,
    buffers_max: usize,
}

/// Buffers of finished queries, shared by the searchers of an engine.
#[allow(clippy::vec_box, reason = "a query takes one without a copy")]
type BufferPool = Arc<Mutex<Vec<Box<QueryBuffers>>>>;

/// Scratch buffers of one query.
#[derive(Default)]
pub(crate) struct QueryBuffers {
    scratch: Scratch,
    top: TopK,
}

impl Index {
    /// Evaluates queries on the calling thread, with reads through the page cache of the operating system.
    #[doc(hidden)]
    pub fn searcher(&self) -> Searcher {
        self.searcher_with_buffers(usize::MAX)
    }

    /// As [`Index::searcher`]; it keeps the buffers of at most this number of finished queries.
    pub(crate) fn searcher_with_buffers(&self, buffers_max: usize) -> Searcher {
        Searcher::with_buffers(self.clone(), buffers_max, BufferPool::default())
    }
}

impl Searcher {
    /// A searcher of another commit that shares the buffers of this one.
    pub(crate) fn for_commit(&self, index: Index) -> Searcher {
        Searcher::with_buffers(index, self.buffers_max, self.buffers.clone())
    }

    fn with_buffers(index: Index, buffers_max: usize, buffers: BufferPool) -> Searcher {
        let mut bases = Vec::with_capacity(index.segments().len());
        let mut next = 0;
        for segment in index.segments() {
            bases.push(next);
            next += segment.documents();
        }
        let fields = index.schema().fields.len();
        let statistics = Statistics::new((0..fields).map(|field| totals(&index, field)));
        let collections: Vec<_> = (0..fields).map(|field| statistics.collection(field)).collect();
        let lengths = Mutex::new((Bm25::default(), lengths(&collections, Bm25::default())));
        Searcher { index, bases, collections, lengths, buffers, buffers_max }
    }

    /// Finds the documents of `query`.
    pub fn search(&self, query: &Query, options: &SearchOptions) -> Result<SearchResult> {
        let plan = self.plan(query, options, &FILES)?;
        if let Some(counted) = self.known_count(&plan, options, &self.documents()) {
            return Ok(counted.finish(options, plan.query.scale));
        }
        // Each list has a buffer for documents and one for frequencies, and all share one for skip records.
        let buffers = 2 * plan.query.leaves.len() + 1;
        let read_ahead = (READ_BUFFERS_BYTES / buffers).clamp(BUFFER_MIN, BUFFER_MAX);
        self.answer(&plan, options, &Files::new(read_ahead))
    }

    /// Evaluates a query that was planned with these options, on this thread. Blocks that are not resident
    /// come from `source`.
    pub fn answer(
        &self,
        plan: &SearchPlan,
        options: &SearchOptions,
        source: &dyn BlockSource,
    ) -> Result<SearchResult> {
        let mut buffers = self.take_buffers();
        let threshold = self.shared_threshold(plan, source, options, &mut buffers)?;
        let documents = self.documents();
        let mut found =
            self.search_part(plan, source, options, documents.clone(), &threshold, &mut buffers)?;
        if found.threshold_was_too_high(options.k, &documents, &threshold) {
            found = self.search_part(plan, source, options, documents, &Arc::default(), &mut buffers)?;
        }
        self.give_back(buffers);
        Ok(found.finish(options, plan.query.scale))
    }

    /// The number of matches among these documents, if no hits are requested and it follows from the
    /// dictionary. The part with the first document of a segment counts the whole segment.
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

    /// The threshold that the evaluations of a query share. It starts at the initial threshold, which is
    /// known before any segment is searched.
    pub(crate) fn shared_threshold(
        &self,
        plan: &SearchPlan,
        source: &dyn BlockSource,
        options: &SearchOptions,
        buffers: &mut QueryBuffers,
    ) -> Result<Arc<SharedThreshold>> {
        let initial = self.initial_threshold(plan, source, options, &mut buffers.scratch)?;
        Ok(Arc::new(SharedThreshold::new(initial)))
    }

    /// The range of all documents.
    pub(crate) fn documents(&self) -> Range<u32> {
        0..self.bases.last().map_or(0, |base| base + self.index.segments()[self.bases.len() - 1].documents())
    }

    /// Finds the best documents of a range, on this thread; the source may shorten the range
    /// ([`BlockSource::checkpoint`]). If the source stops the evaluation, returns the best documents so far.
    pub(crate) fn search_part(
        &self,
        plan: &SearchPlan,
        source: &dyn BlockSource,
        options: &SearchOptions,
        documents: Range<u32>,
        threshold: &Arc<SharedThreshold>,
        buffers: &mut QueryBuffers,
    ) -> Result<PartialResult> {
        let QueryBuffers { scratch, top } = buffers;
        top.restart(options.k, self.index.documents());
        top.share_threshold(threshold.clone());
        let part = SearchedPart { plan, source, documents: &DocumentRange::new(documents) };
        let (mut total, mut done) = (0_u64, Ok(()));
        for number in 0..self.bases.len() {
            match self.search_segment(&part, number, scratch, Collector::of(options.k, top), None) {
                Ok(matches) => total = total.wrapping_add(matches),
                Err(error) => {
                    done = Err(error);
                    break;
                }
            }
        }
        let hits = top.take();
        match done {
            Ok(()) => Ok(PartialResult { hits, total, complete: true }),
            Err(Error::Interrupted) => Ok(PartialResult { hits, total, complete: false }),
            Err(error) => Err(error),
        }
    }

    /// Buffers for a query, to be given back.
    pub(crate) fn take_buffers(&self) -> Box<QueryBuffers> {
        self.buffers().pop().unwrap_or_default()
    }

    /// Keeps the buffers for the next query.
    pub(crate) fn give_back(&self, mut buffers: Box<QueryBuffers>) {
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
        let lengths = &self.lengths(parameters(options.scorer));
        let (collections, scorer) = (&self.collections, options.scorer);
        self.plan_by(RankingInputs { collections, lengths, statistics: None, scorer }, query, options, source)
    }

    /// As [`Searcher::plan`], with the statistics of a larger collection.
    pub(crate) fn plan_with(
        &self,
        statistics: &Statistics,
        query: &Query,
        options: &SearchOptions,
        source: &dyn BlockSource,
    ) -> Result<SearchPlan> {
        let fields = 0..self.collections.len();
        let collections: Vec<_> = fields.map(|field| statistics.collection(field)).collect();
        let lengths = &lengths(&collections, parameters(options.scorer));
        let (collections, statistics, scorer) = (&collections[..], Some(statistics), options.scorer);
        self.plan_by(RankingInputs { collections, lengths, statistics, scorer }, query, options, source)
    }

    /// The statistics that the scores of `query` depend on.
    pub fn statistics(&self, query: &Query) -> Result<Statistics> {
        let fields = (0..self.collections.len()).map(|field| totals(&self.index, field));
        let mut statistics = Statistics::new(fields);
        for leaf in &self.plan(query, &SearchOptions::default(), &FILES)?.query.leaves {
            let documents = leaf.infos.iter().flatten().map(|info| u64::from(info.documents)).sum();
            statistics.set(leaf.field, &leaf.term, documents);
        }
        Ok(statistics)
    }

    fn plan_by(
        &self,
        ranking: RankingInputs<'_>,
        query: &Query,
        options: &SearchOptions,
        source: &dyn BlockSource,
    ) -> Result<SearchPlan> {
        let lists = SegmentLists { segments: self.index.segments(), source };
        let plan = QueryPlan::new(query, self.index.schema(), lists, ranking, options.k > 0, options.count)?;
        Ok(SearchPlan::new(plan, self.index.segments(), options.evaluation_options()))
    }

    fn lengths(&self, bm25: Bm25) -> Arc<[Arc<LengthNorms>]> {
        let mut last = self.lengths.lock().unwrap_or_else(PoisonError::into_inner);
        if last.0 != bm25 {
            *last = (bm25, lengths(&self.collections, bm25));
        }
        last.1.clone()
    }

    /// The index.
    pub(crate) fn index(&self) -> &Index {
        &self.index
    }

    /// A lower bound of the k-th best score, from block max scores alone, before a segment is searched; 0 if
    /// none is known.
    pub(super) fn initial_threshold(
        &self,
        plan: &SearchPlan,
        source: &dyn BlockSource,
        options: &SearchOptions,
        scratch: &mut Scratch,
    ) -> Result<u32> {
        let lists = SegmentLists { segments: self.index.segments(), source };
        if options.exhaustive { Ok(0) } else { initial_threshold(&plan.query, lists, options.k, scratch) }
    }

    /// Searches the documents of a part in a segment and offers its hits. Returns the number of matches,
    /// modulo 2^64: the values of all parts add up to the number of the segment.
    pub(super) fn search_segment(
        &self,
        part: &SearchedPart<'_>,
        number: usize,
        scratch: &mut Scratch,
        collector: Collector<'_>,
        mut log: Option<&mut EvaluationLog>,
    ) -> Result<u64> {
        let (view, base) = (part.plan.view(number, &self.index.segments()[number]), self.bases[number]);
        if part.documents.of_segment(base, view.segment.documents()).is_empty() {
            return Ok(0);
        }
        let SearchedPart { plan, source, documents } = *part;
        let strategy = plan.strategy(number);
        let mut nodes = strategy.open(view, source, &plan.options, scratch)?;
        if let Some(log) = &mut log {
            log.start_recording(strategy.kind, &mut nodes);
        }
        let mut search = Search::new(view, base, documents, &plan.options, source, scratch, collector);
        let matches = strategy.find_matches(&mut nodes, &mut search);
        if let (Some(log), Ok(_)) = (log, &matches) {
            log.finish_recording(view, &mut nodes);
        }
        nodes.close(scratch);
        matches
    }

    /// The terms of `query` in a field, for highlighting.
    pub fn marks(&self, query: &Query, field: usize) -> Result<Marks> {
        Marks::of(query, field, self.index.segments())
    }

    /// The first `limit` terms of a field with `prefix` that are greater than `after`, in byte order.
    pub fn terms(
        &self,
        field: usize,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<TermStats>> {
        terms_after(
            SegmentLists { segments: self.index.segments(), source: &FILES },
            field,
            prefix,
            after,
            limit,
        )
    }

    /// Finds documents by their external ids, in one pass over all ids: calls `body` with each document
    /// whose id `accepts`, in order of documents.
    pub fn find_ids(
        &self,
        mut accepts: impl FnMut(&str) -> bool,
        mut body: impl FnMut(u32, &str) -> Result<()>,
    ) -> Result<()> {
        for (segment, base) in self.index.segments().iter().zip(&self.bases) {
            let mut document = *base;
            segment.ids().for_each(|id| {
                if accepts(id) {
                    body(document, id)?;
                }
                document += 1;
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Calls `body` with each hit and its external id, in the order of the hits. Ids that are not in `read`
    /// are read from the files; at most 64 KiB of them, or a single longer one, are in memory at a time.
    pub fn for_each_id<E: From<Error>>(
        &self,
        hits: &[SearchHit],
        read: &HitIds,
        mut body: impl FnMut(SearchHit, &str) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let (mut rest, mut count) = (hits, IDS_BYTES / ID_BYTES_TYPICAL);
        while !rest.is_empty() {
            count = count.clamp(1, rest.len());
            let (chunk, after) = rest.split_at(count);
            let missing: Vec<u32> = chunk
                .iter()
                .map(|hit| hit.document)
                .filter(|document| read.get(*document).is_none())
                .collect();
            let more = self.read_ids(missing, if count == 1 { ID_BYTES_MAX } else { IDS_BYTES }, &FILES)?;
            let id = |hit: &SearchHit| read.get(hit.document).or_else(|| more.get(hit.document));
            if chunk.iter().any(|hit| id(hit).is_none()) {
                count /= 2;
                continue;
            }
            for hit in chunk {
                body(*hit, id(hit).unwrap_or_default())?;
            }
            rest = after;
            count *= 2;
        }
        Ok(())
    }

    /// Reads the external ids of documents, in their order, until they have `bytes_max` bytes.
    pub(crate) fn read_ids(
        &self,
        mut documents: Vec<u32>,
        bytes_max: usize,
        source: &dyn BlockSource,
    ) -> Result<HitIds> {
        documents.sort_unstable();
        documents.dedup();
        let bytes_max = bytes_max.min(u32::MAX as usize);
        let expected = documents.len().saturating_mul(ID_BYTES_TYPICAL);
        let mut ids = HitIds {
            text: String::with_capacity(bytes_max.min(expected)),
            starts: Vec::with_capacity(documents.len()),
        };
        let (mut rest, mut fits) = (documents.as_mut_slice(), true);
        while fits && let Some(first) = rest.first() {
            let (segment, local) = self.locate(*first)?;
            let base = first - local;
            let (here, after) =
                rest.split_at_mut(rest.partition_point(|document| document - base < segment.documents()));
            here.iter_mut().for_each(|document| *document -= base);
            segment.ids().get(here, source, |at, id| {
                fits = ids.text.len() + id.len() <= bytes_max;
                if fits {
                    ids.starts.push((base + here[at], ids.text.len() as u32));
                    ids.text.push_str(id);
                }
                fits
            })?;
            rest = after;
        }
        ids.text.shrink_to_fit();
        Ok(ids)
    }

    /// External id of a document.
    pub fn id(&self, document: u32) -> Result<String> {
        let mut found = String::new();
        self.for_each_id(&[SearchHit { document, score: 0.0 }], &HitIds::default(), |_, id| {
            found.push_str(id);
            Ok::<(), Error>(())
        })?;
        Ok(found)
    }

    /// Title and text of a document; `None` when the index does not store them.
    pub fn stored(&self, document: u32) -> Result<Option<StoredDocument>> {
        let (segment, local) = self.locate(document)?;
        segment.stored().map(|stored| stored.get(local)).transpose()
    }

    /// The beginnings of title and text of a document, for display: see [`StoredReader::preview`]. `None`
    /// when the index does not store them.
    ///
    /// [`StoredReader::preview`]: crate::segment::read::StoredReader::preview
    pub fn preview(&self, document: u32) -> Result<Option<StoredDocument>> {
        let (segment, local) = self.locate(document)?;
        segment.stored().map(|stored| stored.preview(local)).transpose()
    }

    fn locate(&self, document: u32) -> Result<(&Segment, u32)> {
        let number = self.bases.partition_point(|&base| base <= document).checked_sub(1);
        let found = number.map(|number| (&*self.index.segments()[number], document - self.bases[number]));
        let found = found.filter(|(segment, local)| *local < segment.documents());
        found.ok_or_else(|| Error::Usage(format!("the index has no document {document}")))
    }
}

/// The part of a query that one evaluation searches.
pub(super) struct SearchedPart<'a> {
    pub(super) plan: &'a SearchPlan,
    pub(super) source: &'a dyn BlockSource,
    pub(super) documents: &'a DocumentRange,
}

/// The result of an evaluation of some of the documents.
pub(crate) struct PartialResult {
    /// The best of them, best first.
    pub(crate) hits: Vec<Hit>,
    /// Number of matches, modulo 2^64: see [`Searcher::search_segment`].
    pub(crate) total: u64,
    /// Whether the evaluation covered all of them.
    pub(crate) complete: bool,
}

impl PartialResult {
    /// Merges the result of other documents and keeps the best `k`.
    pub(crate) fn merge(&mut self, other: PartialResult, k: usize) {
        self.hits.extend(other.hits);
        self.hits.sort_unstable_by(Hit::order);
        self.hits.truncate(k);
        self.complete &= other.complete;
        // The counts of parts are meaningful only together.
        self.total = if self.complete { self.total.wrapping_add(other.total) } else { 0 };
    }

    /// Whether there are fewer than `k` hits although the initial threshold guarantees `k`: the skip data is
    /// wrong. The query must be evaluated again without an initial threshold.
    pub(crate) fn threshold_was_too_high(
        &self,
        k: usize,
        documents: &Range<u32>,
        threshold: &SharedThreshold,
    ) -> bool {
        self.complete && self.hits.len() < k.min(documents.len()) && threshold.get() > 0
    }

    /// The final result.
    pub(crate) fn finish(self, options: &SearchOptions, scale: ScoreScale) -> SearchResult {
        // Without counting, the evaluated matches are a lower bound, and so is the number of hits.
        let is_counted = options.count && self.complete;
        let total = if is_counted { self.total } else { self.total.max(self.hits.len() as u64) };
        let shown = |hit: &Hit| SearchHit { document: hit.document, score: scale.shown(hit.score) };
        SearchResult { total, hits: self.hits.iter().map(shown).collect(), ids: HitIds::default() }
    }
}

/// The parameters of BM25; the defaults for a scorer without document lengths.
fn parameters(scorer: Scorer) -> Bm25 {
    match scorer {
        Scorer::Bm25(bm25) => bm25,
        Scorer::Dot => Bm25::default(),
    }
}

fn lengths(collections: &[CollectionStats], bm25: Bm25) -> Arc<[Arc<LengthNorms>]> {
    collections.iter().map(|collection| Arc::new(LengthNorms::new(bm25, *collection))).collect()
}

/// Number of documents that have a field, and number of their tokens.
fn totals(index: &Index, field: usize) -> (u64, u64) {
    let stats = || index.segments().iter().map(|segment| segment.meta().fields[field]);
    (stats().map(|stats| u64::from(stats.documents)).sum(), stats().map(|stats| stats.tokens).sum())
}
