//! Synonyms in queries. Input: words of a query, and the alternatives that the rules of their field give.
//! Output: the words of a list with further alternatives, and the variants of a phrase.
//!
//! Words that follow one another are looked up together, the longest rule first, from left to right; a word
//! belongs to one rule. Prefixes and fuzzy words have no synonyms.

use crate::schema::{Alternatives, AlternativesByWords, Field};
use crate::text::{Analyzer, alternatives_of_rules, key_of_words};
use std::ops::Range;

/// What is searched for a range of words, beside them or in their place.
pub(super) struct Synonym<'s> {
    pub(super) words: Range<usize>,
    pub(super) alternatives: &'s Alternatives,
}

/// The alternatives of a field; `None` if it has no synonyms.
pub(super) fn alternatives_of(field: &Field) -> Option<&AlternativesByWords> {
    if field.synonyms.rules().is_empty() {
        return None;
    }
    Some(field.synonyms.alternatives(|rules| alternatives_of_rules(rules, &field.analysis)))
}

/// The synonyms of words that follow one another.
pub(super) fn synonyms_of_words<'s>(
    alternatives: &'s AlternativesByWords,
    analyzer: &mut Analyzer,
    words: &[&str],
) -> Vec<Synonym<'s>> {
    let keys: Vec<String> = words.iter().map(|word| key_of_words(analyzer, word)).collect();
    let (mut found, mut start) = (Vec::new(), 0);
    while start < keys.len() {
        let longest = longest_match(alternatives, &keys[start..]);
        start += longest.as_ref().map_or(1, |(length, _)| *length);
        if let Some((length, alternatives)) = longest {
            found.push(Synonym { words: start - length..start, alternatives });
        }
    }
    found
}

/// The largest number of words at the start that have synonyms, and these. Words without terms, such as stop
/// words, are skipped inside but not at either end.
fn longest_match<'s>(
    alternatives: &'s AlternativesByWords,
    keys: &[String],
) -> Option<(usize, &'s Alternatives)> {
    let (mut key, mut terms, mut longest) = (String::new(), 0, None);
    for (number, word) in keys.iter().enumerate() {
        if word.is_empty() {
            if number == 0 {
                break;
            }
            continue;
        }
        terms += word.split(' ').count();
        if terms > alternatives.terms_max {
            break;
        }
        if !key.is_empty() {
            key.push(' ');
        }
        key.push_str(word);
        if let Some(found) = alternatives.by_terms.get(&key) {
            longest = Some((number + 1, found));
        }
    }
    longest
}

/// The variants of a phrase, with the alternatives of its words in their place; `None` if there are more than
/// `variants_max`.
pub(super) fn phrase_variants(
    words: &[&str],
    synonyms: &[Synonym<'_>],
    variants_max: usize,
) -> Option<Vec<String>> {
    let (mut variants, mut at) = (vec![String::new()], 0);
    for Synonym { words: range, alternatives } in synonyms {
        append_words(&mut variants, &words[at..range.start]);
        let own = alternatives.keeps_words.then(|| words[range.clone()].join(" "));
        let texts = alternatives.texts.iter().map(|text| &**text);
        let texts: Vec<&str> = own.as_deref().into_iter().chain(texts).collect();
        if variants.len() * texts.len() > variants_max {
            return None;
        }
        let longer =
            variants.iter().flat_map(|start| texts.iter().map(move |text| format!("{start} {text}")));
        variants = longer.collect();
        at = range.end;
    }
    append_words(&mut variants, &words[at..]);
    Some(variants)
}

fn append_words(variants: &mut [String], words: &[&str]) {
    for variant in variants {
        for word in words {
            variant.push(' ');
            variant.push_str(word);
        }
    }
}
