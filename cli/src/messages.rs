//! Writes messages to standard error. A message that cannot be written (a full disk, a closed pipe) is
//! dropped: it neither stops the command nor changes its exit code.

use std::fmt::Display;
use std::io::{Write, stderr};

/// Writes one line with the prefix `tierdex: `.
pub fn print_message(message: impl Display) {
    print_line(&format!("tierdex: {message}"));
}

/// Writes one line without a prefix.
pub fn print_line(text: &str) {
    write_to_stderr(make_printable(text) + "\n");
}

/// Writes several lines.
pub fn print_lines(lines: &str) {
    write_to_stderr(lines.lines().map(|line| make_printable(line) + "\n").collect());
}

/// Writes all bytes in one call, so that lines of concurrent threads and processes do not interleave.
fn write_to_stderr(text: String) {
    let _ = stderr().lock().write_all(text.as_bytes());
}

/// Replaces control characters and bidirectional formatting characters by blanks. Both could make a terminal
/// show something other than the text.
pub fn make_printable(text: &str) -> String {
    text.chars().map(|c| if is_printable(c) { c } else { ' ' }).collect()
}

/// Whether a character is neither a control character nor a bidirectional formatting character.
pub fn is_printable(c: char) -> bool {
    !c.is_control() && !is_bidirectional_control(c)
}

fn is_bidirectional_control(c: char) -> bool {
    matches!(c, '\u{061C}' | '\u{200E}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_and_bidirectional_characters_become_blanks() {
        assert_eq!(make_printable("a\nb\t\x1b[31mc\u{9b}d\u{7f}"), "a b  [31mc d ");
        assert_eq!(make_printable("x\u{202E}fdp.exe \u{2066}y\u{2069}\u{200F}"), "x fdp.exe  y  ");
        assert_eq!(make_printable("caf\u{e9} \u{65e5}\u{672c}"), "caf\u{e9} \u{65e5}\u{672c}");
    }
}
