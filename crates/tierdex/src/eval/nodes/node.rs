//! The nodes of a query in one segment, and the interface through which strategies use them:
//!
//! - cost: the approximate number of matches
//! - a lower bound of the next match, and an upper bound of the scores in a range of documents
//! - the matches of a range: as a bitset, with their scores, or only those that reach a score
//! - refinement of a batch of candidates: dropping those that cannot be hits, and adding scores

use crate::eval::nodes::{Phrase, SetNode, Term};
use crate::eval::state::{
    Bits, CandidateBatch, CandidateRange, DocRange, Refine, Refinement, ScoreWindow, Scratch,
};
use crate::eval::tuning::{PHRASE_COST_POSTINGS, WINDOW_DOCS};
use crate::{Result, limits::BLOCK};

/// A clause of the query in one segment, with its opened lists. Documents have their numbers in the segment.
pub enum Node<'a> {
    Term(Box<Term<'a>>),
    Phrase(Box<Phrase<'a>>),
    Set(SetNode<'a>),
    AllOf(Box<AllOf<'a>>),
    AnyOf(Box<AnyOf<'a>>),
}

/// A conjunction, with its clauses in the order in which they refine candidates: required clauses and filters
/// in ascending order of cost, exclusions, optional clauses. The first clause, the *lead*, proposes the
/// candidates.
pub struct AllOf<'a> {
    pub(crate) clauses: Vec<RefiningClause<'a>>,
    /// The range of the last [`AllOf::max_score`], and its result.
    pub(super) bounded: Option<(DocRange, Option<u32>)>,
}

/// A clause of a conjunction, and what it does to candidates.
pub struct RefiningClause<'a> {
    pub(crate) node: Node<'a>,
    pub(crate) how: Refine,
    /// Upper bound of the scores in the range of the last [`bound_clauses`](super::all_of::bound_clauses); 0
    /// if the clause does not score.
    pub(crate) included_bound: u32,
    /// Whether the candidates of the current block were found in the list, but are not scored yet.
    pub(crate) found_unscored: bool,
}

/// A disjunction.
pub struct AnyOf<'a> {
    /// The alternatives in ascending order of cost.
    pub(crate) nodes: Vec<Node<'a>>,
    /// Number of alternatives that must match, at least 1.
    pub(super) minimum: usize,
    /// Number of alternatives, the first ones, whose candidates of more than a window may be merged
    /// ([`is_sparse`]).
    ///
    /// [`is_sparse`]: super::any_of::is_sparse
    pub(super) sparse_count: usize,
    /// Half of the number of documents of the next range whose candidates may be merged.
    pub(super) merged_docs: u32,
    /// Whether every match of an alternative scores more than 0.
    pub(super) has_positive_scores: bool,
    /// The alternatives with their max scores in the range `bounded`, in ascending order after
    /// [`AnyOf::rank`].
    pub(super) ranked: Vec<RankedNode>,
    pub(super) bounded: Option<DocRange>,
    /// Number of alternatives that have a document in this range.
    pub(super) matching: usize,
    /// Number of non-essential alternatives, in which the candidates proposed last are still to be looked up.
    pub(super) non_essential: usize,
    /// Whether matches are found by counting before they are scored: the threshold makes fewer than
    /// `minimum - 1` alternatives non-essential.
    pub(super) counts_first: bool,
    /// Number of following windows in which all alternatives are summed.
    pub(super) exhaustive_windows_left: usize,
}

/// An alternative, by its max score in a range of documents.
pub(super) struct RankedNode {
    /// Index in the alternatives.
    pub(super) number: usize,
    pub(super) bound: u32,
    /// Sum of the max scores of the alternatives before this one in the order.
    pub(super) sum_before: u32,
}

impl<'a> Node<'a> {
    /// Approximate upper bound of the number of matches.
    pub(crate) fn cost(&self) -> u64 {
        match self {
            Node::Term(term) => term.postings(),
            Node::Phrase(phrase) => phrase.cost(),
            Node::Set(set) => set.cost,
            Node::AllOf(all) => all.cost(),
            Node::AnyOf(any) => any.cost(),
        }
    }

    /// Lower bound, at least `from`, of the first match from `from` on; [`NO_DOCUMENT`] if there is none.
    ///
    /// [`NO_DOCUMENT`]: crate::cursor::NO_DOCUMENT
    pub(crate) fn next_lower_bound(&mut self, from: u32) -> u32 {
        match self {
            Node::Term(term) => term.next_lower_bound(from),
            Node::Phrase(phrase) => phrase.next_lower_bound(from),
            Node::Set(set) => set.next_lower_bound(from),
            Node::AllOf(all) => all.next_lower_bound(from),
            Node::AnyOf(any) => any.next_lower_bound(from),
        }
    }

    /// Upper bound of the scores in a range; `None` if no document of it matches.
    pub(crate) fn max_score(&mut self, range: DocRange) -> Result<Option<u32>> {
        match self {
            Node::Term(term) => term.max_score(range),
            Node::Phrase(phrase) => phrase.max_score(range),
            Node::Set(set) => Ok(set.max_score(range)),
            Node::AllOf(all) => all.max_score(range),
            Node::AnyOf(any) => any.max_score(range),
        }
    }

    /// Whether one of its lists is read from a source that can prefetch blocks.
    pub(crate) fn prefetches(&mut self) -> bool {
        let mut prefetches = false;
        self.each_term(&mut |term| prefetches |= term.blocks.prefetches());
        prefetches
    }

    /// Prefetches the blocks that the matches of a range with at least `min_score` are read from, of all
    /// lists except those of a phrase in which only candidates are looked up; with frequencies if `scored`.
    /// False if the prefetch limit of the source is reached.
    pub(crate) fn prefetch(&mut self, range: DocRange, min_score: u32, scored: bool) -> Result<bool> {
        match self {
            Node::Term(term) if scored && min_score > 0 => term.prefetch_at_least(range, min_score),
            Node::Term(term) => term.prefetch(range, scored),
            Node::Phrase(phrase) => phrase.rarest().prefetch(range, false),
            Node::Set(_) => Ok(true),
            Node::AllOf(all) => all.prefetch(range, min_score, scored),
            Node::AnyOf(any) => any.prefetch(range, min_score, scored),
        }
    }

    /// Prefetches the blocks in which these candidates will be looked up ([`Term::prefetch_range`]). False if
    /// the prefetch limit of the source is reached.
    pub(crate) fn prefetch_candidates(&mut self, of: CandidateRange, scored: bool) -> Result<bool> {
        match self {
            Node::Term(term) if term.blocks.prefetches() => term.prefetch_range(of, scored),
            Node::Term(_) | Node::Phrase(_) | Node::Set(_) => Ok(true),
            Node::AllOf(all) => all.prefetch_candidates(of, scored),
            Node::AnyOf(any) => any.prefetch_candidates(of, scored),
        }
    }

    /// Approximate cost of finding all matches of a range, as a number of postings.
    pub(crate) fn postings_in(&mut self, range: DocRange) -> usize {
        match self {
            // On average half of the first and of the last block are in the range.
            Node::Term(term) => (BLOCK * term.blocks_in(range)).saturating_sub(BLOCK / 2),
            Node::Phrase(phrase) => PHRASE_COST_POSTINGS * BLOCK * phrase.rarest().blocks_in(range),
            Node::Set(_) => (range.last - range.first) as usize / u64::BITS as usize,
            Node::AllOf(all) => all.clauses.iter_mut().map(|clause| clause.node.postings_in(range)).sum(),
            Node::AnyOf(any) => any.postings_in(range),
        }
    }

    /// Whether a list proposes the candidates.
    pub(crate) fn is_led_by_list(&self) -> bool {
        match self {
            Node::Term(_) | Node::Phrase(_) => true,
            Node::AllOf(all) => all.clauses[0].node.is_led_by_list(),
            Node::Set(_) | Node::AnyOf(_) => false,
        }
    }

    /// Upper bound of the number of candidates that are proposed in a range; more than a batch can have if
    /// windows propose them.
    pub(crate) fn candidates_max(&mut self, range: DocRange) -> usize {
        match self {
            Node::Term(term) => term.postings_max(range),
            Node::Phrase(phrase) => phrase.rarest().postings_max(range),
            Node::Set(_) => WINDOW_DOCS + 1,
            Node::AllOf(all) => all.clauses[0].node.candidates_max(range),
            Node::AnyOf(any) if any.sparse_count < any.nodes.len() => WINDOW_DOCS + 1,
            Node::AnyOf(any) => any.nodes.iter_mut().map(|node| node.candidates_max(range)).sum(),
        }
    }

    /// The end of a range from document `from` on whose candidates fit in a batch: of the block of the list
    /// that proposes them, or of a longer range if several sparse lists do. `from` itself if they are
    /// proposed by windows.
    pub(crate) fn block_end(&mut self, from: u32) -> u32 {
        match self {
            Node::Term(term) => term.block_end(from),
            Node::Phrase(phrase) => phrase.rarest().block_end(from),
            Node::Set(_) => from,
            Node::AllOf(all) => all.clauses[0].node.block_end(from),
            Node::AnyOf(any) => any.block_end(from),
        }
    }

    /// Appends the matches of a range that score at least `min_score` to an empty batch, with their exact
    /// scores. The range has at most a window of documents, or ends with the [`Node::block_end`] of its first
    /// document; it may be extended to a document before `end`. Returns its last document.
    pub(crate) fn collect(
        &mut self,
        range: DocRange,
        end: u32,
        min_score: u32,
        batch: &mut CandidateBatch,
        scratch: &mut Scratch,
    ) -> Result<u32> {
        let last = self.propose(range, end, min_score, batch, scratch)?;
        self.complete(batch, min_score, scratch)?;
        Ok(last)
    }

    /// As [`Node::collect`], but the scores may be upper bounds, and some candidates may not match:
    /// [`Node::complete`] looks them up in the remaining lists.
    pub(crate) fn propose(
        &mut self,
        range: DocRange,
        end: u32,
        min_score: u32,
        batch: &mut CandidateBatch,
        scratch: &mut Scratch,
    ) -> Result<u32> {
        match self {
            Node::Term(term) => term.collect(range, min_score, batch)?,
            Node::Phrase(phrase) => phrase.collect(range, min_score, batch, scratch)?,
            Node::Set(set) if set.score < min_score => {}
            Node::Set(SetNode { score, .. }) => {
                let score = *score;
                self.collect_unscored(range, batch, scratch)?;
                batch.raise_scores(score);
            }
            Node::AllOf(all) => return all.collect(range, end, min_score, batch, scratch),
            Node::AnyOf(any) => return any.propose(range, end, min_score, batch, scratch),
        }
        Ok(range.last)
    }

    /// Replaces the upper bounds in the scores of the candidates proposed last, of which some may have been
    /// dropped and to which other scores may have been added, and drops those below `min_score`.
    pub(crate) fn complete(
        &mut self,
        batch: &mut CandidateBatch,
        min_score: u32,
        scratch: &mut Scratch,
    ) -> Result<()> {
        if let Node::AnyOf(any) = self { any.complete(batch, min_score, scratch) } else { Ok(()) }
    }

    /// Appends the matches of a range to an empty batch, with score 0. The range is as in [`Node::collect`].
    pub(crate) fn collect_unscored(
        &mut self,
        range: DocRange,
        batch: &mut CandidateBatch,
        scratch: &mut Scratch,
    ) -> Result<()> {
        match self {
            Node::Term(term) => term.collect_unscored(range, batch),
            Node::Phrase(phrase) => phrase.collect_unscored(range, batch, scratch),
            Node::AllOf(all) => all.collect_unscored(range, batch, scratch),
            Node::AnyOf(any) => any.collect_unscored(range, batch, scratch),
            Node::Set(_) => {
                let mut bits = scratch.take_bits();
                bits.restart(range);
                self.mark_matches(&mut bits, scratch)?;
                batch.extend_unscored(bits.documents());
                scratch.give_bits(bits);
                Ok(())
            }
        }
    }

    /// Adds the matches in the range of `bits` to it.
    pub(crate) fn mark_matches(&mut self, bits: &mut Bits, scratch: &mut Scratch) -> Result<()> {
        match self {
            Node::Term(term) => term.mark_matches(bits),
            Node::Phrase(phrase) => phrase.mark_matches(bits, scratch),
            Node::Set(set) => set.mark_matches(bits),
            Node::AllOf(all) => all.mark_matches(bits, scratch),
            Node::AnyOf(any) => any.mark_matches(bits, scratch),
        }
    }

    /// Adds the scores of the matches in the range of `window` to its sums. Matches that score less than
    /// `min_score` may be left out.
    pub(crate) fn add_scores(
        &mut self,
        window: &mut ScoreWindow,
        min_score: u32,
        scratch: &mut Scratch,
    ) -> Result<()> {
        match self {
            Node::Term(term) => return term.add_scores(window),
            Node::Set(set) if set.score == 0 => return set.mark_matches(&mut window.unscored),
            Node::AnyOf(any) if any.minimum == 1 => return any.add_scores(window, min_score, scratch),
            Node::AllOf(all) if min_score == 0 && all.is_led_by_alternatives() => {
                return all.add_sums(window, scratch);
            }
            _ => {}
        }
        let range = window.range();
        let mut batch = scratch.take_batch(WINDOW_DOCS);
        self.collect(range, range.last + 1, min_score, &mut batch, scratch)?;
        window.add_matches(&batch);
        scratch.give_batch(batch);
        Ok(())
    }

    /// Looks up the candidates of `batch` in this clause, then drops or scores them ([`Refinement`]).
    pub(crate) fn refine_batch(
        &mut self,
        batch: &mut CandidateBatch,
        refinement: Refinement,
        scratch: &mut Scratch,
    ) -> Result<()> {
        if batch.len() == 0 {
            return Ok(());
        }
        match self {
            Node::Term(term) => term.refine_batch(batch, refinement),
            Node::Phrase(phrase) => phrase.refine_batch(batch, refinement, scratch),
            Node::Set(set) => set.refine_batch(batch, refinement),
            Node::AllOf(_) | Node::AnyOf(_) => self.refine_by_group(batch, refinement, scratch),
        }
    }

    /// [`Node::refine_batch`] of a conjunction or disjunction.
    fn refine_by_group(
        &mut self,
        batch: &mut CandidateBatch,
        refinement: Refinement,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let of_matches = match (refinement.how, self) {
            (Refine::Filter, Node::AllOf(all)) => return all.keep_matches(batch, scratch),
            (Refine::Filter, Node::AnyOf(any)) => return any.keep_matches(batch, scratch),
            (Refine::Require, Node::AllOf(all)) => return all.require(batch, refinement, scratch),
            (Refine::Require, Node::AnyOf(any)) => return any.require(batch, refinement, scratch),
            (_, Node::AnyOf(any)) if any.minimum == 1 => return any.refine_each(batch, refinement, scratch),
            (how, group) => {
                // Candidates that do not match stay: the matches are found in a copy.
                let how = if how == Refine::Exclude { Refine::Filter } else { Refine::Require };
                let mut copy = scratch.take_batch(batch.len());
                copy.push_all(&batch.documents, &batch.scores);
                group.refine_by_group(&mut copy, Refinement { how, ..refinement }, scratch)?;
                copy
            }
        };
        batch.apply_refinement(&of_matches, refinement, |_, score| score);
        scratch.give_batch(of_matches);
        Ok(())
    }

    /// Records for `explain` that the blocks that overlap a range were pruned by their max scores.
    pub(crate) fn skip_range(&mut self, range: DocRange) {
        self.each_term(&mut |term| term.skip_range(range));
    }

    /// Calls `body` with each list.
    pub(crate) fn each_term(&mut self, body: &mut dyn FnMut(&mut Term<'a>)) {
        match self {
            Node::Term(term) => body(term),
            Node::Phrase(phrase) => phrase.each_term(body),
            Node::Set(_) => {}
            Node::AllOf(all) => all.clauses.iter_mut().for_each(|clause| clause.node.each_term(body)),
            Node::AnyOf(any) => any.nodes.iter_mut().for_each(|node| node.each_term(body)),
        }
    }

    /// Returns the buffers to `scratch`.
    pub(crate) fn close(self, scratch: &mut Scratch) {
        match self {
            Node::Term(term) => term.close(scratch),
            Node::Phrase(phrase) => phrase.close(scratch),
            Node::Set(set) => set.close(),
            Node::AllOf(all) => all.clauses.into_iter().for_each(|clause| clause.node.close(scratch)),
            Node::AnyOf(any) => any.nodes.into_iter().for_each(|node| node.close(scratch)),
        }
    }
}
