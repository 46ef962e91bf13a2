//! Suggestions for a text that is being typed: terms of documents, never stems, never of deleted documents.

use tempfile::TempDir;
use tierdex::schema::{Analysis, Field, Language, Schema};
use tierdex::{Engine, EngineOptions, IndexWriter, Merge, Suggestions, WriterOptions};

const TEXTS: [&str; 6] = [
    "Solid state disks, and a solid disk",
    "The disk displays a message",
    "Disk drives of a database",
    "Databases on solid ground",
    "Der Fluß fließt, café und naïve Ideen",
    "全文検索 エンジン 東京大学",
];

/// An index of two segments.
fn index_of(field: Field, texts: &[&str]) -> (TempDir, Engine) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("index");
    let options = WriterOptions { updatable: true, ..WriterOptions::default() };
    let mut writer = IndexWriter::create(&path, Schema::of(vec![field]), options).unwrap();
    for (number, text) in texts.iter().enumerate() {
        writer.add(&number.to_string(), [("text", text)]).unwrap();
        if number == texts.len() / 2 {
            writer.commit(Merge::Keep).unwrap();
        }
    }
    writer.commit(Merge::Keep).unwrap();
    let engine = Engine::open(&path, &EngineOptions::new()).unwrap();
    (dir, engine)
}

fn suggest(engine: &Engine, text: &str) -> Suggestions {
    engine.snapshot().suggest(0, text, 3).unwrap()
}

/// The completed texts.
fn completed(engine: &Engine, text: &str) -> Vec<String> {
    let found = suggest(engine, text);
    let complete = |term: &str| {
        let mut whole = text.to_string();
        whole.replace_range(found.completed.clone(), term);
        whole
    };
    found.completions.iter().map(|term| complete(&term.term)).collect()
}

#[test]
fn completions_are_the_most_frequent_terms_with_the_prefix() {
    let (_dir, engine) = index_of(Field::new("text", &["text"]), &TEXTS);
    assert_eq!(completed(&engine, "solid di"), ["solid disk", "solid disks", "solid displays"]);
    assert_eq!(completed(&engine, "Dat"), ["database", "databases"]);
    assert_eq!(completed(&engine, "+solid -(DISK"), ["+solid -(disks"]);
    for none in ["", " ", "d", "di ", "zz", "di*", "disks", "\"", "東京", "a~1"] {
        assert_eq!(completed(&engine, none), Vec::<String>::new(), "{none:?}");
    }
    let frequencies: Vec<u64> =
        suggest(&engine, "dis").completions.iter().map(|term| term.documents).collect();
    assert_eq!(frequencies, [3, 1, 1]);
}

#[test]
fn words_that_no_document_contains_are_corrected() {
    let (_dir, engine) = index_of(Field::new("text", &["text"]), &TEXTS);
    let corrected = |text: &str| suggest(&engine, text).correction;
    for (text, expected) in [
        ("solit disk", Some("solid disk")),
        ("Sloid  \"statte disk\"", Some("solid  \"state disk\"")),
        ("databanse", Some("database")),
        ("dtabasse x", Some("database x")),
        // Known, short, far from any word, or a part of the query language.
        ("solid disk", None),
        ("dsk", None),
        ("elephants", None),
        ("solit*", None),
        ("solit~1", None),
        ("solit:disk", None),
        // It is being typed.
        ("datab", None),
        ("", None),
    ] {
        assert_eq!(corrected(text).as_deref(), expected, "{text:?}");
    }
}

#[test]
fn a_field_of_stems_has_no_suggestions() {
    let mut field = Field::new("text", &["text"]);
    field.analysis = Analysis { stemmer: Some(Language::English), ..Analysis::default() };
    let (_dir, engine) = index_of(field, &TEXTS);
    assert_eq!(suggest(&engine, "databas"), Suggestions::default());
    assert_eq!(suggest(&engine, "solit x"), Suggestions::default());
}

#[test]
fn words_of_deleted_documents_only_are_not_suggested() {
    let (dir, engine) = index_of(Field::new("text", &["text"]), &TEXTS);
    let mut writer = IndexWriter::append(dir.path().join("index"), WriterOptions::default()).unwrap();
    writer.delete("1").unwrap();
    writer.commit(Merge::Keep).unwrap();
    assert!(engine.refresh().unwrap());
    assert_eq!(completed(&engine, "disp"), Vec::<String>::new());
    assert_eq!(suggest(&engine, "displayz x").correction, None);
    assert_eq!(completed(&engine, "dis"), ["disk", "disks"]);
}

#[test]
fn any_text_has_suggestions_or_an_error() {
    let (_dir, engine) = index_of(Field::new("text", &["text"]), &TEXTS);
    let pieces = ["solit", " ", "\u{0}", "é", "ß", "(", "\"", "*", "東", "\u{301}", "ﬁ", "-", "AND", "dis"];
    let mut state = 7usize;
    for _ in 0..3000 {
        let mut text = String::new();
        for _ in 0..state % 7 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text.push_str(pieces[(state >> 33) % pieces.len()]);
        }
        state = state.wrapping_add(1).rotate_left(5);
        completed(&engine, &text);
    }
    assert!(engine.snapshot().suggest(0, &"a".repeat(70_000), 3).is_err());
    let long = "solit ".repeat(5000);
    assert!(suggest(&engine, &long).correction.is_some());
}
