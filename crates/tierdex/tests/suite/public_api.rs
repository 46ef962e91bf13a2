//! Uses the public interface as an application does: directories, engines, documents, errors.

use tierdex::schema::{Field, Stored};
use tierdex::{
    Document, Engine, EngineOptions, Error, Index, IndexWriter, Merge, Query, Schema, SearchHit,
    SearchRequest, TotalHits, WriterOptions, io::Size,
};

fn writer_options() -> WriterOptions {
    WriterOptions { memory: 64 << 20, ..WriterOptions::default() }
}

fn make_documents(count: usize) -> impl Iterator<Item = Document> + Send {
    (0..count).map(|number| {
        let text = format!("all {} {}", number % 100, "word ".repeat(number % 17));
        let title = format!("title {}", number % 10);
        Document::new(format!("id{number}")).with("title", title).with("text", text)
    })
}

fn search_ids(engine: &Engine, text: &str, k: usize) -> Vec<String> {
    let query = Query::parse(text, engine.snapshot().schema()).unwrap();
    engine.search(SearchRequest::new(query).k(k)).unwrap().ids().unwrap()
}

#[test]
fn an_index_is_created_searched_extended_and_replaced() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path().join("index");
    let mut writer = IndexWriter::create(&dir, Schema::default(), writer_options()).unwrap();
    writer.add_all(make_documents(5000), 3).unwrap();
    writer.add("last", [("text", "unique")]).unwrap();
    assert_eq!(writer.commit(Merge::Keep).unwrap(), 1);
    drop(writer);

    let engine = Engine::open(&dir, &EngineOptions::new().dram(40_000_000).threads(2)).unwrap();
    assert_eq!(search_ids(&engine, "unique", 10), ["last"]);
    // All matches are hits: their number is known without counting.
    let query = Query::parse("unique", engine.snapshot().schema()).unwrap();
    assert_eq!(engine.search(SearchRequest::new(query)).unwrap().total, TotalHits::Exact(1));
    let before = engine.snapshot();
    assert_eq!((before.index().documents(), before.index().generation()), (5001, 1));
    let query = Query::parse("+all +title", before.schema()).unwrap();
    let hits = engine.search(SearchRequest::new(query).k(3).count(true)).unwrap();
    assert_eq!((hits.total, hits.hits.len(), hits.timed_out), (TotalHits::Exact(5000), 3, false));
    let stored = before.stored(4242).unwrap().unwrap();
    assert_eq!(stored.title(), "title 2");

    let mut writer = IndexWriter::append(&dir, writer_options()).unwrap();
    writer.add("new", [("text", "unique")]).unwrap();
    writer.commit(Merge::One).unwrap();
    assert_eq!(search_ids(&engine, "unique", 10), ["last"]);
    assert!(engine.refresh().unwrap() && !engine.refresh().unwrap());
    assert_eq!(search_ids(&engine, "unique", 10), ["last", "new"]);
    drop(writer);

    let schema = Schema { stored: Stored::Nothing, ..Schema::of(vec![Field::new("body", &["text"])]) };
    let mut writer = IndexWriter::replace(&dir, schema, writer_options()).unwrap();
    writer.add("other", [("title", "not indexed"), ("text", "unique")]).unwrap();
    writer.commit(Merge::Keep).unwrap();
    assert!(engine.refresh().unwrap());
    assert_eq!(search_ids(&engine, "body:unique", 10), ["other"]);
    assert_eq!(search_ids(&engine, "indexed", 10), [""; 0]);
    assert_eq!(engine.snapshot().stored(0).unwrap(), None);
    // The snapshot of the first commit can still be read.
    assert_eq!(before.stored(4242).unwrap().unwrap(), stored);
}

#[test]
fn an_index_does_not_depend_on_the_number_of_threads() {
    let temporary = tempfile::tempdir().unwrap();
    let write = |threads: usize| {
        let dir = temporary.path().join(format!("threads-{threads}"));
        let mut writer = IndexWriter::create(&dir, Schema::default(), writer_options()).unwrap();
        writer.add("first", [("text", "first")]).unwrap();
        writer.add_all(make_documents(50_000), threads).unwrap();
        writer.commit(Merge::One).unwrap();
        let mut files: Vec<_> = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        let bytes = files.into_iter().map(|file| std::fs::read(file).unwrap()).collect::<Vec<_>>();
        (Engine::open(&dir, &EngineOptions::new()).unwrap(), bytes)
    };
    let (engine, one) = write(1);
    let text: usize = make_documents(50_000).map(|document| document.values[1].1.len()).sum();
    assert!(text > 1 << 20, "several pieces");
    for threads in [2, 5] {
        assert!(write(threads).1 == one, "{threads} threads");
    }
    // Documents keep their order, those that were added one by one among them.
    let snapshot = engine.snapshot();
    let expected =
        ["first".to_string()].into_iter().chain(make_documents(50_000).map(|document| document.id));
    let all = (0..50_001).map(|document| SearchHit { document, ..SearchHit::default() }).collect::<Vec<_>>();
    assert!(snapshot.ids(&all).unwrap().into_iter().eq(expected));
}

#[test]
fn errors_say_what_where_and_what_to_do() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path().join("index");
    let missing = Index::open(&dir).err().unwrap();
    assert!(matches!(missing, Error::Storage(_)) && missing.to_string().contains("index"), "{missing}");
    let source =
        std::error::Error::source(&missing).and_then(|source| source.downcast_ref::<std::io::Error>());
    assert!(source.is_some_and(|source| source.kind() == std::io::ErrorKind::NotFound), "{missing:?}");
    std::fs::create_dir(&dir).unwrap();
    let empty = Index::open(&dir).err().unwrap();
    assert!(
        matches!(empty, Error::Usage(_)) && empty.to_string().contains("holds no tierdex index"),
        "{empty}"
    );
    assert!(IndexWriter::append(&dir, writer_options()).is_err());
    let unmade = temporary.path().join("unmade");
    let little = WriterOptions { memory: 1, ..WriterOptions::default() };
    assert!(IndexWriter::create(&unmade, Schema::default(), little).is_err() && !unmade.exists());

    let mut writer = IndexWriter::create(&dir, Schema::default(), writer_options()).unwrap();
    let second = IndexWriter::create(&dir, Schema::default(), writer_options()).err().unwrap();
    assert!(matches!(second, Error::Busy(_)) && second.to_string().contains("another writer"), "{second}");
    assert!(matches!(writer.add(&"i".repeat(5000), [("text", "")]).unwrap_err(), Error::TooLarge(_)));
    writer.add("1", [("text", "one")]).unwrap();
    writer.commit(Merge::Keep).unwrap();
    drop(writer);
    assert!(IndexWriter::create(&dir, Schema::default(), writer_options()).is_err(), "there is an index");

    let small = Engine::open(&dir, &EngineOptions::new().dram(1000)).err().unwrap();
    let needed = small
        .to_string()
        .split_once("too small: ")
        .and_then(|(_, rest)| rest.split(' ').next().and_then(|size| size.parse::<Size>().ok()));
    let needed = needed.unwrap_or_else(|| panic!("{small}")).of(0);
    let smallest = |bytes| Engine::open(&dir, &EngineOptions::new().dram(bytes));
    assert!(smallest(needed).is_ok() && smallest(needed - 1024).is_err(), "{needed} bytes are the least KiB");
    // Values that are too large for any machine are an error, without an overflow.
    for options in [
        EngineOptions::new().dram(1 << 30).hits_max(usize::MAX),
        EngineOptions::new().dram(1 << 30).growth(u64::MAX),
        EngineOptions::new().dram(1 << 30).threads(usize::MAX),
    ] {
        let error = Engine::open(&dir, &options).err().unwrap().to_string();
        assert!(error.contains("too small"), "{error}");
    }
    let engine = Engine::open(&dir, &EngineOptions::new().dram(30_000_000).hits_max(5).threads(2)).unwrap();
    let memory = engine.memory();
    assert!(memory.needed() <= 30_000_000 && memory.dram == Some(30_000_000));
    let query = Query::parse("one", engine.snapshot().schema()).unwrap();
    // One document: more cannot be found.
    assert_eq!(engine.search(SearchRequest::new(query)).unwrap().hits.len(), 1);
    let fault = Query::parse("one AND (", engine.snapshot().schema()).unwrap_err();
    assert!(matches!(fault, Error::Query { at: Some(_), .. }), "{fault}");
}

/// An error of one writer does not stop another with the same options; later calls of the first writer name
/// the error.
#[test]
fn a_document_that_is_too_long_stops_its_writer_alone() {
    let temporary = tempfile::tempdir().unwrap();
    let options = writer_options();
    let write =
        |name: &str| IndexWriter::create(temporary.path().join(name), Schema::default(), options.clone());
    let (mut first, mut second) = (write("first").unwrap(), write("second").unwrap());
    let long = Document { id: "i".repeat(5000), ..Document::default() };
    let error = first.add_all(make_documents(10).chain([long]), 2).unwrap_err();
    assert!(matches!(error, Error::TooLarge(_)), "{error}");
    let later = first.commit(Merge::Keep).unwrap_err().to_string();
    assert!(later.contains(&error.to_string()), "{later}");
    second.add_all(make_documents(10), 2).unwrap();
    assert_eq!(second.commit(Merge::Keep).unwrap(), 1);
    drop(first);
    let mut again =
        IndexWriter::replace(temporary.path().join("first"), Schema::default(), options.clone()).unwrap();
    again.add("1", [("text", "one")]).unwrap();
    again.commit(Merge::Keep).unwrap();
}

/// When a commit merges all segments, its metadata must fit in the budget beside that of the commit before.
#[test]
fn an_engine_follows_merges_within_its_budget() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path().join("index");
    let mut writer = IndexWriter::create(&dir, Schema::default(), writer_options()).unwrap();
    for round in 0..4 {
        writer.add_all(make_documents(20_000), 2).unwrap();
        writer.add(&format!("round{round}"), [("text", "round")]).unwrap();
        writer.commit(Merge::Keep).unwrap();
    }
    let options = EngineOptions::new().dram(30_000_000).threads(2);
    let engine = Engine::open(&dir, &options).unwrap();
    writer.add("merged", [("text", "round")]).unwrap();
    writer.commit(Merge::One).unwrap();
    assert!(engine.refresh().unwrap());
    assert_eq!(search_ids(&engine, "round", 10).len(), 5);
}
