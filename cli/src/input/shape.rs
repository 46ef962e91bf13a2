//! What the beginning of a file tells about its form: whether it is JSON, and whether one object is on each
//! line.
//!
//! Pieces are cut at line ends and parsed apart, so an array or an object over several lines cannot be read.
//! It must not be taken for lines either: some of these may happen to be whole objects, and be all that is
//! indexed.

use super::without_mark;
use memchr::memchr;
use serde::de::IgnoredAny;

/// Bytes of a file that are looked at.
pub(super) const HEAD_BYTES: u64 = 64 << 10;

/// The form of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// The first line is a JSON object.
    JsonLines,
    /// A JSON array of objects.
    JsonArray,
    /// A JSON object over several lines.
    JsonSpread,
    Other,
}

impl Shape {
    /// The form of a file that begins with `head`.
    pub fn of(head: &[u8]) -> Shape {
        let text = without_mark(head).trim_ascii_start();
        match text.first() {
            Some(b'[') if is_array_of_objects(text) => Shape::JsonArray,
            Some(b'{') => Shape::of_object(text, head.len() as u64 >= HEAD_BYTES),
            _ => Shape::Other,
        }
    }

    fn of_object(text: &[u8], cut: bool) -> Shape {
        let line = &text[..memchr(b'\n', text).unwrap_or(text.len())];
        let mut values = serde_json::Deserializer::from_slice(text).into_iter::<IgnoredAny>();
        let unfinished = match values.next() {
            Some(Err(error)) => error.is_eof(),
            _ => false,
        };
        match values.byte_offset() {
            // A whole file that ends in its first object is broken, and which lines are is told one by one.
            _ if unfinished && !cut => Shape::Other,
            _ if unfinished && line.len() == text.len() => Shape::JsonLines,
            _ if unfinished => Shape::JsonSpread,
            end if end > line.len() => Shape::JsonSpread,
            end if end > 0 && line[end..].trim_ascii().is_empty() => Shape::JsonLines,
            _ => Shape::Other,
        }
    }

    /// What the user can do about a form that is not read.
    pub fn advice(self, file: Option<&str>) -> Option<String> {
        let (what, filter) = match self {
            Shape::JsonArray => ("a JSON array", "'.[]'"),
            Shape::JsonSpread => ("JSON objects over several lines", "."),
            Shape::JsonLines | Shape::Other => return None,
        };
        let file = file.map(|file| format!(" {file}")).unwrap_or_default();
        Some(format!("this is {what}; write one object a line, as `jq -c {filter}{file}` does"))
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
    fn check(head: &str, expected: Shape) {
        assert_eq!(Shape::of(head.as_bytes()), expected, "{head}");
    }

    #[test]
    fn beginnings_tell_the_form() {
        use Shape::{JsonArray, JsonLines, JsonSpread, Other};
        for lines in ["{}", "{\"a\":1}\n", "\u{feff}\r\n {\"a\":{}} \r\nx", "{\"a\":1}\n{\n\"b\":2}"] {
            check(lines, JsonLines);
        }
        for array in ["[{\"a\":1},", "[\n  {\n \"a\"", " [ {}, {}]", "[{"] {
            check(array, JsonArray);
        }
        let long = format!("{{\"a\":1,\n{}", "\"b\":2,\n".repeat(HEAD_BYTES as usize));
        for spread in ["{\n\"a\":1\n}", "{\"a\":1,\n\"b\":2} x", &long[..HEAD_BYTES as usize]] {
            check(spread, JsonSpread);
        }
        for other in ["", "x", "[1]", "[]", "[link](x)", "{", "{x}", "{\"a\":1} x", "{\"a\":\n{\"a\":1}\n"] {
            check(other, Other);
        }
        check("{\"id\":1,\"te\n{\"id\":2}", Other);
        check("{\"text\":\"a\"\n{\"text\":\"b\"}", Other);
    }

    #[test]
    fn a_first_line_longer_than_the_head_is_a_line() {
        let long = format!("{{\"a\":\"{}", "x".repeat(HEAD_BYTES as usize));
        check(&long[..HEAD_BYTES as usize], Shape::JsonLines);
        check(&long[..HEAD_BYTES as usize - 1], Shape::Other);
    }
}
