//! Which tokens of a text a query looks for, so that they can be marked in it.

use super::expand::close_terms;
use super::tree::Query;
use crate::error::Result;
use crate::segment::read::{FILES, Segment};
use std::sync::Arc;

/// What a query looks for in a field: terms, and beginnings of terms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Sorted, each once.
    terms: Vec<String>,
    prefixes: Vec<String>,
}

impl Marks {
    /// What `query` looks for in `field`, the terms that fuzzy words stand for included.
    pub(crate) fn of(query: &Query, field: usize, segments: &[Arc<Segment>]) -> Result<Marks> {
        let mut marks = Marks::default();
        marks.add(query, field, segments)?;
        marks.terms.sort_unstable();
        marks.terms.dedup();
        Ok(marks)
    }

    /// Which of them a term is, or begins with: its number among them.
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
                let close = close_terms((segments, &FILES), of, word, *distance)?;
                self.terms.extend(close.into_iter().map(|close| close.term));
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
