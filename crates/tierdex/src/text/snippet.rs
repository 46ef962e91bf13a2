//! Snippets: the part of a text that contains the most query terms, for display.
//!
//! 1. Find the best span with a sliding window over the matches. Only matches within the width of a snippet
//!    are kept, so memory does not grow with the number of matches.
//! 2. Extend the span to the width of the snippet and mark its matches. Neither a mark nor an end of the
//!    snippet divides a grapheme cluster.
//! 3. Write an ellipsis in place of the text before the snippet and after it.

use super::{Analyzer, first_cluster, token::Token};
use crate::limits::{PREVIEW_TEXT_BYTES, TERM_BYTES_MAX};
use std::{borrow::Cow, collections::VecDeque, ops::Range};
use unicode_segmentation::GraphemeCursor;

/// A part of a text, on one line, with the byte ranges of matching tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snippet {
    /// The part of the text, in which white space and control characters are replaced by single spaces.
    pub text: String,
    /// Byte ranges of the matches in `text`, in order and disjoint; at most 16, and one for each eight bytes.
    pub marks: Vec<Range<usize>>,
}

impl Snippet {
    /// The text with `open` before and `close` after each match. `escape` is applied to the text only.
    ///
    /// ```
    /// use tierdex::analysis::Snippet;
    ///
    /// let snippet = Snippet { text: "a solid disk".to_string(), marks: vec![2..7] };
    /// assert_eq!(snippet.highlight("<b>", "</b>", |text| text.into()), "a <b>solid</b> disk");
    /// ```
    pub fn highlight(&self, open: &str, close: &str, escape: impl Fn(&str) -> Cow<'_, str>) -> String {
        let mut out = String::with_capacity(self.text.len() + self.marks.len() * (open.len() + close.len()));
        let mut at = 0;
        for mark in &self.marks {
            out += &escape(&self.text[at..mark.start]);
            out += open;
            out += &escape(&self.text[mark.clone()]);
            out += close;
            at = mark.end;
        }
        out + &escape(&self.text[at..])
    }
}

/// The part of a query that a term matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TermMatch {
    /// Number of the part of the query. Memory grows with the largest number.
    pub number: usize,
    /// Whether only the first grapheme cluster of the term matches.
    pub is_first_cluster: bool,
}

/// The best part, of about `width` bytes, of the first [`PREVIEW_TEXT_BYTES`] of a text: the one with the
/// most distinct query terms, of these the one with the most matches, of these the first. Without a match,
/// the beginning of the text. `find` returns the part of the query that a term matches, if any.
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
        Some(best) => extend_span(text, best, width),
        None => (0, floor_word(text, width)),
    };
    let (mut marks, most): (Vec<Range<usize>>, _) = (Vec::new(), marks_max(width));
    // The snippet may end within a token: analyze beyond its end to see whether the whole token matches.
    let analyzed_end = floor_boundary(text, (end + TERM_BYTES_MAX + 1).min(text.len()));
    let part = &text[start..analyzed_end];
    analyzer.analyze(part, 0, |token| {
        let Some(found) = find(token.term) else { return };
        let range = marked_range(part, &token, found);
        let range = start + range.start..start + range.end;
        let has_room = marks.len() < most;
        match marks.last_mut() {
            _ if range.end > end => {}
            // Tokens of text without blanks overlap.
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ if has_room => marks.push(range),
            _ => {}
        }
    });
    let mut snippet = to_one_line(text, start..end, marks.into_iter());
    snippet.add_ellipses(start > 0, end < whole.len());
    snippet
}

/// Marks of a snippet of this width, at most: in a text whose words have few characters and all match, the
/// last ones are not marked.
pub fn marks_max(width: usize) -> usize {
    16 + width / 8
}

/// The byte range that is marked for a token: whole grapheme clusters.
fn marked_range(text: &str, token: &Token<'_>, found: TermMatch) -> Range<usize> {
    let (start, mut end) = (floor_grapheme(text, token.start), token.end);
    if found.is_first_cluster {
        end = token.start + first_cluster(&text[token.start..token.end]).len();
    }
    start..ceil_grapheme(text, end)
}

/// A sliding window over the matches, and the best span of matches so far.
#[derive(Default)]
struct BestSpan {
    width: usize,
    best: Option<Range<usize>>,
    /// Numbers of distinct terms and of matches in the best span.
    best_counts: (usize, usize),
    /// The matches, with their parts of the query, within `width` bytes before the end of the last match.
    window: VecDeque<(usize, Range<usize>)>,
    /// Number of matches of each part of the query in the window, and number of parts that have any.
    counts: Vec<u32>,
    distinct: usize,
}

impl BestSpan {
    /// Adds the next match, of a part of the query.
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
        let counts = (self.distinct, self.window.len());
        if counts > self.best_counts {
            self.best_counts = counts;
            self.best = Some(self.window[0].1.start..end);
        }
    }
}

impl Snippet {
    /// Adds an ellipsis in place of text that was left out `before` or `after` the snippet.
    fn add_ellipses(&mut self, before: bool, after: bool) {
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

/// Extends a span to about `width` bytes, at word boundaries; returns start and end.
fn extend_span(text: &str, found: Range<usize>, width: usize) -> (usize, usize) {
    let spare = width.saturating_sub(found.len());
    let start = floor_grapheme(text, found.start.saturating_sub(spare / 3));
    let start = match text[..start].chars().next_back() {
        // The start is within a word: move it to the next blank, unless there is none.
        Some(c) if !c.is_whitespace() => {
            text[start..found.start].find(char::is_whitespace).map_or(start, |at| start + at)
        }
        _ => start,
    };
    let end = floor_word(text, (start + width).max(found.end)).max(ceil_grapheme(text, found.end));
    (start, end)
}

/// The end of the last word that ends at most 32 bytes before `at`; `at` itself if there is none.
fn floor_word(text: &str, at: usize) -> usize {
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

/// The last boundary of characters up to `at`.
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
    // The error means that context is missing, which cannot be: the cursor has the whole text.
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

/// Copies a range of a text to a snippet, on one line, and translates the `marks` in the range.
fn to_one_line(text: &str, range: Range<usize>, marks: impl Iterator<Item = Range<usize>>) -> Snippet {
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

/// Appends a text with single spaces in place of white space and control characters.
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

    /// Finds a term among the parts of a query; a part that ends in `*` matches a first grapheme cluster.
    fn find_in(terms: &[&str], term: &str) -> Option<TermMatch> {
        let matches = |other: &&str| match other.strip_suffix('*') {
            Some(cluster) => first_cluster(term) == cluster,
            None => *other == term,
        };
        let number = terms.iter().position(matches)?;
        Some(TermMatch { number, is_first_cluster: terms[number].ends_with('*') })
    }

    /// The snippet of a text with its marks in brackets.
    fn bracketed_snippet(text: &str, terms: &[&str], width: usize) -> String {
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
        assert_eq!(bracketed_snippet(text, &["cat", "dog"], 30), "… nine [Cat] and [dog] ten eleven …");
        assert_eq!(bracketed_snippet(text, &["zebra"], 14), "cat one two …");
        assert_eq!(bracketed_snippet("", &["a"], 10), "");
        assert_eq!(bracketed_snippet("a\u{0}b", &["b"], 10), "a [b]");
        assert_eq!(
            bracketed_snippet("catalogue", &["cat"], 3),
            "cat …",
            "the token continues after the snippet"
        );
    }

    #[test]
    fn marks_are_whole_grapheme_clusters() {
        assert_eq!(bracketed_snippet("東京都に住む", &["東京", "京都"], 100), "[東京都]に住む");
        assert_eq!(bracketed_snippet("東京都と京", &["京*"], 100), "東[京]都と[京]");
        assert_eq!(bracketed_snippet("ภาษาไทยดี", &["ไท", "ทย"], 100), "ภาษา[ไทย]ดี");
        assert_eq!(
            bracketed_snippet("a re\u{301}sume\u{301}.", &["r\u{e9}sum\u{e9}"], 100),
            "a [re\u{301}sume\u{301}]."
        );
        let text = "か\u{3099}".repeat(40);
        let shown = bracketed_snippet(&text, &["がが"], 31);
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
