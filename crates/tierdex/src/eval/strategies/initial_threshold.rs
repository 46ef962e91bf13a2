//! Lower bounds of the `k`-th best score that are computed before a strategy runs, as its first threshold.
//! They follow from max scores, since each block, and so each superblock, contains a document that reaches
//! its max score; or from the scores of a rare term.

use crate::eval::nodes::{ShareBounds, Term};
use crate::eval::state::{DocRange, Scratch, Search};
use crate::eval::tuning::{INITIAL_THRESHOLD_K_MAX, PRESCORED_POSTINGS_MAX, PRESCORED_RATIO};
use crate::limits::{BLOCK, SUPERBLOCK};
use crate::query::plan_node::{Leaf, PlanNode};
use crate::query::{QueryPlan, SegmentLists};
use crate::segment::read::{BlockList, FILES, RecordPart, Segment, SkipRecord};
use crate::{
    Error, Result, bytes::ByteReader, eval::strategy::sufficient_clauses, schema::NormKind, transform::impact,
};
use std::sync::Arc;

/// Lower bound of the `k`-th best score over all segments: from block max scores, if skip data is resident,
/// and from the scores of the rarest term, if it is rare. 0 if none is known, as for queries that do not
/// match every document of some scored term.
pub fn initial_threshold(
    plan: &QueryPlan,
    lists: SegmentLists<'_>,
    k: usize,
    scratch: &mut Scratch,
) -> Result<u32> {
    let threshold = sufficient_terms(plan).try_fold(0, |threshold, leaf| {
        Ok::<u32, Error>(threshold_by_max_scores(leaf, lists.segments, k)?.max(threshold))
    })?;
    match prescored_term(plan, k) {
        Some(leaf) => Ok(threshold_by_scores(leaf, lists, k, scratch)?.max(threshold)),
        None => Ok(threshold),
    }
}

/// The scored terms all of whose documents match the query, with at least the score of the term.
fn sufficient_terms(plan: &QueryPlan) -> impl Iterator<Item = &Leaf> {
    sufficient_clauses(plan).iter().filter_map(|node| match node {
        PlanNode::Term { leaf, .. } => Some(&plan.leaves[*leaf]),
        _ => None,
    })
}

/// The rarest of the sufficient terms, if scoring all of its postings for the initial threshold is cheap
/// compared with the evaluation.
pub(in crate::eval) fn prescored_term(plan: &QueryPlan, k: usize) -> Option<&Leaf> {
    let all: u64 = plan.leaves.iter().map(Leaf::postings).sum();
    let rarest = sufficient_terms(plan).filter(|leaf| leaf.postings() >= k as u64);
    let rarest = rarest.min_by_key(|leaf| leaf.postings())?;
    let postings = rarest.postings();
    let is_worth = k > 0 && postings <= PRESCORED_POSTINGS_MAX && postings * PRESCORED_RATIO < all;
    is_worth.then_some(rarest)
}

/// The `k`-th best score of a term, by scoring all its postings.
fn threshold_by_scores(leaf: &Leaf, lists: SegmentLists<'_>, k: usize, scratch: &mut Scratch) -> Result<u32> {
    let mut batch = scratch.take_batch(leaf.postings() as usize);
    for (info, segment) in leaf.infos.iter().zip(lists.segments) {
        let Some(info) = info else { continue };
        let part = RecordPart::WithoutImpacts;
        let mut term = Term::open(leaf, &leaf.scorer, info, part, segment, lists.source, scratch)?;
        term.prefetch(DocRange::ALL, true)?;
        for block in 0..term.blocks.len() {
            let (documents, scores) = term.read_block(block)?;
            batch.push_all(documents, scores);
        }
        term.close(scratch);
    }
    let threshold = if batch.len() < k { 0 } else { nth_largest(&mut batch.scores, k) };
    scratch.give_batch(batch);
    Ok(threshold)
}

/// Lower bound of the `k`-th best score of a term, from the max scores of its blocks in resident skip data.
fn threshold_by_max_scores(leaf: &Leaf, segments: &[Arc<Segment>], k: usize) -> Result<u32> {
    let postings: usize = leaf.infos.iter().flatten().map(|info| info.document_frequency as usize).sum();
    if k == 0 || k > INITIAL_THRESHOLD_K_MAX || postings / BLOCK < k {
        return Ok(0);
    }
    // Within the memory reserved for windows, none of which is in use yet.
    let mut scores = Vec::with_capacity(2 * k + SUPERBLOCK);
    let mut threshold = 0;
    for (info, segment) in leaf.infos.iter().zip(segments) {
        let Some(field) = segment.field(leaf.field) else { continue };
        let bounds = leaf.share_bounds(segment);
        let is_tight = |bounds: &ShareBounds| bounds.is_tight && field.field().norms == NormKind::Byte;
        if field.skips_file().resident().is_none() || !bounds.as_ref().is_none_or(is_tight) {
            return Ok(0);
        }
        let Some(info) = info.as_ref().filter(|info| info.blocks.is_some()) else { continue };
        let SkipRecord::Blocks(list) = field.record(info, &FILES, RecordPart::WithoutImpacts)? else {
            continue;
        };
        // One of the postings of a block has the largest frequency of its impacts.
        let frequency = |impacts: Result<ByteReader<'_>>| impact::max_frequency(impacts?);
        let share = |value: u32| match &bounds {
            Some(bounds) => bounds.guaranteed_share(value as u16),
            None => (value as f32).min(leaf.scorer.share_max()),
        };
        let stored = bounds.is_some();
        let best =
            BestBlocks { list: &list, k, threshold, score: |value| leaf.scorer.min_score(share(value)) };
        threshold = best.collect_scores(
            &mut scores,
            |superblock| match stored {
                true => Ok(u32::from(list.superblock_max_share(superblock))),
                false => frequency(list.superblock_impacts(superblock)),
            },
            |block, share| if stored { Ok(u32::from(share)) } else { frequency(list.encoded_impacts(block)) },
        )?;
    }
    Ok(if scores.len() < k { 0 } else { nth_largest(&mut scores, k) })
}

/// Raises the threshold of a query of one term after its skip data, or a part of it, was read: to a score
/// that `k` documents are known to reach. [`initial_threshold`] does it before, if skip data is resident.
pub(crate) fn raise_threshold(term: &Term<'_>, search: &mut Search<'_>) -> Result<()> {
    let Some(list) = term.blocks.skips() else { return Ok(()) };
    let (k, scores) = (search.collector.k(), &mut search.scratch.bounds);
    let mut threshold = search.collector.threshold();
    scores.clear();
    if k <= INITIAL_THRESHOLD_K_MAX || !list.has_entries() {
        let best = BestBlocks { list, k, threshold, score: |share| term.guaranteed_score(share as u16) };
        let superblock_value = |superblock| Ok(u32::from(list.superblock_max_share(superblock)));
        threshold = best.collect_scores(scores, superblock_value, |_, share| Ok(u32::from(share)))?;
    }
    if k > 0 && k <= scores.len() {
        threshold = nth_largest(scores, k).max(threshold);
    }
    if threshold > search.collector.threshold() {
        search.collector.set_initial_threshold(threshold);
    }
    Ok(())
}

/// Collects, from the skip data of a list, scores that the best documents of its blocks are known to reach,
/// or those of its superblocks if only the head was read.
struct BestBlocks<'l, S> {
    list: &'l BlockList<'l>,
    k: usize,
    threshold: u32,
    /// Lower bound of the best score of a block, given the value that is stored for it: a max share or a
    /// largest frequency. It grows with the value, so blocks are compared by values, and only the best are
    /// converted.
    score: S,
}

impl<S: Fn(u32) -> u32> BestBlocks<'_, S> {
    /// Adds the scores to `scores`, which keeps the `k` highest and at most as many others. The functions
    /// return the value stored for a superblock, and for a block with this number and max share. Returns the
    /// `k`-th highest score found, if it is above `threshold`, else `threshold`.
    fn collect_scores(
        &self,
        scores: &mut Vec<u32>,
        superblock_value: impl Fn(usize) -> Result<u32>,
        block_value: impl Fn(usize, u16) -> Result<u32>,
    ) -> Result<u32> {
        let BestBlocks { list, k, .. } = *self;
        let (before, mut least) = (scores.len(), 0);
        for superblock in 0..list.superblocks() {
            let value = superblock_value(superblock)?;
            if value <= least || self.threshold > 0 && (self.score)(value) <= self.threshold {
                continue;
            }
            if !list.has_entries() {
                scores.push(value);
            } else {
                for (block, share) in list.block_max_shares(superblock) {
                    let value = block_value(block, share)?;
                    if value > least {
                        scores.push(value);
                    }
                }
            }
            if scores.len() - before >= 2 * k {
                least = nth_largest(&mut scores[before..], k);
                scores.truncate(before + k);
            }
        }
        scores[before..].iter_mut().for_each(|value| *value = (self.score)(*value));
        if scores.len() < k {
            return Ok(self.threshold);
        }
        let threshold = nth_largest(scores, k);
        scores.truncate(k);
        Ok(threshold.max(self.threshold))
    }
}

/// The `n`-th largest score. Reorders `scores`, so that the first `n` are the largest.
pub(crate) fn nth_largest(scores: &mut [u32], n: usize) -> u32 {
    *scores.select_nth_unstable_by(n - 1, |a, b| b.cmp(a)).1
}
