//! Lines of JSON, and the documents or problems that they are.

use super::super::members::InputMembers;
use super::*;
use tierdex::schema::{Field, Schema, Stored};

#[track_caller]
fn check_document(line: &str, id: Option<&str>, title: &str, text: &str) {
    let found = parse_json_line(line, &InputOptions::default(), &mut Unindexed::default()).unwrap();
    assert_eq!((found.id.as_deref(), &*found.joined(0), &*found.joined(1)), (id, title, text));
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
    check_document(r#" {"text" : "x", "more": {"id":[1,{"text":"no"}]}, "id":"a" } "#, Some("a"), "", "x");
    check_document(r#"{"text":"","title":null,"id":null}"#, None, "", "");
    check_document(r#"{"text":["a","b\n",""]}"#, None, "", "a\nb\n\n");
    check_document(r#"{"text":["a",null,["b"]]}"#, None, "", "a\nb");
    check_document(r#"{"text":[]}"#, None, "", "");
    check_document(r#"{"text":"1","text":"2"}"#, None, "", "2");
    check_document(r#"{"text":["1","2"],"title":"t","text":null,"title":["u"]}"#, None, "u", "");
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
    let values = found.values.iter().map(|(_, value)| value);
    assert_eq!(found.id.iter().chain(values).filter(|value| borrowed(value)).count(), 3);
}

#[test]
fn member_names_are_configurable() {
    let paths = vec!["headline".to_string(), "body".to_string()];
    let members = InputMembers { paths, ..InputMembers::default() };
    let options = InputOptions { id_field: "docno".to_string(), members, ..InputOptions::default() };
    let found = parse_json_line(
        r#"{"id":5,"docno":6,"text":7,"body":"b","headline":"h"}"#,
        &options,
        &mut Unindexed::default(),
    )
    .unwrap();
    let expected = (Some("6"), "h", "b");
    assert_eq!((found.id.as_deref(), &*found.joined(0), &*found.joined(1)), expected);
}

#[test]
fn members_of_nested_objects_and_arrays_are_values() {
    let fields = ["subject", "to.name", "headers.list", "headers"].map(|member| Field::new("f", &[member]));
    let mut schema = Schema::of(fields.into());
    schema.stored = Stored::All;
    let options = InputOptions {
        id_field: "headers.id".to_string(),
        members: InputMembers::of(&schema),
        ..InputOptions::default()
    };
    let parse = |line: &'static str| parse_json_line(line, &options, &mut Unindexed::default());
    let found = parse(
        r#"{"subject":"s","to":[{"name":"a","address":1},{"name":["b","c"]},{},5,"x"],"size":[1,{"a":2}],
            "headers":{"id":"i","list":null,"date":"d"}}"#,
    )
    .unwrap();
    let values = found.values.iter().map(|(member, value)| (schema.members[*member].as_str(), &**value));
    let expected = [("subject", "s"), ("to.name", "a"), ("to.name", "b"), ("to.name", "c")];
    assert_eq!(values.collect::<Vec<_>>(), expected);
    assert_eq!(found.id.as_deref(), Some("i"));
    let others = r#"{"headers.date":"d","size":[1,{"a":2}],"to":[5,"x"],"to.address":1}"#;
    assert_eq!(found.others, others);
    assert_eq!(parse(r#"{"to":[{"name":"a"}],"to":{"name":"b"}}"#).unwrap().joined(2), "b");
    assert_eq!(parse(r#"{"headers":"plain"}"#).unwrap().joined(4), "plain");
    assert_eq!(parse(r#"{"headers.list":"dotted"}"#).unwrap().joined(3), "dotted");
    let error = |line| parse(line).unwrap_err().message;
    assert_eq!(
        error(r#"{"url":1}"#),
        "the object has `url`, and none of the members title, subject, to.name, headers.list, headers"
    );
    assert!(error(r#"{"to":5}"#).starts_with("the object has `to`, and none of the members"));
    let found = parse(r#"{"subject":"s","to":[{"address":"b"},{"address":"c"}]}"#).unwrap();
    assert_eq!(found.others, r#"{"to.address":["b","c"]}"#);
    assert!(error(r#"{"to":{"name":{"a":1}}}"#).contains("array of strings in `to.name`"));
    assert!(error(r#"{"headers":{"id":[]}}"#).contains("`headers.id` must be a string or a number"));
}

#[test]
fn long_lines_take_linear_time() {
    // Pairs of values and repetitions would be 10^10.
    const COUNT: usize = 100_000;
    let list = vec!["\"a\""; COUNT].join(",");
    let title = vec!["\"title\":\"b\""; COUNT].join(",");
    let others: String = (0..COUNT).map(|number| format!("\"m{number}\":0,")).collect();
    let line = format!(r#"{{"text":[{list}],{others}{title}}}"#);
    let schema = Schema { stored: Stored::All, ..Schema::default() };
    let options = InputOptions { members: InputMembers::of(&schema), ..InputOptions::default() };
    let found = parse_json_line(&line, &options, &mut Unindexed::default()).unwrap();
    assert_eq!((found.values.len(), &*found.joined(0)), (COUNT + 1, "b"));
    assert_eq!((found.joined(1).len(), found.others.len()), (2 * COUNT - 1, others.len() + 1));
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
    check_document(&format!("{{\"more\":{deep}{},\"text\":\"a\"}}", "]".repeat(1_000_000)), None, "", "a");
}
