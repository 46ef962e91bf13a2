//! Evaluation of one scored term in impact order, with any filters and exclusions: the blocks of its list are
//! evaluated in descending order of their max scores. Each block has a sort key: its max score, then its
//! number.
//!
//! 1. First round: the blocks with the highest max scores, as many as the hits are expected to fill, are
//!    selected with the help of the superblock max scores and evaluated in document order.
//! 2. The other blocks whose max scores reach the threshold are evaluated in descending order: one by one if
//!    they are few, otherwise in rounds of growing size, each in document order. In a long list this is
//!    done for one part of the list after the other, which bounds the memory for sort keys
//!    ([`Tuning::superblocks_ordered`](crate::eval::tuning::Tuning::superblocks_ordered)).
//!
//! Max scores are stored in contiguous arrays, so a list of a million postings needs some hundred superblock
//! max scores and the few blocks that contain the best hits. Candidates of a block are the postings with a
//! sufficient frequency; only these are looked up in the lists of other clauses.

use crate::Result;
use crate::eval::nodes::{RefiningClause, Term, all_of::prefetch_look_ups};
use crate::eval::state::{CandidateRange, DocRange, Search, positions_within};
use crate::eval::strategies::initial_threshold::{nth_largest, raise_threshold};
use crate::eval::tuning::{
    ALL_BLOCKS_COST, FIRST_ROUND_BLOCKS_MIN, ONE_BY_ONE_BLOCKS_MAX, ROUND_GROWTH, ROUND_GROWTH_READ,
    RUN_BLOCKS_MAX,
};
use crate::limits::{BLOCK, SUPERBLOCK};
use crate::segment::read::BlockList;
use std::ops::Range;
use tierdex_cache::PlannedReads;
use tierdex_codec::largest;

/// The part of a list whose blocks are sorted by max score at a time.
struct OrderedPart {
    superblocks: Range<usize>,
    /// Whether max scores are computed from impacts.
    by_impacts: bool,
}

/// The first round of an evaluation.
#[derive(Clone, Copy)]
struct FirstRound {
    /// Number of blocks that were evaluated in it.
    blocks: usize,
    /// The smallest sort key of these blocks. All blocks with this or a larger key were evaluated.
    min_key: u64,
}

/// Offers the documents of `term` that pass the `others` to the collector, except those that cannot be
/// hits. `candidates` is the expected number of candidates until `k` of them pass. Returns the number of
/// documents evaluated.
pub(crate) fn impact_ordered(
    term: &mut Term<'_>,
    others: &mut [RefiningClause<'_>],
    candidates: f64,
    search: &mut Search<'_>,
) -> Result<u64> {
    let mut keys = std::mem::take(&mut search.scratch.sort_keys);
    let mut selection = std::mem::take(&mut search.scratch.selection);
    let mut run = ImpactOrderedRun { term, others, evaluated: 0 };
    let done = run.evaluate_all(candidates, search, &mut keys, &mut selection);
    let evaluated = run.evaluated;
    keys.clear();
    (search.scratch.sort_keys, search.scratch.selection) = (keys, selection);
    done.map(|()| evaluated)
}

/// The evaluation of a term in impact order; `evaluated` counts its documents.
struct ImpactOrderedRun<'r, 'a, 'b> {
    term: &'r mut Term<'a>,
    /// Filters and exclusions.
    others: &'r mut [RefiningClause<'b>],
    evaluated: u64,
}

impl ImpactOrderedRun<'_, '_, '_> {
    fn evaluate_all(
        &mut self,
        candidates: f64,
        search: &mut Search<'_>,
        keys: &mut Vec<u64>,
        selection: &mut Vec<u64>,
    ) -> Result<()> {
        let prefetches = self.term.blocks.prefetches();
        let has_entries = self.term.blocks.skips().is_none_or(BlockList::has_entries);
        if (prefetches && self.others.is_empty() || !has_entries) && !self.raise_threshold(search)? {
            return Ok(());
        }
        let superblocks = self.term.superblocks(search.range());
        let superblocks_ordered = search.options.tuning.superblocks_ordered;
        let keys_max = superblocks_ordered * SUPERBLOCK;
        // Reading a block takes longer than decoding the impacts of many.
        let by_impacts = self.term.has_loose_bounds() && prefetches;
        let mut part = OrderedPart { superblocks: superblocks.clone(), by_impacts };

        // Lower bound of the max scores in the first round: each superblock contains a block with its max
        // score, so `blocks` blocks reach the max score of the `blocks`-th best superblock.
        let blocks =
            first_round_blocks(candidates as usize).max(if prefetches { FIRST_ROUND_BLOCKS_MIN } else { 0 });
        let blocks = blocks.min(keys_max / 2).min(superblocks.len() * SUPERBLOCK);
        let first_min =
            nth_superblock_max(self.term, &part, blocks, &mut search.scratch.bounds)?.max(search.min_score());

        // Select the best blocks that reach it. If there are too many for the memory, only the best are kept.
        let mut has_all_keys = true;
        // Exactly, since the memory of an evaluation is counted.
        keys.reserve_exact((superblocks.len() * SUPERBLOCK).min(self.term.blocks.len()).min(keys_max));
        blocks_at_least(self.term, &part, first_min, search, |key| {
            if keys.len() == keys_max {
                largest(keys, blocks, selection);
                keys.truncate(blocks);
                has_all_keys = false;
            }
            keys.push(key);
        })?;
        let blocks = blocks.min(keys.len());
        if keys.len() > blocks {
            largest(keys, blocks, selection);
        }

        // First round, in document order.
        let min_key = keys[..blocks].iter().copied().min().unwrap_or(u64::MAX);
        keys[..blocks].sort_unstable_by_key(|key| block_of(*key));
        if prefetches && self.others.is_empty() {
            self.prefetch_all(&keys[..blocks], part.superblocks.clone(), search)?;
        }
        let first = FirstRound { blocks, min_key };
        self.evaluate_in_document_order(&mut keys[..blocks], search)?;
        if has_all_keys && search.min_score() >= first_min {
            return self.evaluate_remaining(first, by_impacts, search, keys, selection);
        }

        // The threshold is lower than expected: the other blocks are selected again, one part of the list
        // after the other.
        for start in superblocks.clone().step_by(superblocks_ordered) {
            part.superblocks = start..superblocks.end.min(start + superblocks_ordered);
            keys.clear();
            let min_score = search.min_score();
            blocks_at_least(self.term, &part, min_score, search, |key| keys.push(key))?;
            self.evaluate_remaining(first, by_impacts, search, keys, selection)?;
        }
        Ok(())
    }

    /// Raises the threshold by skip data. If only the head of it was read, the entries of the superblocks
    /// that may contain hits are read now. False if there are none.
    fn raise_threshold(&mut self, search: &mut Search<'_>) -> Result<bool> {
        raise_threshold(self.term, search)?;
        if self.term.blocks.skips().is_none_or(BlockList::has_entries) {
            return Ok(true);
        }
        let mut best = std::mem::take(&mut search.scratch.bounds);
        let superblocks = self.term.superblocks(search.range());
        self.term.superblocks_at_least(superblocks, search.min_score(), &mut best);
        let has_hits = !best.is_empty();
        let kept = if has_hits { self.term.blocks.keep_superblocks(&best) } else { Ok(()) };
        search.scratch.bounds = best;
        kept?;
        if has_hits {
            raise_threshold(self.term, search)?;
        }
        Ok(has_hits)
    }

    /// Prefetches all blocks that may contain hits, if reading them costs at most [`ALL_BLOCKS_COST`] times
    /// as much as reading the `first` blocks, which are in document order.
    fn prefetch_all(
        &mut self,
        first: &[u64],
        superblocks: Range<usize>,
        search: &mut Search<'_>,
    ) -> Result<()> {
        let mut best = std::mem::take(&mut search.scratch.bounds);
        self.term.superblocks_at_least(superblocks, search.min_score(), &mut best);
        let done = self.prefetch_superblocks(first, &best, search);
        search.scratch.bounds = best;
        done
    }

    /// As [`Self::prefetch_all`], of these superblocks.
    fn prefetch_superblocks(&mut self, first: &[u64], best: &[u32], search: &Search<'_>) -> Result<()> {
        let Some(costs) = self.term.blocks.read_costs() else { return Ok(()) };
        let (mut of_first, mut of_all) = (PlannedReads::new(costs), PlannedReads::new(costs));
        for block in first.iter().map(|key| block_of(*key)) {
            self.term.blocks.add_to_reads(block..block + 1, &mut of_first)?;
        }
        for superblock in best {
            for run in self.runs_at_least(*superblock as usize, search)? {
                self.term.blocks.add_to_reads(run, &mut of_all)?;
            }
            if of_all.cost() > ALL_BLOCKS_COST * of_first.cost() {
                return Ok(());
            }
        }
        for superblock in best {
            for run in self.runs_at_least(*superblock as usize, search)? {
                if !self.term.blocks.prefetch_run(run, true)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The runs of adjacent blocks of a superblock that may contain hits.
    fn runs_at_least(
        &mut self,
        superblock: usize,
        search: &Search<'_>,
    ) -> Result<impl Iterator<Item = Range<usize>> + use<>> {
        let part = OrderedPart { superblocks: superblock..superblock + 1, by_impacts: false };
        let mut blocks = 0_u32;
        blocks_at_least(self.term, &part, search.min_score(), search, |key| {
            blocks |= 1 << (block_of(key) % SUPERBLOCK);
        })?;
        let mut next = 0;
        Ok(std::iter::from_fn(move || {
            let start = next + blocks.checked_shr(next)?.trailing_zeros();
            let end = start + (!blocks.checked_shr(start)?).trailing_zeros();
            next = end;
            let of_list = |at: u32| superblock * SUPERBLOCK + at as usize;
            Some(of_list(start)..of_list(end))
        }))
    }

    /// Prefetches the first blocks of these keys, which are in document order, and the blocks of other lists
    /// in which their candidates are looked up. Returns the number of keys whose blocks were prefetched, at
    /// least 1.
    fn prefetch(&mut self, keys: &[u64]) -> Result<usize> {
        let mut done = 0;
        while done < keys.len() {
            let first = block_of(keys[done]);
            if self.others.is_empty() {
                let of_superblock = |key: &&u64| block_of(**key) / SUPERBLOCK == first / SUPERBLOCK;
                let count = keys[done..].iter().take_while(of_superblock).count();
                let last = block_of(keys[done + count - 1]);
                match self.term.blocks.prefetch_whole(first..last + 1, count)? {
                    Some(true) => {
                        done += count;
                        continue;
                    }
                    Some(false) => return Ok(done.max(1)),
                    None => {}
                }
            }
            let run = keys[done..].iter().zip(first..).take(RUN_BLOCKS_MAX);
            let end = first + run.take_while(|(key, block)| block_of(**key) == *block).count();
            let blocks = &mut self.term.blocks;
            let of = |block| DocRange::of_block(blocks, block);
            let range = DocRange { first: of(first).first, last: of(end - 1).last };
            let all = blocks.prefetch_run(first..end, true)?
                && prefetch_look_ups(self.others, CandidateRange { range, lead_blocks: end - first }, true)?;
            if !all {
                return Ok(done.max(1));
            }
            done += end - first;
        }
        Ok(done)
    }

    /// Evaluates the blocks with these sort keys in descending order of the keys, except those of the first
    /// round.
    fn evaluate_remaining(
        &mut self,
        first: FirstRound,
        by_impacts: bool,
        search: &mut Search<'_>,
        keys: &mut Vec<u64>,
        selection: &mut Vec<u64>,
    ) -> Result<()> {
        let min_score = search.min_score();
        keys.retain(|key| *key < first.min_key && bound_of(*key) >= min_score);
        if self.term.has_loose_bounds() && !by_impacts {
            for at in keys.iter_mut() {
                let block = block_of(*at);
                *at = (*at).min(block_key(self.term.block_max_by_impacts(block)?, block));
            }
            keys.retain(|key| bound_of(*key) >= min_score);
        }
        let (one_by_one, growth) = match self.term.blocks.prefetches() {
            true => (0, ROUND_GROWTH_READ),
            false => (ONE_BY_ONE_BLOCKS_MAX, ROUND_GROWTH),
        };
        let mut round = first.blocks.max(1);
        while keys.len() > one_by_one {
            round = (growth * round).min(keys.len());
            largest(keys, round, selection);
            self.evaluate_in_document_order(&mut keys[..round], search)?;
            keys.drain(..round);
            let min_score = search.min_score();
            keys.retain(|key| bound_of(*key) >= min_score);
        }
        keys.sort_unstable_by(|a, b| b.cmp(a));
        for at in 0..keys.len() {
            if bound_of(keys[at]) < search.min_score() {
                break;
            }
            self.evaluate_in_document_order(&mut keys[at..at + 1], search)?;
        }
        Ok(())
    }

    /// Evaluates the blocks with these sort keys in document order.
    fn evaluate_in_document_order(&mut self, keys: &mut [u64], search: &mut Search<'_>) -> Result<()> {
        keys.sort_unstable_by_key(|key| block_of(*key));
        let mut batch = search.scratch.take_batch(BLOCK);
        let mut prefetched = if self.term.blocks.prefetches() { 0 } else { keys.len() };
        for (at, key) in keys.iter().enumerate() {
            if at == prefetched {
                prefetched += self.prefetch(&keys[at..])?;
            }
            let (block, bound) = (block_of(*key), bound_of(*key));
            if bound < search.min_score() {
                self.term.blocks.mark_pruned(block);
                continue;
            }
            search.checkpoint(search.end)?;
            let range = DocRange::of_block(&self.term.blocks, block);
            let (mut documents, mut scores) = self.term.read_block_at_least(block, search.min_score())?;
            if !search.covers_range(range) {
                let kept = positions_within(documents, search.clip_range(range));
                (documents, scores) = (&documents[kept.clone()], &scores[kept]);
            }
            if self.others.is_empty() {
                self.evaluated += documents.len() as u64;
                search.offer_all(documents, scores);
                continue;
            }
            batch.clear();
            batch.push_all(documents, scores);
            for other in self.others.iter_mut() {
                other.refine_batch(&mut batch, 0, search.scratch)?;
            }
            self.evaluated += batch.len() as u64;
            search.offer_all(&batch.documents, &batch.scores);
        }
        search.scratch.give_batch(batch);
        Ok(())
    }
}

/// Number of blocks of the first round: as many as `candidates` fill, and one more.
fn first_round_blocks(candidates: usize) -> usize {
    candidates.div_ceil(BLOCK) + 1
}

/// Sort key of a block: the max score in the upper half; below it the inverted number, so that of two blocks
/// with the same max score the earlier one has the larger key.
fn block_key(bound: u32, block: usize) -> u64 {
    u64::from(bound) << 32 | u64::from(!(block as u32))
}

fn bound_of(key: u64) -> u32 {
    (key >> 32) as u32
}

fn block_of(key: u64) -> usize {
    !(key as u32) as usize
}

/// The `n`-th largest max score of the superblocks of a part of a list; 0 if it has at most `n` superblocks.
fn nth_superblock_max(term: &Term<'_>, part: &OrderedPart, n: usize, bounds: &mut Vec<u32>) -> Result<u32> {
    bounds.clear();
    if term.blocks.skips().is_none() || part.superblocks.len() <= n {
        return Ok(0);
    }
    bounds.reserve_exact(part.superblocks.len());
    for superblock in part.superblocks.clone() {
        bounds.push(term.superblock_max_score(superblock, part.by_impacts)?);
    }
    Ok(nth_largest(bounds, n))
}

/// Calls `body` with the sort keys of the blocks of a part of the list, in the searched range of documents,
/// with a max score of at least `min_score`.
fn blocks_at_least(
    term: &mut Term<'_>,
    part: &OrderedPart,
    min_score: u32,
    search: &Search<'_>,
    mut body: impl FnMut(u64),
) -> Result<()> {
    let are_all_searched = search.covers_segment();
    term.each_block_at_least(&part.superblocks, min_score, part.by_impacts, |blocks, block, bound| {
        let is_searched = || blocks.first(block) < search.end && blocks.last(block) >= search.first;
        if are_all_searched || is_searched() {
            body(block_key(bound, block));
        }
    })
}
