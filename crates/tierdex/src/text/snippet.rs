//! Snippets: the part of a text that contains the most query terms.
//!
//! 1. Find the best span with a sliding window over the matches. Only matches within the width of a snippet
//!    are kept, so memory does not grow with the number of matches.
//! 2. Extend the span to the width of the snippet and mark its matches. Neither a mark nor an end of the
//!    snippet divides a grapheme cluster.
//! 3. An ellipsis stands for the text before and after the snippet.

use super::{Analyzer, first_cluster, token::Token};
use crate::limits::{PREVIEW_TEXT_BYTES, TERM_BYTES_MAX};
use std::{collections::VecDeque, ops::Range};
use unicode_segmentation::GraphemeCursor;

/// A part of a text on one line, with the byte ranges of the matching tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snippet {
    /// Runs of white space and control characters are replaced by one space.
    pub text: String,
    /// Byte ranges in `text`, ascending and disjoint.
    pub marks: Vec<Range<usize>>,
}

/// What a term matches in a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TermMatch {
    /// Number of the part of the query; the numbers are small.
    pub number: usize,
    /// Whether only the first grapheme cluster of the term matches.
    pub is_first_cluster: bool,
}

/// The best part of the first [`PREVIEW_TEXT_BYTES`] of a text, of about `width` bytes: the one with the
/// most distinct query terms, then the most matches, then the first. Without a match, the beginning of the
/// text. `find` returns what a term matches in the query, if it does.
pub fn snippet(
    whole: &str,
    analyzer: &mut Analyzer,
    find: impl Fn(&str) -> Option<TermMatch>,
    width: usize,
) -> Snippet {
    let text = &whole[..floor_boundary(whole, PREVIEW_TEXT_BYTES.min(whole.len()))];
    let mut span = BestSpan { width, ..BestSpan::default() };
    analyzer.analyze(text, 0, |token| {
        if let Some(found) = find(token.term) {
            span.add(found.number, token.start..token.end);
        }
    });
    let (start, end) = match span.best {
        Some(best) => around(text, best, width),
        None => (0, ceil_word(text, width)),
    };
    let mut marks: Vec<Range<usize>> = Vec::new();
    // The snippet may cut its last token, so analyze beyond its end to see whether the whole token matches.
    let behind = floor_boundary(text, (end + TERM_BYTES_MAX + 1).min(text.len()));
    let part = &text[start..behind];
    analyzer.analyze(part, 0, |token| {
        let Some(found) = find(token.term) else { return };
        let range = marked(part, &token, found);
        let range = start + range.start..start + range.end;
        match marks.last_mut() {
            _ if range.end > end => {}
            // Bigrams of text without blanks overlap.
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ => marks.push(range),
        }
    });
    let mut snippet = on_one_line(text, start..end, marks.into_iter());
    snippet.mark_cuts(start > 0, end < whole.len());
    snippet
}

/// The range that is marked for a token, without dividing a grapheme cluster.
fn marked(text: &str, token: &Token<'_>, found: TermMatch) -> Range<usize> {
    let (start, mut end) = (floor_grapheme(text, token.start), token.end);
    if found.is_first_cluster {
        end = token.start + first_cluster(&text[token.start..token.end]).len();
    }
    start..ceil_grapheme(text, end)
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

impl Snippet {
    /// Writes an ellipsis in place of the text that was left out.
    fn mark_cuts(&mut self, before: bool, after: bool) {
        if after {
            self.text.push_str(" …");
        }
        if before {
            let ellipsis = "… ";
            self.text.insert_str(0, ellipsis);
            for mark in &mut self.marks {
                *mark = mark.start + ellipsis.len()..mark.end + ellipsis.len();
            }
        }
    }
}

/// Extends a span to `width` bytes, at word boundaries.
fn around(text: &str, found: Range<usize>, width: usize) -> (usize, usize) {
    let spare = width.saturating_sub(found.len());
    let start = floor_grapheme(text, found.start.saturating_sub(spare / 3));
    let start = match text[..start].chars().next_back() {
        // Text without blanks starts in the middle of a run.
        Some(c) if !c.is_whitespace() => {
            text[start..found.start].find(char::is_whitespace).map_or(start, |at| start + at)
        }
        _ => start,
    };
    let end = ceil_word(text, (start + width).max(found.end)).max(ceil_grapheme(text, found.end));
    (start, end)
}

/// The end of the last word that ends at or before `at`; `at` itself if there is none nearby.
fn ceil_word(text: &str, at: usize) -> usize {
    if at >= text.len() {
        return text.len();
    }
    let at = floor_grapheme(text, at);
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

/// The last boundary of grapheme clusters up to `at`.
fn floor_grapheme(text: &str, at: usize) -> usize {
    let at = floor_boundary(text, at);
    let mut cursor = GraphemeCursor::new(at, text.len(), true);
    // The whole text is there, so no context is missing.
    if cursor.is_boundary(text, 0).unwrap_or(true) {
        return at;
    }
    cursor.prev_boundary(text, 0).ok().flatten().unwrap_or(0)
}

/// The first boundary of grapheme clusters from `at` on.
fn ceil_grapheme(text: &str, at: usize) -> usize {
    let mut cursor = GraphemeCursor::new(at, text.len(), true);
    if cursor.is_boundary(text, 0).unwrap_or(true) {
        return at;
    }
    cursor.next_boundary(text, 0).ok().flatten().unwrap_or(text.len())
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

    /// The number of a term among `terms`; one that ends in `*` matches a first cluster.
    fn find_in(terms: &[&str], term: &str) -> Option<TermMatch> {
        let matches = |other: &&str| match other.strip_suffix('*') {
            Some(cluster) => first_cluster(term) == cluster,
            None => *other == term,
        };
        let number = terms.iter().position(matches)?;
        Some(TermMatch { number, is_first_cluster: terms[number].ends_with('*') })
    }

    fn show(text: &str, terms: &[&str], width: usize) -> String {
        let find = |term: &str| find_in(terms, term);
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
        assert_eq!(show(text, &["cat", "dog"], 30), "… nine [Cat] and [dog] ten eleven …");
        assert_eq!(show(text, &["zebra"], 14), "cat one two …");
        assert_eq!(show("", &["a"], 10), "");
        assert_eq!(show("a\u{0}b", &["b"], 10), "a [b]");
        assert_eq!(show("catalogue", &["cat"], 3), "cat …", "the token continues after the snippet");
    }

    #[test]
    fn marks_are_whole_grapheme_clusters() {
        assert_eq!(show("東京都に住む", &["東京", "京都"], 100), "[東京都]に住む");
        assert_eq!(show("東京都と京", &["京*"], 100), "東[京]都と[京]");
        assert_eq!(show("ภาษาไทยดี", &["ไท", "ทย"], 100), "ภาษา[ไทย]ดี");
        assert_eq!(show("a re\u{301}sume\u{301}.", &["r\u{e9}sum\u{e9}"], 100), "a [re\u{301}sume\u{301}].");
        let text = "か\u{3099}".repeat(40);
        let shown = show(&text, &["がが"], 31);
        assert!(shown.ends_with("か\u{3099}] …"), "{shown}");
    }

    proptest! {
        #[test]
        fn marks_are_the_matches(text in "(cat|dog|é漢|\n| |-|, |x{0,40}){0,40}", width in 1usize..60) {
            let find = |term: &str| find_in(&["cat", "dog"], term);
            let found = snippet(&text, &mut Analyzer::new(&Analysis::default()), find, width);
            for mark in &found.marks {
                prop_assert!(["cat", "dog"].contains(&&found.text[mark.clone()]));
            }
            prop_assert!(!found.text.contains('\n'));
            prop_assert!(found.text.len() <= width + 3 + 3 + 2 * "… ".len());
        }
    }
}
