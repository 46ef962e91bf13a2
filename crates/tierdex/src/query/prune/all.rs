//! Documents that hold all of several terms, where nobody asks how many they are: those of the rarest that score enough by
//! themselves are looked up in the others, the next rarest first, and only where the bounds of all together may reach a hit.

use super::any::{enough, noted};
use super::batch::Batch;
use super::scratch::Scratch;
use super::{Scored, slack};
use crate::error::Result;
use crate::rank::TopK;

/// Offers the documents that hold all `terms` to `top`, numbered from `base` on, but for those that it cannot take;
/// returns how many were met. Scores are summed in the order of `terms`.
pub fn best_of_all(
    terms: &mut [Scored<'_>],
    base: u32,
    scratch: &mut Scratch,
    top: &mut TopK,
) -> Result<u64> {
    let mut order = std::mem::take(&mut scratch.order);
    let mut rests = std::mem::take(&mut scratch.rests);
    by_documents(terms, &mut order);
    let rarest = order[0];
    let [batch, whole, _] = &mut scratch.batches;
    let mut met = 0;
    for block in 0..terms[rarest].blocks.len() {
        let others = bounds_of_others(terms, &order, block, &mut rests);
        if (terms[rarest].bound_of(block) + others) * slack(terms.len()) < top.least() {
            terms[rarest].blocks.refuse(block);
            continue;
        }
        let enough = enough(terms.len(), others, top.least());
        let (documents, scores) = terms[rarest].read_at_least(block, enough)?;
        whole.clear();
        whole.push_all(documents, scores);
        for (documents, scores) in whole.chunks(noted(terms.len())) {
            batch.clear();
            batch.push_all(documents, scores);
            require_others(terms, (&order, &rests), batch, top.least())?;
            met += batch.len() as u64;
            top.offer_all(base, &batch.documents, &batch.scores);
        }
        top.tighten();
    }
    (scratch.order, scratch.rests) = (order, rests);
    Ok(met)
}

/// Leaves of the documents of `batch`, with their scores in the rarest term, those that hold all others and score `least`, with
/// their whole scores.
fn require_others(
    terms: &mut [Scored<'_>],
    (order, rests): (&[usize], &[f32]),
    batch: &mut Batch,
    least: f32,
) -> Result<()> {
    // The sum of two is the same in either order.
    let in_order = terms.len() > 2;
    if in_order {
        batch.note(terms.len());
        batch.note_scores(order[0]);
    }
    for (place, number) in order.iter().enumerate().skip(1) {
        let Some(first) = batch.documents.first() else { break };
        let enough = enough(terms.len(), rests[place], least);
        terms[*number].advance(*first);
        terms[*number].require(batch, *number, enough)?;
        batch.retain(enough);
    }
    if in_order {
        batch.sum_parts();
    }
    Ok(())
}

/// The places of the terms, the rarest first.
pub(super) fn by_documents(terms: &[Scored<'_>], order: &mut Vec<usize>) {
    order.clear();
    order.extend(0..terms.len());
    order.sort_by_key(|term| terms[*term].documents);
}

/// What the terms but the first of the order add at most to the documents of a block of that; `rests` becomes what those
/// behind each place of the order add.
fn bounds_of_others(terms: &[Scored<'_>], order: &[usize], block: usize, rests: &mut Vec<f32>) -> f32 {
    let rarest = &terms[order[0]].blocks;
    let (first, last) = (rarest.first(block), rarest.last(block));
    rests.clear();
    rests.resize(order.len(), 0.0);
    let mut rest = 0.0;
    for place in (1..order.len()).rev() {
        rests[place] = rest;
        rest += terms[order[place]].bound_of_range(first, last);
    }
    rest
}

/// Whether documents of a block of the first term may score at least `least`.
pub(super) fn may_enter(terms: &[Scored<'_>], order: &[usize], block: usize, least: f32) -> bool {
    let rarest = &terms[order[0]];
    let (first, last) = (rarest.blocks.first(block), rarest.blocks.last(block));
    let others: f32 = order[1..].iter().map(|term| terms[*term].bound_of_range(first, last)).sum();
    (rarest.bound_of(block) + others) * slack(terms.len()) >= least
}
