//! Columns: typed values of documents, by which queries filter, and which are shown with hits.

use crate::workspace::{Workspace, assert_failed, assert_succeeded};
use serde_json::{Value, json};

const BOOKS: &str = concat!(
    r#"{"id":"a","text":"a history of disks","year":1998,"price":12.5,"tags":[3,1],"sold":true,"added":"2024-05-01"}"#,
    "\n",
    r#"{"id":"b","text":"disks and tapes","year":"2004","price":30,"tags":2,"added":"2024-05-01T23:30:00+02:00"}"#,
    "\n",
    r#"{"id":"c","text":"tapes","year":2011,"price":-1.5e-3,"sold":false,"added":"2024-06-10T08:00:00.25Z"}"#,
    "\n",
    r#"{"id":"d","text":"a book without values"}"#,
    "\n",
);

const COLUMNS: &str =
    "--field year:i64 --field price:f64 --field tag:u64:multi:from=tags --field sold:bool --field added:date";

fn books() -> Workspace {
    let workspace = Workspace::new();
    workspace.file("books.jsonl", BOOKS);
    workspace.ok(&format!("index books.jsonl --out i {COLUMNS}"));
    workspace
}

#[test]
fn queries_filter_by_columns() {
    let workspace = books();
    for (query, expected) in [
        ("year:[1998 TO 2004]", &["a", "b"][..]),
        ("year:{1998 TO 2011}", &["b"]),
        ("+disks #year:>=2000", &["b"]),
        ("+tapes +year:<=2004.5", &["b"]),
        ("tapes -year:2004", &["c"]),
        ("price:<0", &["c"]),
        ("tag:(1 2)", &["a", "b"]),
        ("tag:3", &["a"]),
        ("sold:false", &["c"]),
        ("added:2024-05-01", &["a", "b"]),
        ("added:[2024-05 TO 2024-06-09]", &["a", "b"]),
        ("added:>now", &[]),
        ("price:*", &["a", "b", "c"]),
        ("*:* -year:*", &["d"]),
    ] {
        assert_eq!(workspace.sorted_ids("i", query), expected, "{query}");
    }
    let arguments = ["search", "i", "year:[1998 TO x]"];
    assert_failed(&workspace.run_with(arguments), 2, "column `year`: `x` is not an integer");
    assert!(workspace.ok("check i").starts_with("sound: "));
    let explained = workspace.run_with(["explain", "i", "disks #year:[1998 TO *]"]);
    let explained = assert_succeeded(&explained);
    assert!(explained.contains("column year:[1998 TO *]"), "{explained}");
}

#[test]
fn values_are_shown_with_hits() {
    let workspace = books();
    let found = workspace.run_for_json("search i history --show year,price,tag,sold,added --format json");
    let expected =
        json!({"year": 1998, "price": 12.5, "tag": [1, 3], "sold": true, "added": "2024-05-01T00:00:00Z"});
    assert_eq!(found["hits"][0]["values"], expected);
    let found = workspace.run_for_json("search i book --show year --format json");
    assert_eq!(found["hits"][0]["values"], json!({"year": null}));
    assert!(
        workspace.ok("search i tapes --show year,added").contains("year: 2004  added: 2024-05-01T21:30:00Z")
    );
    let stored: Value = serde_json::from_str(&workspace.ok("get i c")).unwrap();
    assert_eq!((&stored["price"], &stored["year"]), (&json!(-0.0015), &json!(2011)));
    workspace.fails(
        2,
        "search i tapes --show size",
        "no column `size`; it has year, price, tag, sold, added",
    );
}

#[test]
fn columns_of_tables_are_values() {
    let workspace = Workspace::new();
    workspace.file("books.tsv", "id\ttext\tyear\nx\tone\t1990\ny\ttwo\t\nz\tthree\t2000\n");
    workspace.ok("index books.tsv --out i --field year:i64");
    assert_eq!(workspace.sorted_ids("i", "year:>1990"), ["z"]);
    assert_eq!(workspace.sorted_ids("i", "*:* -year:*"), ["y"]);
    // Documents with other columns are added.
    workspace.file("more.tsv", "id\ttext\tyear\tpages\nv\tfour\t1990\t300\n");
    workspace.ok("index more.tsv --out i --append --field pages:u64");
    assert_eq!(workspace.sorted_ids("i", "year:1990 pages:*"), ["v", "x"]);
    workspace.fails(
        2,
        "index more.tsv --out i --append --field year:u64",
        "column year: type: i64, here u64",
    );
}

#[test]
fn wrong_values_are_reported_with_their_place() {
    let workspace = Workspace::new();
    workspace.file(
        "b.jsonl",
        concat!(
            "{\"id\":\"a\",\"text\":\"one\",\"year\":5}\n",
            "{\"id\":\"b\",\"text\":\"two\",\"year\":\"old\"}\n",
            "{\"id\":\"c\",\"text\":\"three\",\"year\":[1,2]}\n",
            "{\"id\":\"d\",\"text\":\"four\",\"year\":{\"a\":1}}\n",
            "{\"id\":\"e\",\"text\":\"five\",\"year\":null}\n",
        ),
    );
    workspace.ok("index b.jsonl --out i --field year:i64 --on-error skip");
    let place = "b.jsonl:2: column `year`: `old` is not an integer";
    workspace.fails(1, "index b.jsonl --out j --field year:i64 --on-error fail", place);
    assert_eq!(workspace.sorted_ids("i", "*:*"), ["a", "e"]);
}
