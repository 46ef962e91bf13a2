//! Truncates and pads text to the column width that a terminal displays.

use console::{Term, measure_text_width};

/// Width of the output if standard output is not a terminal, in columns.
const DEFAULT_WIDTH: usize = 100;

/// Width of the terminal on standard output, in columns.
pub fn terminal_columns() -> usize {
    Term::stdout().size_checked().map_or(DEFAULT_WIDTH, |(_, columns)| usize::from(columns))
}

/// Truncates `text` to `width` columns, the last of which is an ellipsis.
pub fn truncate_to_width(text: &str, width: usize) -> String {
    let (mut kept, mut taken) = (0, 0);
    for (at, c) in text.char_indices() {
        taken += measure_text_width(c.encode_utf8(&mut [0; 4]));
        if taken > width {
            return text[..kept].to_string() + "…";
        }
        // One column is reserved for the ellipsis.
        if taken < width {
            kept = at + c.len_utf8();
        }
    }
    text.to_string()
}

/// Pads `text` with blanks to `width` columns.
pub fn pad_to_width(text: &str, width: usize) -> String {
    text.to_string() + &" ".repeat(width.saturating_sub(measure_text_width(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_truncated_and_padded_to_columns() {
        for (text, width, expected) in [
            ("title", 5, "title"),
            ("title", 4, "tit…"),
            ("", 0, ""),
            ("a", 0, "…"),
            ("日本語", 6, "日本語"),
            ("日本語", 5, "日本…"),
            ("日本語", 4, "日…"),
        ] {
            assert_eq!(truncate_to_width(text, width), expected, "{text}, {width}");
        }
        assert_eq!(
            (pad_to_width("日", 4), pad_to_width("title", 2)),
            ("日  ".to_string(), "title".to_string())
        );
    }
}
