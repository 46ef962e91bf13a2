//! Documents that hold all of several terms: blocks of the rarest are intersected with those of the others that they
//! overlap, and only where the bounds of all together may reach a hit.

use super::scratch::Scratch;
use super::{Scored, slack};
use crate::error::Result;
use crate::limits::BLOCK;
use crate::rank::TopK;
use tierdex_codec::{Shared, intersect};

/// What is known of the documents that may hold all terms.
struct Candidates {
    documents: [u32; BLOCK],
    len: usize,
    shared: Shared,
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
    let mut candidates = Candidates { documents: [0; BLOCK], len: 0, shared: Shared::new(), scored: false };
    let mut matches = 0;
    for block in 0..terms[order[0]].blocks.len() {
        candidates.scored = top.k() > 0 && may_enter(terms, &order, block, top.least());
        if !candidates.scored && !count {
            terms[order[0]].passed += 1;
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
            candidates.drop_hopeless(terms, top.least());
            candidates.offer(terms, base, top)?;
            top.tighten();
        }
    }
    scratch.order = order;
    Ok(matches)
}

/// Whether documents of a block of the first term may score at least `least`.
fn may_enter(terms: &[Scored<'_>], order: &[usize], block: usize, least: f32) -> bool {
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
        if self.scored {
            for (k, place) in list.room.places[..self.len].iter_mut().enumerate() {
                *place = (block as u32, k as u8);
            }
        }
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
            let documents = list.blocks.documents(block)?;
            intersect(&self.documents[at..end], documents, &mut self.shared);
            for (k, place) in self.shared.first().iter().zip(self.shared.second()) {
                let k = at + usize::from(*k);
                self.documents[kept] = self.documents[k];
                if self.scored {
                    for term in &order[..known] {
                        let places = &mut terms[*term].room.places;
                        places[kept] = places[k];
                    }
                    terms[order[known]].room.places[kept] = (block as u32, *place);
                }
                kept += 1;
            }
            at = end;
        }
        self.len = kept;
        Ok(())
    }

    /// Drops the candidates whose blocks' bounds together do not reach `least`.
    fn drop_hopeless(&mut self, terms: &mut [Scored<'_>], least: f32) {
        let mut bounds = [0.0; BLOCK];
        for term in terms.iter() {
            let mut at = 0;
            let places = &term.room.places[..self.len];
            while let Some(&(block, _)) = places.get(at) {
                let bound = term.bound_of(block as usize);
                while at < self.len && places[at].0 == block {
                    bounds[at] += bound;
                    at += 1;
                }
            }
        }
        let mut kept = 0;
        for (k, bound) in bounds[..self.len].iter().enumerate() {
            if bound * slack(terms.len()) >= least {
                self.documents[kept] = self.documents[k];
                for term in terms.iter_mut() {
                    term.room.places[kept] = term.room.places[k];
                }
                kept += 1;
            }
        }
        self.len = kept;
    }

    /// Offers the candidates, whose scores are summed in the order of `terms`.
    fn offer(&self, terms: &mut [Scored<'_>], base: u32, top: &mut TopK) -> Result<()> {
        let documents = &self.documents[..self.len];
        let (mut sums, mut scores) = ([0.0; BLOCK], [0.0; BLOCK]);
        for term in terms {
            term.score_places(documents, &mut scores[..self.len])?;
            for (sum, score) in sums[..self.len].iter_mut().zip(&scores) {
                *sum += score;
            }
        }
        top.offer_all(base, documents, &sums[..self.len]);
        Ok(())
    }
}
