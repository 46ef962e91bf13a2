//! Conjunction: documents that match all of several clauses. The rarest clause, the lead, proposes
//! candidates one block at a time, and only where the sum of the max scores of all clauses reaches the
//! threshold. Candidates are looked up in the other clauses, rarest first.
//!
//! With more than two scored lists, if matches are counted, or as long as there is no threshold, candidates
//! are intersected first and scored afterwards, because few are usually left. With two lists and a threshold,
//! only the candidates of the lead that may reach it are looked up in the other list.

use crate::cursor::NO_DOCUMENT;
use crate::error::Result;
use crate::eval::nodes::node::Node;
use crate::eval::nodes::term::{BlockPostings, LookUpBounds, Term};
use crate::eval::state::batch::CandidateBatch;
use crate::eval::state::range::{DocRange, range_from, within};
use crate::eval::state::refinement::{Refine, Refinement};
use crate::eval::state::search::Search;
use crate::eval::strategies::refiners::Refiners;
use crate::eval::tuning::{LEAD_BLOCKS_AHEAD_MAX, WINDOW};
use crate::limits::BLOCK;
use std::collections::VecDeque;

/// A required clause.
pub(in crate::eval) struct Required<'n, 'a> {
    node: &'n mut Node<'a>,
    is_scored: bool,
    /// Upper bound of its scores in the current range; 0 if it is not scored.
    included_bound: u32,
    /// Its candidates have been found but not scored.
    pending: bool,
}

impl Required<'_, '_> {
    fn how(&self) -> Refine {
        if self.is_scored { Refine::Require } else { Refine::Filter }
    }
}

/// The required clauses, cheapest first.
pub(in crate::eval) fn required<'n, 'a>(
    must: &'n mut [Node<'a>],
    filter: &'n mut [Node<'a>],
) -> Vec<Required<'n, 'a>> {
    let must = must.iter_mut().map(|node| (node, true));
    let all = must.chain(filter.iter_mut().map(|node| (node, false)));
    let new = |(node, is_scored)| Required { node, is_scored, included_bound: 0, pending: false };
    let mut required: Vec<_> = all.map(new).collect();
    required.sort_by_key(|required| required.node.cost());
    required
}

/// Offers the documents that match all `required` clauses (at least one) and that pass the refiners, except
/// those that cannot be hits. Returns the number of matches if they are counted, else the number of
/// documents evaluated.
pub(in crate::eval) fn conjunction<'a>(
    required: &mut [Required<'_, 'a>],
    refiners: &mut Refiners<'_, 'a>,
    search: &mut Search<'_>,
) -> Result<u64> {
    let (lead, others) = required.split_first_mut().expect("a clause is required");
    let intersect_first =
        others.iter().filter(|other| other.is_scored).count() + usize::from(lead.is_scored) > 2;
    let mut run = ConjunctionRun {
        others,
        refiners,
        intersect_first: intersect_first || search.count,
        batch: search.scratch.batch(),
        ahead: VecDeque::new(),
        matches: 0,
    };
    let is_scored = lead.is_scored;
    let done = match &mut lead.node {
        Node::Term(term) => run.by_blocks(term, is_scored, search),
        Node::Phrase(_) => run.by_phrase(lead, search),
        node => run.by_windows(node, is_scored, search),
    };
    let matches = run.matches;
    search.scratch.give_batch(run.batch);
    done.map(|()| matches)
}

/// A block of the lead, with the bounds of its scores.
struct LeadBlock {
    block: usize,
    /// Its documents that are searched.
    range: DocRange,
    is_scored: bool,
    /// Block max score of the lead.
    bound: u32,
    /// Upper bound of the scores of all other clauses in the range.
    others_max: u32,
    may_have_hits: bool,
}

/// What is done with a block of the lead.
enum BlockWork {
    /// It has no hits, and is not counted.
    Skip,
    /// Its documents in the other list are counted.
    Count,
    /// The selected postings are scored, then looked up.
    ScoreFirst { selected: usize },
    /// Its documents are looked up in the next list, then scored.
    IntersectFirst,
}

struct ConjunctionRun<'r, 'n, 'a, 'f> {
    others: &'r mut [Required<'n, 'a>],
    refiners: &'r mut Refiners<'f, 'a>,
    /// Candidates are intersected with all lists before they are scored.
    intersect_first: bool,
    batch: CandidateBatch,
    /// Prefetched blocks of the lead, each with the upper bound of the scores in its range.
    ahead: VecDeque<(usize, u32)>,
    matches: u64,
}

impl<'a> ConjunctionRun<'_, '_, 'a, '_> {
    /// Upper bound of the scores of the other clauses in a range; `None` if no document matches there.
    fn others_max(&mut self, range: DocRange) -> Result<Option<u32>> {
        let mut others_max = 0;
        for other in self.others.iter_mut() {
            match other.node.max_score(range)? {
                None => return Ok(None),
                Some(score) => other.included_bound = if other.is_scored { score } else { 0 },
            }
            others_max += other.included_bound;
        }
        Ok(Some(others_max + self.refiners.optional_max(range)?))
    }

    /// Prefetches the next blocks of the lead that may contain hits, and the blocks of other lists in which
    /// their candidates will be looked up, and adds them to `ahead`. Returns the first block of the lead that
    /// was not prefetched.
    fn prefetch_blocks(
        &mut self,
        term: &mut Term<'a>,
        from: usize,
        is_scored: bool,
        search: &Search<'_>,
    ) -> Result<usize> {
        let top = search.collector.ranks();
        for block in from..term.blocks.len() {
            if term.blocks.first(block) >= search.end {
                break;
            }
            let range = search.clip(DocRange::of_block(&term.blocks, block));
            let bound = if is_scored && top { term.block_max(block) } else { 0 };
            let others_max = if top { self.others_max(range)? } else { Some(0) };
            let Some(bound) = others_max.map(|others_max| bound + others_max) else { continue };
            let may_have_hits = search.may_enter(bound, range.first);
            if !(may_have_hits || search.count) {
                continue;
            }
            let mut prefetched = term.blocks.prefetch(block, is_scored && may_have_hits)?;
            for other in self.others.iter_mut() {
                prefetched =
                    prefetched && other.node.prefetch_candidates(range, other.is_scored && may_have_hits)?;
            }
            let prefetched = prefetched && self.refiners.prefetch_candidates(range, may_have_hits)?;
            // If the limit is reached at the first block, it is evaluated without prefetching.
            if prefetched || block == from {
                self.ahead.push_back((block, bound));
            }
            if !prefetched || self.ahead.len() == LEAD_BLOCKS_AHEAD_MAX {
                return Ok(if prefetched { block + 1 } else { block.max(from + 1) });
            }
        }
        Ok(term.blocks.len())
    }

    fn by_blocks(&mut self, term: &mut Term<'a>, is_scored: bool, search: &mut Search<'_>) -> Result<()> {
        let prefetches = term.blocks.prefetches();
        let mut prefetched_to = if prefetches { 0 } else { usize::MAX };
        for block in term.blocks.find(0, search.first)..term.blocks.len() {
            let whole = DocRange::of_block(&term.blocks, block);
            if whole.first >= search.end {
                break;
            }
            search.checkpoint(whole.first.max(search.first))?;
            let range = search.clip(whole);

            // Prefetch the next blocks that may contain hits. Those in between, and those for which the
            // threshold has risen too far since, are skipped.
            if block >= prefetched_to {
                prefetched_to = self.prefetch_blocks(term, block, is_scored, search)?;
            }
            if prefetches && !self.was_prefetched(block, range, search) {
                term.blocks.mark_pruned(block);
                continue;
            }

            // Bound the scores of the block, and find its candidates.
            let Some(lead) = self.lead_block(term, block, range, is_scored, search)? else {
                term.blocks.mark_pruned(block);
                continue;
            };
            let (mut pending, mut looked_up) = (None, 0);
            match self.work(term, &lead, search)? {
                BlockWork::Skip => {
                    term.blocks.mark_pruned(block);
                    continue;
                }
                BlockWork::Count => {
                    self.count_block(term, &lead)?;
                    continue;
                }
                BlockWork::ScoreFirst { selected } => self.score_lead(term, &lead, selected)?,
                BlockWork::IntersectFirst => {
                    looked_up = self.intersect_lead(term, &lead, search)?;
                    pending = (is_scored && lead.may_have_hits).then_some((&mut *term, lead.bound));
                }
            }
            if range != whole {
                self.batch.clip(range);
            }

            // Look up the candidates in the other clauses, and offer those that are left.
            self.refine(pending, looked_up, lead.may_have_hits, search)?;
        }
        Ok(())
    }

    /// Whether a block was prefetched and may still contain hits, or is counted.
    fn was_prefetched(&mut self, block: usize, range: DocRange, search: &Search<'_>) -> bool {
        let prefetched = self.ahead.pop_front_if(|(ahead, _)| *ahead == block);
        prefetched.is_some_and(|(_, bound)| search.count || search.may_enter(bound, range.first))
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
        let bound = if is_scored && ranks { term.block_max(block) } else { 0 };
        let others_max = if ranks { self.others_max(range)? } else { Some(0) };
        Ok(others_max.map(|others_max| {
            let may_have_hits = search.may_enter(bound + others_max, range.first);
            LeadBlock { block, range, is_scored, bound, others_max, may_have_hits }
        }))
    }

    /// What is done first with a block of the lead.
    fn work(&mut self, term: &mut Term<'a>, lead: &LeadBlock, search: &Search<'_>) -> Result<BlockWork> {
        if !lead.may_have_hits {
            let is_pair = matches!(&*self.others, [Required { node: Node::Term(_), .. }]);
            return Ok(match search.count {
                false => BlockWork::Skip,
                true if is_pair && self.refiners.is_empty() => BlockWork::Count,
                true => BlockWork::IntersectFirst,
            });
        }
        if !lead.is_scored {
            return Ok(BlockWork::IntersectFirst);
        }
        let min_score = search.min_score();
        let selected = match search.count {
            true => BLOCK,
            false => term.select(lead.block, min_score.saturating_sub(lead.others_max))?,
        };
        // Without a threshold no candidate is pruned by its score.
        let intersect_first = self.intersect_first || !self.others.is_empty() && min_score == 0;
        let intersects = intersect_first && selected == BLOCK;
        Ok(if intersects { BlockWork::IntersectFirst } else { BlockWork::ScoreFirst { selected } })
    }

    /// Counts the candidates of a block that are in the only other list.
    fn count_block(&mut self, term: &mut Term<'a>, lead: &LeadBlock) -> Result<()> {
        if let [Required { node: Node::Term(other), .. }] = &mut *self.others {
            let documents = term.blocks.documents(lead.block)?;
            self.matches += other.count_shared(&documents[within(documents, lead.range)])?;
        }
        Ok(())
    }

    /// The candidates are the selected postings of a block, with their scores in the lead.
    fn score_lead(&mut self, term: &mut Term<'a>, lead: &LeadBlock, selected: usize) -> Result<()> {
        self.batch.clear();
        let (documents, scores) = term.read_selected(lead.block, selected)?;
        self.batch.push_all(documents, scores);
        self.batch.raise(lead.others_max);
        Ok(())
    }

    /// The candidates are the documents of a block that are also in the list of the next clause, if that is a
    /// term. Returns the number of clauses in which they were looked up.
    fn intersect_lead(
        &mut self,
        term: &mut Term<'a>,
        lead: &LeadBlock,
        search: &Search<'_>,
    ) -> Result<usize> {
        let bound = lead.bound + lead.others_max;
        let Some(Required { node: Node::Term(other), is_scored, included_bound, pending }) =
            self.others.first_mut()
        else {
            self.batch.clear();
            self.batch.push_equal(term.find_in_block(lead.block, 0)?, bound);
            return Ok(0);
        };
        *pending = lead.may_have_hits && *is_scored;
        let included_bound = if *pending { *included_bound } else { 0 };
        let min_score = if search.count { 0 } else { search.min_score() };
        let (documents, found) = (term.blocks.documents(lead.block)?, &mut term.buffers.found);
        let postings = BlockPostings { block: lead.block, documents };
        let limits = LookUpBounds { bound, included_bound, min_score };
        other.intersect_block(postings, limits, found, &mut self.batch)?;
        Ok(1)
    }

    /// The rarest term of the phrase proposes candidates, which the phrase filters.
    fn by_phrase(&mut self, lead: &mut Required<'_, 'a>, search: &mut Search<'_>) -> Result<()> {
        let how = lead.how();
        let Node::Phrase(phrase) = &mut *lead.node else { return Ok(()) };
        let mut prefetched_to = if phrase.rarest().blocks.prefetches() { 0 } else { usize::MAX };
        for block in phrase.rarest().blocks.find(0, search.first)..phrase.rarest().blocks.len() {
            let rarest = phrase.rarest();
            let whole = DocRange::of_block(&rarest.blocks, block);
            if whole.first >= search.end {
                break;
            }
            search.checkpoint(whole.first.max(search.first))?;
            if block >= prefetched_to {
                prefetched_to = block;
                while prefetched_to < rarest.blocks.len() && rarest.blocks.prefetch(prefetched_to, false)? {
                    prefetched_to += 1;
                }
                prefetched_to = prefetched_to.max(block + 1);
            }
            let range = search.clip(whole);
            let bound = match phrase.max_score(range)? {
                None => continue,
                Some(bound) if how.is_scored() => bound,
                Some(_) => 0,
            };
            let Some(others_max) = self.others_max(range)? else { continue };
            let may_have_hits = search.may_enter(bound + others_max, range.first);
            if !may_have_hits && !search.count {
                phrase.rarest().blocks.mark_pruned(block);
                continue;
            }
            self.batch.clear();
            let min_score = if search.count { 0 } else { search.min_score() };
            let how = if may_have_hits { how } else { Refine::Filter };
            // A phrase is at most as frequent as its rarest term, so the term must reach the threshold too.
            let phrase_min = if how.is_scored() { min_score.saturating_sub(others_max) } else { 0 };
            self.batch.push_equal(phrase.rarest().find_in_block(block, phrase_min)?, bound + others_max);
            if range != whole {
                self.batch.clip(range);
            }
            let included_bound = if how.is_scored() { bound } else { 0 };
            phrase.refine_found(&mut self.batch, Refinement { how, included_bound, min_score })?;
            self.refine(None, 0, may_have_hits, search)?;
        }
        Ok(())
    }

    /// The lead proposes the matches of one window of documents at a time.
    fn by_windows(&mut self, node: &mut Node<'a>, is_scored: bool, search: &mut Search<'_>) -> Result<()> {
        let (mut window, mut all) = (search.scratch.window(), search.scratch.batch());
        let mut next = node.next_lower_bound(search.first);
        while next != NO_DOCUMENT && next < search.end {
            search.checkpoint(next)?;
            let range = range_from(next, WINDOW, search.end);
            let bound = node.max_score(range)?.map(|bound| if is_scored { bound } else { 0 });
            let others_max = self.others_max(range)?;
            if let (Some(bound), Some(others_max)) = (bound, others_max) {
                let may_have_hits = search.may_enter(bound + others_max, range.first);
                if may_have_hits || search.count {
                    window.restart(range);
                    if is_scored && may_have_hits {
                        node.add(&mut window, search.scratch)?;
                    } else {
                        node.mark(&mut window.unscored, search.scratch)?;
                    }
                    window.drain(&mut all);
                    for (documents, scores) in all.chunks(BLOCK) {
                        self.batch.clear();
                        self.batch.push_all(documents, scores);
                        self.batch.raise(others_max);
                        self.refine(None, 0, may_have_hits, search)?;
                    }
                }
            }
            next =
                if range.last + 1 < search.end { node.next_lower_bound(range.last + 1) } else { NO_DOCUMENT };
        }
        search.scratch.give_window(window);
        search.scratch.give_batch(all);
        Ok(())
    }

    /// Filters the candidates, at most [`BLOCK`], by the other clauses, and offers them if `may_have_hits`.
    /// The first `looked_up` clauses have already been looked up. `lead` is the term that proposed the
    /// candidates if they are not scored yet, with its upper bound, which their scores include.
    fn refine(
        &mut self,
        lead: Option<(&mut Term<'a>, u32)>,
        looked_up: usize,
        may_have_hits: bool,
        search: &mut Search<'_>,
    ) -> Result<()> {
        let ConjunctionRun { others, refiners, batch, .. } = self;
        let min_score = if search.count { 0 } else { search.min_score() };
        for other in &mut others[looked_up..] {
            if batch.len() == 0 {
                return Ok(());
            }
            other.pending = false;
            match &mut *other.node {
                Node::Term(term) if self.intersect_first && may_have_hits && other.is_scored => {
                    term.find_all(batch, other.included_bound, min_score)?;
                    other.pending = true;
                }
                node => {
                    let how = if may_have_hits && other.is_scored { Refine::Require } else { Refine::Filter };
                    let included_bound = if how.is_scored() { other.included_bound } else { 0 };
                    node.refine(batch, Refinement { how, included_bound, min_score }, search.scratch)?;
                }
            }
        }
        refiners.select(batch, search)?;
        self.matches += batch.len() as u64;
        if !may_have_hits || batch.len() == 0 {
            return Ok(());
        }
        let min_score = search.min_score();
        batch.retain(min_score);
        if let Some((term, bound)) = lead {
            term.score_found(batch, bound, min_score)?;
        }
        for other in others.iter_mut().filter(|other| other.pending) {
            if let Node::Term(term) = &mut *other.node {
                term.score_found(batch, other.included_bound, min_score)?;
            }
        }
        refiners.add_optional(batch, search)?;
        search.offer_all(&batch.documents, &batch.scores);
        Ok(())
    }
}
