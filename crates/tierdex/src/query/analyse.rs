//! Syntax to queries: words become terms by the chain of their field.
//!
//! Plain words and words of phrases go through the whole analysis chain. Prefixes and fuzzy words are only
//! lower-cased and stripped of accents, if the chain does so; they are not stemmed or dropped as stop words. A
//! word that becomes several tokens becomes several alternatives; of a prefix only the last token is one.

use super::syntax::{Occur, Problems, Syntax};
use super::tree::Query;
use crate::error::{Error, Result};
use crate::limits::{BOOST_MAX, FUZZY_BYTES_MAX, PHRASE_TERMS_MAX, QUERY_EXPANDED_MAX, QUERY_TERMS_MAX};
use crate::schema::{Schema, Source};
use crate::text::{Analyzer, Token};

/// The chains of all fields, made when first used, and what the query has so far.
pub(super) struct Analyzers<'a> {
    schema: &'a Schema,
    chains: Vec<Option<Analyzer>>,
    terms: usize,
    /// Prefixes and fuzzy words.
    expanded: usize,
    problems: &'a mut Problems,
}

impl<'a> Analyzers<'a> {
    pub(super) fn new(schema: &'a Schema, problems: &'a mut Problems) -> Analyzers<'a> {
        let chains = schema.fields.iter().map(|_| None).collect();
        Analyzers { schema, chains, terms: 0, expanded: 0, problems }
    }

    /// `None` when analysis leaves nothing of what the query asks for.
    pub(super) fn query(&mut self, syntax: &Syntax, boost: f64) -> Result<Option<Query>> {
        match syntax {
            Syntax::Word(field, word) => self.words(self.number(field), word, boost),
            Syntax::Prefix(field, prefix) => self.prefix(self.number(field), prefix, boost),
            Syntax::Fuzzy(field, word, distance) => self.fuzzy(self.number(field), word, *distance, boost),
            Syntax::Phrase(field, words, slop) => self.phrase(self.number(field), words, *slop, boost),
            Syntax::All => Ok(Some(Query::All { boost })),
            Syntax::List(clauses, minimum) => self.list(clauses, *minimum, boost),
            Syntax::Boost(inner, factor) => {
                let product = boost * factor;
                if product > BOOST_MAX {
                    let message = format!("boosts inside one another are more than {BOOST_MAX} together");
                    self.problems.report(Error::query(message))?;
                }
                self.query(inner, product.min(BOOST_MAX))
            }
        }
    }

    fn list(&mut self, clauses: &[(Occur, Syntax)], minimum: u32, boost: f64) -> Result<Option<Query>> {
        let (mut must, mut filter, mut should, mut must_not) = (vec![], vec![], vec![], vec![]);
        for (occur, syntax) in clauses {
            let part = match occur {
                Occur::Must => &mut must,
                Occur::Filter => &mut filter,
                Occur::Should => &mut should,
                Occur::MustNot => &mut must_not,
            };
            part.extend(self.query(syntax, boost)?);
        }
        let asked = clauses.iter().any(|(occur, _)| *occur != Occur::MustNot);
        let none_left = must.is_empty() && filter.is_empty() && should.is_empty();
        if none_left && (asked || must_not.is_empty()) {
            return Ok(None);
        }
        // Of those that analysis leaves: a clause of stop words can neither match nor fail to.
        let minimum = minimum.min(should.len() as u32);
        Ok(Some(Query::Bool { must, filter, should, must_not, minimum }))
    }

    pub(super) fn words(&mut self, field: usize, words: &str, boost: f64) -> Result<Option<Query>> {
        let mut should = Vec::new();
        let add = |token: Token<'_>| should.push(Query::Term { field, term: token.term.to_string(), boost });
        self.chain(field).analyze(words, 0, add);
        if !self.count(should.len())? {
            return Ok(None);
        }
        Ok(any(should))
    }

    fn prefix(&mut self, field: usize, text: &str, boost: f64) -> Result<Option<Query>> {
        let mut tokens = self.chain(field).normalized(text);
        let Some((start, prefix)) = tokens.pop() else { return Ok(None) };
        let mut should: Vec<_> = self.words(field, &text[..start], boost)?.into_iter().collect();
        if self.expand()? {
            should.push(Query::Prefix { field, prefix, boost });
        }
        Ok(any(should))
    }

    fn fuzzy(&mut self, field: usize, text: &str, distance: u8, boost: f64) -> Result<Option<Query>> {
        let mut should = Vec::new();
        for (_, word) in self.chain(field).normalized(text) {
            if word.len() > FUZZY_BYTES_MAX {
                let message =
                    format!("a fuzzy word of {} bytes; at most {FUZZY_BYTES_MAX} can be one", word.len());
                self.problems.report(Error::query(message))?;
            } else if distance == 0 {
                if self.count(1)? {
                    should.push(Query::Term { field, term: word, boost });
                }
            } else if self.expand()? {
                should.push(Query::Fuzzy { field, word, distance, boost });
            }
        }
        Ok(any(should))
    }

    fn phrase(&mut self, field: usize, words: &str, slop: u32, boost: f64) -> Result<Option<Query>> {
        let mut terms = Vec::new();
        self.chain(field).analyze(words, 0, |token| terms.push((token.position, token.term.to_string())));
        if terms.len() > PHRASE_TERMS_MAX {
            let message = format!("a phrase of {} terms; at most {PHRASE_TERMS_MAX} can be one", terms.len());
            self.problems.report(Error::query(message))?;
            terms.truncate(PHRASE_TERMS_MAX);
        }
        if !self.count(terms.len())? {
            return Ok(None);
        }
        let first = terms.first().map_or(0, |(position, _)| *position);
        for (position, _) in &mut terms {
            *position -= first;
        }
        if terms.len() > 1 && self.problems.are_noted() && !self.schema.fields[field].positions {
            self.problems.report(no_positions(self.schema, field))?;
            let must = terms.into_iter().map(|(_, term)| Query::Term { field, term, boost });
            return Ok(Some(Query::clauses(must.collect(), Vec::new(), Vec::new())));
        }
        Ok(match terms.len() {
            0 => None,
            1 => Some(Query::Term { field, term: terms.remove(0).1, boost }),
            _ => Some(Query::Phrase { field, terms, slop, boost }),
        })
    }

    /// Adds to the number of terms, which has a bound: each costs memory and time. Whether that may be.
    fn count(&mut self, terms: usize) -> Result<bool> {
        let total = self.terms + terms;
        if total > QUERY_TERMS_MAX {
            self.problems.report(Error::query(format!(
                "{total} terms or more; at most {QUERY_TERMS_MAX} are answered"
            )))?;
            return Ok(false);
        }
        self.terms = total;
        Ok(true)
    }

    /// Adds one to the number of prefixes and fuzzy words. Whether that may be.
    fn expand(&mut self) -> Result<bool> {
        if self.expanded == QUERY_EXPANDED_MAX {
            self.problems
                .report(Error::query(format!("more than {QUERY_EXPANDED_MAX} prefixes and fuzzy words")))?;
            return Ok(false);
        }
        self.expanded += 1;
        Ok(true)
    }

    fn number(&self, field: &Option<String>) -> usize {
        field.as_ref().and_then(|name| self.schema.field(name)).unwrap_or(0)
    }

    fn chain(&mut self, field: usize) -> &mut Analyzer {
        self.chains[field].get_or_insert_with(|| Analyzer::new(&self.schema.fields[field].analysis))
    }
}

fn any(mut should: Vec<Query>) -> Option<Query> {
    match should.len() {
        0 | 1 => should.pop(),
        _ => Some(Query::clauses(Vec::new(), should, Vec::new())),
    }
}

/// Whether there is a field called `name`; if not, which ones there are, and what is in them.
pub(super) fn is_field(schema: &Schema, name: &str) -> std::result::Result<(), String> {
    if schema.field(name).is_some() {
        return Ok(());
    }
    let fields = schema.fields.iter().map(|field| {
        let parts = match field.source {
            Source::Title => "titles",
            Source::Text => "texts",
            Source::TitleAndText => "titles and texts",
        };
        format!("`{}` ({parts})", field.name)
    });
    Err(format!("which has {}", fields.collect::<Vec<_>>().join(", ")))
}

/// Phrases are asked for where no positions are kept.
pub(super) fn no_positions(schema: &Schema, field: usize) -> Error {
    Error::Usage(format!(
        "phrases need positions, which field `{}` does not keep; index again with --positions",
        schema.fields[field].name
    ))
}
