//! Values of all types as texts, also where a file has them in dictionaries and lists.

use super::files::{Layout, arrow_file, arrow_stream, parquet_file};
use crate::workspace::Workspace;
use arrow_array::builder::{
    FixedSizeListBuilder, Int32Builder, LargeListBuilder, ListBuilder, StringBuilder,
};
use arrow_array::builder::{MapBuilder, StringDictionaryBuilder};
use arrow_array::types::{Int16Type, UInt8Type};
use arrow_array::*;
use serde_json::{Value, json};
use std::sync::Arc;

/// Columns of two rows, whose second value is null, with the JSON of the first.
fn columns() -> Vec<(&'static str, ArrayRef, Value)> {
    let timestamp = |zone: Option<&str>| {
        let column = TimestampMicrosecondArray::from(vec![Some(1_700_000_000_250_000), None]);
        zone.map_or(column.clone(), |zone| column.with_timezone(zone))
    };
    let decimal = Decimal128Array::from(vec![Some(-12_345), None]).with_precision_and_scale(9, 2).unwrap();
    let fixed =
        FixedSizeBinaryArray::try_from_sparse_iter_with_size([Some([0xAB_u8, 1]), None].into_iter(), 2)
            .unwrap();
    let mut columns: Vec<(&str, ArrayRef, Value)> = vec![
        ("int8", Arc::new(Int8Array::from(vec![Some(-8), None])), json!(-8)),
        ("int16", Arc::new(Int16Array::from(vec![Some(-16), None])), json!(-16)),
        ("int32", Arc::new(Int32Array::from(vec![Some(-32), None])), json!(-32)),
        ("int64", Arc::new(Int64Array::from(vec![Some(i64::MIN), None])), json!(i64::MIN)),
        ("uint8", Arc::new(UInt8Array::from(vec![Some(8), None])), json!(8)),
        ("uint16", Arc::new(UInt16Array::from(vec![Some(16), None])), json!(16)),
        ("uint32", Arc::new(UInt32Array::from(vec![Some(u32::MAX), None])), json!(u32::MAX)),
        ("uint64", Arc::new(UInt64Array::from(vec![Some(u64::MAX), None])), json!(u64::MAX)),
        ("float32", Arc::new(Float32Array::from(vec![Some(0.1), None])), json!(0.1)),
        ("float64", Arc::new(Float64Array::from(vec![Some(2.0), None])), json!(2.0)),
        ("bool", Arc::new(BooleanArray::from(vec![Some(true), None])), json!(true)),
        ("text", Arc::new(StringArray::from(vec![Some("Größe"), None])), json!("Größe")),
        ("large", Arc::new(LargeStringArray::from(vec![Some("x y"), None])), json!("x y")),
        (
            "view",
            Arc::new(StringViewArray::from(vec![Some("more than twelve bytes"), None])),
            json!("more than twelve bytes"),
        ),
        ("binary", Arc::new(BinaryArray::from(vec![Some(&b"bytes"[..]), None])), json!("bytes")),
        ("fixed", Arc::new(fixed), json!("ab01")),
        ("date32", Arc::new(Date32Array::from(vec![Some(19_000), None])), json!("2022-01-08")),
        ("date64", Arc::new(Date64Array::from(vec![Some(86_400_000), None])), json!("1970-01-02")),
        ("local", Arc::new(timestamp(None)), json!("2023-11-14T22:13:20.25")),
        ("utc", Arc::new(timestamp(Some("UTC"))), json!("2023-11-14T22:13:20.25Z")),
        ("seconds", Arc::new(TimestampSecondArray::from(vec![Some(1), None])), json!("1970-01-01T00:00:01")),
        (
            "nanos",
            Arc::new(TimestampNanosecondArray::from(vec![Some(-1), None])),
            json!("1969-12-31T23:59:59.999999"),
        ),
        ("time", Arc::new(Time32MillisecondArray::from(vec![Some(1500), None])), json!("00:00:01.5")),
        ("decimal", Arc::new(decimal), json!("-123.45")),
    ];
    columns.extend(nested_columns());
    columns
}

fn nested_columns() -> Vec<(&'static str, ArrayRef, Value)> {
    let mut dictionary = StringDictionaryBuilder::<UInt8Type>::new();
    dictionary.append_value("one of few");
    dictionary.append_null();
    let mut list = ListBuilder::new(StringBuilder::new());
    list.append_value([Some("a"), None, Some("b")]);
    list.append_null();
    let mut large = LargeListBuilder::new(Int32Builder::new());
    large.append_value([Some(1), Some(2)]);
    large.append_null();
    let mut fixed = FixedSizeListBuilder::new(Int32Builder::new(), 2);
    fixed.values().append_slice(&[3, 4]);
    fixed.append(true);
    fixed.values().append_nulls(2);
    fixed.append(false);
    let mut map = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    map.keys().append_value("k");
    map.values().append_value(5);
    map.append(true).unwrap();
    map.append(false).unwrap();
    vec![
        ("dictionary", Arc::new(dictionary.finish()), json!("one of few")),
        ("list", Arc::new(list.finish()), json!(["a", null, "b"])),
        ("large_list", Arc::new(large.finish()), json!([1, 2])),
        ("fixed_list", Arc::new(fixed.finish()), json!([3, 4])),
        ("map", Arc::new(map.finish()), json!({ "k": 5 })),
    ]
}

fn table() -> RecordBatch {
    let body: ArrayRef = Arc::new(StringArray::from(vec!["oak", "elm"]));
    let columns = columns().into_iter().map(|(name, column, _)| (name, column, true));
    RecordBatch::try_from_iter_with_nullable([("body", body, true)].into_iter().chain(columns)).unwrap()
}

/// A value as the text of a member.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => {
            let texts = values.iter().filter(|value| !value.is_null()).map(text_of);
            texts.collect::<Vec<_>>().join("\n")
        }
        value => value.to_string(),
    }
}

#[test]
fn values_of_all_types_are_texts_and_json() {
    let workspace = Workspace::new();
    workspace.file("t.parquet", parquet_file(&[table()], Layout::default()));
    workspace.file("t.arrow", arrow_file(&[table()], None));
    for input in ["t.parquet", "t.arrow"] {
        workspace.ok(&format!("index {input} --out {input}.all --field body:text --store all"));
        let stored = workspace.run_for_json(&format!("get {input}.all {input}:1"));
        for (name, _, expected) in columns() {
            // The writer of the tests has no type of Parquet for these.
            let expected = match (input, name) {
                ("t.parquet", "date64") => json!(86_400_000),
                ("t.parquet", "seconds") => json!(1),
                _ => expected,
            };
            let found = &stored[name];
            assert_eq!(found, &expected, "{input} {name}: {stored}");
        }
        let nulls = workspace.run_for_json(&format!("get {input}.all {input}:2"));
        assert_eq!(nulls, json!({ "id": format!("{input}:2"), "body": "elm" }));
        let members = columns().into_iter().filter(|(name, ..)| !["map", "date64", "seconds"].contains(name));
        let members: Vec<_> = members.collect();
        let flags: Vec<String> = members.iter().map(|(name, ..)| format!("--field {name}:text")).collect();
        workspace.ok(&format!("index {input} --out {input}.members {}", flags.join(" ")));
        let stored = workspace.run_for_json(&format!("get {input}.members {input}:1"));
        for (name, _, expected) in members {
            assert_eq!(text_of(&stored[name]), text_of(&expected), "{input} {name}: {stored}");
        }
        let words = "column `map` has the type Map";
        workspace.fails_in_one_line(1, &format!("index {input} --out x --field map:text"), words);
    }
}

#[test]
fn dictionaries_of_streams_are_replaced_and_extended() {
    let workspace = Workspace::new();
    let batch = |first: usize, words: &[&str]| {
        let ids: StringArray = (0..words.len()).map(|row| Some(format!("d{}", first + row))).collect();
        let mut body = StringDictionaryBuilder::<Int16Type>::new();
        words.iter().for_each(|word| body.append_value(word));
        let columns = [("id", Arc::new(ids) as ArrayRef), ("body", Arc::new(body.finish()) as ArrayRef)];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let batches = [batch(0, &["oak", "elm", "oak"]), batch(3, &["elm", "fir"]), batch(5, &["yew", "oak"])];
    workspace.file("s.arrows", arrow_stream(&batches, None));
    workspace.ok("index s.arrows --out i --text-field body");
    for (word, ids) in
        [("oak", &["d0", "d2", "d6"][..]), ("elm", &["d1", "d3"]), ("fir", &["d4"]), ("yew", &["d5"])]
    {
        assert_eq!(workspace.search_index("i", word).1, ids, "{word}");
    }
}

#[test]
fn bytes_that_are_not_text_are_a_problem_of_the_row() {
    let workspace = Workspace::new();
    let body: ArrayRef = Arc::new(BinaryArray::from(vec![&b"oak"[..], b"\xFF", b"elm"]));
    let batch = RecordBatch::try_from_iter([("body", body)]).unwrap();
    workspace.file("t.parquet", parquet_file(&[batch], Layout::default()));
    let output = workspace.run("index t.parquet --out i --text-field body");
    let said = crate::workspace::assert_succeeded(&output);
    assert!(said.starts_with("2 documents, ") && said.contains("; 1 malformed line skipped"), "{said}");
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("t.parquet:2: the bytes in the column `body` are not UTF-8"), "{error}");
}
