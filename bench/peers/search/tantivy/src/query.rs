//! Parses queries of the protocol: words and phrases separated by spaces, each with the prefix `+`, `-`, `#`
//! or none.
//!
//! Tantivy has no filter clause: a filter is a required clause with the constant score 0. Clauses that do
//! not score do not read frequencies.

use tantivy::Term;
use tantivy::query::{BooleanQuery, ConstScoreQuery, EmptyQuery, Occur, PhraseQuery, Query, TermQuery};
use tantivy::schema::{Field, IndexRecordOption};

/// The kind of a clause.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Must,
    Should,
    Filter,
    Not,
}

/// The query of a text; `None` if it has a phrase and the index has no positions.
pub fn parse(text: &str, field: Field, positions: bool) -> Option<Box<dyn Query>> {
    let mut clauses: Vec<(Occur, Box<dyn Query>)> = Vec::new();
    let mut only = None;
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (kind, from) = match rest.as_bytes()[0] {
            b'+' => (Kind::Must, 1),
            b'-' => (Kind::Not, 1),
            b'#' => (Kind::Filter, 1),
            _ => (Kind::Should, 0),
        };
        let (query, end) = match rest[from..].strip_prefix('"') {
            Some(quoted) => {
                let len = quoted.find('"').filter(|_| positions)?;
                (phrase(&quoted[..len], kind, field), from + len + 2)
            }
            None => {
                let end = rest.find(' ').unwrap_or(rest.len());
                (term(&rest[from..end], kind, field), end)
            }
        };
        clauses.push(match kind {
            Kind::Must => (Occur::Must, query),
            Kind::Should => (Occur::Should, query),
            Kind::Filter => (Occur::Must, Box::new(ConstScoreQuery::new(query, 0.0))),
            Kind::Not => (Occur::MustNot, query),
        });
        only = Some(kind);
        rest = rest[end..].trim_start();
    }
    Some(match clauses.len() {
        0 => Box::new(EmptyQuery),
        1 if only != Some(Kind::Not) => clauses.remove(0).1,
        _ => Box::new(BooleanQuery::new(clauses)),
    })
}

fn term(word: &str, kind: Kind, field: Field) -> Box<dyn Query> {
    let scores = matches!(kind, Kind::Must | Kind::Should);
    let record = if scores { IndexRecordOption::WithFreqs } else { IndexRecordOption::Basic };
    Box::new(TermQuery::new(Term::from_field_text(field, word), record))
}

fn phrase(words: &str, kind: Kind, field: Field) -> Box<dyn Query> {
    let terms: Vec<Term> =
        words.split_ascii_whitespace().map(|word| Term::from_field_text(field, word)).collect();
    match terms.len() {
        0 => Box::new(EmptyQuery),
        1 => term(words.trim(), kind, field),
        _ => Box::new(PhraseQuery::new(terms)),
    }
}

#[cfg(test)]
mod tests {
    use super::parse;
    use tantivy::schema::Field;

    #[test]
    fn one_word_needs_no_clauses() {
        let show = |text| format!("{:?}", parse(text, Field::from_field_id(0), true).unwrap());
        assert!(show("+a").starts_with("TermQuery"));
        assert!(show("a b").contains("Should"));
        assert!(show("+a +b").contains("Must"));
        assert!(show("-a").contains("MustNot"));
    }

    #[test]
    fn filters_have_no_score_and_phrases_need_positions() {
        let parse = |text, positions| parse(text, Field::from_field_id(0), positions);
        let show = |text| format!("{:?}", parse(text, true).unwrap());
        assert!(show("+a #b").contains("Const(score=0"), "{}", show("+a #b"));
        assert!(show("\"a b\"").starts_with("PhraseQuery"));
        assert!(show("c \"a b\" d").contains("PhraseQuery"));
        assert!(parse("\"a b\"", false).is_none() && parse("\"a b", true).is_none());
    }
}
