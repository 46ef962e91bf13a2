//! Queries over all segments of a commit, scored by the statistics of the whole.

use super::explain::{Explanation, explain};
use super::reader::Index;
use crate::error::{Error, Result};
use crate::eval::{Evaluation, Scratch, Search, Strategy, evaluate, initial_threshold, open};
use crate::query::{Marks, Plan, Query};
use crate::rank::{Bm25, Collection, Hit, Lengths, Scale, Statistics, TopK};
use crate::segment::read::{BlockSource, FILES, Files, Segment, Stored};
use std::cmp::Reverse;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of ids that are in memory at a time.
pub(crate) const IDS_BYTES: usize = 256 << 10;

/// What answering a query takes where there is no budget: as much as it pays to read ahead in a few lists.
const WORKING_MEMORY: u64 = 16 << 20;

/// How to search.
#[derive(Clone, Copy, Debug)]
pub struct SearchOptions {
    /// Hits to return; more than there are documents is as good as all.
    pub k: usize,
    /// Ranking.
    pub bm25: Bm25,
    /// Score every matching document, also those that cannot be among the best. The answer is the same.
    pub exhaustive: bool,
    /// Count every matching document. If not, those that cannot be among the best may be passed over
    /// uncounted.
    pub count: bool,
    /// Threads at most, from 1 on, each of which does segments of its own. The hits are the same.
    pub intra: usize,
}

impl Default for SearchOptions {
    fn default() -> SearchOptions {
        SearchOptions { k: 10, bm25: Bm25::default(), exhaustive: false, count: true, intra: 1 }
    }
}

/// The answer to a query.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Documents that match; if they were not to be counted, some number from that of the hits to theirs.
    pub total: u64,
    /// The best of them, best first; equal scores by document.
    pub hits: Vec<SearchHit>,
}

/// A document that matches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchHit {
    /// Its number in the index: the order in which documents were added.
    pub document: u32,
    /// Its score.
    pub score: f32,
}

/// Answers queries over one commit.
pub struct Searcher {
    index: Index,
    /// Number of the first document of each segment.
    bases: Vec<u32>,
    collections: Vec<Collection>,
    /// What follows from them for the parameters that were asked for last.
    lengths: Mutex<(Bm25, Arc<[Arc<Lengths>]>)>,
    /// Memory of queries that have been answered.
    buffers: Buffers,
}

/// Memory of queries that have been answered, which searchers may share.
#[allow(clippy::vec_box, reason = "a query takes one without a copy")]
type Buffers = Arc<Mutex<Vec<Box<QueryBuffers>>>>;

/// Memory that one query after the other uses.
#[derive(Default)]
struct QueryBuffers {
    scratch: Scratch,
    top: TopK,
}

/// The matches of some segments, or the number of the one that failed, and why.
type Done = std::result::Result<u64, (usize, Error)>;

impl Searcher {
    pub(super) fn new(index: Index) -> Searcher {
        Searcher::with_buffers(index, Buffers::default())
    }

    /// Answers queries over another commit, with the memory of this searcher.
    pub(crate) fn of_other(&self, index: Index) -> Searcher {
        Searcher::with_buffers(index, self.buffers.clone())
    }

    fn with_buffers(index: Index, buffers: Buffers) -> Searcher {
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
    pub fn search(&self, query: &Query, options: &SearchOptions) -> Result<Found> {
        let plan = self.plan(query, options, &FILES)?;
        let read_ahead = plan.working_memory(self.index.segments(), WORKING_MEMORY).read_ahead;
        self.answer_from_files(&plan, options, read_ahead)
    }

    /// Finds the documents of a query that has been planned with these options. What is not in memory is
    /// read from the files; one read takes at most `read_ahead` bytes of each part of a list.
    pub(crate) fn answer_from_files(
        &self,
        plan: &Plan,
        options: &SearchOptions,
        read_ahead: usize,
    ) -> Result<Found> {
        let files = Files::new(read_ahead);
        if options.intra <= 1 || self.bases.len() <= 1 {
            return Ok(self.answer(plan, options, &files)?.0);
        }
        let (found, _) = self.answer_by((plan, &files), options, |least, buffers| {
            Ok((self.search_on_threads((plan, &files), (options, least), buffers)?, true))
        })?;
        Ok(found)
    }

    /// Finds the documents of a query that has been planned with these options, on this thread. What is not
    /// in memory comes from `source`. Returns what was found, and whether it is complete: if the source
    /// stopped the evaluation ([`BlockSource::checkpoint`]), it is what was found until then.
    pub(crate) fn answer(
        &self,
        plan: &Plan,
        options: &SearchOptions,
        source: &dyn BlockSource,
    ) -> Result<(Found, bool)> {
        self.answer_by((plan, source), options, |least, buffers| {
            let QueryBuffers { scratch, top } = buffers;
            top.restart(options.k, self.index.documents());
            top.set_initial_threshold(least);
            let mut total = 0;
            for number in 0..self.bases.len() {
                match self.segment((plan, source), number, options, (&mut *scratch, &mut *top), None) {
                    Ok(matches) => total += matches,
                    Err(Error::Interrupted) => {
                        total = total.max(top.len() as u64);
                        return Ok((found(total, options, plan.scale, top), false));
                    }
                    Err(error) => return Err(error),
                }
            }
            Ok((found(total, options, plan.scale, top), true))
        })
    }

    /// Finds the documents of a query by `search`, which takes the least score of a hit.
    fn answer_by(
        &self,
        (plan, source): (&Plan, &dyn BlockSource),
        options: &SearchOptions,
        mut search: impl FnMut(u32, &mut QueryBuffers) -> Result<(Found, bool)>,
    ) -> Result<(Found, bool)> {
        if options.intra == 0 {
            return Err(Error::Usage("no thread to search on".to_string()));
        }
        let mut buffers = self.buffers().pop().unwrap_or_default();
        let mut run = || {
            let least = self.initial_threshold((plan, source), options, &mut buffers.scratch)?;
            let (found, complete) = search(least, &mut buffers)?;
            if complete && least > 0 && found.hits.len() < options.k {
                // Skip data promises more than there is.
                let again = search(0, &mut buffers)?;
                return Ok(if again.1 { again } else { (found, false) });
            }
            Ok((found, complete))
        };
        let found = run();
        self.buffers().push(buffers);
        found
    }

    #[allow(clippy::vec_box, reason = "a query takes one without a copy")]
    fn buffers(&self) -> MutexGuard<'_, Vec<Box<QueryBuffers>>> {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds the documents of `query`, on this thread, and says how. It takes longer than to search.
    pub fn explain(&self, query: &Query, options: &SearchOptions) -> Result<Explanation> {
        explain(self, query, options)
    }

    /// Looks the terms of `query` up, and weighs them.
    pub(crate) fn plan(
        &self,
        query: &Query,
        options: &SearchOptions,
        source: &dyn BlockSource,
    ) -> Result<Plan> {
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
    ) -> Result<Plan> {
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
        ranking: (&[Collection], &[Arc<Lengths>], Option<&Statistics>),
        query: &Query,
        options: &SearchOptions,
        source: &dyn BlockSource,
    ) -> Result<Plan> {
        let segments = self.index.segments();
        let (ranks, counts) = (options.k > 0, options.count || options.k == 0);
        let of = (options.bm25, ranks, counts);
        Plan::new(query, self.index.schema(), (segments, source), ranking, of)
    }

    fn lengths(&self, bm25: Bm25) -> Arc<[Arc<Lengths>]> {
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
        of: (&Plan, &dyn BlockSource),
        options: &SearchOptions,
        scratch: &mut Scratch,
    ) -> Result<u32> {
        if options.exhaustive {
            Ok(0)
        } else {
            initial_threshold(of, self.index.segments(), options.k, scratch)
        }
    }

    /// Shares the segments out among threads, this one among them, each with memory and hits of its own.
    fn search_on_threads(
        &self,
        (plan, files): (&Plan, &Files),
        (options, least): (&SearchOptions, u32),
        buffers: &mut QueryBuffers,
    ) -> Result<Found> {
        let documents: Vec<u32> = self.index.segments().iter().map(|segment| segment.documents()).collect();
        let shares = shares(&documents, options.intra);
        let run = |share: &[usize]| {
            let mut buffers = self.buffers().pop().unwrap_or_default();
            let done = self.some_segments((plan, files), share, (options, least), &mut buffers);
            (done, buffers)
        };
        let (first, others) = shares.split_first().expect("there are segments");
        let mut done = Vec::with_capacity(shares.len());
        std::thread::scope(|scope| {
            let run = &run;
            let start = |share| {
                let builder = std::thread::Builder::new();
                builder.spawn_scoped(scope, move || run(share)).map_err(|_| share)
            };
            let started: Vec<_> = others.iter().map(Vec::as_slice).map(start).collect();
            let mine = self.some_segments((plan, files), first, (options, least), buffers);
            for thread in started {
                done.push(match thread {
                    Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                    // The system has no thread more.
                    Err(share) => run(share),
                });
            }
            self.join(mine, done, (options, plan.scale), buffers)
        })
    }

    /// The hits of all threads together; if some failed, the error of the first segment that did.
    fn join(
        &self,
        mine: Done,
        done: Vec<(Done, Box<QueryBuffers>)>,
        (options, scale): (&SearchOptions, Scale),
        buffers: &mut QueryBuffers,
    ) -> Result<Found> {
        let (mut total, mut failed) = (0, None);
        let mut add = |done: Done| match done {
            Ok(matches) => total += matches,
            Err((number, _)) if failed.as_ref().is_some_and(|(first, _)| *first < number) => {}
            Err(error) => failed = Some(error),
        };
        add(mine);
        for (done, mut other) in done {
            add(done);
            other.top.take().iter().for_each(|hit| buffers.top.offer(hit.document, hit.score));
            self.buffers().push(other);
        }
        match failed {
            Some((_, error)) => Err(error),
            None => Ok(found(total, options, scale, &mut buffers.top)),
        }
    }

    /// Offers the hits of these segments, which rise, to those of the buffers.
    fn some_segments(
        &self,
        (plan, files): (&Plan, &Files),
        share: &[usize],
        (options, least): (&SearchOptions, u32),
        buffers: &mut QueryBuffers,
    ) -> Done {
        let QueryBuffers { scratch, top } = buffers;
        top.restart(options.k, self.index.documents());
        top.set_initial_threshold(least);
        let mut total = 0;
        for &number in share {
            let matches = self.segment((plan, files), number, options, (&mut *scratch, &mut *top), None);
            total += matches.map_err(|error| (number, error))?;
        }
        Ok(total)
    }

    /// Offers the hits of the segment of that number, and returns how many documents match.
    pub(super) fn segment(
        &self,
        (plan, source): (&Plan, &dyn BlockSource),
        number: usize,
        options: &SearchOptions,
        (scratch, top): (&mut Scratch, &mut TopK),
        mut log: Option<&mut Evaluation>,
    ) -> Result<u64> {
        let (segment, base) = (&self.index.segments()[number], self.bases[number]);
        let known = plan.known_count(number, segment).filter(|_| options.count || options.k == 0);
        if let Some(matches) = known.filter(|_| top.k() == 0) {
            if let Some(log) = log {
                log.strategy = Strategy::Dictionary;
            }
            return Ok(matches);
        }
        let mut search = Search::new((base, segment.documents()), source, (scratch, top));
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
        evaluated.map(|(matches, _)| known.unwrap_or(matches))
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
            match self.some_ids(&rest[..count])? {
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
    fn some_ids(&self, hits: &[SearchHit]) -> Result<Option<(String, Vec<Range<u32>>)>> {
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
    pub fn stored(&self, document: u32) -> Result<Option<Stored>> {
        let (segment, local) = self.locate(document)?;
        segment.stored().map(|stored| stored.get(local)).transpose()
    }

    /// The beginnings of title and text of a document, for showing it: see [`StoredReader::preview`]. `None`
    /// when the index does not keep them.
    ///
    /// [`StoredReader::preview`]: crate::segment::read::StoredReader::preview
    pub fn preview(&self, document: u32) -> Result<Option<Stored>> {
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

/// Numbers of segments for each of up to `threads` threads, at least one: the largest segments first, each
/// to the thread that has the fewest documents so far. So the same threads do the same segments each time.
fn shares(documents: &[u32], threads: usize) -> Vec<Vec<usize>> {
    let mut shares = vec![(0, Vec::new()); threads.min(documents.len())];
    let mut order: Vec<usize> = (0..documents.len()).collect();
    order.sort_by_key(|number| Reverse(documents[*number]));
    for number in order {
        if let Some((load, share)) = shares.iter_mut().min_by_key(|(load, _)| *load) {
            *load += u64::from(documents[number]) + 1;
            share.push(number);
        }
    }
    shares.iter_mut().for_each(|(_, share)| share.sort_unstable());
    shares.into_iter().map(|(_, share)| share).collect()
}

/// The answer; no hits are left in `top`.
pub(super) fn found(total: u64, options: &SearchOptions, scale: Scale, top: &mut TopK) -> Found {
    // If they were not counted: whatever was met, and hits are.
    let total = if options.count { total } else { total.max(top.len() as u64) };
    let hits = top
        .take()
        .into_iter()
        .map(|hit: Hit| SearchHit { document: hit.document, score: scale.shown(hit.score) });
    Found { total, hits: hits.collect() }
}

fn lengths(collections: &[Collection], bm25: Bm25) -> Arc<[Arc<Lengths>]> {
    collections.iter().map(|collection| Arc::new(Lengths::new(bm25, *collection))).collect()
}

/// Documents that have a field, and their tokens.
fn totals(index: &Index, field: usize) -> (u64, u64) {
    let stats = || index.segments().iter().map(|segment| segment.meta().fields[field]);
    (stats().map(|stats| u64::from(stats.documents)).sum(), stats().map(|stats| stats.tokens).sum())
}
