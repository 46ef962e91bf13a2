//! Synonyms of a field apply to words and phrases of queries, and can be changed by a commit.

use std::{path::Path, sync::Arc};
use tierdex::io::PosixDisk;
use tierdex::schema::{Field, Language, Schema, Synonyms};
use tierdex::{
    Engine, EngineOptions, Index, IndexWriter, Merge, OpenMode, Query, SearchRequest, WriterOptions,
};

const DOCUMENTS: [&str; 9] = [
    "a television in every room", // 0
    "the tv is broken",           // 1
    "tele vision of the past",    // 2
    "new york hotels",            // 3
    "hotels in ny",               // 4
    "a new hotel",                // 5
    "the telly",                  // 6
    "bank of america has a tv",   // 7
    "电脑 在 纽约",               // 8
];

const RULES: &str = "# comment\n\ntv, television, tele vision\ntelly => tv\nnew york, ny, big apple\n\
    bank of america, boa\nlaptop => 电脑\nfridge => cold\\, box, cooler\n\
    pager, is-broken\n";

fn schema(rules: &str, positions: bool) -> Schema {
    let mut field = Field::new("text", &["text"]);
    field.positions = positions;
    field.analysis.stemmer = Some(Language::English);
    field.analysis.stop_words = ["a", "in", "of", "the"].map(String::from).into();
    field.synonyms = Synonyms::parse(rules).unwrap();
    Schema::of(vec![field])
}

fn create(dir: &Path, schema: Schema) -> Index {
    let mut writer = IndexWriter::create(dir, schema, WriterOptions::default()).unwrap();
    for (number, text) in DOCUMENTS.iter().enumerate() {
        writer.add(&number.to_string(), [("text", text)]).unwrap();
    }
    writer.commit(Merge::One).unwrap();
    drop(writer);
    Index::open(dir).unwrap()
}

fn ids_of(index: &Index, query: Query) -> String {
    let engine = Engine::new(index, &EngineOptions::new()).unwrap();
    let hits = engine.search(SearchRequest::new(query).ids(true)).unwrap();
    let mut ids = hits.ids().unwrap();
    ids.sort();
    ids.concat()
}

#[track_caller]
fn check_matches(index: &Index, query: &str, expected: &str) {
    let parsed = Query::parse(query, index.schema()).unwrap();
    assert_eq!(ids_of(index, parsed), expected, "{query}");
}

#[test]
fn words_and_phrases_find_their_synonyms() {
    for positions in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let index = create(dir.path(), schema(RULES, positions));
        check_matches(&index, "tv", "0127");
        check_matches(&index, "+televisions +room", "0");
        check_matches(&index, "+tv -tv", "");
        // The left side of an arrow is replaced.
        check_matches(&index, "telly", "17");
        check_matches(&index, "laptop", "8");
        // Words that are alternatives stay so.
        check_matches(&index, "new york", "345");
        check_matches(&index, "+new +york", "34");
        check_matches(&index, "new AND york AND hotel", "34");
        check_matches(&index, "(new york hotel)~2", "35");
        check_matches(&index, "\"tv\"", "0127");
        check_matches(&index, "cooler", "");
        check_matches(&index, "pager", "1");
        check_matches(&index, "ny", "34");
        check_matches(&index, "boa", "7");
        check_matches(&index, "+bank +of +america", "7");
        // Neither prefixes nor fuzzy words have synonyms.
        check_matches(&index, "telev*", "0");
        check_matches(&index, "tella~1", "6");
        assert_eq!(ids_of(&index, Query::any_term("telly hotels", index.schema()).unwrap()), "13457");
        if positions {
            check_matches(&index, "\"ny hotel\"", "3");
            check_matches(&index, "\"hotels in new york\"", "4");
            check_matches(&index, "\"broken telly\"~3", "1");
            check_matches(&index, "\"boa has a television\"", "7");
            check_matches(&index, "\"tele vision of the past\"", "2");
            check_matches(&index, "\"tv of the past\"", "2");
        }
    }
}

#[test]
fn phrases_have_a_limit_of_variants() {
    let dir = tempfile::tempdir().unwrap();
    let index = create(dir.path(), schema("a1, b1, c1\n", true));
    let phrase = |words: usize| format!("\"{}\"", "a1 x ".repeat(words));
    Query::parse(&phrase(3), index.schema()).unwrap();
    let error = Query::parse(&phrase(4), index.schema()).unwrap_err().to_string();
    assert!(error.contains("more than 64 variants"), "{error}");
    let (query, warnings) = Query::parse_lenient(&phrase(4), index.schema());
    assert!(query != Query::Nothing && warnings.len() == 1);
    let long = format!("\"{}\"", "a1 ".repeat(20_000));
    let error = Query::parse(&long, index.schema()).unwrap_err().to_string();
    assert!(error.contains("a phrase of 20000 terms; at most 64"), "{error}");
}

#[test]
fn a_commit_changes_synonyms_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let index = create(dir.path(), schema("", true));
    check_matches(&index, "tv", "17");
    let files = || {
        let names = std::fs::read_dir(dir.path()).unwrap().map(|file| file.unwrap().file_name());
        let names = names.map(|name| name.into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| !name.starts_with("manifest")).collect();
        names.sort();
        names
    };
    let before = files();
    let append = |schema: Schema| -> tierdex::Result<()> {
        let disk = Arc::new(PosixDisk::open(dir.path())?);
        let mut writer = IndexWriter::open(disk, schema, OpenMode::Append, WriterOptions::default())?;
        writer.commit(Merge::None).map(|_| ())
    };
    append(schema(RULES, true)).unwrap();
    assert_eq!(files(), before);
    let index = Index::open(dir.path()).unwrap();
    check_matches(&index, "tv", "0127");
    assert_eq!(index.schema().fields[0].synonyms.rules().len(), 7);
    let error = append(schema("a => b => c", true)).unwrap_err().to_string();
    assert!(
        error.contains("rule \"a => b => c\" for synonyms of field `text`: it has more than one =>"),
        "{error}"
    );
    let error = append(schema(&"a,".repeat(100_000), true)).unwrap_err().to_string();
    assert!(error.len() < 200 && error.contains("100001 entries"), "{error}");
    let error = append(schema(RULES, false)).unwrap_err().to_string();
    assert!(error.contains("positions: yes, here no"), "{error}");
}
