//! Queries of plain text in one field, for callers that combine clauses themselves. No character is an
//! operator.

use super::analyse::QueryAnalyzer;
use super::syntax::{Problems, cut_to_length};
use super::tree::Query;
use crate::text::Analyzer;
use crate::{Result, schema::Schema};
use std::ops::Range;

impl Query {
    /// The clauses of the words of a plain text in a field, in their order: one for each word that analysis
    /// keeps, with its synonyms, and one for each run of text without blanks. Words that are longer than a
    /// term may be have a clause that matches nothing. `are_required` says whether the caller requires all
    /// clauses or any: synonyms of several words depend on it.
    ///
    /// ```
    /// use tierdex::{Query, Schema};
    ///
    /// let clauses = Query::of_words("Solid-state disk", 0, false, 1.0, &Schema::default())?;
    /// assert_eq!(clauses.len(), 3);
    /// assert_eq!(clauses[2], Query::Term { field: 0, term: "disk".to_string(), boost: 1.0 });
    /// # Ok::<(), tierdex::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Query`](crate::Error::Query) above the limits of parsed queries.
    pub fn of_words(
        text: &str,
        field: usize,
        are_required: bool,
        boost: f64,
        schema: &Schema,
    ) -> Result<Vec<Query>> {
        let mut problems = Problems::strict();
        cut_to_length(text, &mut problems)?;
        let mut analyzer = QueryAnalyzer::new(schema, &mut problems);
        let (words, too_long) = words_of(analyzer.field_analyzer(field), text);
        let words: Vec<&str> = words.into_iter().map(|range| &text[range]).collect();
        let mut clauses = analyzer.convert_word_run(field, &words, boost, are_required)?;
        clauses.extend((0..too_long).map(|_| Query::Nothing));
        Ok(clauses)
    }

    /// The phrase of a plain text in a field, with its synonyms; `None` if analysis drops all words.
    ///
    /// # Errors
    /// [`Error::Query`](crate::Error::Query) above the limits of parsed queries.
    pub fn of_phrase(
        text: &str,
        field: usize,
        slop: u32,
        boost: f64,
        schema: &Schema,
    ) -> Result<Option<Query>> {
        let mut problems = Problems::strict();
        cut_to_length(text, &mut problems)?;
        QueryAnalyzer::new(schema, &mut problems).convert_variants(field, text, slop, boost)
    }
}

/// The ranges of the words and of the runs without blanks of a text, and the number of words that are too
/// long.
fn words_of(analyzer: &mut Analyzer, text: &str) -> (Vec<Range<usize>>, u64) {
    let mut words: Vec<Range<usize>> = Vec::new();
    analyzer.normalized(text, |token| match (token.run, words.last_mut()) {
        (Some(part), Some(run)) if !part.is_first => run.end = run.end.max(token.end),
        _ => words.push(token.start..token.end),
    });
    (words, analyzer.take_too_long())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Synonyms;

    #[test]
    fn words_runs_and_synonyms_are_clauses() {
        let mut schema = Schema::default();
        schema.fields[0].positions = true;
        schema.fields[0].analysis.stop_words = vec!["the".to_string()];
        let clauses = |text: &str, schema: &Schema| Query::of_words(text, 0, true, 2.0, schema).unwrap();
        let term = |term: &str| Query::Term { field: 0, term: term.to_string(), boost: 2.0 };
        assert_eq!(clauses("(The) NOT state-of: AND*", &schema), ["not", "state", "of", "and"].map(term));
        assert_eq!(clauses("the", &schema), []);
        assert_eq!(clauses(&format!("a {}", "x".repeat(300)), &schema), [term("a"), Query::Nothing]);
        let found = clauses("a 東京都 b", &schema);
        assert_eq!((found.len(), &found[0], &found[2]), (3, &term("a"), &term("b")));
        assert!(matches!(&found[1], Query::Phrase { terms, .. } if terms.len() == 2));

        schema.fields[0].synonyms = Synonyms::parse("tv, television").unwrap();
        let found = clauses("a tv", &schema);
        assert_eq!(found, [term("a"), Query::clauses(vec![], vec![term("tv"), term("television")], vec![])]);
        assert!(Query::of_words(&"x ".repeat(2000), 0, true, 1.0, &schema).is_err());
    }

    #[test]
    fn phrases_have_no_operators() {
        let mut schema = Schema::default();
        schema.fields[0].positions = true;
        let found = Query::of_phrase("a \"AND\" b", 0, 3, 1.0, &schema).unwrap();
        assert_eq!(found, Some(Query::parse("\"a and b\"~3", &schema).unwrap()));
        assert_eq!(Query::of_phrase("...", 0, 0, 1.0, &schema).unwrap(), None);
    }
}
