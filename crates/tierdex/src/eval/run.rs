//! Runs the algorithm of a strategy over the opened lists of a segment.

use crate::eval::strategies::conjunction::{conjunction, required_clauses};
use crate::eval::strategies::count::{count_by_bitsets, count_by_conjunction};
use crate::eval::strategies::windows::{evaluate_windows, offer_zero_scores};
use crate::eval::{Strategy, StrategyKind};
use crate::{
    Result, eval::nodes::Node, eval::state::Search, eval::strategies::impact_ordered::impact_ordered,
    eval::strategies::maxscore::maxscore, eval::strategies::refiners::Refiners,
    eval::strategies::small_merge::small_merge, query::Clauses,
};

impl Strategy<Node<'_>> {
    /// Offers the documents of the searched range that may be hits to the collector. Returns the number of
    /// matches if they are counted or follow from document frequencies, else the number of documents
    /// evaluated. If several evaluations divide a segment, the sum of their results modulo 2^64 is the number
    /// for the segment: the result of one part may be the two's complement of a negative number.
    pub fn find_matches(&mut self, search: &mut Search<'_>) -> Result<u64> {
        search.counts_matches = self.counts_matches;
        let found = self.run_algorithm(search)?;
        if self.offers_zero_scores && search.may_enter(0, 0) {
            offer_zero_scores(&mut self.clauses, search)?;
        }
        let Some(dictionary_count) =
            self.dictionary_count.map(|dictionary_count| search.count_once(dictionary_count))
        else {
            return Ok(found);
        };
        Ok(if self.kind == StrategyKind::CountDifference {
            dictionary_count.wrapping_sub(found)
        } else {
            dictionary_count
        })
    }

    fn run_algorithm(&mut self, search: &mut Search<'_>) -> Result<u64> {
        let Clauses { must, filter, should, must_not, .. } = &mut self.clauses;
        match self.kind {
            StrategyKind::Nothing | StrategyKind::Dictionary => Ok(0),
            StrategyKind::ImpactOrdered => {
                let [Node::Term(term)] = &mut must[..] else { return Ok(0) };
                impact_ordered(
                    term,
                    &mut Refiners::new(filter, must_not, &mut []),
                    self.expected_candidates,
                    search,
                )
            }
            StrategyKind::Conjunction => {
                let mut refiners = Refiners::new(&mut [], must_not, should);
                conjunction(&mut required_clauses(must, filter), &mut refiners, search)
            }
            StrategyKind::MaxScore => maxscore(should, &mut Refiners::new(filter, must_not, &mut []), search),
            StrategyKind::SmallMerge => {
                small_merge(should, &mut Refiners::new(&mut [], must_not, &mut []), search)
            }
            StrategyKind::Windows => evaluate_windows(&mut self.clauses, self.has_positive_scores, search),
            StrategyKind::CountBits => count_by_bitsets(&mut self.clauses, search),
            StrategyKind::CountConjunction | StrategyKind::CountDifference => {
                count_by_conjunction(&mut self.clauses, search)
            }
        }
    }
}
