//! Runs the algorithm of a strategy over the opened lists of a segment.

use crate::eval::nodes::Node;
use crate::eval::strategies::windows::{
    count_by_bitsets, count_by_blocks, evaluate_windows, offer_zero_scores,
};
use crate::eval::strategies::{conjunction::conjunction, impact_ordered::impact_ordered};
use crate::{Result, eval::Strategy, eval::StrategyKind, eval::state::Search};

impl Strategy {
    /// Offers the documents of the searched range that may be hits to the collector, given the opened root
    /// of the strategy. Returns the number of matches if they are counted or follow from document
    /// frequencies, else the number of documents evaluated. If several evaluations divide a segment, the sum
    /// of their results modulo 2^64 is the number for the segment: the result of one part may be the two's
    /// complement of a negative number.
    pub fn find_matches(&self, root: &mut Node<'_>, search: &mut Search<'_>) -> Result<u64> {
        search.counts_matches = self.counts_matches;
        search.sums_windows = self.sums_windows;
        let found = self.run_algorithm(root, search)?;
        if self.offers_zero_scores && search.may_enter(0, 0) {
            offer_zero_scores(root, search)?;
        }
        let Some(count) = self.dictionary_count.map(|n| search.count_once(n)) else {
            // Of the documents evaluated some may be deleted.
            let deleted = if self.counts_matches { 0 } else { search.deleted_documents() };
            return Ok(found.saturating_sub(deleted));
        };
        Ok(if self.kind == StrategyKind::CountDifference { count.wrapping_sub(found) } else { count })
    }

    fn run_algorithm(&self, root: &mut Node<'_>, search: &mut Search<'_>) -> Result<u64> {
        match (self.kind, root) {
            (StrategyKind::Nothing | StrategyKind::Dictionary, _) => Ok(0),
            (StrategyKind::ImpactOrdered, Node::AllOf(all)) => {
                let scored = all.clauses.iter().position(|clause| clause.how.is_scored()).unwrap_or(0);
                all.clauses[..=scored].rotate_right(1);
                let (term, others) = all.clauses.split_first_mut().expect("a clause is required");
                let Node::Term(term) = &mut term.node else { return Ok(0) };
                impact_ordered(term, others, self.expected_candidates, search)
            }
            (
                StrategyKind::Conjunction | StrategyKind::CountBlocks | StrategyKind::CountDifference,
                Node::AllOf(all),
            ) if matches!(all.clauses[0].node, Node::Term(_)) => conjunction(&mut all.clauses, search),
            (StrategyKind::CountBlocks, root) => count_by_blocks(root, search),
            (StrategyKind::CountBits, root) => count_by_bitsets(root, search),
            (_, root) => evaluate_windows(root, search),
        }
    }
}
