//! Conjunction: documents that match all of several clauses. The documents of the rarest clause, the *lead*,
//! are the candidates, one block at a time; a block is skipped if the sum of the max scores of all clauses in
//! its range is below the threshold. Candidates are looked up in the other clauses, rarest first.
//!
//! With more than two scored lists, if matches are counted, or as long as there is no threshold, candidates
//! are intersected first and scored afterwards, because few are usually left. With two lists and a threshold,
//! only the candidates of the lead that may reach it are looked up in the other list (`by_blocks`).

mod by_blocks;

use crate::eval::nodes::{Node, Term};
use crate::eval::state::{CandidateBatch, DocRange, Refine, Refinement, Search, window_from};
use crate::{
    Result, cursor::NO_DOCUMENT, eval::strategies::refiners::Refiners, eval::tuning::WINDOW_DOCS,
    limits::BLOCK,
};
use std::collections::VecDeque;

/// A required clause or filter.
pub(crate) struct RequiredClause<'n, 'a> {
    node: &'n mut Node<'a>,
    is_scored: bool,
    /// Upper bound of its scores in the current range; 0 if it is not scored.
    included_bound: u32,
    /// Whether the candidates of the current block were found in it, but are not scored yet.
    found_unscored: bool,
}

/// Required clauses and filters in ascending order of cost.
pub(crate) fn required_clauses<'n, 'a>(
    must: &'n mut [Node<'a>],
    filter: &'n mut [Node<'a>],
) -> Vec<RequiredClause<'n, 'a>> {
    let must = must.iter_mut().map(|node| (node, true));
    let all = must.chain(filter.iter_mut().map(|node| (node, false)));
    let new =
        |(node, is_scored)| RequiredClause { node, is_scored, included_bound: 0, found_unscored: false };
    let mut required: Vec<_> = all.map(new).collect();
    required.sort_by_key(|required| required.node.cost());
    required
}

/// Offers the documents that match all `required` clauses (at least one) and pass the `refiners` to the
/// collector, except those that cannot be hits. Returns the number of matches if they are counted, else the
/// number of documents evaluated.
pub(crate) fn conjunction<'a>(
    required: &mut [RequiredClause<'_, 'a>],
    refiners: &mut Refiners<'_, 'a>,
    search: &mut Search<'_>,
) -> Result<u64> {
    let (lead, others) = required.split_first_mut().expect("a clause is required");
    let intersect_first =
        others.iter().filter(|other| other.is_scored).count() + usize::from(lead.is_scored) > 2;
    let mut run = ConjunctionRun {
        others,
        refiners,
        intersect_first: intersect_first || search.counts_matches,
        batch: search.scratch.take_batch(BLOCK),
        prefetched_blocks: VecDeque::new(),
        matches: 0,
    };
    let is_scored = lead.is_scored;
    let done = match &mut lead.node {
        Node::Term(term) => run.by_term_blocks(term, is_scored, search),
        Node::Phrase(_) => run.by_phrase_blocks(lead, search),
        node => run.by_windows(node, is_scored, search),
    };
    let matches = run.matches;
    search.scratch.give_batch(run.batch);
    done.map(|()| matches)
}

/// The evaluation of a conjunction, without its lead.
struct ConjunctionRun<'r, 'n, 'a, 'f> {
    others: &'r mut [RequiredClause<'n, 'a>],
    refiners: &'r mut Refiners<'f, 'a>,
    /// Whether candidates are intersected with all lists before any is scored.
    intersect_first: bool,
    batch: CandidateBatch,
    /// Numbers of the prefetched blocks of the lead, each with the upper bound of the scores in its range.
    prefetched_blocks: VecDeque<(u32, u32)>,
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

    /// Evaluates a conjunction whose lead is a phrase: each block of its rarest term is restricted to the
    /// documents that contain the phrase, which are the candidates.
    fn by_phrase_blocks(&mut self, lead: &mut RequiredClause<'_, 'a>, search: &mut Search<'_>) -> Result<()> {
        let how = if lead.is_scored { Refine::Require } else { Refine::Filter };
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
            let range = search.clip_range(whole);
            let bound = match phrase.max_score(range)? {
                None => continue,
                Some(bound) if how.is_scored() => bound,
                Some(_) => 0,
            };
            let Some(others_max) = self.others_max(range)? else { continue };
            let may_have_hits = search.may_enter(bound + others_max, range.first);
            if !may_have_hits && !search.counts_matches {
                phrase.rarest().blocks.mark_pruned(block);
                continue;
            }
            self.batch.clear();
            let min_score = if search.counts_matches { 0 } else { search.min_score() };
            let how = if may_have_hits { how } else { Refine::Filter };
            // A phrase is at most as frequent as its rarest term, so the term must reach the threshold too.
            let phrase_min = if how.is_scored() { min_score.saturating_sub(others_max) } else { 0 };
            self.batch.push_equal(phrase.rarest().find_in_block(block, phrase_min)?, bound + others_max);
            if range != whole {
                self.batch.clip_to(range);
            }
            let included_bound = if how.is_scored() { bound } else { 0 };
            phrase.refine_found(&mut self.batch, Refinement { how, included_bound, min_score })?;
            self.filter_and_offer(None, 0, may_have_hits, search)?;
        }
        Ok(())
    }

    /// Evaluates a conjunction whose lead is a set or a group: its matches in one window of documents after
    /// the other are the candidates.
    fn by_windows(&mut self, node: &mut Node<'a>, is_scored: bool, search: &mut Search<'_>) -> Result<()> {
        let (mut window, mut all) = (search.scratch.take_window(), search.scratch.take_batch(WINDOW_DOCS));
        let mut next = node.next_lower_bound(search.first);
        while next != NO_DOCUMENT && next < search.end {
            search.checkpoint(next)?;
            let range = window_from(next, WINDOW_DOCS, search.end);
            let bound = node.max_score(range)?.map(|bound| if is_scored { bound } else { 0 });
            let others_max = self.others_max(range)?;
            if let (Some(bound), Some(others_max)) = (bound, others_max) {
                let may_have_hits = search.may_enter(bound + others_max, range.first);
                if may_have_hits || search.counts_matches {
                    window.restart(range);
                    if is_scored && may_have_hits {
                        node.add_scores(&mut window, search.scratch)?;
                    } else {
                        node.mark_matches(&mut window.unscored, search.scratch)?;
                    }
                    window.drain(&mut all);
                    for (documents, scores) in all.chunks(BLOCK) {
                        self.batch.clear();
                        self.batch.push_all(documents, scores);
                        self.batch.raise_scores(others_max);
                        self.filter_and_offer(None, 0, may_have_hits, search)?;
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

    /// Looks up the candidates, at most [`BLOCK`], in the other clauses from number `looked_up` on, and
    /// counts those that are left; offers them to the collector if `may_have_hits`. `lead` is the lead, if it
    /// is a term that has not scored them yet, with its upper bound, which their scores include.
    fn filter_and_offer(
        &mut self,
        lead: Option<(&mut Term<'a>, u32)>,
        looked_up: usize,
        may_have_hits: bool,
        search: &mut Search<'_>,
    ) -> Result<()> {
        let ConjunctionRun { others, refiners, batch, .. } = self;
        let min_score = if search.counts_matches { 0 } else { search.min_score() };
        for other in &mut others[looked_up..] {
            if batch.len() == 0 {
                return Ok(());
            }
            other.found_unscored = false;
            match &mut *other.node {
                Node::Term(term) if self.intersect_first && may_have_hits && other.is_scored => {
                    term.find_candidates(batch, other.included_bound, min_score)?;
                    other.found_unscored = true;
                }
                node => {
                    let how = if may_have_hits && other.is_scored { Refine::Require } else { Refine::Filter };
                    let included_bound = if how.is_scored() { other.included_bound } else { 0 };
                    node.refine_batch(batch, Refinement { how, included_bound, min_score }, search.scratch)?;
                }
            }
        }
        refiners.keep_passing(batch, search)?;
        self.matches += batch.len() as u64;
        if !may_have_hits || batch.len() == 0 {
            return Ok(());
        }
        let min_score = search.min_score();
        batch.retain_at_least(min_score);
        if let Some((term, bound)) = lead {
            term.score_found(batch, bound, min_score)?;
        }
        for other in others.iter_mut().filter(|other| other.found_unscored) {
            if let Node::Term(term) = &mut *other.node {
                term.score_found(batch, other.included_bound, min_score)?;
            }
        }
        refiners.add_optional(batch, search)?;
        search.offer_all(&batch.documents, &batch.scores);
        Ok(())
    }
}
