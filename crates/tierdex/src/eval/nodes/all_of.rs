//! A conjunction as a node: documents that match all required clauses and filters and no exclusion. Optional
//! clauses add to the score. The methods without a comment are those of [`Node`] with the same name.

use crate::eval::nodes::node::{AllOf, Node, RefiningClause};
use crate::eval::state::{
    Bits, CandidateBatch, CandidateRange, DocRange, Refine, Refinement, ScoreWindow, Scratch,
};
use crate::eval::tuning::{DENSE_DIVISOR, LOOK_UP_COST_POSTINGS};
use crate::{Result, cursor::NO_DOCUMENT, limits::BLOCK};

impl<'a> RefiningClause<'a> {
    pub(crate) fn is_required(&self) -> bool {
        matches!(self.how, Refine::Require | Refine::Filter)
    }

    /// Looks up the candidates, whose scores are at least `min_score`, and include the upper bound of the
    /// clause if it scores.
    pub(crate) fn refine_batch(
        &mut self,
        batch: &mut CandidateBatch,
        min_score: u32,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let min_score = if self.how.is_scored() { min_score } else { 0 };
        let refinement = Refinement { how: self.how, included_bound: self.included_bound, min_score };
        self.node.refine_batch(batch, refinement, scratch)
    }
}

/// Upper bound of the sum of the scores of these clauses in a range; `None` if no document of it matches them
/// all.
pub(crate) fn bound_clauses(clauses: &mut [RefiningClause<'_>], range: DocRange) -> Result<Option<u32>> {
    let mut sum = 0_u32;
    for RefiningClause { node, how, included_bound, .. } in clauses {
        if how.is_scored() {
            let bound = node.max_score(range)?;
            if bound.is_none() && *how == Refine::Require {
                return Ok(None);
            }
            *included_bound = bound.unwrap_or(0);
            // Weights inside a filter are not scaled, because nobody uses the scores.
            sum = sum.saturating_add(*included_bound);
        } else if *how == Refine::Filter && node.next_lower_bound(range.first) > range.last {
            return Ok(None);
        }
    }
    Ok(Some(sum))
}

/// Prefetches the blocks in which candidates of a range will be looked up; those of scored clauses, with
/// frequencies, only if `scored`. False if the prefetch limit of the source is reached.
pub(crate) fn prefetch_look_ups(
    clauses: &mut [RefiningClause<'_>],
    of: CandidateRange,
    scored: bool,
) -> Result<bool> {
    let mut used = clauses.iter_mut().filter(|clause| scored || clause.how != Refine::Optional);
    used.try_fold(true, |all, clause| {
        Ok(all && clause.node.prefetch_candidates(of, scored && clause.how.is_scored())?)
    })
}

/// Keeps the candidates that match all of these clauses.
fn keep_matches(
    clauses: &mut [RefiningClause<'_>],
    batch: &mut CandidateBatch,
    scratch: &mut Scratch,
) -> Result<()> {
    for clause in clauses.iter_mut().take_while(|clause| clause.how != Refine::Optional) {
        let how = if clause.is_required() { Refine::Filter } else { Refine::Exclude };
        clause.node.refine_batch(batch, Refinement::all(how), scratch)?;
    }
    Ok(())
}

impl<'a> AllOf<'a> {
    /// A conjunction of these clauses, in the order of [`AllOf::clauses`]; the first is required.
    pub(crate) fn new(clauses: Vec<RefiningClause<'a>>) -> AllOf<'a> {
        AllOf { clauses, bounded: None }
    }

    pub(crate) fn prefetch_candidates(&mut self, of: CandidateRange, scored: bool) -> Result<bool> {
        prefetch_look_ups(&mut self.clauses, of, scored)
    }

    fn required(&mut self) -> impl Iterator<Item = &mut RefiningClause<'a>> {
        self.clauses.iter_mut().take_while(|clause| clause.is_required())
    }

    pub(crate) fn cost(&self) -> u64 {
        let required = self.clauses.iter().take_while(|clause| clause.is_required());
        required.map(|clause| clause.node.cost()).min().unwrap_or(0)
    }

    pub(crate) fn next_lower_bound(&mut self, from: u32) -> u32 {
        self.required().fold(from, |from, clause| clause.node.next_lower_bound(from))
    }

    /// Lower bound, at least `from`, of the first document from `from` on that passes the filters.
    pub(crate) fn next_passing_filters(&mut self, from: u32) -> u32 {
        let filters = self.clauses.iter_mut().filter(|clause| clause.how == Refine::Filter);
        filters.fold(from, |from, clause| clause.node.next_lower_bound(from))
    }

    pub(crate) fn max_score(&mut self, range: DocRange) -> Result<Option<u32>> {
        match self.bounded {
            Some((bounded, bound)) if bounded == range => Ok(bound),
            _ => {
                let bound = bound_clauses(&mut self.clauses, range)?;
                self.bounded = Some((range, bound));
                Ok(bound)
            }
        }
    }

    pub(crate) fn prefetch(&mut self, range: DocRange, min_score: u32, scored: bool) -> Result<bool> {
        let Some(bound) = self.max_score(range)?.filter(|bound| *bound >= min_score) else { return Ok(true) };
        let (lead, others) = self.clauses.split_first_mut().expect("a clause is required");
        let lead_min = min_score.saturating_sub(bound - lead.included_bound);
        Ok(lead.node.prefetch(range, lead_min, scored && lead.how.is_scored())?
            && prefetch_look_ups(others, CandidateRange { range, lead_blocks: 1 }, scored)?)
    }

    pub(crate) fn collect(
        &mut self,
        range: DocRange,
        end: u32,
        min_score: u32,
        batch: &mut CandidateBatch,
        scratch: &mut Scratch,
    ) -> Result<u32> {
        let Some(bound) = self.max_score(range)?.filter(|bound| *bound >= min_score) else {
            self.clauses.iter_mut().for_each(|clause| clause.node.skip_range(range));
            return Ok(range.last);
        };
        let (lead, others) = self.clauses.split_first_mut().expect("a clause is required");
        let others_max = bound - lead.included_bound;
        let mut last = range.last;
        if lead.how == Refine::Filter {
            lead.node.collect_unscored(range, batch, scratch)?;
        } else {
            // The bounds of the other clauses are those of `range`, which must not be extended then.
            let is_scored_alone = others.iter().all(|other| !other.how.is_scored());
            let end = if is_scored_alone { end } else { range.last + 1 };
            last = lead.node.propose(range, end, min_score.saturating_sub(others_max), batch, scratch)?;
        }
        batch.raise_scores(others_max);
        if lead.how == Refine::Require {
            // Filters first: they drop candidates, and cost less than scores.
            for filter in others.iter_mut().filter(|other| other.how == Refine::Filter) {
                filter.refine_batch(batch, min_score, scratch)?;
            }
            lead.node.complete(batch, min_score, scratch)?;
        }
        for other in
            others.iter_mut().filter(|other| lead.how == Refine::Filter || other.how != Refine::Filter)
        {
            other.refine_batch(batch, min_score, scratch)?;
        }
        Ok(last)
    }

    pub(crate) fn collect_unscored(
        &mut self,
        range: DocRange,
        batch: &mut CandidateBatch,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let (lead, others) = self.clauses.split_first_mut().expect("a clause is required");
        lead.node.collect_unscored(range, batch, scratch)?;
        keep_matches(others, batch, scratch)
    }

    pub(crate) fn mark_matches(&mut self, bits: &mut Bits, scratch: &mut Scratch) -> Result<()> {
        let range = bits.range();
        let is_dense = DENSE_DIVISOR as usize * self.clauses[0].node.postings_in(range)
            > (range.last - range.first) as usize;
        if !is_dense && self.clauses[0].node.is_led_by_list() {
            return self.mark_candidates(bits, scratch);
        }
        if bits.is_unused() {
            self.clauses[0].node.mark_matches(bits, scratch)?;
            return self.restrict_bits(bits, scratch);
        }
        let mut mine = scratch.take_bits();
        mine.restart(range);
        self.mark_matches(&mut mine, scratch)?;
        bits.union(&mut mine);
        scratch.give_bits(mine);
        Ok(())
    }

    /// As [`Node::mark_matches`], if the lead has few documents: these are looked up in the other clauses.
    fn mark_candidates(&mut self, bits: &mut Bits, scratch: &mut Scratch) -> Result<()> {
        let DocRange { first, last } = bits.range();
        let mut batch = scratch.take_batch(BLOCK);
        let mut next = self.next_lower_bound(first);
        while next <= last {
            let block = DocRange { first: next, last: self.clauses[0].node.block_end(next).min(last) };
            batch.clear();
            self.collect_unscored(block, &mut batch, scratch)?;
            bits.add(&batch.documents);
            next = if block.last < last { self.next_lower_bound(block.last + 1) } else { NO_DOCUMENT };
        }
        scratch.give_batch(batch);
        Ok(())
    }

    /// Restricts `mine` to the documents that match the required clauses and filters after the lead, and no
    /// exclusion.
    fn restrict_bits(&mut self, mine: &mut Bits, scratch: &mut Scratch) -> Result<()> {
        let mut other = scratch.take_bits();
        for RefiningClause { node, how, .. } in &mut self.clauses[1..] {
            let count = mine.count_up_to(BLOCK);
            if count == 0 || *how == Refine::Optional {
                break;
            }
            let excludes = *how == Refine::Exclude;
            if count <= BLOCK && count * LOOK_UP_COST_POSTINGS < node.postings_in(mine.range()) {
                let mut batch = scratch.take_batch(BLOCK);
                batch.extend_unscored(mine.documents());
                let how = if excludes { Refine::Exclude } else { Refine::Filter };
                node.refine_batch(&mut batch, Refinement::all(how), scratch)?;
                mine.restart(mine.range());
                mine.add(&batch.documents);
                scratch.give_batch(batch);
                continue;
            }
            other.restart(mine.range());
            node.mark_matches(&mut other, scratch)?;
            if excludes { mine.subtract(&mut other) } else { mine.intersect(&mut other) }
        }
        scratch.give_bits(other);
        Ok(())
    }

    /// Position of the filter that proposes the candidates of [`AllOf::collect_zero_scored`].
    fn cheapest_filter(&self) -> Option<usize> {
        self.clauses.iter().position(|clause| clause.how == Refine::Filter)
    }

    /// The end of the block of the list that proposes candidates of the cheapest filter from a document on;
    /// `None` if these are found in windows.
    pub(crate) fn filter_block_end(&mut self, from: u32) -> Option<u32> {
        let filter = self.cheapest_filter()?;
        let node = &mut self.clauses[filter].node;
        node.is_led_by_list().then(|| node.block_end(from))
    }

    /// Appends the documents of a range that pass filters and exclusions and match no scored clause to an
    /// empty batch, with score 0. The range ends with [`AllOf::filter_block_end`], if there is one, or fits
    /// in a window.
    pub(crate) fn collect_zero_scored(
        &mut self,
        range: DocRange,
        batch: &mut CandidateBatch,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let Some(filter) = self.cheapest_filter() else { return Ok(()) };
        self.clauses[filter].node.collect_unscored(range, batch, scratch)?;
        let (before, rest) = self.clauses.split_at_mut(filter);
        for RefiningClause { node, how, .. } in before.iter_mut().chain(&mut rest[1..]) {
            let how = if *how == Refine::Filter { Refine::Filter } else { Refine::Exclude };
            node.refine_batch(batch, Refinement::all(how), scratch)?;
        }
        Ok(())
    }

    /// Whether scored alternatives, of which one must match, propose the candidates.
    pub(crate) fn is_led_by_alternatives(&self) -> bool {
        matches!(&self.clauses[0].node, Node::AnyOf(any) if any.minimum == 1)
            && self.clauses[0].how == Refine::Require
    }

    /// [`Node::add_scores`] with all matches, if alternatives are the lead: they are summed in a window.
    pub(crate) fn add_sums(&mut self, window: &mut ScoreWindow, scratch: &mut Scratch) -> Result<()> {
        let (mut sums, mut mine) = (scratch.take_window(), scratch.take_bits());
        sums.restart(window.range());
        mine.restart(window.range());
        self.clauses[0].node.add_scores(&mut sums, 0, scratch)?;
        mine.union(sums.collect_matches());
        self.restrict_bits(&mut mine, scratch)?;
        if !mine.is_empty() {
            for clause in self.clauses[1..].iter_mut().filter(|clause| clause.how.is_scored()) {
                clause.node.add_scores(&mut sums, 0, scratch)?;
            }
            sums.intersect(&mut mine);
            sums.unscored.union(&mut mine);
            window.add_window(&mut sums);
        }
        scratch.give_window(sums);
        scratch.give_bits(mine);
        Ok(())
    }

    pub(crate) fn keep_matches(&mut self, batch: &mut CandidateBatch, scratch: &mut Scratch) -> Result<()> {
        keep_matches(&mut self.clauses, batch, scratch)
    }

    /// Keeps the candidates that match and may reach the threshold, with their exact scores.
    pub(crate) fn require(
        &mut self,
        batch: &mut CandidateBatch,
        Refinement { included_bound, min_score, .. }: Refinement,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let Some(bound) = batch.range().map_or(Ok(None), |range| self.max_score(range))? else {
            batch.clear();
            return Ok(());
        };
        batch.replace_bound(included_bound, bound);
        batch.retain_at_least(min_score);
        self.clauses.iter_mut().try_for_each(|clause| clause.refine_batch(batch, min_score, scratch))
    }
}
