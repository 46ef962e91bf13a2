//! The evaluation of a conjunction whose lead is a term, one of its blocks after the other.
//!
//! 1. Blocks that may contain hits are prefetched, and the blocks of other lists in which their candidates
//!    will be looked up.
//! 2. The scores of a block are bounded by the max scores of all clauses in its range.
//! 3. Its candidates are selected: by their scores in the lead, or by an intersection with the next list.
//! 4. They are looked up in the other clauses.

use super::{ConjunctionRun, PrefetchedBlock};
use crate::eval::nodes::all_of::{bound_clauses, prefetch_look_ups};
use crate::eval::nodes::term::{BlockPostings, LookUpBounds};
use crate::eval::nodes::{Node, RefiningClause, Term};
use crate::eval::state::{CandidateRange, DocRange, Search, positions_within};
use crate::eval::tuning::{LEAD_BLOCKS_AHEAD_MAX, RUN_BLOCKS_MAX};
use crate::{Result, limits::BLOCK};
use std::ops::Range;

/// A block of the lead, with the bounds of its scores.
struct LeadBlock {
    block: usize,
    /// The part of the block's range of documents that is searched.
    range: DocRange,
    is_scored: bool,
    /// Block max score of the lead.
    bound: u32,
    /// Upper bound of the sum of the scores of all other clauses in the range.
    others_max: u32,
    may_have_hits: bool,
}

/// Adjacent blocks of the lead that are prefetched together, and their range of documents.
struct LeadRun {
    blocks: Range<usize>,
    range: DocRange,
    may_have_hits: bool,
}

/// What is done first with a block of the lead.
enum BlockWork {
    /// Nothing: the block has no hits, and matches are not counted.
    Skip,
    /// The block has no hits; its documents that are in the only other list are counted.
    Count,
    /// `selected` postings, selected by frequency, are scored, then looked up in the other clauses.
    ScoreFirst { selected: usize },
    /// The documents of the block are looked up in the other clauses, then scored.
    IntersectFirst,
}

impl<'a> ConjunctionRun<'_, 'a> {
    /// Prefetches the next blocks of the lead that may contain hits, and the blocks of other lists in which
    /// their candidates will be looked up, and adds them to `prefetched_blocks`. Returns the first block of
    /// the lead that was not prefetched.
    fn prefetch_blocks(
        &mut self,
        term: &mut Term<'a>,
        from: usize,
        is_scored: bool,
        search: &Search<'_>,
    ) -> Result<usize> {
        let mut run = LeadRun { blocks: from..from, range: DocRange::ALL, may_have_hits: false };
        for block in from..term.blocks.len() {
            if term.blocks.first(block) >= search.end {
                break;
            }
            let range = search.clip_range(DocRange::of_block(&term.blocks, block));
            let lead = self.lead_block(term, block, range, is_scored, search)?;
            let lead = lead.filter(|lead| lead.may_have_hits || search.counts_matches);
            let Some(LeadBlock { bound, others_max, may_have_hits, .. }) = lead else { continue };
            let continues = block == run.blocks.end
                && !run.blocks.is_empty()
                && may_have_hits == run.may_have_hits
                && run.blocks.len() < RUN_BLOCKS_MAX;
            if continues {
                (run.blocks.end, run.range.last) = (block + 1, range.last);
            } else {
                if !self.prefetch_run(term, &run, is_scored)? {
                    return Ok(self.forget_run(&run, from));
                }
                run = LeadRun { blocks: block..block + 1, range, may_have_hits };
            }
            self.prefetched_blocks.push_back(PrefetchedBlock { block: block as u32, bound, others_max });
            if self.prefetched_blocks.len() == LEAD_BLOCKS_AHEAD_MAX {
                break;
            }
        }
        if !self.prefetch_run(term, &run, is_scored)? {
            return Ok(self.forget_run(&run, from));
        }
        let is_full = self.prefetched_blocks.len() == LEAD_BLOCKS_AHEAD_MAX;
        Ok(if is_full { run.blocks.end } else { term.blocks.len() })
    }

    /// Prefetches the blocks of a run, and the blocks of other lists in which their candidates will be looked
    /// up. False if the prefetch limit of the source is reached.
    fn prefetch_run(&mut self, term: &mut Term<'a>, run: &LeadRun, is_scored: bool) -> Result<bool> {
        let LeadRun { blocks, range, may_have_hits } = run;
        let of = CandidateRange { range: *range, lead_blocks: blocks.len() };
        Ok(blocks.is_empty()
            || term.blocks.prefetch_run(blocks.clone(), is_scored && *may_have_hits)?
                && prefetch_look_ups(self.others, of, *may_have_hits)?)
    }

    /// Removes the blocks of a run that was not prefetched completely from `prefetched_blocks`, and returns
    /// its first block. If it is the first run from `from` on, keeps its first block, which is evaluated
    /// without all its prefetches, and returns the block after it.
    fn forget_run(&mut self, run: &LeadRun, from: usize) -> usize {
        let is_first =
            self.prefetched_blocks.front().is_none_or(|first| first.block as usize >= run.blocks.start);
        let end = if is_first { run.blocks.start + 1 } else { run.blocks.start };
        while self.prefetched_blocks.pop_back_if(|last| last.block as usize >= end).is_some() {}
        end.max(from + 1)
    }

    /// Evaluates a conjunction whose lead is a term.
    pub(super) fn by_term_blocks(
        &mut self,
        term: &mut Term<'a>,
        is_scored: bool,
        search: &mut Search<'_>,
    ) -> Result<()> {
        let prefetches = term.blocks.prefetches();
        let mut prefetched_to = if prefetches { 0 } else { usize::MAX };
        for block in term.blocks.find(0, search.first)..term.blocks.len() {
            let whole = DocRange::of_block(&term.blocks, block);
            if whole.first >= search.end {
                break;
            }
            search.checkpoint(whole.first.max(search.first))?;
            let range = search.clip_range(whole);

            // Prefetch the next blocks that may contain hits. Those in between, and those for which the
            // threshold has risen too far since, are skipped.
            if block >= prefetched_to {
                prefetched_to = self.prefetch_blocks(term, block, is_scored, search)?;
            }
            // Bound the scores of the block, and find its candidates.
            let lead = match prefetches {
                true => self.prefetched_block(block, range, is_scored, search)?,
                false => self.lead_block(term, block, range, is_scored, search)?,
            };
            let Some(lead) = lead else {
                term.blocks.mark_pruned(block);
                continue;
            };
            let (mut found_unscored, mut looked_up) = (None, 0);
            match self.block_work(term, &lead, search)? {
                BlockWork::Skip => {
                    term.blocks.mark_pruned(block);
                    continue;
                }
                BlockWork::Count => {
                    self.count_block(term, &lead, search)?;
                    continue;
                }
                BlockWork::ScoreFirst { selected } => self.score_lead(term, &lead, selected)?,
                BlockWork::IntersectFirst => {
                    looked_up = self.intersect_lead(term, &lead, search)?;
                    found_unscored = (is_scored && lead.may_have_hits).then_some((&mut *term, lead.bound));
                }
            }
            if range != whole {
                self.batch.clip_to(range);
            }

            // Look up the candidates in the other clauses, and offer those that are left.
            self.filter_and_offer(found_unscored, looked_up, lead.may_have_hits, search)?;
        }
        Ok(())
    }

    /// The bounds of a block that was prefetched; `None` if it was not, or if no document matches in its
    /// range. They become those of the other clauses again, as blocks after it have been prefetched since.
    fn prefetched_block(
        &mut self,
        block: usize,
        range: DocRange,
        is_scored: bool,
        search: &Search<'_>,
    ) -> Result<Option<LeadBlock>> {
        let prefetched = self.prefetched_blocks.pop_front_if(|ahead| ahead.block as usize == block);
        let Some(PrefetchedBlock { bound, others_max, .. }) = prefetched else { return Ok(None) };
        let may_have_hits = search.may_enter(bound + others_max, range.first);
        if !(may_have_hits || search.counts_matches) {
            return Ok(None);
        }
        let others_max = match &mut *self.others {
            [RefiningClause { node: Node::Term(_), included_bound, .. }] => {
                *included_bound = others_max;
                Some(others_max)
            }
            // Lower than before, if the range has become shorter.
            others if search.collector.ranks() => bound_clauses(others, range)?,
            _ => Some(others_max),
        };
        Ok(others_max.map(|others_max| LeadBlock {
            block,
            range,
            is_scored,
            bound,
            others_max,
            may_have_hits,
        }))
    }

    /// The bounds of a block of the lead; `None` if no document matches in its range.
    fn lead_block(
        &mut self,
        term: &Term<'a>,
        block: usize,
        range: DocRange,
        is_scored: bool,
        search: &Search<'_>,
    ) -> Result<Option<LeadBlock>> {
        let ranks = search.collector.ranks();
        let bound = if is_scored && ranks { term.block_max_score(block) } else { 0 };
        let others_max = if ranks { bound_clauses(self.others, range)? } else { Some(0) };
        Ok(others_max.map(|others_max| {
            let may_have_hits = search.may_enter(bound + others_max, range.first);
            LeadBlock { block, range, is_scored, bound, others_max, may_have_hits }
        }))
    }

    /// Chooses what is done first with a block of the lead.
    fn block_work(
        &mut self,
        term: &mut Term<'a>,
        lead: &LeadBlock,
        search: &Search<'_>,
    ) -> Result<BlockWork> {
        if !lead.may_have_hits {
            let is_pair = matches!(&*self.others,
                [other @ RefiningClause { node: Node::Term(_), .. }] if other.is_required());
            return Ok(match search.counts_matches {
                false => BlockWork::Skip,
                true if is_pair => BlockWork::Count,
                true => BlockWork::IntersectFirst,
            });
        }
        if !lead.is_scored {
            return Ok(BlockWork::IntersectFirst);
        }
        let min_score = search.min_score();
        let selected = match search.counts_matches {
            true => BLOCK,
            false => term.select_postings(lead.block, min_score.saturating_sub(lead.others_max))?,
        };
        // Without a threshold no candidate is pruned by its score.
        let has_required = self.others.first().is_some_and(RefiningClause::is_required);
        let intersect_first = self.intersect_first || has_required && min_score == 0;
        let intersects = intersect_first && selected == BLOCK;
        Ok(if intersects { BlockWork::IntersectFirst } else { BlockWork::ScoreFirst { selected } })
    }

    /// Counts the candidates of a block that are in the only other list.
    fn count_block(&mut self, term: &mut Term<'a>, lead: &LeadBlock, search: &Search<'_>) -> Result<()> {
        if let [RefiningClause { node: Node::Term(other), .. }] = &mut *self.others {
            let documents = term.blocks.documents(lead.block)?;
            let documents = &documents[positions_within(documents, lead.range)];
            self.matches += match search.deleted() {
                None => other.count_shared(documents)?,
                Some(deleted) => other.count_shared(deleted.copy_live(documents, &mut [0; BLOCK]))?,
            };
        }
        Ok(())
    }

    /// Makes the postings of a block that were selected the candidates, with their scores in the lead.
    fn score_lead(&mut self, term: &mut Term<'a>, lead: &LeadBlock, selected: usize) -> Result<()> {
        self.batch.clear();
        let (documents, scores) = term.read_selected(lead.block, selected)?;
        self.batch.push_all(documents, scores);
        self.batch.raise_scores(lead.others_max);
        Ok(())
    }

    /// Makes the documents of a block the candidates: if the next clause is a term, only those that are in
    /// its list too. Returns the number of clauses in which they were looked up, 0 or 1.
    fn intersect_lead(
        &mut self,
        term: &mut Term<'a>,
        lead: &LeadBlock,
        search: &Search<'_>,
    ) -> Result<usize> {
        let bound = lead.bound + lead.others_max;
        let first = self.others.first_mut().filter(|other| other.is_required());
        let Some(RefiningClause { node: Node::Term(other), how, included_bound, found_unscored }) = first
        else {
            self.batch.clear();
            self.batch.push_equal(term.find_in_block(lead.block, 0)?, bound);
            return Ok(0);
        };
        *found_unscored = lead.may_have_hits && how.is_scored();
        let included_bound = if *found_unscored { *included_bound } else { 0 };
        let min_score = if search.counts_matches { 0 } else { search.min_score() };
        let (documents, found) = (term.blocks.documents(lead.block)?, &mut term.buffers.found);
        let postings = BlockPostings { block: lead.block, documents };
        let limits = LookUpBounds { bound, included_bound, min_score };
        other.intersect_block(postings, limits, found, &mut self.batch)?;
        Ok(1)
    }
}
