//! Highlights the matches of a snippet.

use tierdex::analysis::Snippet;

/// The text of a snippet with `open` before and `close` after each match. `escape` is applied to the text
/// only.
pub fn highlight(snippet: &Snippet, open: &str, close: &str, escape: fn(&str) -> String) -> String {
    let mut out = String::with_capacity(snippet.text.len() + 8 * snippet.marks.len());
    let mut at = 0;
    for range in &snippet.marks {
        out.push_str(&escape(&snippet.text[at..range.start]));
        out.push_str(open);
        out.push_str(&escape(&snippet.text[range.clone()]));
        out.push_str(close);
        at = range.end;
    }
    out.push_str(&escape(&snippet.text[at..]));
    out
}
