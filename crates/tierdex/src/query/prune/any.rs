//! Documents that hold any of several terms: `MaxScore` (Turtle and Flood, "Query evaluation: strategies and
//! optimizations", 1995) over windows of documents.
//!
//! 1. The bounds of a window's blocks say what each term adds at most there. If all together cannot reach a hit, the
//!    window is passed over, and no block of it is decoded.
//! 2. Terms whose bounds together cannot reach a hit are not what makes one: a hit holds one of the others, the essential
//!    ones. If that is one term, a window is a block of it; if there are more, they are added up in a window of 4,096.
//! 3. Documents that may still be hits are looked up in the lists of the other terms, the one that may add most first. If
//!    they are many, adding all terms to the window is less work; then so it is in the next few windows too.

use super::batch::Batch;
use super::scratch::Scratch;
use super::sums::{Sums, WINDOW, window_end};
use super::{Scored, slack};
use crate::error::Result;
use crate::limits::BLOCK;
use crate::rank::TopK;

/// Postings that are added to a window in the time that one document takes to be looked up.
const LOOK_UP_POSTINGS: usize = 16;

/// So many hits let so many documents through that what each term adds to them had better be noted.
const NOTED_K: usize = 128;

/// What each term adds to each document is noted of so many terms times documents, at most.
const NOTES_MAX: usize = 1 << 16;

/// So many documents are noted at a time, at most.
pub(super) fn noted(terms: usize) -> usize {
    (NOTES_MAX / terms).max(1)
}

/// Bytes that are noted of so many terms, at most.
pub fn noted_bytes(terms: usize) -> usize {
    size_of::<f32>() * NOTES_MAX.min(terms * WINDOW)
}

/// Windows to which all terms are added after one in which too many documents had to be looked up.
const PLAINLY_WINDOWS: usize = 7;

/// Offers the documents below `documents` that hold any of `terms` to `top`, numbered from `base` on, but for those that it
/// cannot take. Scores are summed in the order of `terms`. Returns how many documents there are if `count` is set, else
/// how many were met.
pub fn best_of_any(
    terms: &mut [Scored<'_>],
    documents: u32,
    count: bool,
    base: u32,
    scratch: &mut Scratch,
    top: &mut TopK,
) -> Result<u64> {
    let mut bounds = std::mem::take(&mut scratch.bounds);
    let mut order = std::mem::take(&mut scratch.order);
    let mut rests = std::mem::take(&mut scratch.rests);
    let mut run = Run {
        base,
        count,
        met: 0,
        plainly: 0,
        bounds: &mut bounds,
        order: &mut order,
        rests: &mut rests,
        sums: &mut scratch.sums,
        batch: &mut scratch.batches[0],
    };
    let mut first = 0;
    while first < documents {
        first = match run.window(terms, (first, documents), top)? {
            Some(last) => last.saturating_add(1),
            None => break,
        };
    }
    let met = run.met;
    (scratch.bounds, scratch.order, scratch.rests) = (bounds, order, rests);
    Ok(met)
}

/// What is known on the way through the windows.
struct Run<'a> {
    base: u32,
    count: bool,
    met: u64,
    /// Windows to come to which all terms are added.
    plainly: usize,
    /// What each term adds at most in the window.
    bounds: &'a mut Vec<f32>,
    /// Terms, the one that adds least first.
    order: &'a mut Vec<usize>,
    /// What the terms before each place of the order add at most together.
    rests: &'a mut Vec<f32>,
    sums: &'a mut Sums,
    batch: &'a mut Batch,
}

impl Run<'_> {
    /// Does a window from `first` on, and returns the last document of it; `None` if no document follows.
    fn window(
        &mut self,
        terms: &mut [Scored<'_>],
        (first, documents): (u32, u32),
        top: &mut TopK,
    ) -> Result<Option<u32>> {
        let mut next = u32::MAX;
        for term in terms.iter_mut() {
            term.advance(first);
            if term.block < term.blocks.len() {
                next = next.min(term.blocks.first(term.block));
            }
        }
        if next == u32::MAX {
            return Ok(None);
        }
        let first = first.max(next);
        let last = window_end(first).min(documents - 1);
        if self.count || self.plainly > 0 {
            self.plainly = self.plainly.saturating_sub(1);
            self.add_all(terms, (first, last), top)?;
            return Ok(Some(last));
        }
        let Some(others) = self.split(terms, (first, last), top.least())? else { return Ok(Some(last)) };
        if others == 0 {
            self.add_all(terms, (first, last), top)?;
            return Ok(Some(last));
        }
        let last = self.essential(terms, (first, last), others, documents, top.least())?;
        let rest = self.rests[others];
        self.batch.retain(enough(terms.len(), rest, top.least()));
        let many = |batch: &Batch| {
            batch.len() * LOOK_UP_POSTINGS > postings(terms, first, last)
                || batch.len() * terms.len() > NOTES_MAX
        };
        if last <= window_end(first) && many(self.batch) {
            self.plainly = PLAINLY_WINDOWS;
            self.add_all(terms, (first, last), top)?;
        } else {
            self.met += self.batch.len() as u64;
            self.complete(terms, others, top)?;
        }
        Ok(Some(last))
    }

    /// Puts the terms in order, and says how many of them are not essential; `None` if all together cannot score
    /// `least`.
    fn split(
        &mut self,
        terms: &mut [Scored<'_>],
        (first, last): (u32, u32),
        least: f32,
    ) -> Result<Option<usize>> {
        self.bounds.clear();
        for term in terms.iter_mut() {
            self.bounds.push(term.bound(first, last)?);
        }
        let bounds = &*self.bounds;
        self.order.clear();
        self.order.extend(0..bounds.len());
        self.order.sort_unstable_by(|a, b| bounds[*a].total_cmp(&bounds[*b]));
        let rest = self.add_up();
        let reaches = |sum: f32| sum * slack(terms.len()) >= least;
        if rest == 0.0 || !reaches(rest) {
            terms.iter_mut().for_each(|term| term.refuse_range(first, last));
            return Ok(None);
        }
        Ok(Some(self.rests[1..].partition_point(|rest| !reaches(*rest))))
    }

    /// Adds the bounds up in their order, and returns their sum.
    fn add_up(&mut self) -> f32 {
        self.rests.clear();
        let mut rest = 0.0;
        for term in self.order.iter() {
            self.rests.push(rest);
            rest += self.bounds[*term];
        }
        rest
    }

    /// Fills the batch with the documents of the terms from place `others` of the order on. Returns the last document of
    /// the window, which may be larger than asked.
    fn essential(
        &mut self,
        terms: &mut [Scored<'_>],
        (first, last): (u32, u32),
        others: usize,
        documents: u32,
        least: f32,
    ) -> Result<u32> {
        self.batch.clear();
        if let [term] = self.order[others..] {
            let last = self.widen(terms, (first, last), term, documents, least)?;
            let enough = enough(terms.len(), self.rests[others], least);
            let batch = &mut *self.batch;
            let push = |documents: &[u32], scores: &[f32]| batch.push_all(documents, scores);
            each_block(&mut terms[term], (first, last), enough, push)?;
            return Ok(last);
        }
        self.sums.reset(first);
        for (number, term) in terms.iter_mut().enumerate() {
            if self.order[others..].contains(&number) {
                add(term, (first, last), self.sums)?;
            }
        }
        let enough = enough(terms.len(), self.rests[others], least);
        let batch = &mut *self.batch;
        let swept = self.sums.take(enough);
        batch.push_all(swept.values(), swept.sums());
        Ok(last)
    }

    /// Makes the window the block of its one essential term, if the bounds of the others are not too much there.
    fn widen(
        &mut self,
        terms: &mut [Scored<'_>],
        (first, last): (u32, u32),
        essential: usize,
        documents: u32,
        least: f32,
    ) -> Result<u32> {
        let whole = terms[essential].blocks.last(terms[essential].block).min(documents - 1);
        if whole <= last || terms.len() * BLOCK > NOTES_MAX {
            return Ok(last);
        }
        let own = self.bounds[essential];
        for term in terms.iter_mut() {
            self.bounds.push(term.bound(first, whole)?);
        }
        let wider = &mut self.bounds[terms.len()..];
        wider[essential] = 0.0;
        if wider.iter().sum::<f32>() * slack(terms.len()) >= least {
            self.bounds.truncate(terms.len());
            return Ok(last);
        }
        wider[essential] = own;
        self.bounds.drain(..terms.len());
        self.add_up();
        Ok(whole)
    }

    /// Looks the documents of the batch up in the other terms, drops those that cannot be hits, and offers the rest.
    fn complete(&mut self, terms: &mut [Scored<'_>], others: usize, top: &mut TopK) -> Result<()> {
        let least = top.least();
        // The sum of two is the same in either order. Of few hits few documents are left to be looked up once more.
        let in_order = terms.len() > 2;
        let noted = in_order && top.k() >= NOTED_K;
        if noted {
            self.batch.note(terms.len());
        }
        for place in (0..others).rev().filter(|place| self.bounds[self.order[*place]] > 0.0) {
            let number = self.order[place];
            let rest = self.rests[place];
            let enough = enough(terms.len(), rest, least);
            terms[number].add_to(self.batch, number, enough)?;
            self.batch.retain(enough);
        }
        if in_order && !noted {
            self.batch.note(terms.len());
        }
        if in_order {
            for number in &self.order[if noted { others } else { 0 }..] {
                terms[*number].add_to(self.batch, *number, f32::NEG_INFINITY)?;
            }
            self.batch.sum_parts();
        }
        self.batch.chunks(BLOCK).for_each(|(documents, scores)| top.offer_all(self.base, documents, scores));
        top.tighten();
        Ok(())
    }

    /// Adds all terms, in their order, to the window, and offers the sums.
    fn add_all(&mut self, terms: &mut [Scored<'_>], (first, last): (u32, u32), top: &mut TopK) -> Result<()> {
        self.sums.reset(first);
        for term in terms {
            add(term, (first, last), self.sums)?;
        }
        self.met += self.sums.offer(self.base, top);
        top.tighten();
        Ok(())
    }
}

/// What some of the terms must add to reach `least` if the others add at most `rest`; a little less, since it is summed in
/// another order.
pub(super) fn enough(terms: usize, rest: f32, least: f32) -> f32 {
    least * (3.0 - 2.0 * slack(terms)) - rest
}

/// About how many postings the terms have in a window.
fn postings(terms: &[Scored<'_>], first: u32, last: u32) -> usize {
    let blocks = |term: &Scored<'_>| term.blocks.find(term.block, last) - term.blocks.find(term.block, first);
    terms.iter().map(|term| blocks(term) * BLOCK + BLOCK / 2).sum()
}

/// Adds the scores of the term's documents from `first` to `last` to the sums of their window.
fn add(term: &mut Scored<'_>, (first, last): (u32, u32), sums: &mut Sums) -> Result<()> {
    for block in term.block..term.blocks.len() {
        if term.blocks.first(block) > last {
            break;
        }
        let (origin, of_window) = sums.parts();
        if !term.add_bits(block, (first, last), origin, of_window)? {
            let (documents, scores) = term.read(block)?;
            let within = within(documents, first, last);
            sums.add(&documents[within.clone()], &scores[within]);
        }
    }
    Ok(())
}

/// Calls `body` with the term's documents from `first` to `last` that may score `least`, and their scores, a block at a
/// time.
fn each_block(
    term: &mut Scored<'_>,
    (first, last): (u32, u32),
    least: f32,
    mut body: impl FnMut(&[u32], &[f32]),
) -> Result<()> {
    for block in term.block..term.blocks.len() {
        if term.blocks.first(block) > last {
            break;
        }
        let (documents, scores) = term.read_at_least(block, least)?;
        let within = within(documents, first, last);
        if !within.is_empty() {
            body(&documents[within.clone()], &scores[within]);
        }
    }
    Ok(())
}

/// Places of the documents that are from `first` to `last`.
pub(super) fn within(documents: &[u32], first: u32, last: u32) -> std::ops::Range<usize> {
    let before = |most: u32| documents.partition_point(|document| *document < most);
    let from = if documents.first().is_none_or(|document| *document >= first) { 0 } else { before(first) };
    let past_all = documents.last().is_none_or(|end| *end <= last);
    from..if past_all { documents.len() } else { before(last + 1) }
}
