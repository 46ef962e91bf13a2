//! Queries as the protocol writes them: words side by side, each with `+`, `-` or nothing before it.

use tantivy::Term;
use tantivy::query::{BooleanQuery, EmptyQuery, Occur, Query, TermQuery};
use tantivy::schema::{Field, IndexRecordOption};

/// The query of a text; none if it has a phrase, for which the index has no positions.
pub fn parse(text: &str, field: Field) -> Option<Box<dyn Query>> {
    if text.contains('"') {
        return None;
    }
    let mut clauses: Vec<(Occur, Box<dyn Query>)> = Vec::new();
    for word in text.split_ascii_whitespace() {
        let (occur, word) = match word.as_bytes()[0] {
            b'+' => (Occur::Must, &word[1..]),
            b'-' => (Occur::MustNot, &word[1..]),
            _ => (Occur::Should, word),
        };
        let term = Term::from_field_text(field, word);
        clauses.push((occur, Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs))));
    }
    Some(match clauses.len() {
        0 => Box::new(EmptyQuery),
        1 if clauses[0].0 != Occur::MustNot => clauses.remove(0).1,
        _ => Box::new(BooleanQuery::new(clauses)),
    })
}

#[cfg(test)]
mod tests {
    use super::parse;
    use tantivy::schema::Field;

    #[test]
    fn one_word_needs_no_clauses() {
        let show = |text| format!("{:?}", parse(text, Field::from_field_id(0)).unwrap());
        assert!(show("+a").starts_with("TermQuery"));
        assert!(show("a b").contains("Should"));
        assert!(show("+a +b").contains("Must"));
        assert!(parse("\"a b\"", Field::from_field_id(0)).is_none());
    }
}
