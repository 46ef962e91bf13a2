//! Runs the strategy of a segment over its opened lists.

use crate::eval::strategies::conjunction::{conjunction, required};
use crate::eval::strategies::count::{by_bits, by_conjunction};
use crate::eval::strategies::windows::{offer_zero_scores, windows};
use crate::eval::{Strategy, StrategyKind};
use crate::{
    Result, eval::nodes::Node, eval::state::Search, eval::strategies::impact_ordered::impact_ordered,
    eval::strategies::maxscore::maxscore, eval::strategies::refiners::Refiners,
    eval::strategies::small_merge::small_merge, query::Clauses,
};

impl Strategy<Node<'_>> {
    /// Offers the documents of the segment that may be hits. Returns the number of matches if they are
    /// counted or known, modulo 2^64, else the number of documents evaluated. The numbers of all parts of a
    /// segment add up.
    pub fn run(&mut self, search: &mut Search<'_>) -> Result<u64> {
        search.count = self.counts;
        let found = self.evaluate(search)?;
        if self.offers_zero_scores && search.may_enter(0, 0) {
            offer_zero_scores(&mut self.clauses, search)?;
        }
        let Some(known) = self.known.map(|known| search.count_once(known)) else { return Ok(found) };
        Ok(if self.kind == StrategyKind::CountDifference { known.wrapping_sub(found) } else { known })
    }

    fn evaluate(&mut self, search: &mut Search<'_>) -> Result<u64> {
        let Clauses { must, filter, should, must_not, .. } = &mut self.clauses;
        match self.kind {
            StrategyKind::Nothing | StrategyKind::Dictionary => Ok(0),
            StrategyKind::ImpactOrdered => {
                let [Node::Term(term)] = &mut must[..] else { return Ok(0) };
                impact_ordered(term, &mut Refiners::new(filter, must_not, &mut []), self.candidates, search)
            }
            StrategyKind::Conjunction => {
                let mut refiners = Refiners::new(&mut [], must_not, should);
                conjunction(&mut required(must, filter), &mut refiners, search)
            }
            StrategyKind::MaxScore => maxscore(should, &mut Refiners::new(filter, must_not, &mut []), search),
            StrategyKind::SmallMerge => {
                small_merge(should, &mut Refiners::new(&mut [], must_not, &mut []), search)
            }
            StrategyKind::Windows => windows(&mut self.clauses, self.always_scores, search),
            StrategyKind::CountBits => by_bits(&mut self.clauses, search),
            StrategyKind::CountConjunction | StrategyKind::CountDifference => {
                by_conjunction(&mut self.clauses, search)
            }
        }
    }
}
