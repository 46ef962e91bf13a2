//! Lower bounds of the `k`-th best score that are computed before a strategy runs, as its first threshold.
//! They follow from max scores, since each block, and so each superblock, contains a document that reaches
//! its max score; or from the scores of a rare term.
//!
//! A deleted document may be the one that reaches a max score. If `g` postings of the term are deleted, the
//! `k + g` best blocks have `k` that are not spoilt, so the bound of rank `k + g` holds. It is low if many
//! are deleted. Then a rank is chosen below which `k` unspoilt blocks are very likely: the bound is a
//! *guess*. If the `k`-th hit does not reach the highest guess, the query is evaluated again without guesses.

use crate::eval::nodes::{ShareBounds, Term};
use crate::eval::state::{DocRange, Scratch, Search};
use crate::eval::tuning::{INITIAL_THRESHOLD_K_MAX, PRESCORED_POSTINGS_MAX, PRESCORED_RATIO};
use crate::limits::{BLOCK, SUPERBLOCK};
use crate::query::plan_node::{Leaf, PlanNode};
use crate::query::{QueryPlan, SegmentLists};
use crate::segment::read::{BlockList, FILES, OpenSegment, RecordPart, SkipRecord};
use crate::{
    Result, bytes::ByteReader, eval::strategy::sufficient_clauses, schema::NormKind, transform::impact,
};

/// Lower bound of the `k`-th best score over all segments, or a guess of one: from block max scores, if skip
/// data is resident, and from the scores of the rarest term, if it is rare. 0 if none is known, as for
/// queries that do not match every document of some scored term.
pub fn initial_threshold(
    plan: &QueryPlan,
    lists: SegmentLists<'_>,
    k: usize,
    scratch: &mut Scratch,
) -> Result<InitialThreshold> {
    let mut threshold = InitialThreshold::default();
    for leaf in sufficient_terms(plan) {
        let infos = leaf.infos.iter().zip(lists.segments);
        let infos = infos.filter_map(|(info, segment)| Some((info.as_ref()?, segment)));
        let (postings, deleted) = infos.fold((0, 0), |(postings, deleted), (info, segment)| {
            let more = u64::from(segment.deleted_postings_max(info));
            (postings + u64::from(info.document_frequency), deleted + more)
        });
        let rank = BoundRank::new(k, postings, deleted, true);
        threshold.add(threshold_by_max_scores(leaf, lists.segments, rank.blocks)?, rank.is_guess);
    }
    if let Some(leaf) = prescored_term(plan, k) {
        threshold.add(threshold_by_scores(leaf, lists, k, scratch)?, false);
    }
    Ok(threshold)
}

/// A threshold with which an evaluation begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InitialThreshold {
    /// The score; 0 if there is none.
    pub score: u32,
    /// The part of it that is a guess: `k` documents are not known to reach it. 0 if it is not one.
    pub guess: u32,
}

impl InitialThreshold {
    fn add(&mut self, score: u32, is_guess: bool) {
        if score > self.score {
            *self = InitialThreshold { score, guess: if is_guess { score } else { 0 } };
        }
    }
}

/// The number of blocks among the best of a list of which `k` contain a document that reaches the max score
/// and is not deleted.
struct BoundRank {
    blocks: usize,
    /// Whether it is only very likely.
    is_guess: bool,
}

/// Number of standard deviations by which the rank of a guess exceeds the expected one. If documents are
/// deleted at random, one guess in several hundred fails.
const GUESS_DEVIATIONS: f64 = 3.0;

impl BoundRank {
    /// Of a list of `postings`, at most `deleted` of which belong to deleted documents.
    fn new(k: usize, postings: u64, deleted: u64, may_guess: bool) -> BoundRank {
        let proven = k.saturating_add(usize::try_from(deleted).unwrap_or(usize::MAX));
        let share = deleted as f64 / postings.max(1) as f64;
        let expected = k as f64 / (1.0 - share);
        let deviation = (k as f64 * share).sqrt() / (1.0 - share);
        // A share of 1 makes it infinite, which is no rank of a list.
        let guess = (expected + GUESS_DEVIATIONS * deviation).ceil() as usize;
        match may_guess && guess < proven {
            true => BoundRank { blocks: guess, is_guess: true },
            false => BoundRank { blocks: proven, is_guess: false },
        }
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
        let first = batch.len();
        for block in 0..term.blocks.len() {
            let (documents, scores) = term.read_block(block)?;
            batch.push_all(documents, scores);
        }
        if let Some(deleted) = segment.deleted() {
            batch.retain_from(first, |document, _| !deleted.contains(document));
        }
        term.close(scratch);
    }
    let threshold = if batch.len() < k { 0 } else { nth_largest(&mut batch.scores, k) };
    scratch.give_batch(batch);
    Ok(threshold)
}

/// Score that the `k` best blocks of a term reach by their max scores, from resident skip data.
fn threshold_by_max_scores(leaf: &Leaf, segments: &[OpenSegment], k: usize) -> Result<u32> {
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
    let (k, may_guess) = (search.collector.k(), search.collector.may_guess());
    let (postings, deleted) = term.postings_and_deleted();
    let BoundRank { blocks, is_guess } = BoundRank::new(k, postings, deleted, may_guess);
    let (k, scores) = (if k == 0 { 0 } else { blocks }, &mut search.scratch.bounds);
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
        search.collector.set_initial_threshold(threshold, is_guess);
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
