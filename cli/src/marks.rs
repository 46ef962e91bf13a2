//! Marking matches in a snippet.

use tierdex::text::Snippet;

/// The snippet with `open` before and `close` behind each match; its text as `shown` gives it.
pub fn mark(snippet: &Snippet, open: &str, close: &str, shown: fn(&str) -> String) -> String {
    let mut out = String::with_capacity(snippet.text.len() + 8 * snippet.marks.len());
    let mut at = 0;
    for range in &snippet.marks {
        out.push_str(&shown(&snippet.text[at..range.start]));
        out.push_str(open);
        out.push_str(&shown(&snippet.text[range.clone()]));
        out.push_str(close);
        at = range.end;
    }
    out.push_str(&shown(&snippet.text[at..]));
    out
}
