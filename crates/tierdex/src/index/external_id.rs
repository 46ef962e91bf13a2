//! The rule for external ids of documents from files and users.

/// Checks an external id: it is not empty, and has no control characters and no line separators, which would
/// end a line or a column of a run or be taken for something else by a terminal.
///
/// # Errors
/// What is wrong, for a message that names the document.
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
}
