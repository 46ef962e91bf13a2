//! External ids: which ids are accepted from users, and how ids are written to a TREC run.

use std::{borrow::Cow, fmt::Write};

/// Checks an external id: it must not be empty, and must not have control characters or line separators,
/// which could end a line or a column of a run, or control a terminal.
///
/// # Errors
/// A text that says what is wrong with the id.
pub fn check_id(id: &str) -> Result<(), String> {
    if id.is_empty() {
        return Err("the id is empty".to_string());
    }
    match id.char_indices().find(|(_, c)| is_rejected(*c)) {
        Some((at, c)) => {
            Err(format!("the id has the control character U+{:04X} at byte {}", c as u32, at + 1))
        }
        None => Ok(()),
    }
}

/// The form of an id in a TREC run, where white space separates columns. In an id with white space or control
/// characters these and `%` are percent-encoded, an empty id is `%`, and other ids are unchanged. Two ids
/// that are encoded have different forms; an unchanged id may be equal to the form of another.
pub fn run_id(id: &str) -> Cow<'_, str> {
    let is_encoded = |c: char| c.is_whitespace() || c.is_control();
    if id.is_empty() {
        return Cow::Owned("%".to_string());
    }
    if !id.contains(is_encoded) {
        return Cow::Borrowed(id);
    }
    let mut out = String::with_capacity(id.len() + 8);
    for c in id.chars() {
        if is_encoded(c) || c == '%' {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                // Writing to a string does not fail.
                let _ = write!(out, "%{byte:02X}");
            }
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

fn is_rejected(c: char) -> bool {
    matches!(c, '\0'..='\u{1f}' | '\u{7f}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_ids_and_control_characters_are_rejected() {
        for id in ["a", " ", "a b", "\u{a0}", "\u{80}", "\u{86}", "\u{202e}", "\u{feff}", "é"] {
            assert_eq!(check_id(id), Ok(()), "{id:?}");
        }
        for c in ['\0', '\t', '\n', '\u{1f}', '\u{7f}', '\u{85}', '\u{2028}', '\u{2029}'] {
            let error = check_id(&format!("é{c}")).unwrap_err();
            assert!(error.ends_with(&format!("U+{:04X} at byte 3", c as u32)), "{error}");
        }
        assert!(check_id("").is_err());
    }

    #[test]
    fn ids_that_differ_are_written_differently() {
        for (id, written) in [
            ("a_b", "a_b"),
            ("a%20b", "a%20b"),
            ("a b", "a%20b"),
            ("a\tb", "a%09b"),
            ("50% off", "50%25%20off"),
            ("a\u{a0}b", "a%C2%A0b"),
            ("\u{1}", "%01"),
            ("", "%"),
            (" ", "%20"),
        ] {
            assert_eq!(run_id(id), written, "{id:?}");
        }
    }
}
