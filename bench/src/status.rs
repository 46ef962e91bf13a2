//! The status line of a terminal.

use std::io::{IsTerminal, Write, stderr};

/// Replaces the last line of the terminal by `text`, which says what is being measured. Does nothing without
/// a terminal.
pub fn show_status(text: &str) {
    let mut terminal = stderr();
    if terminal.is_terminal() {
        // A closed terminal does not end the run.
        let _ = write!(terminal, "\r{text:<60}\r").and_then(|()| terminal.flush());
    }
}
