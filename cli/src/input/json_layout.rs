//! Detects the JSON layout of a file from its first bytes: JSON lines, an array, or objects over several
//! lines.
//!
//! Chunks are cut at line ends and parsed separately, so arrays and objects over several lines cannot be
//! read. They must not be read as JSON lines either: single lines of them may be valid objects, and only
//! those would be indexed.

use super::byte_order_mark;
use memchr::memchr;
use serde::de::IgnoredAny;

/// Number of first bytes of a file that are inspected.
pub(super) const INSPECTED_BYTES: u64 = 64 << 10;

/// JSON layout of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JsonLayout {
    /// The first line is a JSON object.
    Lines,
    /// A JSON array of objects.
    Array,
    /// A JSON object over several lines.
    Multiline,
    /// Not JSON, or an incomplete object.
    Other,
}

impl JsonLayout {
    /// The layout of a file that begins with `head`.
    pub fn detect(head: &[u8]) -> JsonLayout {
        let text = byte_order_mark::strip_byte_order_mark(head).trim_ascii_start();
        match text.first() {
            Some(b'[') if is_array_of_objects(text) => JsonLayout::Array,
            Some(b'{') => JsonLayout::detect_object_layout(text, head.len() as u64 >= INSPECTED_BYTES),
            _ => JsonLayout::Other,
        }
    }

    fn detect_object_layout(text: &[u8], cut: bool) -> JsonLayout {
        let line = &text[..memchr(b'\n', text).unwrap_or(text.len())];
        let mut values = serde_json::Deserializer::from_slice(text).into_iter::<IgnoredAny>();
        let unfinished = match values.next() {
            Some(Err(error)) => error.is_eof(),
            _ => false,
        };
        match values.byte_offset() {
            // The whole file is an incomplete object: reported line by line as malformed.
            _ if unfinished && !cut => JsonLayout::Other,
            _ if unfinished && line.len() == text.len() => JsonLayout::Lines,
            _ if unfinished => JsonLayout::Multiline,
            end if end > line.len() => JsonLayout::Multiline,
            end if end > 0 && line[end..].trim_ascii().is_empty() => JsonLayout::Lines,
            _ => JsonLayout::Other,
        }
    }

    /// Error message with the command that converts the file, for layouts that cannot be read.
    pub fn conversion_advice(self, file: Option<&str>) -> Option<String> {
        let (layout, filter) = match self {
            JsonLayout::Array => ("a JSON array", "'.[]'"),
            JsonLayout::Multiline => ("JSON objects over several lines", "."),
            JsonLayout::Lines | JsonLayout::Other => return None,
        };
        let file = file.map(|file| format!(" {file}")).unwrap_or_default();
        Some(format!("this is {layout}, not JSON lines; convert it with `jq -c {filter}{file}`"))
    }
}

/// Whether `[` is followed by the first member of an object, or by an empty object.
fn is_array_of_objects(text: &[u8]) -> bool {
    let element = text[1..].trim_ascii_start();
    let object = element.strip_prefix(b"{").map(<[u8]>::trim_ascii_start);
    object.is_some_and(|object| matches!(object.first(), None | Some(b'"' | b'}')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_layout(head: &str, expected: JsonLayout) {
        assert_eq!(JsonLayout::detect(head.as_bytes()), expected, "{head}");
    }

    #[test]
    fn the_first_bytes_determine_the_layout() {
        use JsonLayout::{Array, Lines, Multiline, Other};
        for lines in ["{}", "{\"a\":1}\n", "\u{feff}\r\n {\"a\":{}} \r\nx", "{\"a\":1}\n{\n\"b\":2}"] {
            check_layout(lines, Lines);
        }
        for array in ["[{\"a\":1},", "[\n  {\n \"a\"", " [ {}, {}]", "[{"] {
            check_layout(array, Array);
        }
        let long = format!("{{\"a\":1,\n{}", "\"b\":2,\n".repeat(INSPECTED_BYTES as usize));
        for spread in ["{\n\"a\":1\n}", "{\"a\":1,\n\"b\":2} x", &long[..INSPECTED_BYTES as usize]] {
            check_layout(spread, Multiline);
        }
        for other in ["", "x", "[1]", "[]", "[link](x)", "{", "{x}", "{\"a\":1} x", "{\"a\":\n{\"a\":1}\n"] {
            check_layout(other, Other);
        }
        check_layout("{\"id\":1,\"te\n{\"id\":2}", Other);
        check_layout("{\"text\":\"a\"\n{\"text\":\"b\"}", Other);
    }

    #[test]
    fn a_first_line_longer_than_the_head_is_a_json_line() {
        let long = format!("{{\"a\":\"{}", "x".repeat(INSPECTED_BYTES as usize));
        check_layout(&long[..INSPECTED_BYTES as usize], JsonLayout::Lines);
        check_layout(&long[..INSPECTED_BYTES as usize - 1], JsonLayout::Other);
    }
}
