//! The terms that a query looks for, for marking them in texts.

use super::expand::{close_terms, terms_with_prefix};
use super::tree::Query;
use crate::error::Result;
use crate::segment::read::Segment;

/// The terms of a field that `query` looks for, those that prefixes and fuzzy words stand for included, each once.
pub fn terms_of(query: &Query, field: usize, segments: &[Segment]) -> Result<Vec<String>> {
    let mut marks = Marks { segments, field, terms: Vec::new(), prefixed: 0 };
    marks.add(query)?;
    marks.terms.sort_unstable();
    marks.terms.dedup();
    Ok(marks.terms)
}

struct Marks<'a> {
    segments: &'a [Segment],
    field: usize,
    terms: Vec<String>,
    /// Terms that the prefixes so far stand for.
    prefixed: usize,
}

impl Marks<'_> {
    fn add(&mut self, query: &Query) -> Result<()> {
        match query {
            Query::Term { field, term, .. } if *field == self.field => self.terms.push(term.clone()),
            Query::Phrase { field, terms, .. } if *field == self.field => {
                self.terms.extend(terms.iter().map(|(_, term)| term.clone()));
            }
            Query::Prefix { field, prefix, .. } if *field == self.field => {
                let terms = &mut self.terms;
                terms_with_prefix(self.segments, *field, prefix, &mut self.prefixed, |term| {
                    terms.push(String::from_utf8_lossy(term).into_owned());
                })?;
            }
            Query::Fuzzy { field, word, distance, .. } if *field == self.field => {
                let close = close_terms(self.segments, *field, word, *distance)?;
                self.terms.extend(close.into_iter().map(|close| close.term));
            }
            Query::Bool { must, filter, should, .. } => {
                must.iter().chain(filter).chain(should).try_for_each(|clause| self.add(clause))?;
            }
            _ => {}
        }
        Ok(())
    }
}
