//! The shape of a query: what the time of its evaluation depends on most.

use tierdex::Query;

/// Number of shapes.
pub(crate) const SHAPES: usize = 5 * 3 * 2 * 2;

/// Hits above which more documents are scored.
const MANY_HITS: usize = 100;

/// A class of queries of similar work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SearchShape {
    number: usize,
    /// Prefixes and fuzzy words.
    pub(crate) expanded: usize,
}

#[derive(Default)]
struct ClauseCounts {
    terms: usize,
    phrases: usize,
    expanded: usize,
}

impl SearchShape {
    pub(crate) fn of(query: &Query, k: usize, count: bool) -> SearchShape {
        let mut clauses = ClauseCounts::default();
        clauses.add(query);
        let terms = match clauses.terms {
            0..=1 => 0,
            2 => 1,
            3..=4 => 2,
            5..=8 => 3,
            _ => 4,
        };
        let kind = match (clauses.expanded, clauses.phrases) {
            (1.., _) => 2,
            (0, 1..) => 1,
            (0, 0) => 0,
        };
        let number = ((terms * 3 + kind) * 2 + usize::from(count)) * 2 + usize::from(k > MANY_HITS);
        SearchShape { number, expanded: clauses.expanded }
    }

    /// Below [`SHAPES`].
    pub(crate) fn number(self) -> usize {
        self.number
    }
}

impl ClauseCounts {
    fn add(&mut self, query: &Query) {
        match query {
            Query::Term { .. } => self.terms += 1,
            Query::Phrase { terms, .. } => {
                self.terms += terms.len();
                self.phrases += 1;
            }
            Query::Prefix { .. } | Query::Fuzzy { .. } => self.expanded += 1,
            Query::Column { ranges, .. } => self.terms += ranges.len(),
            Query::Bool { must, filter, should, must_not, .. } => {
                [must, filter, should, must_not].into_iter().flatten().for_each(|query| self.add(query));
            }
            _ => {}
        }
    }
}
