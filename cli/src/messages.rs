//! Messages for people, on standard error. A message that cannot be written (a full disk, a closed pipe) is
//! dropped: it must end neither the work nor the command with another exit code.

use std::fmt::Display;
use std::io::{Write, stderr};

/// Writes one line, behind the name of the program.
pub fn say(message: impl Display) {
    line(&format!("tierdex: {message}"));
}

/// Writes one line as it is.
pub fn line(text: &str) {
    write(printable(text) + "\n");
}

/// Writes a report of several lines.
pub fn report(lines: &str) {
    write(lines.lines().map(|line| printable(line) + "\n").collect());
}

/// In one call, so that lines of several threads or processes do not mix.
fn write(text: String) {
    let _ = stderr().lock().write_all(text.as_bytes());
}

/// Blanks in place of control characters and of those that change the direction of text, both of which could
/// make a terminal show something else than what is written.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if is_printable(c) { c } else { ' ' }).collect()
}

/// Whether a character neither controls a terminal nor changes the direction of text.
pub fn is_printable(c: char) -> bool {
    !c.is_control() && !changes_direction(c)
}

fn changes_direction(c: char) -> bool {
    matches!(c, '\u{061C}' | '\u{200E}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_are_not_steered() {
        assert_eq!(printable("a\nb\t\x1b[31mc\u{9b}d\u{7f}"), "a b  [31mc d ");
        assert_eq!(printable("x\u{202E}fdp.exe \u{2066}y\u{2069}\u{200F}"), "x fdp.exe  y  ");
        assert_eq!(printable("caf\u{e9} \u{65e5}\u{672c}"), "caf\u{e9} \u{65e5}\u{672c}");
    }
}
