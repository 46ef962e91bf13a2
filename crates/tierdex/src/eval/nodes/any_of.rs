//! A disjunction as a node: documents that match a minimum number of alternatives. The methods without a
//! comment are those of [`Node`] with the same name.
//!
//! Candidates of a range are found with `MaxScore` (Turtle and Flood, "Query evaluation: strategies and
//! optimizations", 1995), by the block max scores of the range:
//!
//! 1. If the max scores of all alternatives sum to less than the threshold, no document of the range is a
//!    candidate, and no block is decoded.
//! 2. Alternatives whose max scores sum to less than the threshold are non-essential: a candidate matches one
//!    of the essential ones. If a candidate must match `m` alternatives, it matches one of any `n - m + 1`,
//!    so `m - 1` alternatives are non-essential whatever the threshold is.
//! 3. With one essential alternative, the range is extended to the end of its block. With several, their
//!    scores are summed in a window; or if they are sparse, the range is extended and their candidates
//!    merged.
//! 4. While the threshold makes fewer than `m - 1` alternatives non-essential, matches are found by counting,
//!    and only they are scored.
//! 5. Candidates are looked up in the non-essential alternatives, the one with the highest max score first.
//!    If there are many candidates, summing all alternatives over the window is cheaper, and the next few
//!    windows are summed exhaustively too.

use crate::eval::nodes::node::{AnyOf, Node, RankedNode};
use crate::eval::state::{
    BitCounters, Bits, CandidateBatch, CandidateRange, DocRange, Refine, Refinement, ScoreWindow, Scratch,
    aligned_origin,
};
use crate::eval::tuning::{
    EXHAUSTIVE_WINDOWS, LOOK_UP_COST_POSTINGS, NON_ESSENTIAL_BLOCKS_RATIO, PRUNED_ALTERNATIVES_RATIO,
    PRUNED_BY_BLOCKS_MAX, WINDOW_DOCS,
};
use crate::{Result, cursor::NO_DOCUMENT, limits::BLOCK};

/// Whether an alternative with this number of postings has at most a block of them in a window, on average.
pub(crate) fn is_sparse(postings: u64, documents: u32) -> bool {
    postings * (WINDOW_DOCS / BLOCK) as u64 <= u64::from(documents)
}

/// Maximum number of candidates of sparse alternatives that are merged, given the cost of each, and whether
/// it is a group: its cost may be that of a rare clause, while a scored disjunction proposes more candidates.
pub(crate) fn merged_candidates_max(costs: impl Iterator<Item = (u64, bool)>) -> usize {
    let candidates =
        costs.map(|(cost, is_group)| if is_group { PRUNED_ALTERNATIVES_RATIO * cost } else { cost });
    WINDOW_DOCS.min(candidates.sum::<u64>() as usize)
}

/// Two batches for the candidates of sparse alternatives in a range that is longer than a window.
fn take_merged(sparse: &[Node<'_>], scratch: &mut Scratch) -> [CandidateBatch; 2] {
    let is_group = |node: &Node<'_>| matches!(node, Node::AllOf(_) | Node::AnyOf(_));
    let candidates = merged_candidates_max(sparse.iter().map(|node| (node.cost(), is_group(node))));
    [(); 2].map(|()| scratch.take_batch(candidates))
}

/// Fills an empty batch with the union of the candidates that `collect` appends to an empty batch for each
/// alternative. The scores of a document in several of them are added. `buffers` go back to `scratch`.
fn merge_each<T>(
    alternatives: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
    [mut part, mut spare]: [CandidateBatch; 2],
    batch: &mut CandidateBatch,
    scratch: &mut Scratch,
    mut collect: impl FnMut(T, &mut CandidateBatch, &mut Scratch) -> Result<()>,
) -> Result<()> {
    let alternatives = alternatives.into_iter();
    let mut ends = Vec::with_capacity(alternatives.len());
    let from_spare = CandidateBatch::merges_from_spare(alternatives.len());
    for alternative in alternatives {
        part.clear();
        collect(alternative, &mut part, scratch)?;
        let parts = if from_spare { &mut spare } else { &mut *batch };
        parts.push_all(&part.documents, &part.scores);
        ends.push(parts.len());
    }
    batch.merge(&mut spare, ends);
    [part, spare].into_iter().for_each(|batch| scratch.give_batch(batch));
    Ok(())
}

impl<'a> AnyOf<'a> {
    /// A disjunction in a segment with this number of documents.
    pub(crate) fn new(
        mut nodes: Vec<Node<'a>>,
        minimum: usize,
        has_positive_scores: bool,
        documents: u32,
    ) -> AnyOf<'a> {
        nodes.sort_by_key(Node::cost);
        let ranked = |number| RankedNode { number, bound: 0, sum_before: 0 };
        AnyOf {
            ranked: (0..nodes.len()).map(ranked).collect(),
            bounded: None,
            matching: 0,
            merged_docs: u32::MAX,
            sparse_count: nodes.partition_point(|node| is_sparse(node.cost(), documents)),
            nodes,
            minimum,
            has_positive_scores,
            non_essential: 0,
            counts_first: false,
            exhaustive_windows_left: 0,
        }
    }

    pub(crate) fn cost(&self) -> u64 {
        self.nodes.iter().map(Node::cost).sum()
    }

    pub(crate) fn next_lower_bound(&mut self, from: u32) -> u32 {
        let next = self.nodes.iter_mut().map(|node| node.next_lower_bound(from));
        if self.minimum == 1 {
            return next.min().unwrap_or(NO_DOCUMENT);
        }
        // A match is in `minimum` alternatives, so not before the `minimum`-th smallest of their lower
        // bounds.
        *next.collect::<Vec<u32>>().select_nth_unstable(self.minimum - 1).1
    }

    pub(crate) fn max_score(&mut self, range: DocRange) -> Result<Option<u32>> {
        self.bound_nodes(range)?;
        // The sum saturates: weights inside a filter are not scaled, because nobody uses the scores.
        let bounds = self.ranked.iter().map(|ranked| ranked.bound);
        Ok((self.matching >= self.minimum).then(|| bounds.fold(0, u32::saturating_add)))
    }

    /// Computes the max scores of the alternatives in a range, unless they are known.
    fn bound_nodes(&mut self, range: DocRange) -> Result<()> {
        if self.bounded == Some(range) {
            return Ok(());
        }
        self.matching = 0;
        for ranked in &mut self.ranked {
            let bound = self.nodes[ranked.number].max_score(range)?;
            self.matching += usize::from(bound.is_some());
            ranked.bound = bound.unwrap_or(0);
        }
        self.bounded = Some(range);
        Ok(())
    }

    /// Orders the alternatives by their max scores in a range. Returns the number of those, the first in the
    /// order, that do not reach `min_score` together; `None` if no candidate can reach it.
    fn rank(&mut self, range: DocRange, min_score: u32) -> Result<Option<usize>> {
        self.bound_nodes(range)?;
        self.ranked.sort_unstable_by_key(|ranked| ranked.bound);
        let sum = self.add_bounds();
        if self.matching < self.minimum || sum < min_score {
            return Ok(None);
        }
        Ok(Some(self.ranked[1..].partition_point(|ranked| ranked.sum_before < min_score)))
    }

    /// Computes the sums of max scores before each alternative in the order, and returns the sum of all.
    fn add_bounds(&mut self) -> u32 {
        self.ranked.iter_mut().fold(0_u32, |sum, ranked| {
            ranked.sum_before = sum;
            sum.saturating_add(ranked.bound)
        })
    }

    pub(crate) fn prefetch(&mut self, range: DocRange, min_score: u32, scored: bool) -> Result<bool> {
        let Some(others) = self.rank(range, min_score)? else { return Ok(true) };
        let others = others.max(self.minimum - 1);
        let sum = self.ranked.last().map_or(0, |last| last.sum_before.saturating_add(last.bound));
        let (others, essential) = self.ranked.split_at(others);
        let mut postings = 0;
        for RankedNode { number, bound, .. } in essential {
            let node = &mut self.nodes[*number];
            postings += node.postings_in(range);
            if !node.prefetch(range, min_score.saturating_sub(sum - bound), scored)? {
                return Ok(false);
            }
        }
        let mut others = others.iter();
        others.try_fold(true, |all, RankedNode { number, .. }| {
            let node = &mut self.nodes[*number];
            let is_short = node.postings_in(range) <= NON_ESSENTIAL_BLOCKS_RATIO * postings;
            Ok(all && (!is_short || node.prefetch(range, 0, scored)?))
        })
    }

    pub(crate) fn propose(
        &mut self,
        range: DocRange,
        end: u32,
        min_score: u32,
        batch: &mut CandidateBatch,
        scratch: &mut Scratch,
    ) -> Result<u32> {
        (self.non_essential, self.counts_first) = (0, false);
        if self.exhaustive_windows_left > 0 && range.fits_window() {
            self.exhaustive_windows_left -= 1;
            self.sum_all(range, min_score, batch, scratch)?;
            return Ok(range.last);
        }
        let Some(others) = self.rank(range, min_score)? else {
            self.nodes.iter_mut().for_each(|node| node.skip_range(range));
            return Ok(range.last);
        };
        self.counts_first = others + 1 < self.minimum;
        self.non_essential = others.max(self.minimum - 1);
        let range = self.extend_range(range, end, min_score)?;
        // In a window matches are found by reading all alternatives, which takes long for phrases.
        let are_terms = || self.nodes.iter().all(|node| matches!(node, Node::Term(_)));
        self.counts_first = self.counts_first && (!range.fits_window() || are_terms());
        if self.counts_first {
            let essential = self.ranked[self.non_essential..].iter();
            let essential: Vec<usize> = essential.map(|ranked| ranked.number).collect();
            self.non_essential = 0;
            self.collect_counted(&essential, range, batch, scratch)?;
            let require = Refinement { min_score, ..Refinement::all(Refine::Require) };
            self.score_candidates(batch, require, scratch)?;
            return Ok(range.last);
        }
        self.collect_essential(range, min_score, batch, scratch)?;
        if self.non_essential > 0 && self.is_summing_cheaper(batch, range) {
            self.exhaustive_windows_left = EXHAUSTIVE_WINDOWS;
            batch.clear();
            self.non_essential = 0;
            self.sum_all(range, min_score, batch, scratch)?;
        }
        Ok(range.last)
    }

    pub(crate) fn complete(
        &mut self,
        batch: &mut CandidateBatch,
        min_score: u32,
        scratch: &mut Scratch,
    ) -> Result<()> {
        for RankedNode { number, bound, .. } in self.ranked[..self.non_essential].iter().rev() {
            if *bound > 0 {
                let refinement = Refinement { how: Refine::Optional, included_bound: *bound, min_score };
                self.nodes[*number].refine_batch(batch, refinement, scratch)?;
            }
        }
        if self.minimum > 1 && !self.counts_first {
            self.keep_matches(batch, scratch)?;
        }
        Ok(())
    }

    /// Fills the batch with the documents of the essential alternatives, those from position
    /// [`AnyOf::non_essential`] of the order on. Their scores include the max scores of the non-essential
    /// alternatives.
    fn collect_essential(
        &mut self,
        range: DocRange,
        min_score: u32,
        batch: &mut CandidateBatch,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let essential = &self.ranked[self.non_essential..];
        let others_max = essential[0].sum_before;
        let sum = self.ranked.last().map_or(0, |last| last.sum_before + last.bound);
        // The lowest score of a document of this alternative that may be a hit.
        let own_min = |ranked: &RankedNode| min_score.saturating_sub(sum - ranked.bound);
        if let [only] = essential {
            self.nodes[only.number].collect(range, range.last + 1, own_min(only), batch, scratch)?;
        } else if range.fits_window() {
            let at_least = self.min_score();
            let own_min = |ranked: &RankedNode| own_min(ranked).max(at_least);
            let window = self.sum_from(self.non_essential, range, own_min, scratch)?;
            self.drain_window(window, min_score.saturating_sub(others_max), batch, scratch);
        } else {
            let buffers = take_merged(&self.nodes[..self.sparse_count], scratch);
            merge_each(essential, buffers, batch, scratch, |ranked, part, scratch| {
                let node = &mut self.nodes[ranked.number];
                node.collect(range, range.last + 1, own_min(ranked), part, scratch).map(drop)
            })?;
            batch.retain_at_least(min_score.saturating_sub(others_max));
        }
        batch.raise_scores(others_max);
        Ok(())
    }

    /// Fills the batch with the matches of a range, with score 0: in a window they are found with bitsets. In
    /// a longer range the documents of the `merged` alternatives, at least one of which every match is in,
    /// are counted, and looked up in the others.
    fn collect_counted(
        &mut self,
        merged: &[usize],
        range: DocRange,
        batch: &mut CandidateBatch,
        scratch: &mut Scratch,
    ) -> Result<()> {
        if range.fits_window() {
            let mut bits = scratch.take_bits();
            bits.restart(range);
            self.mark_matches(&mut bits, scratch)?;
            batch.extend_unscored(bits.documents());
            scratch.give_bits(bits);
            return Ok(());
        }
        let buffers = take_merged(&self.nodes[..self.sparse_count], scratch);
        merge_each(merged, buffers, batch, scratch, |number, part, scratch| {
            self.nodes[*number].collect_unscored(range, part, scratch)?;
            part.scores.fill(1);
            Ok(())
        })?;
        let others: Vec<usize> = (0..self.nodes.len()).filter(|number| !merged.contains(number)).collect();
        self.count_matches(&others, batch, scratch)?;
        batch.scores.fill(0);
        Ok(())
    }

    /// The score of each candidate is the number of other alternatives that it matches. Looks it up in these
    /// too, the cheapest first, adds to the number, and keeps candidates that reach the minimum.
    fn count_matches(
        &mut self,
        numbers: &[usize],
        counted: &mut CandidateBatch,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let (minimum, mut left) = (self.minimum as u32, numbers.len() as u32);
        let mut one = scratch.take_batch(counted.len());
        for number in numbers {
            left -= 1;
            one.copy_documents(&counted.documents);
            self.nodes[*number].refine_batch(&mut one, Refinement::all(Refine::Filter), scratch)?;
            let mut found = one.documents.iter().peekable();
            for (document, count) in counted.documents.iter().zip(&mut counted.scores) {
                *count += u32::from(found.next_if_eq(&document).is_some());
            }
            // In the longest lists only candidates are looked up that can still reach the minimum.
            counted.retain_at_least(minimum.saturating_sub(left));
        }
        scratch.give_batch(one);
        Ok(())
    }

    pub(crate) fn block_end(&mut self, from: u32) -> u32 {
        self.merged_end(0, from, NO_DOCUMENT)
    }

    /// The end, at most `last`, of a range from document `from` on whose candidates are collected from each
    /// of the alternatives from this position of the order on, and merged: of the current block of one of up
    /// to three; of more, where their candidates still fit in a batch. `from` if windows are to be used.
    fn merged_end(&mut self, position: usize, from: u32, last: u32) -> u32 {
        let (merged, nodes) = (&self.ranked[position..], &mut self.nodes);
        let in_block = |ranked: &RankedNode| BLOCK.min(nodes[ranked.number].cost() as usize);
        if merged.len() > 1 && merged.iter().any(|ranked| ranked.number >= self.sparse_count)
            || merged.iter().map(in_block).sum::<usize>() > WINDOW_DOCS
        {
            return from;
        }
        if merged.len() <= PRUNED_BY_BLOCKS_MAX {
            return merged.iter().fold(last, |end, ranked| end.min(nodes[ranked.number].block_end(from)));
        }
        let mut docs = self.merged_docs.saturating_mul(2);
        loop {
            let range = DocRange { first: from, last: from.saturating_add(docs).min(last) };
            if range.fits_window() {
                self.merged_docs = WINDOW_DOCS as u32;
                return from;
            }
            let candidates = |ranked: &RankedNode| nodes[ranked.number].candidates_max(range);
            if merged.iter().map(candidates).sum::<usize>() <= WINDOW_DOCS {
                self.merged_docs = docs;
                return range.last;
            }
            docs = (range.last - from) / 2;
        }
    }

    /// Extends a range to [`AnyOf::merged_end`] of the essential alternatives, if the others stay
    /// non-essential.
    fn extend_range(&mut self, range: DocRange, end: u32, min_score: u32) -> Result<DocRange> {
        if range.last + 1 >= end {
            return Ok(range);
        }
        let last = self.merged_end(self.non_essential, range.first, end - 1);
        if last <= range.last {
            return Ok(range);
        }
        let longer = DocRange { last, ..range };
        self.bound_nodes(longer)?;
        let (others, essential) = self.ranked.split_at_mut(self.non_essential);
        for half in [others, essential] {
            half.sort_unstable_by_key(|ranked| ranked.bound);
        }
        self.add_bounds();
        if self.non_essential < self.minimum || self.ranked[self.non_essential].sum_before < min_score {
            return Ok(longer);
        }
        // The next range is tried with half of the documents.
        self.merged_docs = (last - range.first) / 4;
        self.rank(range, min_score)?;
        Ok(range)
    }

    /// Fills the batch with the matches of a range whose scores, summed over all alternatives, reach
    /// `min_score`.
    fn sum_all(
        &mut self,
        range: DocRange,
        min_score: u32,
        batch: &mut CandidateBatch,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let own_min = self.min_score();
        let window = self.sum_from(0, range, |_| own_min, scratch)?;
        self.drain_window(window, min_score, batch, scratch);
        Ok(())
    }

    /// A window with the sums of the alternatives from this position of the order on. Matches of one that
    /// score less than its `own_min` may be missing.
    fn sum_from(
        &mut self,
        position: usize,
        range: DocRange,
        own_min: impl Fn(&RankedNode) -> u32,
        scratch: &mut Scratch,
    ) -> Result<Box<ScoreWindow>> {
        let mut window = scratch.take_window();
        window.restart(range);
        for ranked in &self.ranked[position..] {
            self.nodes[ranked.number].add_scores(&mut window, own_min(ranked), scratch)?;
        }
        Ok(window)
    }

    /// Scores the candidates, and keeps those that may reach the threshold. Either all of them match; or
    /// every match scores more than 0 and [`AnyOf::is_summing_cheaper`]: then those whose sum is 0 are
    /// dropped.
    fn score_candidates(
        &mut self,
        batch: &mut CandidateBatch,
        refinement: Refinement,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let Some(range) = batch.range() else { return Ok(()) };
        if !(self.has_positive_scores && self.is_summing_cheaper(batch, range)) {
            return self.add_found(batch, refinement, scratch);
        }
        let mut window = self.sum_from(0, range, |_| 1, scratch)?;
        window.require_sums(batch, refinement.included_bound);
        scratch.give_window(window);
        batch.retain_at_least(refinement.min_score);
        Ok(())
    }

    /// The lowest score of a match.
    fn min_score(&self) -> u32 {
        u32::from(self.has_positive_scores)
    }

    /// Moves the documents of a window whose sums reach `min_score` to the batch. The window goes back to
    /// `scratch`.
    fn drain_window(
        &self,
        mut window: Box<ScoreWindow>,
        min_score: u32,
        batch: &mut CandidateBatch,
        scratch: &mut Scratch,
    ) {
        if self.has_positive_scores || min_score > 0 {
            let survivors = window.drain_at_least(min_score);
            batch.push_all(survivors.values(), survivors.sums());
        } else {
            window.drain(batch);
        }
        scratch.give_window(window);
    }

    /// Keeps the candidates that match.
    pub(crate) fn keep_matches(&mut self, batch: &mut CandidateBatch, scratch: &mut Scratch) -> Result<()> {
        let Some(range) = batch.range() else { return Ok(()) };
        if self.is_summing_cheaper(batch, range) {
            let mut bits = scratch.take_bits();
            bits.restart(range);
            self.mark_matches(&mut bits, scratch)?;
            bits.retain_members(batch);
            scratch.give_bits(bits);
            return Ok(());
        }
        let mut found = scratch.take_batch(batch.len());
        found.copy_documents(&batch.documents);
        let how = if self.minimum == 1 {
            // Those that match no alternative are found first.
            for node in self.nodes.iter_mut().rev() {
                node.refine_batch(&mut found, Refinement::all(Refine::Exclude), scratch)?;
            }
            Refine::Exclude
        } else {
            self.count_matches(&(0..self.nodes.len()).collect::<Vec<_>>(), &mut found, scratch)?;
            Refine::Filter
        };
        batch.apply_refinement(&found, Refinement::all(how), |rest, _| rest);
        scratch.give_batch(found);
        Ok(())
    }

    /// Whether reading all postings of a range of at most a window takes less time than looking up the
    /// candidates of a batch.
    fn is_summing_cheaper(&mut self, batch: &CandidateBatch, range: DocRange) -> bool {
        range.fits_window() && batch.len() * LOOK_UP_COST_POSTINGS > self.postings_in(range)
    }

    pub(crate) fn collect_unscored(
        &mut self,
        range: DocRange,
        batch: &mut CandidateBatch,
        scratch: &mut Scratch,
    ) -> Result<()> {
        // A match is in one of any `n - minimum + 1` alternatives.
        let proposing: Vec<usize> = (0..=self.nodes.len() - self.minimum).collect();
        self.collect_counted(&proposing, range, batch, scratch)
    }

    pub(crate) fn prefetch_candidates(&mut self, of: CandidateRange, scored: bool) -> Result<bool> {
        let mut nodes = self.nodes.iter_mut();
        nodes.try_fold(true, |all, node| Ok(all && node.prefetch_candidates(of, scored)?))
    }

    pub(crate) fn postings_in(&mut self, range: DocRange) -> usize {
        self.nodes.iter_mut().map(|node| node.postings_in(range)).sum()
    }

    pub(crate) fn mark_matches(&mut self, bits: &mut Bits, scratch: &mut Scratch) -> Result<()> {
        if self.minimum == 1 {
            return self.nodes.iter_mut().rev().try_for_each(|node| node.mark_matches(bits, scratch));
        }
        let (range, mut of_node, mut counters) = (bits.range(), scratch.take_bits(), BitCounters::default());
        for node in &mut self.nodes {
            of_node.restart(range);
            node.mark_matches(&mut of_node, scratch)?;
            counters.add(of_node.bytes());
        }
        let matches = counters.at_least(self.minimum, of_node.bytes().len());
        bits.add_bytes(aligned_origin(range.first), &matches);
        scratch.give_bits(of_node);
        Ok(())
    }

    /// [`Node::add_scores`] for a minimum of 1.
    pub(crate) fn add_scores(
        &mut self,
        window: &mut ScoreWindow,
        min_score: u32,
        scratch: &mut Scratch,
    ) -> Result<()> {
        // A document that reaches the threshold may reach it by several alternatives together.
        let own_min = min_score.min(self.min_score());
        self.nodes.iter_mut().try_for_each(|node| node.add_scores(window, own_min, scratch))
    }

    /// Drops the candidates that match one of the alternatives, or adds the scores of those that match. Only
    /// for a minimum of 1: then each alternative does it by itself.
    pub(crate) fn refine_each(
        &mut self,
        batch: &mut CandidateBatch,
        refinement: Refinement,
        scratch: &mut Scratch,
    ) -> Result<()> {
        if refinement.how.is_scored() {
            return self.add_found(batch, refinement, scratch);
        }
        self.nodes.iter_mut().try_for_each(|node| node.refine_batch(batch, refinement, scratch))
    }

    /// Keeps the candidates that match and may reach the threshold, with their exact scores.
    pub(crate) fn require(
        &mut self,
        batch: &mut CandidateBatch,
        refinement: Refinement,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let Some(range) = batch.range() else { return Ok(()) };
        if !self.has_positive_scores || self.minimum > 1 {
            self.keep_matches(batch, scratch)?;
        } else if !self.is_summing_cheaper(batch, range) {
            // A candidate that matches no alternative has the score without their upper bound in the end.
            let mut before = scratch.take_batch(batch.len());
            before.push_all(&batch.documents, &batch.scores);
            self.add_found(batch, refinement, scratch)?;
            batch.retain_above(&before, refinement.included_bound);
            scratch.give_batch(before);
            return Ok(());
        }
        self.score_candidates(batch, refinement, scratch)
    }

    /// Adds the scores of the alternatives to the candidates, in place of their upper bound, and drops
    /// candidates that fall below the threshold.
    fn add_found(
        &mut self,
        batch: &mut CandidateBatch,
        Refinement { included_bound, min_score, .. }: Refinement,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let Some(range) = batch.range() else { return Ok(()) };
        self.rank(range, 0)?;
        let bound = self.ranked.iter().map(|ranked| ranked.bound).sum();
        batch.replace_bound(included_bound, bound);
        batch.retain_at_least(min_score);
        for RankedNode { number, bound, .. } in self.ranked.iter().rev().filter(|ranked| ranked.bound > 0) {
            let refinement = Refinement { how: Refine::Optional, included_bound: *bound, min_score };
            self.nodes[*number].refine_batch(batch, refinement, scratch)?;
        }
        Ok(())
    }
}
