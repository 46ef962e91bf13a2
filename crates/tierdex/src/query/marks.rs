//! Highlighting: the terms and prefixes of a query in a field.

use super::expand::fuzzy_matches;
use super::tree::Query;
use crate::error::Result;
use crate::segment::read::{FILES, Segment};
use std::sync::Arc;

/// The terms and prefixes that a query matches in a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Sorted and distinct.
    terms: Vec<String>,
    prefixes: Vec<String>,
}

impl Marks {
    /// The terms and prefixes of `query` in `field`, including the expansions of fuzzy words.
    pub(crate) fn of(query: &Query, field: usize, segments: &[Arc<Segment>]) -> Result<Marks> {
        let mut marks = Marks::default();
        marks.add(query, field, segments)?;
        marks.terms.sort_unstable();
        marks.terms.dedup();
        Ok(marks)
    }

    /// Index of the term or prefix that `term` matches.
    pub fn find(&self, term: &str) -> Option<usize> {
        match self.terms.binary_search_by(|other| other.as_str().cmp(term)) {
            Ok(number) => Some(number),
            Err(_) => {
                let prefix = self.prefixes.iter().position(|prefix| term.starts_with(prefix.as_str()));
                prefix.map(|number| self.terms.len() + number)
            }
        }
    }

    fn add(&mut self, query: &Query, of: usize, segments: &[Arc<Segment>]) -> Result<()> {
        match query {
            Query::Term { field, term, .. } if *field == of => self.terms.push(term.clone()),
            Query::Phrase { field, terms, .. } if *field == of => {
                self.terms.extend(terms.iter().map(|(_, term)| term.clone()));
            }
            Query::Prefix { field, prefix, .. } if *field == of => self.prefixes.push(prefix.clone()),
            Query::Fuzzy { field, word, distance, .. } if *field == of => {
                let matches = fuzzy_matches((segments, &FILES), of, word, *distance)?;
                self.terms.extend(matches.into_iter().map(|found| found.term));
            }
            Query::Bool { must, filter, should, .. } => {
                let mut clauses = must.iter().chain(filter).chain(should);
                clauses.try_for_each(|clause| self.add(clause, of, segments))?;
            }
            _ => {}
        }
        Ok(())
    }
}
