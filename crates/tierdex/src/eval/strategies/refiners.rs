//! The clauses of a query in which candidates are looked up after a strategy found them: filters, exclusions
//! and optional clauses.

use crate::eval::state::{Bits, CandidateBatch, DocRange, Refine, Refinement, ScoreWindow, Search};
use crate::{Result, eval::nodes::Node};

/// Filters, exclusions and optional clauses, which propose no candidates of their own.
pub(crate) struct Refiners<'n, 'a> {
    filter: &'n mut [Node<'a>],
    must_not: &'n mut [Node<'a>],
    optional: &'n mut [Node<'a>],
    /// Upper bound of the scores of each optional clause, in the range of the last
    /// [`Refiners::optional_max`].
    included_bounds: Vec<u32>,
}

impl<'n, 'a> Refiners<'n, 'a> {
    pub(crate) fn new(
        filter: &'n mut [Node<'a>],
        must_not: &'n mut [Node<'a>],
        optional: &'n mut [Node<'a>],
    ) -> Refiners<'n, 'a> {
        Refiners { filter, must_not, optional, included_bounds: Vec::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.filter.is_empty() && self.must_not.is_empty() && self.optional.is_empty()
    }

    /// Whether there are filters or exclusions.
    pub(crate) fn drops_candidates(&self) -> bool {
        !(self.filter.is_empty() && self.must_not.is_empty())
    }

    /// Prefetches the blocks in which candidates of a range will be looked up; with frequencies if `scored`.
    /// False if the prefetch limit of the source is reached.
    pub(crate) fn prefetch_candidates(&mut self, range: DocRange, scored: bool) -> Result<bool> {
        let drop = self.filter.iter_mut().chain(self.must_not.iter_mut()).map(|node| (node, false));
        let mut all = drop.chain(self.optional.iter_mut().filter(|_| scored).map(|node| (node, true)));
        all.try_fold(true, |all, (node, scored)| Ok(all && node.prefetch_candidates(range, scored)?))
    }

    /// Upper bound of the sum of the scores of the optional clauses in a range.
    pub(crate) fn optional_max(&mut self, range: DocRange) -> Result<u32> {
        self.included_bounds.clear();
        for node in self.optional.iter_mut() {
            self.included_bounds.push(node.max_score(range)?.unwrap_or(0));
        }
        Ok(self.included_bounds.iter().sum())
    }

    /// Drops the candidates that do not pass filters and exclusions.
    pub(crate) fn keep_passing(&mut self, batch: &mut CandidateBatch, search: &mut Search<'_>) -> Result<()> {
        for node in self.filter.iter_mut() {
            node.refine_batch(batch, Refinement::all(Refine::Filter), search.scratch)?;
        }
        for node in self.must_not.iter_mut() {
            node.refine_batch(batch, Refinement::all(Refine::Exclude), search.scratch)?;
        }
        Ok(())
    }

    /// Offers the candidates that pass filters and exclusions to the collector, after adding the scores of
    /// the optional clauses. Their scores include the result of the last [`Refiners::optional_max`]. Returns
    /// the number of candidates that passed filters and exclusions.
    pub(crate) fn offer_batch(&mut self, batch: &mut CandidateBatch, search: &mut Search<'_>) -> Result<u64> {
        self.keep_passing(batch, search)?;
        let passed = batch.len() as u64;
        self.add_optional(batch, search)?;
        search.offer_all(&batch.documents, &batch.scores);
        Ok(passed)
    }

    /// Replaces the upper bounds of the optional clauses, which the scores of the candidates include, by
    /// exact scores, and drops candidates that fall below the threshold.
    pub(crate) fn add_optional(&mut self, batch: &mut CandidateBatch, search: &mut Search<'_>) -> Result<()> {
        let min_score = search.min_score();
        for (node, included_bound) in self.optional.iter_mut().zip(&self.included_bounds) {
            let refinement = Refinement { how: Refine::Optional, included_bound: *included_bound, min_score };
            node.refine_batch(batch, refinement, search.scratch)?;
        }
        Ok(())
    }

    /// Restricts `bits` to the documents that pass filters and exclusions.
    pub(crate) fn filter_bits(&mut self, bits: &mut Bits, search: &mut Search<'_>) -> Result<()> {
        let mut other = search.scratch.take_bits();
        for node in self.filter.iter_mut() {
            other.restart(bits.range());
            node.mark_matches(&mut other, search.scratch)?;
            bits.intersect(&mut other);
        }
        for node in self.must_not.iter_mut() {
            other.restart(bits.range());
            node.mark_matches(&mut other, search.scratch)?;
            bits.subtract(&mut other);
        }
        search.scratch.give_bits(other);
        Ok(())
    }

    /// Restricts a window to the documents that pass filters and exclusions.
    pub(crate) fn filter_window(&mut self, window: &mut ScoreWindow, search: &mut Search<'_>) -> Result<()> {
        let mut bits = search.scratch.take_bits();
        bits.restart(window.range());
        bits.add_all();
        self.filter_bits(&mut bits, search)?;
        window.intersect(&mut bits);
        search.scratch.give_bits(bits);
        Ok(())
    }
}
