//! Finds the brackets and quotation marks of a query that have no pair: they are text.

use crate::text::is_in_hebrew_word;

/// Offsets of the round brackets and quotation marks of `text` without a pair, ascending. Those between
/// quotation marks, after a backslash and between Hebrew letters do not count.
pub(super) fn find_unpaired(text: &str) -> Vec<usize> {
    let (mut open, mut unpaired) = (Vec::new(), Vec::new());
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let next = at + c.len_utf8();
        at = match c {
            '\\' => next + text[next..].chars().next().map_or(0, char::len_utf8),
            '(' => {
                open.push(at);
                next
            }
            ')' => {
                if open.pop().is_none() {
                    unpaired.push(at);
                }
                next
            }
            '"' if !is_in_hebrew_word(text, at) => match end_of_phrase(text, next) {
                Some(end) => end,
                None => {
                    unpaired.push(at);
                    next
                }
            },
            _ => next,
        };
    }
    unpaired.append(&mut open);
    unpaired.sort_unstable();
    unpaired
}

/// The end of the phrase whose words begin at `at`, behind its closing quotation mark.
pub(super) fn end_of_phrase(text: &str, at: usize) -> Option<usize> {
    let mut chars = text[at..].char_indices();
    while let Some((offset, c)) = chars.next() {
        match c {
            '"' if !is_in_hebrew_word(text, at + offset) => return Some(at + offset + 1),
            '\\' => drop(chars.next()),
            _ => {}
        }
    }
    None
}
