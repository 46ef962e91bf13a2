//! Runs the algorithm of a strategy over the opened lists of a segment.

use crate::eval::strategies::conjunction::{conjunction, required_clauses};
use crate::eval::strategies::windows::{evaluate_windows, offer_zero_scores};
use crate::eval::{Strategy, StrategyKind};
use crate::{
    Result, eval::nodes::Node, eval::state::Search, eval::strategies::count::count_by_bitsets,
    eval::strategies::impact_ordered::impact_ordered, eval::strategies::maxscore::maxscore,
    eval::strategies::refiners::Refiners, eval::strategies::small_merge::small_merge, query::Clauses,
};

impl Strategy {
    /// Offers the documents of the searched range that may be hits to the collector, given the opened clauses
    /// of the strategy. Returns the number of matches if they are counted or follow from document
    /// frequencies, else the number of documents evaluated. If several evaluations divide a segment, the sum
    /// of their results modulo 2^64 is the number for the segment: the result of one part may be the two's
    /// complement of a negative number.
    pub fn find_matches(&self, nodes: &mut Clauses<Node<'_>>, search: &mut Search<'_>) -> Result<u64> {
        search.counts_matches = self.counts_matches;
        let found = self.run_algorithm(nodes, search)?;
        if self.offers_zero_scores && search.may_enter(0, 0) {
            offer_zero_scores(nodes, search)?;
        }
        let Some(count) = self.dictionary_count.map(|n| search.count_once(n)) else {
            return Ok(found);
        };
        Ok(if self.kind == StrategyKind::CountDifference { count.wrapping_sub(found) } else { count })
    }

    fn run_algorithm(&self, nodes: &mut Clauses<Node<'_>>, search: &mut Search<'_>) -> Result<u64> {
        let Clauses { must, filter, should, must_not, .. } = nodes;
        match self.kind {
            StrategyKind::Nothing | StrategyKind::Dictionary => Ok(0),
            StrategyKind::ImpactOrdered => {
                let [Node::Term(term)] = &mut must[..] else { return Ok(0) };
                let mut refiners = Refiners::new(filter, must_not, &mut []);
                impact_ordered(term, &mut refiners, self.expected_candidates, search)
            }
            StrategyKind::Conjunction | StrategyKind::CountConjunction | StrategyKind::CountDifference => {
                let mut refiners = Refiners::new(&mut [], must_not, should);
                conjunction(&mut required_clauses(must, filter), &mut refiners, search)
            }
            StrategyKind::MaxScore => maxscore(should, &mut Refiners::new(filter, must_not, &mut []), search),
            StrategyKind::SmallMerge => {
                small_merge(should, &mut Refiners::new(&mut [], must_not, &mut []), search)
            }
            StrategyKind::Windows => evaluate_windows(nodes, self.has_positive_scores, search),
            StrategyKind::CountBits => count_by_bitsets(nodes, search),
        }
    }
}
