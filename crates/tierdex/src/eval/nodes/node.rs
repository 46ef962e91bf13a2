//! The nodes of a query in one segment, and the interface through which strategies use them:
//!
//! - cost: the approximate number of matches
//! - a lower bound of the next match, and an upper bound of the scores in a range of documents
//! - the matches of a range, as a bitset or with their scores
//! - refinement of a batch of candidates: dropping those that cannot be hits, and adding scores

use crate::eval::nodes::{Phrase, SetNode, Term};
use crate::eval::state::{Bits, CandidateBatch, DocRange, Refinement, ScoreWindow, Scratch};
use crate::{Result, query::Clauses};

/// A clause of the query in one segment, with its opened lists. Documents have their numbers in the segment.
pub enum Node<'a> {
    Term(Box<Term<'a>>),
    Phrase(Box<Phrase<'a>>),
    Set(SetNode),
    Group(Box<Clauses<Node<'a>>>),
}

impl<'a> Node<'a> {
    /// Approximate upper bound of the number of matches.
    pub(crate) fn cost(&self) -> u64 {
        match self {
            Node::Term(term) => term.postings(),
            Node::Phrase(phrase) => phrase.cost(),
            Node::Set(set) => set.cost,
            Node::Group(group) => group.cost(Node::cost),
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
            Node::Group(group) => group.next_lower_bound(from),
        }
    }

    /// Upper bound of the scores in a range; `None` if no document of it matches.
    pub(crate) fn max_score(&mut self, range: DocRange) -> Result<Option<u32>> {
        match self {
            Node::Term(term) => term.max_score(range),
            Node::Phrase(phrase) => phrase.max_score(range),
            Node::Set(set) => Ok(set.max_score(range)),
            Node::Group(group) => group.max_score(range),
        }
    }

    /// Whether one of its lists is read from a source that can prefetch blocks.
    pub(crate) fn prefetches(&mut self) -> bool {
        let mut prefetches = false;
        self.each_term(&mut |term| prefetches |= term.blocks.prefetches());
        prefetches
    }

    /// Prefetches the blocks that overlap a range, of all lists except those of a phrase in which only
    /// candidates are looked up; with frequencies if `scored`. False if the prefetch limit of the source is
    /// reached.
    pub(crate) fn prefetch(&mut self, range: DocRange, scored: bool) -> Result<bool> {
        match self {
            Node::Term(term) => term.prefetch(range, scored),
            Node::Phrase(phrase) => phrase.rarest().prefetch(range, false),
            Node::Set(_) => Ok(true),
            Node::Group(group) => group.prefetch(range, scored),
        }
    }

    /// Number of blocks of a term that overlap a range; 0 for other nodes.
    pub(crate) fn blocks_in(&mut self, range: DocRange) -> usize {
        match self {
            Node::Term(term) => term.blocks_in(range),
            _ => 0,
        }
    }

    /// Prefetches the blocks in which candidates of this range will be looked up ([`Term::prefetch_range`]).
    /// False if the prefetch limit of the source is reached.
    pub(crate) fn prefetch_candidates(&mut self, range: DocRange, scored: bool) -> Result<bool> {
        match self {
            Node::Term(term) if term.blocks.prefetches() => term.prefetch_range(range, scored),
            _ => Ok(true),
        }
    }

    /// Adds the matches in the range of `bits` to it.
    pub(crate) fn mark_matches(&mut self, bits: &mut Bits, scratch: &mut Scratch) -> Result<()> {
        match self {
            Node::Term(term) => term.mark_matches(bits),
            Node::Phrase(phrase) => phrase.mark_matches(bits, scratch),
            Node::Set(set) => {
                set.mark_matches(bits);
                Ok(())
            }
            Node::Group(group) => group.mark_matches(bits, scratch),
        }
    }

    /// Adds the scores of the matches in the range of `window` to its sums.
    pub(crate) fn add_scores(&mut self, window: &mut ScoreWindow, scratch: &mut Scratch) -> Result<()> {
        match self {
            Node::Term(term) => term.add_scores(window),
            Node::Phrase(phrase) => phrase.add_scores(window, scratch),
            Node::Set(set) => {
                let mut spare = scratch.take_bits();
                set.add_scores(window, &mut spare);
                scratch.give_bits(spare);
                Ok(())
            }
            Node::Group(group) => group.add_scores(window, scratch),
        }
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
            Node::Set(set) => {
                set.refine_batch(batch, refinement);
                Ok(())
            }
            Node::Group(group) => group.refine_batch(batch, refinement, scratch),
        }
    }

    /// Records for `explain` that the blocks that overlap a range were pruned by their max scores.
    pub(crate) fn skip_range(&mut self, range: DocRange) {
        if let Node::Term(term) = self {
            term.skip_range(range);
        }
    }

    /// Calls `body` with each list, in the order in which they were opened.
    pub(crate) fn each_term(&mut self, body: &mut dyn FnMut(&mut Term<'a>)) {
        match self {
            Node::Term(term) => body(term),
            Node::Phrase(phrase) => phrase.each_term(body),
            Node::Set(_) => {}
            Node::Group(group) => group.each_term(body),
        }
    }

    /// Returns the buffers to `scratch`.
    pub(crate) fn close(self, scratch: &mut Scratch) {
        match self {
            Node::Term(term) => term.close(scratch),
            Node::Phrase(phrase) => phrase.close(scratch),
            Node::Set(_) => {}
            Node::Group(group) => group.close(scratch),
        }
    }
}
