//! Impact-ordered evaluation of one scored term, with any filters and exclusions: blocks are evaluated in
//! descending order of their block max scores.
//!
//! 1. First round: the blocks with the highest max scores, as many as the hits are expected to fill, are
//!    selected with the help of the superblock max scores and evaluated in document order.
//! 2. The other blocks whose max scores reach the threshold are evaluated in descending order: one by one if
//!    they are few, otherwise in rounds that double in size, each in document order. In a long list this is
//!    done for one part of the list after the other, which bounds the memory for sort keys
//!    ([`Tuning::superblocks_ordered`](super::tuning::Tuning::superblocks_ordered)).
//!
//! Max scores are stored in contiguous arrays, so a list of a million postings needs some hundred superblock
//! max scores and the few blocks that contain the best hits. Candidates of a block are the postings with a
//! sufficient frequency; only these are looked up in the lists of other clauses.

use super::bounds::ShareBounds;
use super::node::Node;
use super::range::within;
use super::refine::Refiners;
use super::scratch::Scratch;
use super::search::Search;
use super::term::Term;
use super::tuning::{
    FIRST_PREFETCHED, FIRST_SCORED_MAX, FIRST_SCORED_RATIO, IMPACT_ORDER_RATIO, INITIAL_THRESHOLD_HITS,
    ONE_BY_ONE,
};
use crate::bytes::View;
use crate::error::{Error, Result};
use crate::limits::{BLOCK, SUPERBLOCK};
use crate::query::plan::{Leaf, PlanNode, QueryPlan};
use crate::schema::NormKind;
use crate::segment::read::{BlockList, BlockSource, FILES, RecordPart, Segment, SkipRecord};
use crate::transform::impact;
use std::ops::Range;
use std::sync::Arc;
use tierdex_codec::largest;

/// Whether impact order is cheaper than a conjunction: the expected number of candidates until `k` pass the
/// filters and exclusions, times [`IMPACT_ORDER_RATIO`], is less than the length of the rarest required
/// list. Always true without filters.
pub(super) fn is_worth(term: &Term<'_>, refiners: &Refiners<'_, '_>, k: usize, documents: u32) -> bool {
    let Some(rarest) = refiners.filters().map(Node::cost).min() else { return true };
    let rarest = rarest.min(term.postings()) as f64;
    refiners.expected_candidates(k, documents) * IMPACT_ORDER_RATIO < rarest
}

/// Offers the documents of `term` that pass the refiners, except those that cannot be hits. Returns the
/// number of documents evaluated.
pub(super) fn impact_ordered(
    term: &mut Term<'_>,
    refiners: &mut Refiners<'_, '_>,
    search: &mut Search<'_>,
) -> Result<u64> {
    let mut keys = std::mem::take(&mut search.scratch.keys);
    let mut selection = std::mem::take(&mut search.scratch.selection);
    let done = run(term, refiners, search, &mut keys, &mut selection);
    keys.clear();
    (search.scratch.keys, search.scratch.selection) = (keys, selection);
    done
}

fn run<'a, 'b>(
    term: &mut Term<'a>,
    refiners: &mut Refiners<'_, 'b>,
    search: &mut Search<'_>,
    keys: &mut Vec<u64>,
    selection: &mut Vec<u64>,
) -> Result<u64> {
    let superblocks_ordered = search.tuning.superblocks_ordered;
    let keys_max = superblocks_ordered * SUPERBLOCK;
    let superblocks = term.superblocks((search.first, search.end - 1));
    let expected = refiners.expected_candidates(search.top.k(), search.documents);
    let prefetches = term.blocks.prefetches();
    let first = first_round(expected as usize).max(if prefetches { FIRST_PREFETCHED } else { 0 });
    let first = first.min(keys_max / 2).min(superblocks.len() * SUPERBLOCK);
    if prefetches && refiners.is_empty() {
        raise_threshold(term, search)?;
    }
    // Reading a block takes longer than decoding the impacts of many.
    let by_impacts = term.has_loose_bounds() && prefetches;
    // Each superblock contains a block with its max score, so `first` blocks reach the `first`-th best of
    // these.
    let first_min = nth_superblock_max((term, &superblocks, by_impacts), first, &mut search.scratch.bounds)?
        .max(search.min_score());
    let mut has_all_keys = true;
    blocks_at_least((term, &superblocks, by_impacts), first_min, search, |key| {
        if keys.len() == keys_max {
            largest(keys, first, selection);
            keys.truncate(first);
            has_all_keys = false;
        }
        keys.push(key);
    })?;
    let first = first.min(keys.len());
    if keys.len() > first {
        largest(keys, first, selection);
    }
    let least_evaluated = keys[..first].iter().copied().min().unwrap_or(u64::MAX);
    let mut run = ImpactOrderedRun { term, refiners, evaluated: 0 };
    run.in_order(&mut keys[..first], search)?;
    if has_all_keys && search.min_score() >= first_min {
        run.remaining((least_evaluated, first, by_impacts), search, keys, selection)?;
        return Ok(run.evaluated);
    }
    for start in superblocks.clone().step_by(superblocks_ordered) {
        let part = start..superblocks.end.min(start + superblocks_ordered);
        keys.clear();
        let min_score = search.min_score();
        blocks_at_least((run.term, &part, by_impacts), min_score, search, |key| keys.push(key))?;
        run.remaining((least_evaluated, first, by_impacts), search, keys, selection)?;
    }
    Ok(run.evaluated)
}

struct ImpactOrderedRun<'r, 'n, 'a, 'b> {
    term: &'r mut Term<'a>,
    refiners: &'r mut Refiners<'n, 'b>,
    evaluated: u64,
}

impl ImpactOrderedRun<'_, '_, '_, '_> {
    /// Prefetches a block, and the blocks of other lists in which its candidates are looked up. False if the
    /// prefetch limit of the source is reached.
    fn prefetch(&mut self, block: usize) -> Result<bool> {
        let blocks = &mut self.term.blocks;
        let range = (blocks.first(block), blocks.last(block));
        Ok(blocks.prefetch(block, true)? && self.refiners.prefetch_candidates(range, true)?)
    }

    /// Evaluates the blocks of `keys` in descending order. Blocks with keys from `least_evaluated` on were
    /// evaluated in the first round, which had `first` blocks.
    fn remaining(
        &mut self,
        (least_evaluated, first, by_impacts): (u64, usize, bool),
        search: &mut Search<'_>,
        keys: &mut Vec<u64>,
        selection: &mut Vec<u64>,
    ) -> Result<()> {
        let min_score = search.min_score();
        keys.retain(|key| *key < least_evaluated && bound_of(*key) >= min_score);
        if self.term.has_loose_bounds() && !by_impacts {
            for at in keys.iter_mut() {
                let block = block_of(*at);
                *at = (*at).min(key(self.term.max_by_impacts(block)?, block));
            }
            keys.retain(|key| bound_of(*key) >= min_score);
        }
        let one_by_one = if self.term.blocks.prefetches() { 0 } else { ONE_BY_ONE };
        let mut share = first.max(1);
        while keys.len() > one_by_one {
            share = (2 * share).min(keys.len());
            largest(keys, share, selection);
            let mut rest = keys.split_off(share);
            self.in_order(keys, search)?;
            let min_score = search.min_score();
            rest.retain(|key| bound_of(*key) >= min_score);
            *keys = rest;
        }
        keys.sort_unstable_by(|a, b| b.cmp(a));
        for at in 0..keys.len() {
            if bound_of(keys[at]) < search.min_score() {
                break;
            }
            self.in_order(&mut keys[at..at + 1], search)?;
        }
        Ok(())
    }

    /// Evaluates blocks in document order.
    fn in_order(&mut self, keys: &mut [u64], search: &mut Search<'_>) -> Result<()> {
        keys.sort_unstable_by_key(|key| block_of(*key));
        let mut batch = search.scratch.batch();
        let mut prefetched = if self.term.blocks.prefetches() { 0 } else { keys.len() };
        for (at, key) in keys.iter().enumerate() {
            if at == prefetched {
                prefetched += 1;
                while self.prefetch(block_of(keys[prefetched - 1]))? && prefetched < keys.len() {
                    prefetched += 1;
                }
            }
            let (block, bound) = (block_of(*key), bound_of(*key));
            if bound < search.min_score() {
                self.term.blocks.mark_pruned(block);
                continue;
            }
            search.checkpoint(search.end)?;
            let range = (self.term.blocks.first(block), self.term.blocks.last(block));
            let (mut documents, mut scores) = self.term.read_at_least(block, search.min_score())?;
            if !search.contains(range) {
                let kept = within(documents, search.clip(range));
                (documents, scores) = (&documents[kept.clone()], &scores[kept]);
            }
            if self.refiners.is_empty() {
                self.evaluated += documents.len() as u64;
                search.top.offer_all(search.base, documents, scores);
                search.top.raise_threshold();
                continue;
            }
            batch.clear();
            batch.push_all(documents, scores);
            self.evaluated += self.refiners.finish(&mut batch, search)?;
        }
        search.scratch.give_batch(batch);
        Ok(())
    }
}

/// Raises the threshold of a query of one term, whose skip data was not resident, to a score that `k`
/// documents reach: each block of its list, and so each superblock, contains one that reaches its max score.
fn raise_threshold(term: &Term<'_>, search: &mut Search<'_>) -> Result<()> {
    let Some(list) = term.blocks.skips() else { return Ok(()) };
    let (k, scores) = (search.top.k(), &mut search.scratch.bounds);
    let mut threshold = search.top.threshold();
    scores.clear();
    if list.has_unread_entries() {
        scores.reserve_exact(list.superblocks());
        let shares = (0..list.superblocks()).map(|superblock| list.superblock_max_share(superblock));
        scores.extend(shares.map(|share| term.reached(share)));
    } else if k <= INITIAL_THRESHOLD_HITS {
        let of_superblock = |superblock| Ok(term.reached(list.superblock_max_share(superblock)));
        add_blocks(list, (k, &mut threshold), scores, of_superblock, |_, share| Ok(term.reached(share)))?;
    }
    if k > 0 && k <= scores.len() {
        threshold = nth(scores, k).max(threshold);
    }
    if threshold > search.top.threshold() {
        search.top.set_initial_threshold(threshold);
    }
    Ok(())
}

/// Adds to `scores` what the best documents of blocks reach at least, given their superblocks, or their
/// numbers and max shares, if it exceeds the threshold. Of these scores the `k` highest and at most as many
/// others are kept; the threshold is the `k`-th highest that was found.
fn add_blocks(
    list: &BlockList<'_>,
    (k, threshold): (usize, &mut u32),
    scores: &mut Vec<u32>,
    of_superblock: impl Fn(usize) -> Result<u32>,
    of_block: impl Fn(usize, u16) -> Result<u32>,
) -> Result<()> {
    for superblock in 0..list.superblocks() {
        if of_superblock(superblock)? <= *threshold {
            continue;
        }
        for (block, share) in list.block_max_shares(superblock) {
            let score = of_block(block, share)?;
            if score > *threshold {
                scores.push(score);
            }
        }
        if k > 0 && scores.len() >= 2 * k {
            *threshold = nth(scores, k);
            scores.truncate(k);
        }
    }
    Ok(())
}

/// Blocks of the first round: as many as `k` hits fill, and one more.
fn first_round(k: usize) -> usize {
    k.div_ceil(BLOCK) + 1
}

/// Lower bound of the `k`-th best score over all segments, from block max scores alone: each block contains
/// a document that reaches its max score. Only for queries that match every document of some scored term; 0
/// for other queries, and if skip data is not resident.
pub fn initial_threshold(
    (plan, source): (&QueryPlan, &dyn BlockSource),
    segments: &[Arc<Segment>],
    k: usize,
    scratch: &mut Scratch,
) -> Result<u32> {
    let nodes = match &plan.root {
        PlanNode::Group(group) if group.filter.is_empty() && group.must_not.is_empty() => {
            match (&group.must[..], group.minimum) {
                ([], 0 | 1) => &group.should[..],
                (must @ [_], 0) => must,
                _ => &[],
            }
        }
        node => std::slice::from_ref(node),
    };
    let leaves = nodes.iter().filter_map(|node| match node {
        PlanNode::Term(leaf) => Some(&plan.leaves[*leaf]),
        _ => None,
    });
    let threshold = leaves.clone().try_fold(0, |threshold, leaf| {
        Ok::<u32, Error>(threshold_of_term(leaf, segments, k)?.max(threshold))
    })?;
    let postings =
        |leaf: &&Leaf| leaf.infos.iter().flatten().map(|info| u64::from(info.documents)).sum::<u64>();
    let all: u64 = plan.leaves.iter().map(|leaf| postings(&leaf)).sum();
    let rarest = leaves.filter(|leaf| postings(leaf) >= k as u64).min_by_key(postings);
    match rarest {
        Some(leaf)
            if k > 0 && postings(&leaf) <= FIRST_SCORED_MAX && postings(&leaf) * FIRST_SCORED_RATIO < all =>
        {
            Ok(threshold_by_scores((leaf, source), segments, k, scratch)?.max(threshold))
        }
        _ => Ok(threshold),
    }
}

/// The `k`-th best score of a term, by scoring all its postings.
fn threshold_by_scores(
    (leaf, source): (&Leaf, &dyn BlockSource),
    segments: &[Arc<Segment>],
    k: usize,
    scratch: &mut Scratch,
) -> Result<u32> {
    let mut batch = scratch.batch();
    for (info, segment) in leaf.infos.iter().zip(segments) {
        let Some(info) = info else { continue };
        let of = (&leaf.scorer, source);
        let mut term = Term::open(
            segment.field(leaf.field),
            (leaf.number, info),
            of,
            (leaf.share_bounds(segment), RecordPart::WithoutImpacts),
            scratch,
        )?;
        term.prefetch((0, u32::MAX), true)?;
        for block in 0..term.blocks.len() {
            let (documents, scores) = term.read(block)?;
            batch.push_all(documents, scores);
        }
        term.close(scratch);
    }
    let threshold = if batch.len() < k { 0 } else { nth(&mut batch.scores, k) };
    scratch.give_batch(batch);
    Ok(threshold)
}

fn threshold_of_term(leaf: &Leaf, segments: &[Arc<Segment>], k: usize) -> Result<u32> {
    let postings: usize = leaf.infos.iter().flatten().map(|info| info.documents as usize).sum();
    if k == 0 || k > INITIAL_THRESHOLD_HITS || postings / BLOCK < k {
        return Ok(0);
    }
    // Within the memory reserved for windows, none of which is in use yet.
    let mut scores = Vec::with_capacity(2 * k + SUPERBLOCK);
    let mut threshold = 0;
    for (info, segment) in leaf.infos.iter().zip(segments) {
        let field = segment.field(leaf.field);
        let bounds = leaf.share_bounds(segment);
        let is_tight = |bounds: &ShareBounds| bounds.is_tight && field.field().norms == NormKind::Byte;
        if field.skips().resident().is_none() || !bounds.as_ref().is_none_or(is_tight) {
            return Ok(0);
        }
        let Some(info) = info.as_ref().filter(|info| info.blocks.is_some()) else { continue };
        let SkipRecord::Blocks(list) = field.record(info, &FILES, RecordPart::WithoutImpacts)? else {
            continue;
        };
        let of_superblock = |superblock| {
            let units = list.superblock_max_share(superblock);
            reached(leaf, &bounds, units, || list.superblock_impacts(superblock))
        };
        let of_block = |block, units| reached(leaf, &bounds, units, || list.encoded_impacts(block));
        add_blocks(&list, (k, &mut threshold), &mut scores, of_superblock, of_block)?;
    }
    Ok(if scores.len() < k { 0 } else { nth(&mut scores, k) })
}

/// Lower bound of the highest score in a block or superblock with these stored units and impacts.
#[inline]
fn reached<'a>(
    leaf: &Leaf,
    bounds: &Option<ShareBounds>,
    units: u16,
    impacts: impl FnOnce() -> Result<View<'a>>,
) -> Result<u32> {
    let share = match bounds {
        Some(bounds) => bounds.guaranteed_share(units),
        // One of its postings has the largest frequency of the impacts.
        None => (impact::max_frequency(impacts()?)? as f32).min(leaf.scorer.share_max()),
    };
    Ok(leaf.scorer.min_score(share))
}

/// The `n`-th largest score. Reorders `scores`: the first `n` are the largest.
fn nth(scores: &mut [u32], n: usize) -> u32 {
    *scores.select_nth_unstable_by(n - 1, |a, b| b.cmp(a)).1
}

/// Sort key of a block: its max score, then the earlier block is larger.
fn key(bound: u32, block: usize) -> u64 {
    u64::from(bound) << 32 | u64::from(!(block as u32))
}

fn bound_of(key: u64) -> u32 {
    (key >> 32) as u32
}

fn block_of(key: u64) -> usize {
    !(key as u32) as usize
}

/// The `n`-th largest max score of these superblocks; 0 if they are at most `n`.
fn nth_superblock_max(
    (term, superblocks, by_impacts): (&Term<'_>, &Range<usize>, bool),
    n: usize,
    bounds: &mut Vec<u32>,
) -> Result<u32> {
    bounds.clear();
    if term.blocks.skips().is_none() || superblocks.len() <= n {
        return Ok(0);
    }
    bounds.reserve_exact(superblocks.len());
    for superblock in superblocks.clone() {
        bounds.push(term.superblock_max(superblock, by_impacts)?);
    }
    Ok(nth(bounds, n))
}

/// Calls `body` with the sort keys of the blocks of a part of the list, in the searched range of documents,
/// with a max score of at least `min_score`, computed from impacts if `by_impacts`.
fn blocks_at_least(
    (term, part, by_impacts): (&mut Term<'_>, &Range<usize>, bool),
    min_score: u32,
    search: &Search<'_>,
    mut body: impl FnMut(u64),
) -> Result<()> {
    let are_all_searched = search.contains((0, search.documents - 1));
    term.each_block_at_least(part, (min_score, by_impacts), |blocks, block, bound| {
        let is_searched = || blocks.first(block) < search.end && blocks.last(block) >= search.first;
        if are_all_searched || is_searched() {
            body(key(bound, block));
        }
    })
}
