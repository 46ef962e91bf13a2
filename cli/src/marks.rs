//! Marking matches in a snippet.

use tierdex::text::Snippet;

/// Writes the snippet with `open` before and `close` behind each match.
pub fn mark(snippet: &Snippet, open: &str, close: &str) -> String {
    let mut out = String::with_capacity(snippet.text.len() + 8 * snippet.marks.len());
    let mut at = 0;
    for range in &snippet.marks {
        out.push_str(&snippet.text[at..range.start]);
        out.push_str(open);
        out.push_str(&snippet.text[range.clone()]);
        out.push_str(close);
        at = range.end;
    }
    out.push_str(&snippet.text[at..]);
    out
}
