//! Snippets: the part of a text that contains the most query terms.
//!
//! 1. Find the best span with a sliding window over the matches. Only matches within the width of a snippet
//!    are kept, so memory does not grow with the number of matches.
//! 2. Extend the span to the width of the snippet and mark its matches.

use super::Analyzer;
use crate::limits::{PREVIEW_TEXT_BYTES, TERM_BYTES_MAX};
use std::collections::VecDeque;
use std::ops::Range;

/// A part of a text on one line, with the byte ranges of the matching tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snippet {
    /// Runs of white space and control characters are replaced by one space.
    pub text: String,
    /// Byte ranges in `text`, ascending and disjoint.
    pub marks: Vec<Range<usize>>,
}

/// The best part of the first [`PREVIEW_TEXT_BYTES`] of a text, of about `width` bytes: the one with the
/// most distinct query terms, then the most matches, then the first. Without a match, the beginning of the
/// text. `find` returns the index of a term in the query, if it is a query term; indexes are small.
pub fn snippet(
    text: &str,
    analyzer: &mut Analyzer,
    find: impl Fn(&str) -> Option<usize>,
    width: usize,
) -> Snippet {
    let text = &text[..floor_boundary(text, PREVIEW_TEXT_BYTES.min(text.len()))];
    let mut span = BestSpan { width, ..BestSpan::default() };
    analyzer.analyze(text, 0, |token| {
        if let Some(number) = find(token.term) {
            span.add(number, token.start..token.end);
        }
    });
    let (start, end) = match span.best {
        Some(best) => around(text, best, width),
        None => (0, ceil_word(text, width)),
    };
    let mut marks = Vec::new();
    // The snippet may cut its last token, so analyze beyond its end to see whether the whole token matches.
    let behind = floor_boundary(text, (end + TERM_BYTES_MAX + 1).min(text.len()));
    analyzer.analyze(&text[start..behind], 0, |token| {
        if start + token.end <= end && find(token.term).is_some() {
            marks.push(start + token.start..start + token.end);
        }
    });
    on_one_line(text, start..end, marks.into_iter())
}

/// Sliding window over the matches, and the best span so far.
#[derive(Default)]
struct BestSpan {
    width: usize,
    best: Option<Range<usize>>,
    /// Distinct terms and matches in the best span.
    quality: (usize, usize),
    /// The matches within `width` bytes before the end of the last one.
    window: VecDeque<(usize, Range<usize>)>,
    /// Number of matches of each term in the window.
    counts: Vec<u32>,
    distinct: usize,
}

impl BestSpan {
    fn add(&mut self, number: usize, range: Range<usize>) {
        self.counts.resize(self.counts.len().max(number + 1), 0);
        self.distinct += usize::from(self.counts[number] == 0);
        self.counts[number] += 1;
        let end = range.end;
        self.window.push_back((number, range));
        while self.window.len() > 1 && end - self.window[0].1.start > self.width {
            let (number, _) = self.window.pop_front().expect("at least two matches");
            self.counts[number] -= 1;
            self.distinct -= usize::from(self.counts[number] == 0);
        }
        let quality = (self.distinct, self.window.len());
        if quality > self.quality {
            self.quality = quality;
            self.best = Some(self.window[0].1.start..end);
        }
    }
}

/// Extends a span to `width` bytes, at word boundaries.
fn around(text: &str, found: Range<usize>, width: usize) -> (usize, usize) {
    let spare = width.saturating_sub(found.len());
    let start = floor_boundary(text, found.start.saturating_sub(spare / 3));
    let start = match text[..start].chars().next_back() {
        Some(c) if !c.is_whitespace() => {
            text[start..found.start].find(char::is_whitespace).map_or(found.start, |at| start + at)
        }
        _ => start,
    };
    let end = ceil_word(text, (start + width).max(found.end)).max(found.end);
    (start, end)
}

/// The end of the last word that ends at or before `at`; `at` itself if there is none nearby.
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
        let find = |term: &str| terms.iter().position(|other| *other == term);
        let snippet = snippet(text, &mut Analyzer::new(&Analysis::default()), find, width);
        let mut out = String::new();
        let mut at = 0;
        for mark in &snippet.marks {
            out += &format!("{}[{}]", &snippet.text[at..mark.start], &snippet.text[mark.clone()]);
            at = mark.end;
        }
        out + &snippet.text[at..]
    }

    #[test]
    fn snippets_contain_the_most_terms() {
        let text =
            "cat one two three four five six seven eight nine\nCat and  dog ten eleven twelve thirteen";
        assert_eq!(show(text, &["cat", "dog"], 30), "nine [Cat] and [dog] ten eleven");
        assert_eq!(show(text, &["zebra"], 14), "cat one two");
        assert_eq!(show("", &["a"], 10), "");
        assert_eq!(show("a\u{0}b", &["b"], 10), "a [b]");
        assert_eq!(show("catalogue", &["cat"], 3), "cat", "the token continues after the snippet");
    }

    proptest! {
        #[test]
        fn marks_are_the_matches(text in "(cat|dog|é漢|\n| |-|, |x{0,40}){0,40}", width in 1usize..60) {
            let find = |term: &str| ["cat", "dog"].iter().position(|other| *other == term);
            let found = snippet(&text, &mut Analyzer::new(&Analysis::default()), find, width);
            for mark in &found.marks {
                prop_assert!(["cat", "dog"].contains(&&found.text[mark.clone()]));
            }
            prop_assert!(!found.text.contains('\n'));
            prop_assert!(found.text.len() <= width + 3 + 3);
        }
    }
}
