//! Documents that hold all of several terms: blocks of the rarest are intersected with those of the others that they
//! overlap, and only where the bounds of all together may reach a hit.

use super::scratch::Scratch;
use super::{Scored, slack};
use crate::error::Result;
use crate::limits::BLOCK;
use crate::rank::TopK;
use tierdex_codec::{Places, Shared, at_least};

/// What is known of the documents that may hold all terms.
struct Candidates {
    documents: [u32; BLOCK],
    /// What each may score at most, by what is known.
    potentials: [f32; BLOCK],
    len: usize,
    /// The block of the rarest term that they stand in.
    block: u32,
    shared: Shared,
    places: Places,
    /// Whether their places in the lists are wanted.
    scored: bool,
}

/// Offers the documents that hold all `terms` to `top`, numbered from `base` on, but for those that it cannot take;
/// returns how many there are if `count` is set, else how many were met. Scores are summed in the order of `terms`.
pub fn best_of_all(
    terms: &mut [Scored<'_>],
    count: bool,
    base: u32,
    scratch: &mut Scratch,
    top: &mut TopK,
) -> Result<u64> {
    let mut order = std::mem::take(&mut scratch.order);
    order.clear();
    order.extend(0..terms.len());
    order.sort_by_key(|term| terms[*term].documents);
    let mut candidates = Candidates {
        documents: [0; BLOCK],
        potentials: [0.0; BLOCK],
        len: 0,
        block: 0,
        shared: Shared::new(),
        places: Places::new(),
        scored: false,
    };
    let mut matches = 0;
    for block in 0..terms[order[0]].blocks.len() {
        candidates.scored = top.k() > 0 && may_enter(terms, &order, block, top.least());
        if !candidates.scored && !count {
            terms[order[0]].blocks.refuse(block);
            continue;
        }
        candidates.start(&mut terms[order[0]], block)?;
        for known in 1..order.len() {
            candidates.keep(terms, &order, known)?;
            if candidates.len == 0 {
                break;
            }
        }
        matches += candidates.len as u64;
        if candidates.scored && candidates.len > 0 {
            candidates.score(terms, &order, top.least())?;
            candidates.offer(terms, base, top);
            top.tighten();
        }
    }
    scratch.order = order;
    Ok(matches)
}

/// Whether documents of a block of the first term may score at least `least`.
pub(super) fn may_enter(terms: &[Scored<'_>], order: &[usize], block: usize, least: f32) -> bool {
    let rarest = &terms[order[0]];
    let (first, last) = (rarest.blocks.first(block), rarest.blocks.last(block));
    let others: f32 = order[1..].iter().map(|term| terms[*term].bound_of_range(first, last)).sum();
    (rarest.bound_of(block) + others) * slack(terms.len()) >= least
}

impl Candidates {
    /// All documents of a block.
    fn start(&mut self, list: &mut Scored<'_>, block: usize) -> Result<()> {
        let documents = list.blocks.documents(block)?;
        self.len = documents.len();
        self.documents[..self.len].copy_from_slice(documents);
        // Their places are written when the first of the other lists knows them.
        self.block = block as u32;
        Ok(())
    }

    /// Keeps those that term `order[known]` has, and notes where. The terms before it know the candidates already:
    /// their places move along.
    fn keep(&mut self, terms: &mut [Scored<'_>], order: &[usize], known: usize) -> Result<()> {
        let (mut kept, mut at) = (0, 0);
        while at < self.len {
            let list = &mut terms[order[known]];
            list.advance(self.documents[at]);
            if list.block == list.blocks.len() {
                break;
            }
            let block = list.block;
            let last = list.blocks.last(block);
            let rest = &self.documents[at..self.len];
            let end = if rest[rest.len() - 1] <= last {
                self.len
            } else {
                at + rest.partition_point(|candidate| *candidate <= last)
            };
            list.blocks.find_in(block, &self.documents[at..end], &mut self.shared)?;
            let found = self.shared.first().iter().map(|k| at + usize::from(*k));
            for (to, k) in (kept..).zip(found.clone()) {
                self.documents[to] = self.documents[k];
            }
            if self.scored {
                for term in &order[..known] {
                    let places = &mut terms[*term].room.places;
                    for (to, k) in (kept..).zip(found.clone()) {
                        places[to] = if known == 1 { (self.block, k as u8) } else { places[k] };
                    }
                }
                let places = terms[order[known]].room.places[kept..].iter_mut();
                places.zip(self.shared.second()).for_each(|(to, place)| *to = (block as u32, *place));
            }
            kept += found.len();
            at = end;
        }
        self.len = kept;
        Ok(())
    }

    /// Scores the candidates, the rarest term first, and drops those that cannot score `least` any more.
    fn score(&mut self, terms: &mut [Scored<'_>], order: &[usize], least: f32) -> Result<()> {
        if least == f32::NEG_INFINITY {
            // All of them enter.
            return terms.iter_mut().try_for_each(|term| term.score_places(&self.documents[..self.len]));
        }
        for scored in 0..=order.len() {
            if let Some(last) = scored.checked_sub(1) {
                terms[order[last]].score_places(&self.documents[..self.len])?;
            }
            self.add_up(terms, order, scored);
            self.drop_hopeless(terms, least);
            if self.len == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Adds up what the candidates may score: scores of the first terms of the order, bounds of the others. It is summed
    /// anew each time, since taking a bound away again would leave behind what it was rounded by.
    fn add_up(&mut self, terms: &[Scored<'_>], order: &[usize], scored: usize) {
        let potentials = &mut self.potentials[..self.len];
        potentials.fill(0.0);
        for (place, term) in order.iter().enumerate() {
            if place < scored {
                let scores = &terms[*term].room.some_scores;
                potentials.iter_mut().zip(scores).for_each(|(potential, score)| *potential += score);
            } else {
                terms[*term].add_bounds(potentials);
            }
        }
    }

    fn drop_hopeless(&mut self, terms: &mut [Scored<'_>], least: f32) {
        let enough = least * (3.0 - 2.0 * slack(terms.len()));
        at_least(&self.potentials[..self.len], enough, &mut self.places);
        let kept = self.places.get();
        if kept.len() == self.len {
            return;
        }
        for (k, place) in kept.iter().map(|place| usize::from(*place)).enumerate() {
            self.documents[k] = self.documents[place];
            self.potentials[k] = self.potentials[place];
        }
        terms.iter_mut().for_each(|term| term.room.keep(kept));
        self.len = kept.len();
    }

    /// Offers the candidates, whose scores are summed in the order of `terms`.
    fn offer(&mut self, terms: &[Scored<'_>], base: u32, top: &mut TopK) {
        let sums = &mut self.potentials[..self.len];
        sums.fill(0.0);
        for term in terms {
            for (sum, score) in sums.iter_mut().zip(&term.room.some_scores) {
                *sum += score;
            }
        }
        top.offer_all(base, &self.documents[..self.len], sums);
    }
}
