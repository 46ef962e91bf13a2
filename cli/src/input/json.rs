//! Parses a JSON line: one object.
//!
//! The parser visits the members and keeps id, title and text; strings without escapes are borrowed from the
//! line, and other members are skipped. No tree is built.

use super::report::{LineProblem, ProblemKind};
use super::{options::InputOptions, sink::InputDocument, tsv, unindexed::Unindexed};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::{borrow::Cow, fmt};

/// Maximum number of member names in a message.
const MEMBERS_SHOWN_MAX: usize = 8;

/// Bytes that are kept at the start and at the end of a long message of the parser, which quotes unexpected
/// values in full.
const MESSAGE_END_BYTES: usize = 80;

/// Parses the document of a line.
///
/// A text of null is empty. Without a text the object must have a title, and no members but id and title.
/// Other members are counted in `unindexed`.
pub(super) fn parse_json_line<'l>(
    line: &'l str,
    options: &InputOptions,
    unindexed: &mut Unindexed,
) -> Result<InputDocument<'l>, LineProblem> {
    let mut parser = serde_json::Deserializer::from_str(line);
    let reader = ObjectReader { options, unindexed };
    let members = reader.deserialize(&mut parser).map_err(|error| malformed_line(line, &error))?;
    parser.end().map_err(|error| malformed_line(line, &error))?;
    if !members.has_text && (members.has_others || members.title.is_none()) {
        return Err(missing_text(line, options));
    }
    let ObjectMembers { id, title, text, .. } = members;
    Ok(InputDocument {
        id,
        title: title.unwrap_or_default(),
        text: text.unwrap_or_default(),
        first_part: None,
    })
}

fn malformed_line(line: &str, error: &serde_json::Error) -> LineProblem {
    let object = line.trim_start().starts_with('{');
    let kind = if error.is_data() && object { ProblemKind::Member } else { ProblemKind::Json };
    LineProblem { kind, message: explain_error(error) }
}

/// The problem of an object without text. Lists the members, as the text often has another name.
fn missing_text(line: &str, options: &InputOptions) -> LineProblem {
    let mut parser = serde_json::Deserializer::from_str(line);
    let names = parser.deserialize_map(MemberNames).unwrap_or_default();
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let has = if names.is_empty() { "no members".to_string() } else { quoted.join(", ") };
    // A message shortens a long name, so the name is not one that the user can copy into a flag.
    let is_other = |name: &&String| {
        **name != options.id_field && **name != options.title_field && name.len() <= MESSAGE_END_BYTES
    };
    let text = names.iter().filter(is_other).find(|name| tsv::is_text_name(name));
    let advice = match text.or_else(|| names.iter().find(is_other)) {
        Some(name) => format!("name the text as in --text-field {name}, or "),
        None => String::new(),
    };
    let message = format!(
        "no text: the object has {has}, and no `{}`; {advice}give --format text if the file is not JSON",
        options.text_field
    );
    LineProblem { kind: ProblemKind::NoText, message }
}

/// Collects the names of the first members of an object.
struct MemberNames;

impl<'l> Visitor<'l> for MemberNames {
    type Value = Vec<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'l>>(self, mut map: A) -> Result<Vec<String>, A::Error> {
        let mut names = Vec::new();
        while names.len() < MEMBERS_SHOWN_MAX {
            let Some((name, _)) = map.next_entry::<String, IgnoredAny>()? else { return Ok(names) };
            let mut name = name.escape_debug().to_string();
            shorten_message(&mut name);
            names.push(name);
        }
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(names)
    }
}

fn explain_error(error: &serde_json::Error) -> String {
    let mut message = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    let column = message.ends_with(&position).then(|| error.column().max(1));
    message.truncate(message.len() - column.map_or(0, |_| position.len()));
    shorten_message(&mut message);
    let prefix = if error.is_data() { "" } else { "not valid JSON: " };
    match column {
        Some(column) => format!("{prefix}{message} at byte {column}"),
        None => format!("{prefix}{message}"),
    }
}

/// Removes the middle of a long message.
fn shorten_message(message: &mut String) {
    if message.len() > 2 * MESSAGE_END_BYTES {
        let head = message.floor_char_boundary(MESSAGE_END_BYTES);
        let tail = message.ceil_char_boundary(message.len() - MESSAGE_END_BYTES);
        message.replace_range(head..tail, " ... ");
    }
}

/// The members of an object that make up a document. Of repeated members the last value counts.
#[derive(Default)]
struct ObjectMembers<'l> {
    id: Option<Cow<'l, str>>,
    title: Option<Cow<'l, str>>,
    text: Option<Cow<'l, str>>,
    /// Whether there is a text, which may be null.
    has_text: bool,
    /// Whether there are members that are not indexed.
    has_others: bool,
}

struct ObjectReader<'o> {
    options: &'o InputOptions,
    unindexed: &'o mut Unindexed,
}

impl<'l> DeserializeSeed<'l> for ObjectReader<'_> {
    type Value = ObjectMembers<'l>;

    fn deserialize<D: Deserializer<'l>>(self, parser: D) -> Result<ObjectMembers<'l>, D::Error> {
        parser.deserialize_map(self)
    }
}

impl<'l> Visitor<'l> for ObjectReader<'_> {
    type Value = ObjectMembers<'l>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'l>>(self, mut map: A) -> Result<ObjectMembers<'l>, A::Error> {
        let (mut members, ObjectReader { options, unindexed }) = (ObjectMembers::default(), self);
        while let Some(name) = map.next_key_seed(MemberName { options, unindexed: &mut *unindexed })? {
            match name {
                Member::Id => members.id = parse_id(map.next_value()?, &options.id_field)?,
                Member::Title => members.title = map.next_value_seed(StringOrArray(&options.title_field))?,
                Member::Text => {
                    members.text = map.next_value_seed(StringOrArray(&options.text_field))?;
                    members.has_text = true;
                }
                Member::Other => {
                    map.next_value::<IgnoredAny>()?;
                    members.has_others = true;
                }
            }
        }
        Ok(members)
    }
}

enum Member {
    Id,
    Title,
    Text,
    Other,
}

/// Classifies a member by its name, and counts those that are not indexed.
struct MemberName<'o> {
    options: &'o InputOptions,
    unindexed: &'o mut Unindexed,
}

impl<'l> DeserializeSeed<'l> for MemberName<'_> {
    type Value = Member;

    fn deserialize<D: Deserializer<'l>>(self, parser: D) -> Result<Member, D::Error> {
        parser.deserialize_str(self)
    }
}

impl Visitor<'_> for MemberName<'_> {
    type Value = Member;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Member, E> {
        Ok(match name {
            name if name == self.options.text_field => Member::Text,
            name if name == self.options.id_field => Member::Id,
            name if name == self.options.title_field => Member::Title,
            _ => {
                self.unindexed.add(name, 1);
                Member::Other
            }
        })
    }
}

/// An id: a string, a number exactly as written, or null for none.
fn parse_id<'l, E: Error>(raw: &'l RawValue, field: &str) -> Result<Option<Cow<'l, str>>, E> {
    let raw = raw.get();
    match raw.as_bytes().first() {
        Some(b'"') => {
            let mut parser = serde_json::Deserializer::from_str(raw);
            StringOrArray(field).deserialize(&mut parser).map_err(|error| E::custom(explain_error(&error)))
        }
        Some(b'-' | b'0'..=b'9') => Ok(Some(Cow::Borrowed(raw))),
        Some(b'n') => Ok(None),
        _ => Err(E::custom(format_args!("`{field}` must be a string or a number"))),
    }
}

/// A string, an array of strings joined by newlines, or null for none. Holds the member name for messages.
struct StringOrArray<'o>(&'o str);

impl<'l> DeserializeSeed<'l> for StringOrArray<'_> {
    type Value = Option<Cow<'l, str>>;

    fn deserialize<D: Deserializer<'l>>(self, parser: D) -> Result<Self::Value, D::Error> {
        parser.deserialize_any(self)
    }
}

impl<'l> Visitor<'l> for StringOrArray<'_> {
    type Value = Option<Cow<'l, str>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a string or an array of strings in `{}`", self.0)
    }

    fn visit_borrowed_str<E: Error>(self, value: &'l str) -> Result<Self::Value, E> {
        Ok(Some(Cow::Borrowed(value)))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Self::Value, E> {
        Ok(Some(Cow::Owned(value.to_string())))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'l>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut joined = String::new();
        let mut separator = "";
        while let Some(part) = list.next_element::<String>()? {
            joined.push_str(separator);
            joined.push_str(&part);
            separator = "\n";
        }
        Ok(Some(Cow::Owned(joined)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_document(line: &str, id: Option<&str>, title: &str, text: &str) {
        let found = parse_json_line(line, &InputOptions::default(), &mut Unindexed::default()).unwrap();
        assert_eq!((found.id.as_deref(), &*found.title, &*found.text), (id, title, text));
    }

    #[track_caller]
    fn check_error(line: &str, expected: &str) {
        let message =
            parse_json_line(line, &InputOptions::default(), &mut Unindexed::default()).unwrap_err().message;
        assert!(message.contains(expected), "{message}");
        assert!(message.len() < 300 && !message.contains('\n'), "{message}");
    }

    #[test]
    fn id_title_and_text_are_extracted() {
        check_document(r#"{"id":"a","title":"t","text":"x"}"#, Some("a"), "t", "x");
        check_document(
            r#" {"text" : "x", "more": {"id":[1,{"text":"no"}]}, "id":"a" } "#,
            Some("a"),
            "",
            "x",
        );
        check_document(r#"{"text":"","title":null,"id":null}"#, None, "", "");
        check_document(r#"{"text":["a","b\n",""]}"#, None, "", "a\nb\n\n");
        check_document(r#"{"text":[]}"#, None, "", "");
        check_document(r#"{"text":"1","text":"2"}"#, None, "", "2");
        check_document(r#"{"text":null,"url":"x"}"#, None, "", "");
        check_document(r#"{"title":"t"}"#, None, "t", "");
        check_document(r#"{"id":"a","title":""}"#, Some("a"), "", "");
        check_document(r#"{"t\u0065xt":"\u00e9\ud83d\ude00\"\\","id":"\n"}"#, Some("\n"), "", "é😀\"\\");
        check_document("{\"text\":\"a\\u0000b\"}", None, "", "a\0b");
    }

    #[test]
    fn numbers_stay_as_written() {
        for number in ["0", "-0", "17", "1.0", "1e3", "-2.50E+007", "123456789012345678901234567890"] {
            check_document(&format!(r#"{{"id": {number} ,"text":""}}"#), Some(number), "", "");
        }
    }

    #[test]
    fn strings_without_escapes_are_borrowed() {
        let found = parse_json_line(
            r#"{"id":"a","title":"t","text":"x"}"#,
            &InputOptions::default(),
            &mut Unindexed::default(),
        )
        .unwrap();
        let borrowed = |value: &Cow<'_, str>| matches!(value, Cow::Borrowed(_));
        assert!(found.id.as_ref().is_some_and(borrowed) && borrowed(&found.title) && borrowed(&found.text));
    }

    #[test]
    fn member_names_are_configurable() {
        let options = InputOptions {
            id_field: "docno".to_string(),
            title_field: "headline".to_string(),
            text_field: "body".to_string(),
            ..InputOptions::default()
        };
        let found = parse_json_line(
            r#"{"id":5,"docno":6,"text":7,"body":"b","headline":"h"}"#,
            &options,
            &mut Unindexed::default(),
        )
        .unwrap();
        assert_eq!((found.id.as_deref(), &*found.title, &*found.text), (Some("6"), "h", "b"));
    }

    #[test]
    fn malformed_lines_have_a_message_with_the_position() {
        check_error("{", "not valid JSON: EOF while parsing an object at byte 1");
        check_error(r#"{"text":"a"} x"#, "not valid JSON: trailing characters at byte 14");
        check_error(r#"{"text":"a"}{"text":"b"}"#, "trailing characters");
        check_error("{\"text\":\"a\tb\"}", "not valid JSON: control character");
        check_error(r#"{"text":"\ud800"}"#, "not valid JSON");
        check_error(r#"{"id":"\ud800","text":""}"#, "not valid JSON");
        check_error("[1]", "expected a JSON object");
        check_error("5", "expected a JSON object");
        check_error(&format!("\"{}\"", "é".repeat(1000)), "expected a JSON object");
        check_error(r#"{}"#, "no text: the object has no members, and no `text`; give --format text");
        check_error(
            r#"{"id":1,"b\ny":{"c":2}}"#,
            "has `id`, `b\\ny`, and no `text`; name the text as in --text-field b",
        );
        check_error(r#"{"id":1,"url":"","Body":""}"#, "--text-field Body, or");
        check_error(r#"{"id":1,"title":"t","url":""}"#, "--text-field url, or");
        check_error(r#"{"id":1,"title":null}"#, "the object has `id`, `title`, and no `text`; give");
        check_error(&format!(r#"{{"{}":1}}"#, "n".repeat(1000)), "nn ... nn");
        let many: String = (0..100).map(|i| format!(r#""m{i}":{i},"#)).collect();
        check_error(&format!(r#"{{{many}"z":1}}"#), "`m6`, `m7`, and no");
        check_error(r#"{"text":5}"#, "expected a string or an array of strings in `text`");
        check_error(r#"{"text":["a",5]}"#, "expected a string");
        check_error(r#"{"text":["a",["b"]]}"#, "expected a string");
        check_error(r#"{"title":{},"text":""}"#, "strings in `title`");
        check_error(r#"{"id":true,"text":""}"#, "`id` must be a string or a number");
        check_error(r#"{"id":{"a":1},"text":""}"#, "`id` must be a string or a number");
        check_error("nope", "not valid JSON");
    }

    #[test]
    fn deep_nesting_does_not_overflow_the_stack() {
        let deep = "[".repeat(1_000_000);
        check_error(&format!("{{\"more\":{deep}"), "not valid JSON");
        check_error(&format!("{{\"id\":{deep}"), "not valid JSON");
        check_error(&format!("{{\"text\":{deep}"), "");
        check_document(
            &format!("{{\"more\":{deep}{},\"text\":\"a\"}}", "]".repeat(1_000_000)),
            None,
            "",
            "a",
        );
    }
}
