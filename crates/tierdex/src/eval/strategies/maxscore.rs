//! Disjunction with `MaxScore` (Turtle and Flood, "Query evaluation: strategies and optimizations", 1995)
//! over windows of documents, with filters and exclusions.
//!
//! 1. The block max scores of a window bound the score of each clause in it. If their sum is below the
//!    threshold, the window is skipped without decoding a block.
//! 2. Clauses whose max scores sum to less than the threshold are non-essential: a hit matches one of the
//!    essential clauses. With one essential clause, the window is extended to the end of its block; with
//!    several, their scores are summed in a window of 4,096 documents.
//! 3. Candidates, the documents of the essential clauses, are looked up in filters, exclusions and the
//!    non-essential clauses, the one with the highest max score first. If there are many candidates, summing
//!    all clauses over the window is cheaper, and the next few windows are summed exhaustively too.

use crate::eval::state::{
    CandidateBatch, DocRange, Refine, Refinement, ScoreWindow, Search, positions_within, prefetch_ahead,
    window_from,
};
use crate::eval::tuning::{
    EXHAUSTIVE_WINDOWS, LOOK_UP_COST_POSTINGS, NON_ESSENTIAL_BLOCKS_RATIO, WINDOW_DOCS,
};
use crate::{
    Result, cursor::NO_DOCUMENT, eval::nodes::Node, eval::strategies::refiners::Refiners, limits::BLOCK,
};

/// Offers the documents that match any of `nodes` and pass the `refiners` to the collector, except those that
/// cannot be hits.
/// Every match of a node must score more than 0. Returns the number of matches if they are counted, else the
/// number of documents evaluated.
pub(crate) fn maxscore(
    nodes: &mut [Node<'_>],
    refiners: &mut Refiners<'_, '_>,
    search: &mut Search<'_>,
) -> Result<u64> {
    let mut run = MaxScoreRun {
        refiners,
        evaluated: 0,
        exhaustive_windows_left: 0,
        prefetched_to: if nodes.iter_mut().any(Node::prefetches) { 0 } else { u32::MAX },
        bounds: std::mem::take(&mut search.scratch.bounds),
        order: std::mem::take(&mut search.scratch.order),
        prefix_sums: std::mem::take(&mut search.scratch.prefix_sums),
        window: search.scratch.take_window(),
        batch: search.scratch.take_batch(WINDOW_DOCS),
    };
    let done = run.evaluate_windows(nodes, search);
    let MaxScoreRun { evaluated, bounds, order, prefix_sums, window, batch, .. } = run;
    search.scratch.give_window(window);
    search.scratch.give_batch(batch);
    (search.scratch.bounds, search.scratch.order, search.scratch.prefix_sums) = (bounds, order, prefix_sums);
    done.map(|()| evaluated)
}

/// The evaluation of alternatives by `MaxScore`; `evaluated` counts documents or matches.
struct MaxScoreRun<'r, 'n, 'a> {
    refiners: &'r mut Refiners<'n, 'a>,
    evaluated: u64,
    /// Number of following windows in which all clauses are summed.
    exhaustive_windows_left: usize,
    /// Blocks of essential clauses are prefetched up to this document; `u32::MAX` if lists are resident.
    prefetched_to: u32,
    /// Max score of each clause in the window.
    bounds: Vec<u32>,
    /// Clauses in ascending order of their max scores.
    order: Vec<usize>,
    /// For each position of `order`, the sum of the max scores of the clauses before it.
    prefix_sums: Vec<u32>,
    window: ScoreWindow,
    batch: CandidateBatch,
}

impl MaxScoreRun<'_, '_, '_> {
    fn evaluate_windows(&mut self, nodes: &mut [Node<'_>], search: &mut Search<'_>) -> Result<()> {
        let mut first = search.first;
        while first < search.end {
            search.checkpoint(first)?;
            let next = nodes.iter_mut().map(|node| node.next_lower_bound(first)).min().unwrap_or(NO_DOCUMENT);
            if next >= search.end {
                break;
            }
            let range = window_from(next, WINDOW_DOCS, search.end);
            first = self.evaluate_window(nodes, range, search)?.saturating_add(1);
        }
        Ok(())
    }

    /// Evaluates a window, and returns its last document.
    fn evaluate_window(
        &mut self,
        nodes: &mut [Node<'_>],
        range: DocRange,
        search: &mut Search<'_>,
    ) -> Result<u32> {
        let last = range.last;
        if search.counts_matches || search.options.exhaustive || self.exhaustive_windows_left > 0 {
            self.exhaustive_windows_left = self.exhaustive_windows_left.saturating_sub(1);
            self.sum_clauses(nodes, range, search)?;
            return Ok(last);
        }
        let Some(others) = self.split_clauses(nodes, range, search)? else { return Ok(last) };
        if others == 0 {
            self.sum_clauses(nodes, range, search)?;
            return Ok(last);
        }
        let last = self.collect_candidates(nodes, range, others, search)?;
        if last == range.last && self.has_many_candidates(nodes, range) {
            self.exhaustive_windows_left = EXHAUSTIVE_WINDOWS;
            self.sum_clauses(nodes, range, search)?;
        } else {
            self.look_up_rest(nodes, others, search)?;
        }
        Ok(last)
    }

    /// Computes the max scores of the clauses in a range and orders the clauses by them. Returns the number
    /// of non-essential ones, the first in the order; `None` if the window cannot contain a hit.
    fn split_clauses(
        &mut self,
        nodes: &mut [Node<'_>],
        range: DocRange,
        search: &Search<'_>,
    ) -> Result<Option<usize>> {
        self.bounds.clear();
        for node in nodes.iter_mut() {
            self.bounds.push(node.max_score(range)?.unwrap_or(0));
        }
        let bounds = &self.bounds;
        self.order.clear();
        self.order.extend(0..bounds.len());
        self.order.sort_unstable_by_key(|node| bounds[*node]);
        let sum = self.compute_prefix_sums();
        if sum == 0 || !search.may_enter(sum, range.first) {
            nodes.iter_mut().for_each(|node| node.skip_range(range));
            return Ok(None);
        }
        let min_score = search.min_score();
        Ok(Some(self.prefix_sums[1..].partition_point(|sum| *sum < min_score)))
    }

    /// Computes `prefix_sums`, and returns the sum of all max scores.
    fn compute_prefix_sums(&mut self) -> u32 {
        self.prefix_sums.clear();
        let mut sum = 0;
        for node in &self.order {
            self.prefix_sums.push(sum);
            sum += self.bounds[*node];
        }
        sum
    }

    /// Fills the batch with the documents of the essential clauses, those from position `others` of the order
    /// on. Their scores include the max scores of the non-essential clauses. Returns the last document of the
    /// window, which may be after that of `range` ([`MaxScoreRun::extend_window`]).
    fn collect_candidates(
        &mut self,
        nodes: &mut [Node<'_>],
        range: DocRange,
        others: usize,
        search: &mut Search<'_>,
    ) -> Result<u32> {
        self.batch.clear();
        if let [essential] = self.order[others..]
            && let Node::Term(_) = nodes[essential]
        {
            let range = DocRange { last: self.extend_window(nodes, range, essential, search)?, ..range };
            let others_max = self.prefix_sums[others];
            let min_score = search.min_score().saturating_sub(others_max);
            self.prefetch(nodes, others, min_score, range, search.end)?;
            let Node::Term(term) = &mut nodes[essential] else { return Ok(range.last) };
            term.seek(range.first);
            for block in term.block..term.blocks.len() {
                if term.blocks.first(block) > range.last {
                    break;
                }
                let (documents, scores) = term.read_block_at_least(block, min_score)?;
                let within = positions_within(documents, range);
                self.batch.push_all(&documents[within.clone()], &scores[within]);
            }
            self.batch.raise_scores(others_max);
            self.batch.retain_at_least(search.min_score());
            return Ok(range.last);
        }
        self.prefetch(nodes, others, 0, range, search.end)?;
        self.window.restart(range);
        for number in &self.order[others..] {
            nodes[*number].add_scores(&mut self.window, search.scratch)?;
        }
        let others_max = self.prefix_sums[others];
        let survivors = self.window.drain_at_least(search.min_score().saturating_sub(others_max));
        self.batch.push_all(survivors.values(), survivors.sums());
        self.batch.raise_scores(others_max);
        Ok(range.last)
    }

    /// Prefetches the blocks of the essential clauses, those from position `others` of the order on, from a
    /// range on. For a single term, only blocks with a max score of at least `min_score` are prefetched.
    /// Blocks of the non-essential clauses are prefetched too, unless most of their pages will contain no
    /// candidate.
    fn prefetch(
        &mut self,
        nodes: &mut [Node<'_>],
        others: usize,
        min_score: u32,
        range: DocRange,
        end: u32,
    ) -> Result<()> {
        if range.first < self.prefetched_to {
            return Ok(());
        }
        let (others, essential) = self.order.split_at(others);
        let mut prefetch_clauses = |range| -> Result<bool> {
            let mut blocks = 0;
            for number in essential {
                blocks += nodes[*number].blocks_in(range);
                let prefetched = match &mut nodes[*number] {
                    Node::Term(term) if essential.len() == 1 => term.prefetch_at_least(range, min_score)?,
                    node => node.prefetch(range, true)?,
                };
                if !prefetched {
                    return Ok(false);
                }
            }
            let mut dense = others.iter();
            dense.try_fold(true, |all, number| {
                let node = &mut nodes[*number];
                let few = node.blocks_in(range) <= NON_ESSENTIAL_BLOCKS_RATIO * blocks;
                Ok(all && (!few || node.prefetch(range, true)?))
            })
        };
        let refiners = &mut *self.refiners;
        let prefetch_window = |range| -> Result<bool> {
            Ok(prefetch_clauses(range)? && refiners.prefetch_candidates(range, false)?)
        };
        self.prefetched_to = prefetch_ahead(range.first, end, prefetch_window)?.max(range.last);
        Ok(())
    }

    /// Extends the window to the end of the current block of its only essential clause, if the max scores of
    /// the other clauses in it sum to less than the threshold. Returns the last document of the window.
    fn extend_window(
        &mut self,
        nodes: &mut [Node<'_>],
        range: DocRange,
        essential: usize,
        search: &Search<'_>,
    ) -> Result<u32> {
        let DocRange { first, last } = range;
        let Node::Term(term) = &mut nodes[essential] else { return Ok(last) };
        term.seek(first);
        let whole = term.blocks.last(term.block).min(search.end - 1);
        if whole <= last {
            return Ok(last);
        }
        let (own, count) = (self.bounds[essential], nodes.len());
        for (number, node) in nodes.iter_mut().enumerate() {
            let bound = if number == essential {
                0
            } else {
                node.max_score(DocRange { first, last: whole })?.unwrap_or(0)
            };
            self.bounds.push(bound);
        }
        let others: u32 = self.bounds[count..].iter().sum();
        if others >= search.min_score() {
            self.bounds.truncate(count);
            return Ok(last);
        }
        self.bounds[count + essential] = own;
        self.bounds.drain(..count);
        self.compute_prefix_sums();
        Ok(whole)
    }

    /// Whether looking up the candidates takes longer than summing all clauses over the window.
    fn has_many_candidates(&self, nodes: &mut [Node<'_>], range: DocRange) -> bool {
        let postings = nodes.iter_mut().map(|node| match node {
            Node::Term(term) => {
                term.seek(range.first);
                (term.blocks.find(term.block, range.last) - term.block) * BLOCK + BLOCK / 2
            }
            _ => WINDOW_DOCS,
        });
        self.batch.len() * LOOK_UP_COST_POSTINGS > postings.sum()
    }

    /// Looks up the candidates of the batch in filters, exclusions and the `others` non-essential clauses,
    /// drops those that cannot be hits, and offers the others to the collector.
    fn look_up_rest(&mut self, nodes: &mut [Node<'_>], others: usize, search: &mut Search<'_>) -> Result<()> {
        self.refiners.keep_passing(&mut self.batch, search)?;
        self.evaluated += self.batch.len() as u64;
        let min_score = search.min_score();
        for number in self.order[..others].iter().rev() {
            let included_bound = self.bounds[*number];
            if included_bound > 0 {
                let refinement = Refinement { how: Refine::Optional, included_bound, min_score };
                nodes[*number].refine_batch(&mut self.batch, refinement, search.scratch)?;
            }
        }
        search.offer_all(&self.batch.documents, &self.batch.scores);
        Ok(())
    }

    /// Sums the scores of all clauses over the window, and offers the documents that reach the threshold and
    /// pass the refiners to the collector.
    fn sum_clauses(
        &mut self,
        nodes: &mut [Node<'_>],
        range: DocRange,
        search: &mut Search<'_>,
    ) -> Result<()> {
        if range.first >= self.prefetched_to {
            self.order.clear();
            self.order.extend(0..nodes.len());
            self.prefetch(nodes, 0, 0, range, search.end)?;
        }
        self.window.restart(range);
        for node in nodes {
            node.add_scores(&mut self.window, search.scratch)?;
        }
        if self.refiners.drops_candidates() && search.counts_matches {
            self.refiners.filter_window(&mut self.window, search)?;
        }
        let survivors = self.window.drain_at_least(search.min_score());
        let mut matches = survivors.positive() as u64;
        self.batch.clear();
        self.batch.push_all(survivors.values(), survivors.sums());
        if self.refiners.drops_candidates() && !search.counts_matches {
            self.refiners.keep_passing(&mut self.batch, search)?;
            matches = self.batch.len() as u64;
        }
        self.evaluated += matches;
        search.offer_all(&self.batch.documents, &self.batch.scores);
        Ok(())
    }
}
