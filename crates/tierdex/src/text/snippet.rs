//! Snippets: the part of a text that shows most of a query.

use super::Analyzer;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;

/// Text that is looked at, in bytes; a snippet of a longer document comes from its beginning.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// Part of a text on one line, with the places of the matching tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snippet {
    /// White space and control characters are single blanks.
    pub text: String,
    /// Byte ranges in `text`, in order, not overlapping.
    pub marks: Vec<Range<usize>>,
}

/// The stretch of at most about `width` bytes of `text` that holds most distinct terms of `terms`, then most
/// matches, and comes first; the beginning of the text when nothing matches.
pub fn snippet(text: &str, analyzer: &mut Analyzer, terms: &[String], width: usize) -> Snippet {
    let text = &text[..floor_boundary(text, TEXT_BYTES_MAX.min(text.len()))];
    let numbers: HashMap<&str, usize> =
        terms.iter().enumerate().map(|(i, term)| (term.as_str(), i)).collect();
    let mut matches = Vec::new();
    analyzer.analyze(text, 0, |token| {
        if let Some(&term) = numbers.get(token.term) {
            matches.push((term, token.start..token.end));
        }
    });
    let (start, end) = match best_stretch(&matches, terms.len(), width) {
        Some(found) => around(text, found, width),
        None => (0, ceil_word(text, width)),
    };
    let inside = matches.into_iter().map(|(_, range)| range).filter(|r| r.start >= start && r.end <= end);
    on_one_line(text, start..end, inside)
}

/// The stretch from one match to another that is best.
fn best_stretch(matches: &[(usize, Range<usize>)], terms: usize, width: usize) -> Option<Range<usize>> {
    let mut counts = vec![0u32; terms];
    let mut distinct = 0;
    let mut window: VecDeque<&(usize, Range<usize>)> = VecDeque::new();
    let mut best: Option<((usize, usize), Range<usize>)> = None;
    for found in matches {
        window.push_back(found);
        distinct += usize::from(counts[found.0] == 0);
        counts[found.0] += 1;
        while window.len() > 1 && found.1.end - window[0].1.start > width {
            let (term, _) = window.pop_front().expect("two at least");
            counts[*term] -= 1;
            distinct -= usize::from(counts[*term] == 0);
        }
        let quality = (distinct, window.len());
        if best.as_ref().is_none_or(|(other, _)| quality > *other) {
            best = Some((quality, window[0].1.start..found.1.end));
        }
    }
    best.map(|(_, range)| range)
}

/// Widens a stretch to `width` bytes, to whole words.
fn around(text: &str, found: Range<usize>, width: usize) -> (usize, usize) {
    let spare = width.saturating_sub(found.len());
    let start = floor_boundary(text, found.start.saturating_sub(spare / 3));
    let start = match text[..start].chars().next_back() {
        Some(c) if !c.is_whitespace() => {
            text[start..found.start].find(char::is_whitespace).map_or(found.start, |at| start + at)
        }
        _ => start,
    };
    let end = ceil_word(text, (start + width).max(found.end));
    (start, end)
}

/// The end of the last whole word that ends at `at` or before; `at` itself if there is none.
fn ceil_word(text: &str, at: usize) -> usize {
    if at >= text.len() {
        return text.len();
    }
    let at = floor_boundary(text, at);
    if text[at..].starts_with(char::is_whitespace) {
        return at;
    }
    let floor = floor_boundary(text, at.saturating_sub(32));
    text[floor..at].rfind(char::is_whitespace).map_or(at, |space| floor + space)
}

fn floor_boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn on_one_line(text: &str, range: Range<usize>, marks: impl Iterator<Item = Range<usize>>) -> Snippet {
    let mut snippet = Snippet::default();
    let mut at = range.start;
    for mark in marks {
        push_flat(&mut snippet.text, &text[at..mark.start]);
        let start = snippet.text.len();
        push_flat(&mut snippet.text, &text[mark.clone()]);
        snippet.marks.push(start..snippet.text.len());
        at = mark.end;
    }
    push_flat(&mut snippet.text, &text[at..range.end]);
    snippet.text.truncate(snippet.text.trim_end().len());
    snippet
}

fn push_flat(out: &mut String, text: &str) {
    for c in text.chars() {
        if !c.is_whitespace() && !c.is_control() {
            out.push(c);
        } else if !out.is_empty() && !out.ends_with(' ') {
            out.push(' ');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Analysis;
    use proptest::prelude::*;

    fn show(text: &str, terms: &[&str], width: usize) -> String {
        let terms: Vec<String> = terms.iter().map(|term| term.to_string()).collect();
        let snippet = snippet(text, &mut Analyzer::new(&Analysis::default()), &terms, width);
        let mut out = String::new();
        let mut at = 0;
        for mark in &snippet.marks {
            out += &format!("{}[{}]", &snippet.text[at..mark.start], &snippet.text[mark.clone()]);
            at = mark.end;
        }
        out + &snippet.text[at..]
    }

    #[test]
    fn snippets_show_most_of_the_query() {
        let text =
            "cat one two three four five six seven eight nine\nCat and  dog ten eleven twelve thirteen";
        assert_eq!(show(text, &["cat", "dog"], 30), "nine [Cat] and [dog] ten eleven");
        assert_eq!(show(text, &["zebra"], 14), "cat one two");
        assert_eq!(show("", &["a"], 10), "");
        assert_eq!(show("a\u{0}b", &["b"], 10), "a [b]");
    }

    proptest! {
        #[test]
        fn marks_are_the_matches(text in "(cat|dog|é漢|\n| |x{0,40}){0,40}", width in 1usize..60) {
            let terms = vec!["cat".to_string(), "dog".to_string()];
            let found = snippet(&text, &mut Analyzer::new(&Analysis::default()), &terms, width);
            for mark in &found.marks {
                prop_assert!(["cat", "dog"].contains(&&found.text[mark.clone()]));
            }
            prop_assert!(!found.text.contains('\n'));
            prop_assert!(found.text.len() <= width + 3 + 3);
        }
    }
}
