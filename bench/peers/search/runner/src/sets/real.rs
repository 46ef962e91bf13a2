//! Real queries, from files that the user provides.
//!
//! Queries are tokenized like the text. Repeated terms count once. Terms that are in no document are dropped
//! from disjunctions; a conjunction with such a term is dropped, because no engine has to read anything for
//! it. Queries with fewer than two remaining terms are dropped as well. If there are more queries than
//! requested, a random sample that depends on the seed is taken.

use super::draw::shuffle;
use super::recipe::{Join, Source};
use crate::flags::Flags;
use crate::tokens::{Corpus, add_tokens};
use crate::tools::{self, say};
use std::path::Path;
use tierdex_bench::{Error, Random, Result};

/// The queries of a source; none if the flags name no directory or it has no such file.
///
/// # Errors
/// If the file cannot be read or a line is malformed.
pub fn queries(flags: &Flags, corpus: &Corpus, source: Source, join: Join) -> Result<Vec<String>> {
    let Some(folder) = &flags.queries else { return Ok(Vec::new()) };
    let path = folder.join(source.file());
    if !path.is_file() {
        say(&format!("{} is not in the directory of queries", source.file()));
        return Ok(Vec::new());
    }
    let mut queries: Vec<String> =
        texts(&path, source, join)?.iter().filter_map(|text| query(text, corpus, join)).collect();
    shuffle(&mut queries, &mut Random::new(flags.seed));
    queries.truncate(flags.count());
    Ok(queries)
}

impl Source {
    fn file(self) -> &'static str {
        match self {
            Source::Game => "search-benchmark-game.jsonl",
            Source::Questions => "msmarco-passage.dev-subset.tsv",
            Source::Terabyte => "terabyte05.efficiency.tsv",
        }
    }
}

/// The texts of a file that suit.
fn texts(path: &Path, source: Source, join: Join) -> Result<Vec<String>> {
    let text = tools::read(path)?;
    let mut texts = Vec::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let malformed = || Error::Failed(format!("{}:{}: is no query", path.display(), at + 1));
        match source {
            Source::Game => texts.extend(game(line, join).ok_or_else(malformed)?),
            _ => texts.push(line.split_once('\t').ok_or_else(malformed)?.1.to_string()),
        }
    }
    Ok(texts)
}

/// The query of an object of a line, if its tags say that it is of the kind that is wanted; no outer value
/// if the line is malformed.
fn game(line: &str, join: Join) -> Option<Option<String>> {
    let wanted = if join == Join::And { "intersection" } else { "union" };
    let value: serde_json::Value = serde_json::from_str(line).ok()?;
    let tags = value.get("tags")?.as_array()?;
    let suits = tags.iter().any(|tag| tag.as_str() == Some(wanted));
    let query = value.get("query")?.as_str()?;
    Some(suits.then(|| query.to_string()))
}

fn query(text: &str, corpus: &Corpus, join: Join) -> Option<String> {
    let mut tokens = String::new();
    add_tokens(text, &mut tokens);
    let known = |term: &str| corpus.terms.binary_search_by(|(found, _)| found.as_str().cmp(term)).is_ok();
    let mut terms: Vec<&str> = Vec::new();
    for term in tokens.split(' ').filter(|term| !term.is_empty()) {
        match known(term) {
            true if !terms.contains(&term) => terms.push(term),
            false if join == Join::And => return None,
            _ => {}
        }
    }
    (terms.len() >= 2).then(|| join.query(&terms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_terms_are_left_out_or_their_query() {
        let terms = ["a", "b"].map(|term| (term.to_string(), 2)).to_vec();
        let corpus = Corpus { path: "x".into(), bytes: 0, documents: 9, terms };
        assert_eq!(query("+A +b", &corpus, Join::And).as_deref(), Some("+a +b"));
        assert_eq!(query("a b c", &corpus, Join::And), None);
        assert_eq!(query("a, b? c a", &corpus, Join::Or).as_deref(), Some("a b"));
        assert_eq!(query("a c", &corpus, Join::Or), None);
    }

    #[test]
    fn tags_say_what_a_line_is() {
        let line = r#"{"query": "+a +b", "tags": ["intersection", "global"]}"#;
        assert_eq!(game(line, Join::And), Some(Some("+a +b".to_string())));
        assert_eq!(game(line, Join::Or), Some(None));
        assert_eq!(game("{}", Join::Or), None);
    }
}
