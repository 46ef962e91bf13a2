//! Phrases never match across the values of a document in a field, whatever their slop.

use tierdex::limits::POSITION_GAP;
use tierdex::schema::{Field, Schema};
use tierdex::{Engine, EngineOptions, Index, IndexWriter, Merge, Query, SearchRequest, WriterOptions};

/// Documents of the members `lines` and `title`, in one field with positions.
fn index(dir: &std::path::Path, documents: &[&[(&str, &str)]], merge: Merge) -> Index {
    let mut field = Field::new("text", &["title", "lines"]);
    field.positions = true;
    field.analysis.stop_words = vec!["of".to_string()];
    let mut writer = IndexWriter::create(dir, Schema::of(vec![field]), WriterOptions::default()).unwrap();
    for (number, values) in documents.iter().enumerate() {
        writer.add(&number.to_string(), values.iter().copied()).unwrap();
        writer.commit(Merge::None).unwrap();
    }
    writer.commit(merge).unwrap();
    drop(writer);
    assert!(tierdex::check(dir).unwrap().problems.is_empty());
    Index::open(dir).unwrap()
}

#[track_caller]
fn check_matches(index: &Index, query: &str, expected: &[&str]) {
    let engine = Engine::new(index, &EngineOptions::new()).unwrap();
    let parsed = Query::parse(query, index.schema()).unwrap();
    let hits = engine.search(SearchRequest::new(parsed).ids(true)).unwrap();
    let mut ids = hits.ids().unwrap();
    ids.sort();
    assert_eq!(ids, expected, "{query}");
}

#[test]
fn a_phrase_matches_within_a_value_only() {
    let many: Vec<(&str, &str)> = [("lines", "small red"), ("lines", "door bell")].repeat(50);
    let documents: [&[(&str, &str)]; 4] = [
        &[("lines", "small red"), ("lines", "door bell")],
        &[("title", "red"), ("lines", "door")],
        &[("lines", "a red door"), ("title", "red of the door")],
        &many,
    ];
    for merge in [Merge::None, Merge::One] {
        let dir = tempfile::tempdir().unwrap();
        let index = index(dir.path(), &documents, merge);
        check_matches(&index, "\"red door\"", &["2"]);
        check_matches(&index, "\"small red\"", &["0", "3"]);
        for slop in [1, POSITION_GAP - 2, POSITION_GAP - 1, POSITION_GAP, POSITION_GAP + 1, u32::MAX] {
            check_matches(&index, &format!("\"red door\"~{slop}"), &["2"]);
            check_matches(&index, &format!("\"small red door\"~{slop}"), &[]);
        }
        check_matches(&index, "\"door red\"~2", &["2"]);
        check_matches(&index, "\"bell door\"~1000", &["0", "3"]);
        // Words that are not indexed count as positions of the phrase.
        let gap = "of ".repeat(POSITION_GAP as usize - 1);
        check_matches(&index, &format!("\"red {gap} door\""), &[]);
        let longer = format!("\"red {gap} of door\"");
        let error = Query::parse(&longer, index.schema()).unwrap_err().to_string();
        assert!(error.contains("a phrase of 130 words; at most 129 can be one"), "{error}");
    }
}

#[test]
fn a_phrase_matches_the_whole_of_a_long_value() {
    let dir = tempfile::tempdir().unwrap();
    let long = format!("first {}last", "of ".repeat(POSITION_GAP as usize - 1));
    let index = index(dir.path(), &[&[("title", "first"), ("lines", &long), ("lines", "last")]], Merge::One);
    check_matches(&index, &format!("\"{long}\""), &["0"]);
    check_matches(&index, "\"first last\"~126", &[]);
    check_matches(&index, "\"first last\"~127", &["0"]);
    check_matches(&index, "\"last first\"~127", &[]);
}
