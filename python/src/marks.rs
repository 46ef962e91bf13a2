//! Texts with marked matches.

use std::borrow::Cow;
use tierdex::analysis::Snippet;

/// Text and the byte ranges of its matches, in order.
pub type MarkedText = (String, Vec<(usize, usize)>);

/// Whether the byte ranges ascend and begin and end at characters of the text.
pub fn has_valid_marks(marked: &MarkedText) -> bool {
    let (text, marks) = marked;
    let ends = marks.iter().flat_map(|(start, end)| [*start, *end]);
    ends.is_sorted() && marks.iter().all(|(start, end)| text.get(*start..*end).is_some())
}

/// The text with `open` before and `close` after each match; with `escapes`, the text is escaped for HTML.
pub fn insert_marks(marked: &MarkedText, open: &str, close: &str, escapes: bool) -> String {
    let (text, marks) = marked;
    let marks = marks.iter().map(|(start, end)| *start..*end).collect();
    let escape: fn(&str) -> Cow<'_, str> = if escapes { escape_html } else { |text| text.into() };
    Snippet { text: text.clone(), marks }.highlight(open, close, escape)
}

/// The text with the special characters of HTML escaped.
fn escape_html(text: &str) -> Cow<'_, str> {
    if !text.contains(['&', '<', '>', '"', '\'']) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}
