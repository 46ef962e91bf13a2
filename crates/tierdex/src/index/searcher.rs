//! Queries over all segments of a commit, scored by the statistics of the whole.

use super::reader::Index;
use crate::error::{Error, Result};
use crate::query::ops::{Op, Pool};
use crate::query::prune::Scratch;
use crate::query::{Plan, Query, terms_of};
use crate::rank::{Bm25, Collection, Hit, Lengths, TopK};
use crate::segment::read::{Segment, Stored};
use std::sync::{Arc, Mutex, PoisonError};

/// How to search.
#[derive(Clone, Copy, Debug)]
pub struct SearchOptions {
    /// Hits to return; more than there are documents is as good as all.
    pub k: usize,
    /// Ranking.
    pub bm25: Bm25,
    /// Score every matching document, also those that cannot be among the best. The answer is the same.
    pub exhaustive: bool,
    /// Count every matching document. If not, those that cannot be among the best may be passed over uncounted.
    pub count: bool,
}

impl Default for SearchOptions {
    fn default() -> SearchOptions {
        SearchOptions { k: 10, bm25: Bm25::default(), exhaustive: false, count: true }
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
pub struct Searcher<'a> {
    index: &'a Index,
    /// Number of the first document of each segment.
    bases: Vec<u32>,
    collections: Vec<Collection>,
    /// What follows from them for the default parameters.
    lengths: Vec<Arc<Lengths>>,
    /// Memory of queries that have been answered.
    #[allow(clippy::vec_box, reason = "a query takes one without a copy")]
    rooms: Mutex<Vec<Box<Room>>>,
}

/// Memory that one query after the other uses.
#[derive(Default)]
struct Room {
    scratch: Scratch,
    top: TopK,
}

impl<'a> Searcher<'a> {
    pub(super) fn new(index: &'a Index) -> Searcher<'a> {
        let mut bases = Vec::with_capacity(index.segments().len());
        let mut next = 0;
        for segment in index.segments() {
            bases.push(next);
            next += segment.documents();
        }
        let fields = 0..index.schema().fields.len();
        let collections: Vec<_> = fields.map(|field| collection(index, field)).collect();
        let lengths = lengths(&collections, Bm25::default());
        Searcher { index, bases, collections, lengths, rooms: Mutex::default() }
    }

    /// Finds the documents of `query`.
    pub fn search(&self, query: &Query, options: &SearchOptions) -> Result<Found> {
        let rooms = || self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        let mut room = rooms().pop().unwrap_or_default();
        let found = self.search_in(query, options, &mut room);
        rooms().push(room);
        found
    }

    fn search_in(&self, query: &Query, options: &SearchOptions, room: &mut Room) -> Result<Found> {
        let segments = self.index.segments();
        let default = options.bm25 == Bm25::default();
        let other = (!default).then(|| lengths(&self.collections, options.bm25));
        let ranking = (self.collections.as_slice(), other.as_ref().unwrap_or(&self.lengths).as_slice());
        let plan = Plan::new(query, self.index.schema(), segments, ranking, options.bm25)?;
        let Room { scratch, top } = room;
        top.restart(options.k, self.index.documents());
        let mut total = 0;
        for (number, (segment, &base)) in segments.iter().zip(&self.bases).enumerate() {
            if !options.exhaustive
                && let Some(matches) = plan.prune(number, segment, base, options.count, (scratch, top))?
            {
                total += matches;
                continue;
            }
            let mut op = plan.ops(number, segment)?;
            total += collect(&mut op, segment.documents(), base, &mut scratch.pool, top)?;
        }
        if !options.count {
            // Whatever was met: hits are.
            total = total.max(top.len() as u64);
        }
        let hits = top.take().into_iter().map(|Hit { score, document }| SearchHit { document, score });
        Ok(Found { total, hits: hits.collect() })
    }

    /// The terms of a field that `query` looks for, for marking them in a text.
    pub fn terms(&self, query: &Query, field: usize) -> Result<Vec<String>> {
        terms_of(query, field, self.index.segments())
    }

    /// External ids of hits, in their order.
    pub fn ids(&self, hits: &[SearchHit]) -> Result<Vec<String>> {
        let mut ids = vec![String::new(); hits.len()];
        let mut order: Vec<usize> = (0..hits.len()).collect();
        order.sort_unstable_by_key(|&i| hits[i].document);
        let mut rest = order.as_slice();
        while let Some(&first) = rest.first() {
            let (segment, local) = self.place(hits[first].document)?;
            let base = hits[first].document - local;
            let here = rest.partition_point(|&i| hits[i].document - base < segment.documents());
            let locals: Vec<u32> = rest[..here].iter().map(|&i| hits[i].document - base).collect();
            segment.ids().get(&locals, |place, id| ids[rest[place]].push_str(id))?;
            rest = &rest[here..];
        }
        Ok(ids)
    }

    /// External id of a document.
    pub fn id(&self, document: u32) -> Result<String> {
        Ok(self.ids(&[SearchHit { document, score: 0.0 }])?.remove(0))
    }

    /// Title and text of a document; `None` when the index does not keep them.
    pub fn stored(&self, document: u32) -> Result<Option<Stored>> {
        let (segment, local) = self.place(document)?;
        segment.stored().map(|stored| stored.get(local)).transpose()
    }

    fn place(&self, document: u32) -> Result<(&'a Segment, u32)> {
        let number = self.bases.partition_point(|&base| base <= document).checked_sub(1);
        let place = number.map(|number| (&self.index.segments()[number], document - self.bases[number]));
        let place = place.filter(|(segment, local)| *local < segment.documents());
        place.ok_or_else(|| Error::Usage(format!("the index has no document {document}")))
    }
}

/// Runs the operators of a segment over all its documents; returns the number of matches.
fn collect(op: &mut Op<'_>, documents: u32, base: u32, pool: &mut Pool, top: &mut TopK) -> Result<u64> {
    let mut total = 0;
    let mut from = 0;
    while let Some(start) = op.next(from).filter(|&start| start < documents) {
        let mut window = pool.take(start);
        op.accumulate(&mut window, pool)?;
        total += window.matches();
        window.for_each(|document, score| top.offer(base + document, score));
        from = window.end();
        pool.give(window);
    }
    Ok(total)
}

fn lengths(collections: &[Collection], bm25: Bm25) -> Vec<Arc<Lengths>> {
    collections.iter().map(|collection| Arc::new(Lengths::new(bm25, *collection))).collect()
}

fn collection(index: &Index, field: usize) -> Collection {
    let documents = index.documents();
    let tokens: u64 = index.segments().iter().map(|segment| segment.meta().fields[field].tokens).sum();
    let average_length = if tokens == 0 { 1.0 } else { tokens as f64 / documents as f64 };
    Collection { documents, average_length }
}
