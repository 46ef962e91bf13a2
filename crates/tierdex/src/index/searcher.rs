//! Queries over all segments of a commit, scored by the statistics of the whole.

use super::reader::Index;
use crate::error::{Error, Result};
use crate::eval::{
    DocumentRange, EvaluationLog, Scratch, Search, Strategy, evaluate, initial_threshold, open,
};
use crate::query::{Marks, Query, QueryPlan};
use crate::rank::{Bm25, CollectionStats, Hit, LengthNorms, ScoreScale, SharedThreshold, Statistics, TopK};
use crate::segment::read::{BlockSource, FILES, Files, Segment, StoredDocument};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of ids that are in memory at a time.
pub(crate) const IDS_BYTES: usize = 256 << 10;

/// What answering a query takes where there is no budget: as much as it pays to read ahead in a few lists.
const WORKING_MEMORY: u64 = 16 << 20;

/// Number of hits, ranking and counting of a search.
#[derive(Clone, Copy, Debug)]
pub struct SearchOptions {
    /// Number of hits to return, at most.
    pub k: usize,
    /// Parameters of BM25.
    pub bm25: Bm25,
    /// Whether every matching document is scored, also those that cannot be among the best. The result is
    /// the same.
    pub exhaustive: bool,
    /// Whether every matching document is counted. If not, documents that cannot be among the best are
    /// skipped.
    pub count: bool,
}

impl Default for SearchOptions {
    fn default() -> SearchOptions {
        SearchOptions { k: 10, bm25: Bm25::default(), exhaustive: false, count: false }
    }
}

impl SearchOptions {
    /// Whether a search that found `hits` knows the exact number of matches: they were counted, or all of
    /// them are hits.
    pub fn is_exact(&self, hits: usize) -> bool {
        self.count || self.k == 0 || hits < self.k
    }
}

/// The answer to a query.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchResult {
    /// Number of matching documents; a lower bound, at least the number of hits, unless they were counted.
    pub total: u64,
    /// The best of them, best first; equal scores by document.
    pub hits: Vec<SearchHit>,
}

/// A matching document and its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchHit {
    /// Number of the document in its commit, from 0, in the order in which documents were added.
    pub document: u32,
    /// BM25 score, times boosts.
    pub score: f32,
}

/// Answers queries over one commit.
pub struct Searcher {
    index: Index,
    /// Number of the first document of each segment.
    bases: Vec<u32>,
    collections: Vec<CollectionStats>,
    /// Length normalization of each field, for the BM25 parameters that were used last.
    lengths: Mutex<(Bm25, Arc<[Arc<LengthNorms>]>)>,
    /// Memory of queries that have been answered.
    buffers: BufferPool,
}

/// Memory of queries that have been answered, which searchers may share.
#[allow(clippy::vec_box, reason = "a query takes one without a copy")]
type BufferPool = Arc<Mutex<Vec<Box<QueryBuffers>>>>;

/// Memory that one query after the other uses.
#[derive(Default)]
struct QueryBuffers {
    scratch: Scratch,
    top: TopK,
}

impl Index {
    /// Evaluates queries on the calling thread, with reads through the page cache of the operating system.
    #[doc(hidden)]
    pub fn searcher(&self) -> Searcher {
        Searcher::with_buffers(self.clone(), BufferPool::default())
    }
}

impl Searcher {
    /// Answers queries over another commit, with the memory of this searcher.
    pub(crate) fn for_commit(&self, index: Index) -> Searcher {
        Searcher::with_buffers(index, self.buffers.clone())
    }

    fn with_buffers(index: Index, buffers: BufferPool) -> Searcher {
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
        Searcher { index, bases, collections, lengths, buffers }
    }

    /// Finds the documents of `query`.
    pub fn search(&self, query: &Query, options: &SearchOptions) -> Result<SearchResult> {
        let plan = self.plan(query, options, &FILES)?;
        let read_ahead = plan.working_memory(self.index.segments(), WORKING_MEMORY).read_ahead;
        self.answer(&plan, options, &Files::new(read_ahead))
    }

    /// Finds the documents of a query that has been planned with these options, on this thread. What is not
    /// in memory comes from `source`.
    pub(crate) fn answer(
        &self,
        plan: &QueryPlan,
        options: &SearchOptions,
        source: &dyn BlockSource,
    ) -> Result<SearchResult> {
        let threshold = self.shared_threshold((plan, source), options)?;
        let mut found = self.search_part((plan, source), options, self.documents(), &threshold)?;
        if found.threshold_was_too_high(options.k, &self.documents(), &threshold) {
            found = self.search_part((plan, source), options, self.documents(), &Arc::default())?;
        }
        Ok(found.finish(options, plan.scale))
    }

    /// The threshold that evaluations of a query share: at first, what each hit scores at least, if that is
    /// known before any segment is searched.
    pub(crate) fn shared_threshold(
        &self,
        of: (&QueryPlan, &dyn BlockSource),
        options: &SearchOptions,
    ) -> Result<Arc<SharedThreshold>> {
        let mut buffers = self.buffers().pop().unwrap_or_default();
        let initial = self.initial_threshold(of, options, &mut buffers.scratch);
        self.buffers().push(buffers);
        Ok(Arc::new(SharedThreshold::new(initial?)))
    }

    /// All documents.
    pub(crate) fn documents(&self) -> Range<u32> {
        0..self.bases.last().map_or(0, |base| base + self.index.segments()[self.bases.len() - 1].documents())
    }

    /// Finds the best of some documents, on this thread: all of them, or those that the source
    /// left to this evaluation ([`BlockSource::checkpoint`]). If it stopped the evaluation, what was found
    /// until then.
    pub(crate) fn search_part(
        &self,
        (plan, source): (&QueryPlan, &dyn BlockSource),
        options: &SearchOptions,
        documents: Range<u32>,
        threshold: &Arc<SharedThreshold>,
    ) -> Result<PartialResult> {
        let mut buffers = self.buffers().pop().unwrap_or_default();
        let QueryBuffers { scratch, top } = &mut *buffers;
        top.restart(options.k, self.index.documents());
        top.share_threshold(threshold.clone());
        let part = DocumentRange::new(documents);
        let (mut total, mut done) = (0_u64, Ok(()));
        for number in 0..self.bases.len() {
            match self.segment((plan, source), (number, &part), options, (&mut *scratch, &mut *top), None) {
                Ok(matches) => total = total.wrapping_add(matches),
                Err(error) => {
                    done = Err(error);
                    break;
                }
            }
        }
        let hits = top.take();
        self.buffers().push(buffers);
        match done {
            Ok(()) => Ok(PartialResult { hits, total, complete: true }),
            Err(Error::Interrupted) => Ok(PartialResult { hits, total, complete: false }),
            Err(error) => Err(error),
        }
    }

    #[allow(clippy::vec_box, reason = "a query takes one without a copy")]
    fn buffers(&self) -> MutexGuard<'_, Vec<Box<QueryBuffers>>> {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks the terms of `query` up, and weighs them.
    pub(crate) fn plan(
        &self,
        query: &Query,
        options: &SearchOptions,
        source: &dyn BlockSource,
    ) -> Result<QueryPlan> {
        let lengths = self.lengths(options.bm25);
        self.plan_by((&self.collections, &lengths, None), query, options, source)
    }

    /// The same, by the statistics of a larger collection.
    pub(crate) fn plan_with(
        &self,
        statistics: &Statistics,
        query: &Query,
        options: &SearchOptions,
        source: &dyn BlockSource,
    ) -> Result<QueryPlan> {
        let fields = 0..self.collections.len();
        let collections: Vec<_> = fields.map(|field| statistics.collection(field)).collect();
        let lengths = lengths(&collections, options.bm25);
        self.plan_by((&collections, &lengths, Some(statistics)), query, options, source)
    }

    /// The statistics that the scores of `query` depend on.
    pub fn statistics(&self, query: &Query) -> Result<Statistics> {
        let fields = (0..self.collections.len()).map(|field| totals(&self.index, field));
        let mut statistics = Statistics::new(fields);
        for leaf in &self.plan(query, &SearchOptions::default(), &FILES)?.leaves {
            let documents = leaf.infos.iter().flatten().map(|info| u64::from(info.documents)).sum();
            statistics.set(leaf.field, &leaf.term, documents);
        }
        Ok(statistics)
    }

    fn plan_by(
        &self,
        ranking: (&[CollectionStats], &[Arc<LengthNorms>], Option<&Statistics>),
        query: &Query,
        options: &SearchOptions,
        source: &dyn BlockSource,
    ) -> Result<QueryPlan> {
        let segments = self.index.segments();
        let (ranks, counts) = (options.k > 0, options.count || options.k == 0);
        let of = (options.bm25, ranks, counts);
        QueryPlan::new(query, self.index.schema(), (segments, source), ranking, of)
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

    /// What each of the best documents scores at least, if that is known before any segment is searched;
    /// else 0.
    pub(super) fn initial_threshold(
        &self,
        of: (&QueryPlan, &dyn BlockSource),
        options: &SearchOptions,
        scratch: &mut Scratch,
    ) -> Result<u32> {
        if options.exhaustive {
            Ok(0)
        } else {
            initial_threshold(of, self.index.segments(), options.k, scratch)
        }
    }

    /// Offers the hits of a part of the documents that are in the segment of that number. Returns how many
    /// of them match: modulo 2^64, so that it is the sum of those of all parts.
    pub(super) fn segment(
        &self,
        (plan, source): (&QueryPlan, &dyn BlockSource),
        (number, part): (usize, &DocumentRange),
        options: &SearchOptions,
        (scratch, top): (&mut Scratch, &mut TopK),
        mut log: Option<&mut EvaluationLog>,
    ) -> Result<u64> {
        let (segment, base) = (&self.index.segments()[number], self.bases[number]);
        let documents = part.of_segment(base, segment.documents());
        if documents.is_empty() {
            return Ok(0);
        }
        // A count of the whole segment is reported by the part that has its first document.
        let once = |count| if documents.start == 0 { count } else { 0 };
        let known = plan.known_count(number, segment).filter(|_| options.count || options.k == 0);
        if let Some(matches) = known.filter(|_| top.k() == 0) {
            if let Some(log) = log {
                log.strategy = Strategy::Dictionary;
            }
            return Ok(once(matches));
        }
        let mut search = Search::new((base, segment.documents()), part, source, (scratch, top));
        search.exhaustive = options.exhaustive;
        search.count = options.count && known.is_none();
        let Some(mut node) = open((plan, &plan.root), source, (number, segment), search.scratch())? else {
            return Ok(0);
        };
        if let Some(log) = log.as_deref_mut() {
            log.begin(&mut node);
        }
        let evaluated = evaluate(&mut node, &mut search);
        if let (Some(log), Ok((_, strategy))) = (log, &evaluated) {
            log.end(plan, (number, segment), &mut node, *strategy);
        }
        node.close(search.scratch());
        evaluated.map(|(matches, _)| known.map_or(matches, once))
    }

    /// What `query` looks for in a field, for marking it in a text.
    pub fn marks(&self, query: &Query, field: usize) -> Result<Marks> {
        Marks::of(query, field, self.index.segments())
    }

    /// Calls `body` with each hit and its external id, in the order of the hits. However long the ids are,
    /// no more than 256 KiB of them are in memory at a time, or one.
    pub fn for_each_id<E: From<Error>>(
        &self,
        hits: &[SearchHit],
        mut body: impl FnMut(SearchHit, &str) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let (mut rest, mut count) = (hits, hits.len());
        while !rest.is_empty() {
            count = count.clamp(1, rest.len());
            match self.try_ids(&rest[..count])? {
                Some((ids, ranges)) => {
                    for (hit, range) in rest.iter().zip(ranges) {
                        body(*hit, &ids[range.start as usize..range.end as usize])?;
                    }
                    rest = &rest[count..];
                    count *= 2;
                }
                None => count /= 2,
            }
        }
        Ok(())
    }

    /// The ids of all these hits and where each is in them; none if they are too long together.
    fn try_ids(&self, hits: &[SearchHit]) -> Result<Option<(String, Vec<Range<u32>>)>> {
        let (mut ids, mut ranges) = (String::new(), vec![0..0; hits.len()]);
        let mut fit = true;
        self.by_segment(hits, |segment, places, documents| {
            segment.ids().get(documents, |place, id| {
                fit &= hits.len() == 1 || ids.len() + id.len() <= IDS_BYTES;
                if fit {
                    ranges[places[place]] = ids.len() as u32..(ids.len() + id.len()) as u32;
                    ids.push_str(id);
                }
            })
        })?;
        Ok(fit.then_some((ids, ranges)))
    }

    /// Calls `body` with each segment that has some of the hits, their positions in `hits`, and their
    /// numbers in the segment in increasing order.
    pub(crate) fn by_segment(
        &self,
        hits: &[SearchHit],
        mut body: impl FnMut(&Segment, &[usize], &[u32]) -> Result<()>,
    ) -> Result<()> {
        let mut order: Vec<usize> = (0..hits.len()).collect();
        order.sort_unstable_by_key(|&i| hits[i].document);
        let mut rest = order.as_slice();
        while let Some(&first) = rest.first() {
            let (segment, local) = self.locate(hits[first].document)?;
            let base = hits[first].document - local;
            let here = rest.partition_point(|&i| hits[i].document - base < segment.documents());
            let locals: Vec<u32> = rest[..here].iter().map(|&i| hits[i].document - base).collect();
            body(segment, &rest[..here], &locals)?;
            rest = &rest[here..];
        }
        Ok(())
    }

    /// External id of a document.
    pub fn id(&self, document: u32) -> Result<String> {
        let mut found = String::new();
        self.for_each_id(&[SearchHit { document, score: 0.0 }], |_, id| {
            found.push_str(id);
            Ok::<(), Error>(())
        })?;
        Ok(found)
    }

    /// Title and text of a document; `None` when the index does not keep them.
    pub fn stored(&self, document: u32) -> Result<Option<StoredDocument>> {
        let (segment, local) = self.locate(document)?;
        segment.stored().map(|stored| stored.get(local)).transpose()
    }

    /// The beginnings of title and text of a document, for showing it: see [`StoredReader::preview`]. `None`
    /// when the index does not keep them.
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

/// What was found in some of the documents.
pub(crate) struct PartialResult {
    /// The best of them, best first.
    pub(crate) hits: Vec<Hit>,
    /// How many match: see [`Searcher::segment`].
    pub(crate) total: u64,
    /// All of them were looked at.
    pub(crate) complete: bool,
}

impl PartialResult {
    /// Adds what was found in other documents, of which the best `k` together are wanted.
    pub(crate) fn merge(&mut self, other: PartialResult, k: usize) {
        self.hits.extend(other.hits);
        self.hits.sort_unstable_by(Hit::order);
        self.hits.truncate(k);
        self.complete &= other.complete;
        // What parts count has a meaning only if all were counted.
        self.total = if self.complete { self.total.wrapping_add(other.total) } else { 0 };
    }

    /// Whether there are fewer than `k` hits of `documents` although the initial threshold promised as many:
    /// the skip data is wrong. The query is to be evaluated again, without a threshold.
    pub(crate) fn threshold_was_too_high(
        &self,
        k: usize,
        documents: &Range<u32>,
        threshold: &SharedThreshold,
    ) -> bool {
        self.complete && self.hits.len() < k.min(documents.len()) && threshold.get() > 0
    }

    /// The answer.
    pub(crate) fn finish(self, options: &SearchOptions, scale: ScoreScale) -> SearchResult {
        // If they were not all counted: whatever was met, and hits are.
        let is_counted = options.count && self.complete;
        let total = if is_counted { self.total } else { self.total.max(self.hits.len() as u64) };
        let shown = |hit: &Hit| SearchHit { document: hit.document, score: scale.shown(hit.score) };
        SearchResult { total, hits: self.hits.iter().map(shown).collect() }
    }
}

fn lengths(collections: &[CollectionStats], bm25: Bm25) -> Arc<[Arc<LengthNorms>]> {
    collections.iter().map(|collection| Arc::new(LengthNorms::new(bm25, *collection))).collect()
}

/// Documents that have a field, and their tokens.
fn totals(index: &Index, field: usize) -> (u64, u64) {
    let stats = || index.segments().iter().map(|segment| segment.meta().fields[field]);
    (stats().map(|stats| u64::from(stats.documents)).sum(), stats().map(|stats| stats.tokens).sum())
}
