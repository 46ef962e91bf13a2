//! Conjunction: documents that match all of several clauses. The documents of the rarest clause, the *lead*,
//! are the candidates, one block at a time; a block is skipped if the sum of the max scores of all clauses in
//! its range is below the threshold. Candidates are looked up in the other clauses, rarest first.
//!
//! With more than two scored lists, if matches are counted, or as long as there is no threshold, candidates
//! are intersected first and scored afterwards, because few are usually left. With two lists and a threshold,
//! only the candidates of the lead that may reach it are looked up in the other list (`by_blocks`).

mod by_blocks;

use crate::eval::nodes::{Node, RefiningClause, Term};
use crate::eval::state::{CandidateBatch, Refine, Refinement, Search};
use crate::{Result, limits::BLOCK};
use std::collections::VecDeque;

/// Offers the documents that match a conjunction, whose lead is a term, to the collector, except those that
/// cannot be hits. Returns the number of matches if they are counted, else the number of documents evaluated.
pub(crate) fn conjunction(clauses: &mut [RefiningClause<'_>], search: &mut Search<'_>) -> Result<u64> {
    let scored = clauses.iter().filter(|clause| clause.how == Refine::Require).count();
    let (lead, others) = clauses.split_first_mut().expect("a clause is required");
    let mut run = ConjunctionRun {
        others,
        intersect_first: scored > 2 || search.counts_matches,
        batch: search.scratch.take_batch(BLOCK),
        prefetched_blocks: VecDeque::new(),
        matches: 0,
    };
    let Node::Term(term) = &mut lead.node else { return Ok(0) };
    let done = run.by_term_blocks(term, lead.how.is_scored(), search);
    let matches = run.matches;
    search.scratch.give_batch(run.batch);
    done.map(|()| matches)
}

/// The evaluation of a conjunction, without its lead.
struct ConjunctionRun<'r, 'a> {
    others: &'r mut [RefiningClause<'a>],
    /// Whether candidates are intersected with all lists before any is scored.
    intersect_first: bool,
    batch: CandidateBatch,
    /// The prefetched blocks of the lead that are not evaluated yet.
    prefetched_blocks: VecDeque<PrefetchedBlock>,
    matches: u64,
}

/// A prefetched block of the lead, with the upper bounds of the scores of its documents: in the lead, and in
/// all other clauses together.
pub(crate) struct PrefetchedBlock {
    block: u32,
    bound: u32,
    others_max: u32,
}

impl<'a> ConjunctionRun<'_, 'a> {
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
        let batch = &mut self.batch;
        let optional = self.others.partition_point(|other| other.how != Refine::Optional);
        let (dropping, optional) = self.others.split_at_mut(optional);
        let min_score = if search.counts_matches { 0 } else { search.min_score() };
        for other in &mut dropping[looked_up..] {
            if batch.len() == 0 {
                return Ok(());
            }
            let scores = may_have_hits && other.how == Refine::Require;
            other.found_unscored = false;
            match &mut other.node {
                Node::Term(term) if self.intersect_first && scores => {
                    term.find_candidates(batch, other.included_bound, min_score)?;
                    other.found_unscored = true;
                }
                _ if scores => other.refine_batch(batch, min_score, search.scratch)?,
                node => {
                    let how = if other.how == Refine::Exclude { Refine::Exclude } else { Refine::Filter };
                    let refinement = Refinement { min_score, ..Refinement::all(how) };
                    node.refine_batch(batch, refinement, search.scratch)?;
                }
            }
        }
        self.matches += match search.counts_matches {
            true => search.count_live(&batch.documents),
            false => batch.len() as u64,
        };
        if !may_have_hits || batch.len() == 0 {
            return Ok(());
        }
        let min_score = search.min_score();
        batch.retain_at_least(min_score);
        if let Some((term, bound)) = lead {
            term.score_found(batch, bound, min_score)?;
        }
        for other in dropping.iter_mut().filter(|other| other.found_unscored) {
            if let Node::Term(term) = &mut other.node {
                term.score_found(batch, other.included_bound, min_score)?;
            }
        }
        let mut optional = optional.iter_mut();
        optional.try_for_each(|clause| clause.refine_batch(batch, min_score, search.scratch))?;
        search.offer_all(&batch.documents, &batch.scores);
        Ok(())
    }
}
