//! Parses queries of the protocol by recursive descent:
//!
//! ```text
//! query  = clause*, separated by spaces
//! clause = ["+" | "-" | "#"] (group | phrase | word)
//! group  = "(" query ")" ["~" minimum]
//! phrase = '"' words '"' ["~" slop]
//! word   = term | prefix "*" | term "~" edits
//! ```
//!
//! Tantivy has no filter clause: a filter is a required clause with the constant score 0. Clauses that do
//! not score do not read frequencies. A group of one clause that is not excluded is that clause.

use std::ops::Bound;
use tantivy::Term;
use tantivy::query::{BooleanQuery, ConstScoreQuery, EmptyQuery, FuzzyTermQuery, InvertedIndexRangeQuery};
use tantivy::query::{Occur, PhraseQuery, Query, TermQuery};
use tantivy::schema::{Field, IndexRecordOption};

/// The kind of a clause.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Must,
    Should,
    Filter,
    Not,
}

/// A clause of a group.
type Clause = (Kind, Box<dyn Query>);

/// The query of a text; `None` if it is malformed, or has a phrase and the index has no positions.
pub fn parse(text: &str, field: Field, positions: bool) -> Option<Box<dyn Query>> {
    let mut parser = Parser { rest: text, field, positions };
    let clauses = parser.clauses(true)?;
    parser.rest.is_empty().then(|| group(clauses, 0))
}

/// The part of a text that is still to be parsed.
struct Parser<'a> {
    rest: &'a str,
    field: Field,
    positions: bool,
}

impl<'a> Parser<'a> {
    /// The clauses before the end of the text or of the group; `scores` is whether they contribute to the
    /// score.
    fn clauses(&mut self, scores: bool) -> Option<Vec<Clause>> {
        let mut clauses = Vec::new();
        loop {
            self.rest = self.rest.trim_start();
            if self.rest.is_empty() || self.rest.starts_with(')') {
                return Some(clauses);
            }
            let kind = self.kind();
            let scores = scores && matches!(kind, Kind::Must | Kind::Should);
            clauses.push((kind, self.clause(scores)?));
        }
    }

    fn kind(&mut self) -> Kind {
        let signs = [('+', Kind::Must), ('-', Kind::Not), ('#', Kind::Filter)];
        signs.into_iter().find(|(sign, _)| self.take(*sign)).map_or(Kind::Should, |(_, kind)| kind)
    }

    /// A group, a phrase or a word.
    fn clause(&mut self, scores: bool) -> Option<Box<dyn Query>> {
        if self.take('(') {
            let clauses = self.clauses(scores)?;
            return if self.take(')') { Some(group(clauses, self.number()?)) } else { None };
        }
        if self.take('"') {
            let (words, rest) = self.rest.split_once('"').filter(|_| self.positions)?;
            self.rest = rest;
            let slop = self.number()?;
            return Some(self.phrase(words, slop as u32, scores));
        }
        let end = self.rest.find([' ', ')']).unwrap_or(self.rest.len());
        let word = self.split(end);
        if let Some(prefix) = word.strip_suffix('*') {
            return self.prefix(prefix);
        }
        match word.split_once('~') {
            Some((word, edits)) => self.fuzzy(word, edits),
            None => Some(self.term(word, scores)),
        }
    }

    /// The number behind a `~`: 0 if there is no `~`, `None` if there is no number.
    fn number(&mut self) -> Option<usize> {
        if !self.take('~') {
            return Some(0);
        }
        let end = self.rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(self.rest.len());
        self.split(end).parse().ok()
    }

    fn take(&mut self, letter: char) -> bool {
        let rest = self.rest.strip_prefix(letter);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Takes the bytes before `end`.
    fn split(&mut self, end: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn term(&self, word: &str, scores: bool) -> Box<dyn Query> {
        let record = if scores { IndexRecordOption::WithFreqs } else { IndexRecordOption::Basic };
        Box::new(TermQuery::new(Term::from_field_text(self.field, word), record))
    }

    fn phrase(&self, words: &str, slop: u32, scores: bool) -> Box<dyn Query> {
        let term = |word| Term::from_field_text(self.field, word);
        let terms: Vec<Term> = words.split_ascii_whitespace().map(term).collect();
        match terms.len() {
            0 => Box::new(EmptyQuery),
            1 => self.term(words.trim(), scores),
            _ => {
                let mut phrase = PhraseQuery::new(terms);
                phrase.set_slop(slop);
                Box::new(phrase)
            }
        }
    }

    /// A range of the dictionary, as Tantivy's own phrase-prefix query of one word. Each document scores 1.
    fn prefix(&self, prefix: &str) -> Option<Box<dyn Query>> {
        let mut end = prefix.to_string();
        let last = char::from_u32(end.pop()? as u32 + 1)?;
        end.push(last);
        let term = |text: &str| Term::from_field_text(self.field, text);
        let bounds = (Bound::Included(term(prefix)), Bound::Excluded(term(&end)));
        Some(Box::new(InvertedIndexRangeQuery::new(bounds.0, bounds.1)))
    }

    /// Each document scores 1; a transposition is one edit.
    fn fuzzy(&self, word: &str, edits: &str) -> Option<Box<dyn Query>> {
        let edits = edits.parse().ok().filter(|edits| (1..=2).contains(edits))?;
        Some(Box::new(FuzzyTermQuery::new(Term::from_field_text(self.field, word), edits, true)))
    }
}

/// The query of a group with a minimum match; 0 if it has none.
fn group(clauses: Vec<Clause>, minimum: usize) -> Box<dyn Query> {
    let alone = matches!(&clauses[..], [(kind, _)] if *kind != Kind::Not) && minimum < 2;
    let mut clauses: Vec<_> = clauses.into_iter().map(occurring).collect();
    match (clauses.len(), minimum) {
        (0, _) => Box::new(EmptyQuery),
        _ if alone => clauses.remove(0).1,
        (_, 0) => Box::new(BooleanQuery::new(clauses)),
        _ => Box::new(BooleanQuery::with_minimum_required_clauses(clauses, minimum)),
    }
}

fn occurring(clause: Clause) -> (Occur, Box<dyn Query>) {
    let (kind, query) = clause;
    match kind {
        Kind::Must => (Occur::Must, query),
        Kind::Should => (Occur::Should, query),
        Kind::Filter => (Occur::Must, Box::new(ConstScoreQuery::new(query, 0.0))),
        Kind::Not => (Occur::MustNot, query),
    }
}

#[cfg(test)]
mod tests {
    use super::parse;
    use tantivy::schema::Field;

    fn show(text: &str) -> String {
        format!("{:?}", parse(text, Field::from_field_id(0), true).unwrap())
    }

    #[test]
    fn one_word_needs_no_clauses() {
        assert!(show("+a").starts_with("TermQuery"));
        assert!(show("a b").contains("Should"));
        assert!(show("+a +b").contains("Must"));
        assert!(show("-a").contains("MustNot"));
    }

    #[test]
    fn filters_have_no_score_and_phrases_need_positions() {
        assert!(show("+a #b").contains("Const(score=0"), "{}", show("+a #b"));
        assert!(show("\"a b\"").starts_with("PhraseQuery"));
        assert!(show("c \"a b\" d").contains("PhraseQuery"));
        let parse = |text, positions| parse(text, Field::from_field_id(0), positions);
        assert!(parse("\"a b\"", false).is_none() && parse("\"a b", true).is_none());
    }

    #[test]
    fn groups_are_nested_and_have_a_minimum() {
        let nested = show("+(a (+b +c)) -(d e)");
        assert_eq!(nested.matches("BooleanQuery").count(), 4, "{nested}");
        assert_eq!(show("((a b))"), show("a b"));
        assert_eq!(show("(a)"), show("a"));
        assert!(show("(a b c)~2").ends_with("minimum_number_should_match: 2 }"), "{}", show("(a b c)~2"));
        assert!(show("+(a b c)~2 -d").contains("minimum_number_should_match: 2 }"));
        assert!(show("+a #(b c)").contains("Const(score=0, query=BooleanQuery"));
    }

    #[test]
    fn excluded_and_filtering_groups_read_no_frequencies() {
        for text in ["#(a b)", "-(a b)", "#(+a (b #c))"] {
            assert!(!show(text).contains("WithFreqs"), "{}", show(text));
        }
    }

    #[test]
    fn words_are_prefixes_or_fuzzy_and_phrases_have_slop() {
        assert!(show("pre*").starts_with("InvertedIndexRangeQuery"), "{}", show("pre*"));
        assert!(show("+(pre* a)").contains("InvertedIndexRangeQuery"));
        assert!(show("word~1").contains("distance: 1") && show("(word~2)").contains("distance: 2"));
        assert!(show("\"a b\"~3").contains("slop: 3") && show("\"a b\"").contains("slop: 0"));
    }

    #[test]
    fn malformed_queries_are_no_queries() {
        for text in ["(a", "a)", "(a b)~", "(a b)~x", "*", "a~3", "a~", "+(a (b)", "\"a b\"~"] {
            assert!(parse(text, Field::from_field_id(0), true).is_none(), "{text}");
        }
    }
}
