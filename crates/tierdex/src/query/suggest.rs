//! Suggestions for a text that is being typed: completions of its last word, and words in place of those that
//! no document contains.
//!
//! All are terms of the index, so a field whose terms are stems has none: stems are no words.

use super::collection::SegmentLists;
use super::expand::{TermStats, fuzzy_matches, terms_after};
use crate::Result;
use crate::schema::Field;
use crate::text::Analyzer;
use std::cmp::Reverse;
use std::ops::Range;

/// Terms of a prefix that are looked at, at most: the first in the order of their bytes.
const WALKED_MAX: usize = 20_000;

/// Characters of a prefix that is completed, and of a word that is corrected, at least.
const PREFIX_CHARS_MIN: usize = 2;
const WORD_CHARS_MIN: usize = 4;

/// Characters of a word that may differ by two edits from its correction, at least.
const TWO_EDITS_CHARS_MIN: usize = 7;

/// Words that are corrected, at most: for each the dictionary is read.
const CORRECTED_MAX: usize = 3;

/// What a user may mean by a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Suggestions {
    /// Terms that begin with the last word of the text, those in most documents first; of a short prefix, the
    /// best of its first 20,000 terms in the order of their bytes.
    pub completions: Vec<TermStats>,
    /// The part of the text that a completion replaces: its last word. Empty without completions.
    pub completed: Range<usize>,
    /// The text with other words in place of those that no document contains, if there are any such words
    /// within one edit, or two of long words.
    pub correction: Option<String>,
}

/// A word of the text.
struct TypedWord {
    term: String,
    range: Range<usize>,
}

/// Suggestions for a text that is searched in a field, with at most `limit` completions.
pub(crate) fn suggest(
    lists: SegmentLists<'_>,
    number: usize,
    field: &Field,
    text: &str,
    limit: usize,
) -> Result<Suggestions> {
    let mut suggestions = Suggestions::default();
    if field.analysis.stemmer.is_some() {
        return Ok(suggestions);
    }
    let words = words_of(field, text);
    if let Some(last) = words.last().filter(|last| last.range.end == text.len()) {
        suggestions.completions = completions(lists, number, &last.term, limit)?;
        suggestions.completed = last.range.clone();
    }
    // A word that is being typed is not wrong yet.
    let is_typed = !suggestions.completions.is_empty();
    let complete = &words[..words.len() - usize::from(is_typed)];
    let mut corrected = Vec::new();
    for word in complete.iter().filter(|word| word.term.chars().count() >= WORD_CHARS_MIN) {
        if corrected.len() == CORRECTED_MAX {
            break;
        }
        if let Some(other) = correction(lists, number, &word.term)? {
            corrected.push((word.range.clone(), other));
        }
    }
    if !corrected.is_empty() {
        let mut other = text.to_string();
        corrected.into_iter().rev().for_each(|(range, word)| other.replace_range(range, &word));
        suggestions.correction = Some(other);
    }
    if suggestions.completions.is_empty() {
        suggestions.completed = 0..0;
    }
    Ok(suggestions)
}

/// The words of a text without those that are a part of the query language: names of fields, prefixes and
/// fuzzy words; and without text that has no blanks between words.
fn words_of(field: &Field, text: &str) -> Vec<TypedWord> {
    let mut words = Vec::new();
    Analyzer::new(&field.analysis).normalized(text, |token| {
        let range = token.start..token.end;
        if token.run.is_none() && !text[range.end..].starts_with(['*', '~', ':', '^']) {
            words.push(TypedWord { term: token.term.to_string(), range });
        }
    });
    words
}

/// The terms that begin with `prefix` and are longer, those in most documents first.
fn completions(lists: SegmentLists<'_>, field: usize, prefix: &str, limit: usize) -> Result<Vec<TermStats>> {
    if prefix.chars().count() < PREFIX_CHARS_MIN {
        return Ok(Vec::new());
    }
    let mut terms = terms_after(lists, field, prefix, Some(prefix), WALKED_MAX)?;
    terms.retain(|term| term.documents > 0);
    terms.sort_by(|a, b| Reverse(a.documents).cmp(&Reverse(b.documents)).then_with(|| a.term.cmp(&b.term)));
    terms.truncate(limit);
    Ok(terms)
}

/// The term that a word stands for which no document contains.
fn correction(lists: SegmentLists<'_>, field: usize, word: &str) -> Result<Option<String>> {
    let first = terms_after(lists, field, word, None, 1)?;
    if first.first().is_some_and(|first| first.term == word && first.documents > 0) {
        return Ok(None);
    }
    let distance = if word.chars().count() >= TWO_EDITS_CHARS_MIN { 2 } else { 1 };
    let found = fuzzy_matches(lists, field, word, distance)?;
    Ok(found.into_iter().find(|found| found.documents() > 0).map(|found| found.term))
}
