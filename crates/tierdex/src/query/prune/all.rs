//! Documents that hold all of several terms: blocks of the rarest are intersected with those of the others that they
//! overlap, and only where the bounds of all together may reach a hit.

use super::{Scored, slack};
use crate::error::Result;
use crate::limits::BLOCK;
use crate::rank::TopK;
use tierdex_codec::{Shared, intersect};

/// A term that documents must hold.
struct Required<'a> {
    list: Scored<'a>,
    shared: Shared,
    /// Block, and place in it, of each candidate.
    places: [(u32, u8); BLOCK],
}

impl<'a> Required<'a> {
    fn new(list: Scored<'a>) -> Required<'a> {
        Required { list, shared: Shared::new(), places: [(0, 0); BLOCK] }
    }

    /// Keeps those of the candidates that the list has at their front, notes where, and returns their number.
    /// `others` are the lists that know the candidates already: their places move along.
    fn keep(&mut self, candidates: &mut [u32], others: &mut [Required<'a>]) -> Result<usize> {
        let (mut kept, mut at) = (0, 0);
        while at < candidates.len() {
            self.list.block = self.list.blocks.find(self.list.block, candidates[at]);
            if self.list.block == self.list.blocks.len() {
                break;
            }
            let last = self.list.blocks.last(self.list.block);
            let end = at + candidates[at..].partition_point(|candidate| *candidate <= last);
            let documents = self.list.blocks.documents(self.list.block)?;
            intersect(&candidates[at..end], documents, &mut self.shared);
            for (k, place) in self.shared.first().iter().zip(self.shared.second()) {
                let k = at + usize::from(*k);
                candidates[kept] = candidates[k];
                self.places[kept] = (self.list.block as u32, *place);
                for other in others.iter_mut() {
                    other.places[kept] = other.places[k];
                }
                kept += 1;
            }
            at = end;
        }
        Ok(kept)
    }

    /// Adds the scores of the candidates.
    fn score(&mut self, candidates: &[u32], scores: &mut [f32; BLOCK]) -> Result<()> {
        let places = &self.places[..candidates.len()];
        let mut at = 0;
        while let Some(&(block, _)) = places.get(at) {
            let end = at + places[at..].iter().take_while(|place| place.0 == block).count();
            let frequencies = self.list.blocks.frequencies(block as usize)?;
            for ((score, candidate), place) in
                scores[at..end].iter_mut().zip(&candidates[at..end]).zip(&places[at..end])
            {
                let frequency = frequencies[usize::from(place.1)];
                *score += self.list.scorer.score(self.list.norms, *candidate, frequency);
            }
            at = end;
        }
        Ok(())
    }
}

/// Offers the documents that hold all `terms` to `top`, numbered from `base` on, but for those that it cannot take;
/// returns how many there are if `count` is set, else how many were met. Scores are summed in the order of `terms`.
pub fn best_of_all(terms: Vec<Scored<'_>>, count: bool, base: u32, top: &mut TopK) -> Result<u64> {
    let mut terms: Vec<_> = terms.into_iter().map(Required::new).collect();
    let in_order: Vec<usize> = {
        let mut order: Vec<usize> = (0..terms.len()).collect();
        order.sort_by_key(|term| terms[*term].list.documents);
        // Where each of `terms` goes when they are sorted as `order` says.
        let mut places = vec![0; order.len()];
        order.iter().enumerate().for_each(|(place, term)| places[*term] = place);
        places
    };
    terms.sort_by_key(|term| term.list.documents);
    let mut matches = 0;
    let mut scores = [0.0; BLOCK];
    let mut candidates = [0; BLOCK];
    for block in 0..terms[0].list.blocks.len() {
        let wanted = top.k() > 0 && may_enter(&terms, block, top.least());
        if !wanted && !count {
            continue;
        }
        let documents = terms[0].list.blocks.documents(block)?;
        let mut len = documents.len();
        candidates[..len].copy_from_slice(documents);
        for (k, place) in terms[0].places[..len].iter_mut().enumerate() {
            *place = (block as u32, k as u8);
        }
        for term in 1..terms.len() {
            let (known, others) = terms.split_at_mut(term);
            len = others[0].keep(&mut candidates[..len], known)?;
            if len == 0 {
                break;
            }
        }
        matches += len as u64;
        if wanted && len > 0 {
            scores[..len].fill(0.0);
            for place in &in_order {
                terms[*place].score(&candidates[..len], &mut scores)?;
            }
            for (candidate, score) in candidates[..len].iter().zip(&scores) {
                top.offer(base + candidate, *score);
            }
            top.tighten();
        }
    }
    Ok(matches)
}

/// Whether documents of a block of the first term may score more than `least`. Those with just as much come after the
/// ones that have it, so that they are no hits.
fn may_enter(terms: &[Required<'_>], block: usize, least: f32) -> bool {
    let (first, last) = (terms[0].list.blocks.first(block), terms[0].list.blocks.last(block));
    let Some(own) = terms[0].list.bounds.get(block) else { return true };
    let others: f32 = terms[1..].iter().map(|term| term.list.bound(first, last)).sum();
    (own + others) * slack(terms.len()) > least
}
