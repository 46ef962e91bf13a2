//! Classes of terms by document frequency, and forms of queries.
//!
//! The thesis has classes H (document frequency from 1,000,000 on), M (from 1,000 on) and L (the rest) in a
//! collection of 160 GB of documents of 1 KB. Here the limits are the same shares of the documents: a 160th
//! and a 160,000th.

use serde::{Deserialize, Serialize};
use tierdex::Query;

/// A class of terms, by document frequency.
#[derive(Clone, Copy, Debug, Deserialize)]
pub enum TermClass {
    /// High: from 1/160 of the documents on.
    #[serde(rename = "H")]
    High,
    /// Medium: from 1/160,000 of the documents on.
    #[serde(rename = "M")]
    Medium,
    /// Low: the rest.
    #[serde(rename = "L")]
    Low,
}

/// Approximate number of documents of the thesis' collection.
const THESIS_DOCUMENTS: u64 = 160_000_000;
/// Smallest document frequency of class H in that collection.
const THESIS_HIGH_MIN: u64 = 1_000_000;
/// Smallest document frequency of class M in that collection.
const THESIS_MEDIUM_MIN: u64 = 1_000;

impl TermClass {
    /// The document frequencies of the class in an index of `documents` documents: the smallest, and except
    /// for H the exclusive upper limit.
    pub(crate) fn bounds(self, documents: u64) -> (u64, Option<u64>) {
        let scaled = |bound: u64| {
            let scaled = u128::from(bound) * u128::from(documents) / u128::from(THESIS_DOCUMENTS);
            (scaled as u64).max(1)
        };
        // At least 2, so that in small indexes the classes have no term in common.
        let medium = scaled(THESIS_MEDIUM_MIN).max(2);
        let high = scaled(THESIS_HIGH_MIN).max(medium + 1);
        match self {
            TermClass::High => (high, None),
            TermClass::Medium => (medium, Some(high)),
            TermClass::Low => (1, Some(medium)),
        }
    }

    /// Whether a term with document frequency `frequency` belongs to the class.
    pub(crate) fn contains_frequency(self, frequency: u64, documents: u64) -> bool {
        let (least, below) = self.bounds(documents);
        frequency >= least && below.is_none_or(|below| frequency < below)
    }
}

/// The form of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum QueryShape {
    /// One term.
    Single,
    /// A conjunction of two terms.
    And,
    /// A disjunction of two terms.
    Or,
}

impl QueryShape {
    /// Number of terms of a query.
    pub(crate) fn terms(self) -> usize {
        if self == QueryShape::Single { 1 } else { 2 }
    }

    /// The query of `terms` in a field.
    pub(crate) fn query(self, field: usize, terms: &[String]) -> Query {
        let term = |term: &String| Query::Term { field, term: term.clone(), boost: 1.0 };
        let mut terms: Vec<Query> = terms.iter().map(term).collect();
        match self {
            QueryShape::Single => terms.pop().unwrap_or(Query::Nothing),
            QueryShape::And => Query::clauses(terms, Vec::new(), Vec::new()),
            QueryShape::Or => Query::clauses(Vec::new(), terms, Vec::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_the_same_shares_of_the_documents_as_in_the_thesis() {
        let bounds = |documents| {
            [TermClass::High, TermClass::Medium, TermClass::Low].map(|class| class.bounds(documents))
        };
        assert_eq!(bounds(160_000_000), [(1_000_000, None), (1_000, Some(1_000_000)), (1, Some(1_000))]);
        assert_eq!(bounds(4_200_000), [(26_250, None), (26, Some(26_250)), (1, Some(26))]);
        assert_eq!(bounds(100), [(3, None), (2, Some(3)), (1, Some(2))]);
        for documents in [0, 1, 1000, 414_229] {
            for frequency in 1..5000 {
                let held = [TermClass::High, TermClass::Medium, TermClass::Low]
                    .map(|class| class.contains_frequency(frequency, documents));
                assert_eq!(held.iter().filter(|held| **held).count(), 1, "{frequency} of {documents}");
            }
        }
    }
}
