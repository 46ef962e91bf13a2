//! The terms of a query that are highlighted in the text of a field.

use super::{collection::SegmentLists, expand::fuzzy_matches, tree::Query};
use crate::Result;
use crate::text::{TermMatch, first_cluster};

/// The terms and prefixes of a query in a field, by which words of its text are highlighted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Sorted and distinct.
    terms: Vec<String>,
    prefixes: Vec<String>,
    /// Grapheme clusters: a term of text without blanks that begins with one is highlighted up to its end.
    clusters: Vec<String>,
}

impl Marks {
    /// The terms and prefixes of `query` in `field`, including the expansions of fuzzy words, for which
    /// dictionaries are read.
    pub(crate) fn of(query: &Query, field: usize, lists: SegmentLists<'_>) -> Result<Marks> {
        let mut marks = Marks::default();
        marks.add_query(query, field, lists)?;
        marks.terms.sort_unstable();
        marks.terms.dedup();
        Ok(marks)
    }

    /// Number of the term, prefix or cluster of the query that `term` of a text matches, if any.
    pub fn find(&self, term: &str) -> Option<TermMatch> {
        let terms = self.terms.len();
        if let Ok(number) = self.terms.binary_search_by(|other| other.as_str().cmp(term)) {
            return Some(TermMatch { number, is_first_cluster: false });
        }
        if let Some(number) = self.prefixes.iter().position(|prefix| term.starts_with(prefix.as_str())) {
            return Some(TermMatch { number: terms + number, is_first_cluster: false });
        }
        if self.clusters.is_empty() {
            return None;
        }
        let number = self.clusters.iter().position(|cluster| cluster == first_cluster(term))?;
        Some(TermMatch { number: terms + self.prefixes.len() + number, is_first_cluster: true })
    }

    fn add_query(&mut self, query: &Query, of: usize, lists: SegmentLists<'_>) -> Result<()> {
        match query {
            Query::Term { field, term, .. } if *field == of => self.terms.push(term.clone()),
            Query::Phrase { field, terms, open_end, .. } if *field == of => {
                self.terms.extend(terms.iter().map(|(_, term)| term.clone()));
                if *open_end {
                    self.clusters.extend(self.terms.pop());
                }
            }
            Query::Prefix { field, prefix, whole_clusters, .. } if *field == of => {
                let prefixes = if *whole_clusters { &mut self.clusters } else { &mut self.prefixes };
                prefixes.push(prefix.clone());
            }
            Query::Fuzzy { field, word, distance, .. } if *field == of => {
                let matches = fuzzy_matches(lists, of, word, *distance)?;
                self.terms.extend(matches.into_iter().map(|found| found.term));
            }
            Query::Bool { must, filter, should, .. } => {
                let mut clauses = must.iter().chain(filter).chain(should);
                clauses.try_for_each(|clause| self.add_query(clause, of, lists))?;
            }
            _ => {}
        }
        Ok(())
    }
}
