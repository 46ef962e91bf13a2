//! What the rules for synonyms of a field mean. Input: rules in the format of Solr. Output: for the terms of
//! the words of a rule, the words that are searched beside them or in their place.
//!
//! 1. A rule without `=>` has entries between commas; each stands for all of them.
//! 2. A rule with `=>` replaces each entry of its left side by the entries of its right side.
//! 3. Several rules for the same words are one with the entries of all.
//!
//! A backslash takes the meaning from the character that follows it, a comma for example. Words are compared
//! as terms, after the analysis of the field.

use super::{Analyzer, is_phrase_token};
use crate::limits::{SYNONYM_ENTRY_BYTES_MAX, SYNONYM_WORDS_MAX, SYNONYMS_IN_ALL_MAX, SYNONYMS_OF_WORDS_MAX};
use crate::schema::{AlternativesByWords, Analysis, Schema, shorten};
use crate::{Error, Result};
use std::sync::Arc;

/// Checks the synonyms of all fields.
///
/// # Errors
/// [`Error::Usage`] with the first rule that is wrong.
pub(crate) fn check_synonyms(schema: &Schema) -> Result<()> {
    for field in &schema.fields {
        compile(field.synonyms.rules(), &field.analysis).map_err(|(rule, reason)| {
            let (rule, name) = (shorten(rule), &field.name);
            Error::Usage(format!("rule {rule:?} for synonyms of field `{name}`: {reason}"))
        })?;
    }
    Ok(())
}

/// The alternatives of the synonyms of a field. Rules that are wrong were rejected when they were written.
pub(crate) fn alternatives_of_rules(rules: &[String], analysis: &Analysis) -> AlternativesByWords {
    compile(rules, analysis).unwrap_or_default()
}

/// The terms of a text, joined by blanks, which no term has; empty if it has none.
pub(crate) fn key_of_words(analyzer: &mut Analyzer, text: &str) -> String {
    let mut key = String::new();
    analyzer.analyze(text, 0, |token| {
        if is_phrase_token(token.run) {
            if !key.is_empty() {
                key.push(' ');
            }
            key.push_str(token.term);
        }
    });
    // Words that are too long are in no rule, and the query itself counts them.
    analyzer.take_too_long();
    key
}

/// The error is a rule and what is wrong with it.
fn compile<'r>(
    rules: &'r [String],
    analysis: &Analysis,
) -> std::result::Result<AlternativesByWords, (&'r str, String)> {
    let mut analyzer = Analyzer::new(analysis);
    let mut found = AlternativesByWords::default();
    for rule in rules {
        add_rule(&mut found, rule, &mut analyzer).map_err(|reason| (rule.as_str(), reason))?;
    }
    Ok(found)
}

fn add_rule(
    found: &mut AlternativesByWords,
    rule: &str,
    analyzer: &mut Analyzer,
) -> std::result::Result<(), String> {
    let sides = split_unescaped(rule, "=>");
    let mut entries = |side: &str| -> std::result::Result<Vec<(String, Arc<str>)>, String> {
        let entries = split_unescaped(side, ",");
        if entries.len() > SYNONYMS_OF_WORDS_MAX {
            return Err(format!(
                "it has {} entries; at most {SYNONYMS_OF_WORDS_MAX} are possible",
                entries.len()
            ));
        }
        entries.into_iter().map(|entry| keyed_entry(analyzer, entry)).collect()
    };
    let (from, to) = match sides[..] {
        [all] => (entries(all)?, None),
        [from, to] => (entries(from)?, Some(entries(to)?)),
        _ => return Err("it has more than one =>".to_string()),
    };
    let to = to.as_ref().unwrap_or(&from);
    for (key, _) in &from {
        let terms = key.split(' ').count();
        found.terms_max = found.terms_max.max(terms);
        let alternatives = found.by_terms.entry(key.clone()).or_default();
        for (other, text) in to {
            if other == key {
                alternatives.keeps_words = true;
            } else if !alternatives.texts.contains(text) {
                alternatives.texts.push(text.clone());
                found.count += 1;
            }
        }
        if alternatives.texts.len() > SYNONYMS_OF_WORDS_MAX {
            return Err(format!("`{}` has more than {SYNONYMS_OF_WORDS_MAX} synonyms", shorten(key)));
        }
        if found.count > SYNONYMS_IN_ALL_MAX {
            return Err(format!("with it the field has more than {SYNONYMS_IN_ALL_MAX} synonyms"));
        }
    }
    Ok(())
}

/// The terms of an entry as a key, and the entry without escapes.
fn keyed_entry(analyzer: &mut Analyzer, entry: &str) -> std::result::Result<(String, Arc<str>), String> {
    let mut text = String::with_capacity(entry.len());
    if entry.len() > SYNONYM_ENTRY_BYTES_MAX {
        return Err(format!(
            "an entry of {} bytes; at most {SYNONYM_ENTRY_BYTES_MAX} are possible",
            entry.len()
        ));
    }
    let mut is_escaped = false;
    for char in entry.trim().chars() {
        is_escaped = char == '\\' && !is_escaped;
        if !is_escaped {
            text.push(char);
        }
    }
    let key = key_of_words(analyzer, &text);
    if key.is_empty() {
        return Err(match text.is_empty() {
            true => "an entry is empty".to_string(),
            false => format!("the analysis of the field leaves nothing of `{}`", shorten(&text)),
        });
    }
    if key.split(' ').count() > SYNONYM_WORDS_MAX {
        return Err(format!("`{}` has more than {SYNONYM_WORDS_MAX} words", shorten(&text)));
    }
    Ok((key, text.into()))
}

/// The parts of `text` between separators that no backslash precedes.
fn split_unescaped<'t>(text: &'t str, separator: &str) -> Vec<&'t str> {
    let (mut parts, mut start, mut at) = (Vec::new(), 0, 0);
    while let Some(char) = text[at..].chars().next() {
        if char == '\\' {
            at += 1 + text[at + 1..].chars().next().map_or(0, char::len_utf8);
        } else if text[at..].starts_with(separator) {
            parts.push(&text[start..at]);
            at += separator.len();
            start = at;
        } else {
            at += char.len_utf8();
        }
    }
    parts.push(&text[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Alternatives, Language};

    fn compiled(rules: &[&str]) -> std::result::Result<AlternativesByWords, String> {
        let analysis = Analysis {
            stop_words: vec!["of".to_string()],
            stemmer: Some(Language::English),
            ..Analysis::default()
        };
        let rules: Vec<String> = rules.iter().map(|rule| rule.to_string()).collect();
        compile(&rules, &analysis).map_err(|(_, reason)| reason)
    }

    #[track_caller]
    fn check(rules: &[&str], key: &str, keeps_words: bool, texts: &[&str]) {
        let found = compiled(rules).unwrap();
        let texts = texts.iter().map(|text| Arc::from(*text)).collect();
        assert_eq!(found.by_terms.get(key), Some(&Alternatives { keeps_words, texts }), "{rules:?} {key}");
    }

    #[test]
    fn rules_have_one_side_or_two() {
        check(&["TV, Televisions , tele vision"], "televis", true, &["TV", "tele vision"]);
        check(&["TV, Televisions , tele vision"], "tele vision", true, &["TV", "Televisions"]);
        check(&["telly, box => tv, telly"], "telli", true, &["tv"]);
        check(&["telly, box => tv, telly"], "box", false, &["tv", "telly"]);
        // Rules for the same words are joined.
        check(&["a1 => b1", "a1, c1"], "a1", true, &["b1", "c1"]);
        check(&["bank of america, boa"], "bank america", true, &["boa"]);
        assert_eq!(compiled(&["a b c, d"]).unwrap().terms_max, 3);
    }

    #[test]
    fn backslashes_escape() {
        check(&[r"a\,b, c"], "a b", true, &["c"]);
        check(&[r"x => c\=>d\\"], "x", false, &[r"c=>d\"]);
        check(&[r"x => trailing\"], "x", false, &["trailing"]);
    }

    #[test]
    fn wrong_rules_are_errors() {
        for (rule, reason) in [
            ("a => b => c", "it has more than one =>"),
            ("a,,b", "an entry is empty"),
            ("a =>", "an entry is empty"),
            ("of, a", "the analysis of the field leaves nothing of `of`"),
            ("a b c d e f g h i j k l m n o p q, z", "has more than 16 words"),
            (&format!("a{}b, c", " ".repeat(5000)), "an entry of 5002 bytes; at most 4096 are possible"),
            (&"a,".repeat(100_000), "it has 100001 entries; at most 256 are possible"),
        ] {
            let found = compiled(&[rule]).err().unwrap();
            assert!(found.contains(reason), "{found}");
        }
    }
}
