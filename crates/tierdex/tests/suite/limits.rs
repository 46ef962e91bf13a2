//! Edge cases: no documents, one document, equal documents, unusual text, and input that exceeds a limit.

use crate::support::corpus::{SchemaOptions, TestDocument};
use crate::support::{
    AddMethod, AnswerOptions, answer_query, answer_text, assert_sound, build, checked_index,
    matching_documents, model::Model, new_batch, open_writer, requests::engine_options, schema,
};
use std::sync::Arc;
use tierdex::internal::index::check_on;
use tierdex::io::{Disk, MemDisk, forward_disk};
use tierdex::limits::{
    ID_BYTES_MAX, MEMORY_MIN, MERGE_FAN_IN, PHRASE_TERMS_MAX, QUERY_BYTES_MAX, QUERY_CLAUSES_MAX,
    QUERY_DEPTH_MAX, QUERY_TERMS_MAX, TERM_BYTES_MAX,
};
use tierdex::schema::{Schema, Tokenizer};
use tierdex::{
    Bm25, DocumentRef, Engine, Error, Index, IndexWriter, Merge, OpenMode, Query, SearchRequest,
    WriterOptions,
};

fn index_documents(docs: &[TestDocument]) -> Index {
    checked_index(&schema(), docs, &[], AddMethod::Commits, Merge::Keep)
}

/// Compares the result of a query with that of the naive engine; returns the number of matches.
fn count_as_model(docs: &[TestDocument], index: &Index, text: &str) -> u64 {
    let look = AnswerOptions { shown: docs.len().min(50), ..AnswerOptions::default() };
    let query = Query::parse(text, index.schema()).unwrap();
    let found = answer_query(index, &query, look).unwrap();
    assert_eq!(found, Model::new(index.schema(), docs).answer(&query, look), "{text}");
    found.total
}

/// A disk with little free space.
struct SmallDisk(MemDisk);

impl Disk for SmallDisk {
    forward_disk!(self, self.0; list open create rename remove sync_dir lock describe check_direct);

    fn available_bytes(&self) -> tierdex::io::Result<Option<u64>> {
        Ok(Some(10_000))
    }
}

#[test]
fn a_merge_without_disk_space_names_the_bytes() {
    let disk: Arc<dyn Disk> = Arc::new(SmallDisk(MemDisk::new()));
    let open = |mode| IndexWriter::open(disk.clone(), schema(), mode, WriterOptions::default()).unwrap();
    let mut writer = open(OpenMode::New);
    for number in 0..5 {
        writer.add(&number.to_string(), [("text", "word")]).unwrap();
        writer.commit(Merge::Keep).unwrap();
    }
    let error = writer.commit(Merge::One).unwrap_err().to_string();
    assert!(error.starts_with("merging 5 segments of ") && error.ends_with("; 10000 are free"), "{error}");
    drop(writer);
    assert_sound(disk.as_ref());
    assert_eq!(open(OpenMode::Append).documents(), 5, "the last commit is intact");
}

/// A hundred commits of a document leave few segments, and none is lost or changes its place.
#[test]
fn commits_merge_segments_of_similar_size() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let options = WriterOptions::default();
    let mut writer = IndexWriter::open(disk.clone(), schema(), OpenMode::New, options).unwrap();
    for number in 0..100 {
        writer.add(&number.to_string(), [("text", "word")]).unwrap();
        writer.commit(Merge::Keep).unwrap();
        let index = Index::open_on(disk.clone()).unwrap();
        assert!(index.segments().len() < 5 && index.documents() == number + 1, "{number}");
    }
    drop(writer);
    assert_sound(disk.as_ref());
    let index = Index::open_on(disk).unwrap();
    let ids = (0..100).map(|document| index.searcher().id(document).unwrap());
    assert!(ids.eq((0..100).map(|number| number.to_string())));
}

#[test]
fn an_empty_disk_holds_no_index() {
    let disk = MemDisk::new();
    for error in [Index::open_on(Arc::new(disk.clone())).err(), check_on(&disk).err()] {
        assert!(error.unwrap().to_string().contains("holds no tierdex index"));
    }
}

#[test]
fn an_empty_index_has_no_hits() {
    let index = index_documents(&[]);
    assert_eq!((index.documents(), index.segments().len(), index.manifest().generation), (0, 0, 1));
    for text in ["", "a", "NOT a", "\"a b\"", "title:a OR b"] {
        assert_eq!(answer_text(&index, text, AnswerOptions::default()).unwrap().total, 0, "{text}");
    }
    assert!(index.searcher().id(0).is_err() && index.searcher().stored(0).is_err());
}

#[test]
fn one_document_is_found() {
    let docs = [TestDocument::new("the one", "A title", "to be or not to be")];
    let index = index_documents(&docs);
    for (text, total) in
        [("be", 1), ("title:a", 1), ("a", 0), ("\"not to be\"", 1), ("NOT be", 0), ("NOT x", 1)]
    {
        assert_eq!(count_as_model(&docs, &index, text), total, "{text}");
    }
    assert!(index.searcher().id(1).is_err() && index.searcher().id(u32::MAX).is_err());
}

#[test]
fn empty_documents_are_documents() {
    let docs: Vec<TestDocument> = (0..300).map(|number| TestDocument::new(number, "", "")).collect();
    let index = index_documents(&docs);
    assert_eq!(count_as_model(&docs, &index, "NOT anything"), 300);
    assert_eq!(count_as_model(&docs, &index, "anything"), 0);
    let title = |number: usize| if number.is_multiple_of(7) { "x" } else { "" };
    let text = |number: usize| if number.is_multiple_of(5) { "x y" } else { " ?! " };
    let mixed: Vec<_> = (0..600).map(|number| TestDocument::new("", title(number), text(number))).collect();
    let index = index_documents(&mixed);
    assert_eq!(count_as_model(&mixed, &index, "x"), 120);
    assert_eq!(count_as_model(&mixed, &index, "title:x AND NOT \"x y\""), 68);
}

/// Equal documents have equal scores and are returned in the order of addition.
#[test]
fn a_hundred_thousand_equal_documents() {
    const COUNT: u32 = 100_000;
    let disk = MemDisk::new();
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let mut writer = open_writer(&shared, &schema(), OpenMode::New);
    for number in 0..COUNT {
        writer
            .add(&number.to_string(), [("title", "same"), ("text", "the same text again and again")])
            .unwrap();
    }
    writer.commit(Merge::One).unwrap();
    assert_sound(&disk);
    let index = Index::open_on(shared).unwrap();
    for text in
        ["same", "again text", "\"again and again\"", "title:same", "NOT other", "text AND the OR other"]
    {
        let found = answer_text(&index, text, AnswerOptions { k: 1000, ..AnswerOptions::default() }).unwrap();
        assert_eq!(found.total, u64::from(COUNT), "{text}");
        assert!(found.hits.iter().map(|hit| hit.document).eq(0..1000), "{text}");
        assert!(found.hits.iter().all(|hit| hit.score_bits == found.hits[0].score_bits), "{text}");
    }
    for document in [0, 63, 64, COUNT / 2, COUNT - 1] {
        assert_eq!(index.searcher().id(document).unwrap(), document.to_string());
    }
    assert_eq!(matching_documents(&index, "again").len(), COUNT as usize);
}

#[test]
fn unusual_ids_are_returned_unchanged() {
    let mut docs: Vec<TestDocument> = [
        "",
        " ",
        "\0",
        "a\nb\tc",
        "../../etc/passwd",
        "\"quoted\"",
        "日本語",
        "e\u{301}",
        "🦀",
        "\u{feff}bom",
        "same",
        "same",
    ]
    .map(|id| TestDocument::new(id, "t", "x"))
    .to_vec();
    docs.push(TestDocument::new("i".repeat(ID_BYTES_MAX), "t", "x"));
    docs.extend((0..200).map(|number| TestDocument::new("n".repeat(number * 20), "", "x")));
    let index = index_documents(&docs);
    for (number, doc) in (0..).zip(&docs) {
        assert_eq!(index.searcher().id(number).unwrap(), doc.id);
    }
    assert_eq!(count_as_model(&docs, &index, "x"), docs.len() as u64);
}

#[test]
fn an_id_that_is_too_long_is_rejected_without_a_trace() {
    let too_long = "i".repeat(ID_BYTES_MAX + 1);
    let reject = |error: Error| {
        assert!(matches!(error, Error::TooLarge(_)) && error.to_string().contains("4096"), "{error}");
    };
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let schema = Schema { columns: Vec::new(), ..schema() };
    let mut writer = open_writer(&disk, &schema, OpenMode::New);
    reject(writer.add(&too_long, [("title", "first"), ("text", "rejected")]).unwrap_err());
    writer.add("good", [("title", "second"), ("text", "kept")]).unwrap();
    reject(writer.add(&too_long, [("title", "third"), ("text", "rejected")]).unwrap_err());
    let mut batch = new_batch(&writer);
    batch
        .add(DocumentRef { id: "batched", values: &[(0, "fourth"), (1, "kept")], ..DocumentRef::default() })
        .unwrap();
    reject(
        batch
            .add(DocumentRef {
                id: &too_long,
                values: &[(0, "fifth"), (1, "rejected")],
                ..DocumentRef::default()
            })
            .unwrap_err(),
    );
    assert_eq!((batch.documents(), writer.documents()), (1, 1));
    writer.commit(Merge::None).unwrap();
    writer.push(batch.seal().unwrap()).unwrap();
    writer.commit(Merge::None).unwrap();
    drop(writer);
    let docs = [TestDocument::new("good", "second", "kept"), TestDocument::new("batched", "fourth", "kept")];
    let index = Index::open_on(disk).unwrap();
    assert_eq!(count_as_model(&docs, &index, "kept"), 2);
    assert_eq!(count_as_model(&docs, &index, "rejected title:first title:third"), 0);
}

#[test]
fn any_number_of_hits_may_be_requested() {
    let docs: Vec<TestDocument> =
        (0..500).map(|number| TestDocument::new(number, "", "x ".repeat(number % 9))).collect();
    let index = index_documents(&docs);
    let every = answer_text(&index, "x", AnswerOptions::default()).unwrap();
    for k in [0, 1, 443, 444, 445, 499, 500, 501, usize::MAX / 2, usize::MAX / 2 + 1, usize::MAX] {
        let found = answer_text(&index, "x", AnswerOptions { k, ..AnswerOptions::default() }).unwrap();
        assert_eq!((found.total, found.hits.len()), (every.total, k.min(444)));
        assert_eq!(found.hits[..], every.hits[..found.hits.len()]);
    }
}

#[test]
fn extreme_parameters_give_finite_scores() {
    let docs: Vec<TestDocument> =
        (0..60).map(|number| TestDocument::new("", "", "x y ".repeat(number))).collect();
    let index = index_documents(&docs);
    let model = Model::new(index.schema(), &docs);
    for (k1, b) in [(0.0, 0.0), (0.0, 1.0), (1000.0, 1.0), (1.2, 0.0), (1e-30, 0.5)] {
        let look = AnswerOptions { scorer: Bm25::new(k1, b).unwrap().into(), ..AnswerOptions::default() };
        let query = Query::parse("x y NOT z", index.schema()).unwrap();
        let found = answer_query(&index, &query, look).unwrap();
        assert_eq!(found, model.answer(&query, look), "k1 {k1}, b {b}");
        assert!(found.hits.iter().all(|hit| f32::from_bits(hit.score_bits).is_finite()));
    }
}

#[test]
fn queries_that_are_too_large_are_rejected() {
    let docs = [TestDocument::new("1", "", "a b"), TestDocument::new("2", "", "b")];
    let index = index_documents(&docs);
    let rejected = |text: &str| match Query::parse(text, index.schema()) {
        Err(Error::Query { at, .. }) => assert!(at <= Some(text.len())),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("{} bytes are accepted", text.len()),
    };
    let longest = format!("a{}", " ".repeat(QUERY_BYTES_MAX - 1));
    assert_eq!(count_as_model(&docs, &index, &longest), 1);
    rejected(&format!("{longest} "));
    let most = "a ".repeat(QUERY_CLAUSES_MAX);
    assert_eq!(count_as_model(&docs, &index, &most), 1);
    rejected(&format!("{most}a"));
    let distinct: String = (0..QUERY_CLAUSES_MAX - 1).map(|number| format!("x{number} ")).collect();
    assert_eq!(count_as_model(&docs, &index, &format!("{distinct}b")), 2);
    let nested = |depth| format!("{}a{}", "(".repeat(depth), ")".repeat(depth));
    assert_eq!(count_as_model(&docs, &index, &nested(QUERY_DEPTH_MAX)), 1);
    rejected(&nested(QUERY_DEPTH_MAX + 1));
    for text in ["(", ")", "-"] {
        assert_eq!(count_as_model(&docs, &index, &text.repeat(60_000 / text.len())), 0, "{text}");
    }
    let alternating = (0..60).fold("a".to_string(), |inner, _| format!("(NOT {inner})"));
    assert_eq!(count_as_model(&docs, &index, &alternating), 1);
    let deep_and = (0..60).fold("a".to_string(), |inner, _| format!("({inner} AND b OR c)"));
    assert_eq!(count_as_model(&docs, &index, &deep_and), 1);
    let phrase = |terms: usize| format!("\"{}\"", "a ".repeat(terms));
    assert_eq!(count_as_model(&docs, &index, &phrase(PHRASE_TERMS_MAX)), 0);
    let joined = |terms: usize| "a-".repeat(terms);
    assert_eq!(count_as_model(&docs, &index, &joined(QUERY_TERMS_MAX)), 1);
    let limits = [phrase(PHRASE_TERMS_MAX + 1), joined(QUERY_TERMS_MAX + 1)];
    for text in limits {
        assert!(matches!(Query::parse(&text, index.schema()), Err(Error::Query { .. })));
    }
    let any_term = Query::any_term(&joined(QUERY_TERMS_MAX + 1), index.schema());
    assert!(matches!(any_term, Err(Error::Query { .. })));
    assert!(Query::any_term(&" ".repeat(QUERY_BYTES_MAX + 1), index.schema()).is_err());
}

#[test]
fn queries_that_are_built_have_the_limits_of_parsed_ones() {
    let index = index_documents(&[TestDocument::new("1", "", "a b c")]);
    let engine = Engine::new(&index, &engine_options(64, 1)).unwrap();
    let term = |field, term: &str| Query::Term { field, term: term.to_string(), boost: 1.0 };
    let negated = |inner| Query::clauses(vec![], vec![], vec![inner]);
    let nested = |levels| (1..levels).fold(term(0, "a"), |inner, _| negated(negated(inner)));
    let terms = |count| Query::clauses(vec![], vec![term(0, "a"); count], vec![]);
    let phrase = |terms: &[u32]| Query::Phrase {
        field: 0,
        terms: terms.iter().map(|distance| (*distance, "a".to_string())).collect(),
        slop: 0,
        open_end: false,
        boost: 1.0,
    };
    let fuzzy =
        |word: &str, distance| Query::Fuzzy { field: 0, word: word.to_string(), distance, boost: 1.0 };
    let prefix = |prefix: &str| Query::Prefix {
        field: 0,
        prefix: prefix.to_string(),
        whole_clusters: false,
        boost: 1.0,
    };
    for query in [nested(QUERY_DEPTH_MAX + 2), terms(QUERY_TERMS_MAX), fuzzy("ab", 2), phrase(&[0, 2])] {
        engine.search(SearchRequest::new(query)).unwrap();
    }
    for (query, expected) in [
        (nested(QUERY_DEPTH_MAX + 3), "inside one another"),
        (nested(1000), "inside one another"),
        (terms(QUERY_TERMS_MAX + 1), "more than 1024 terms"),
        (Query::clauses(vec![prefix("a"); 65], vec![], vec![]), "more than 64 prefixes"),
        (term(2, "a"), "searches field 2; the schema has 2 fields"),
        (term(usize::MAX, "a"), "searches field"),
        (phrase(&[]), "a phrase of 0 terms"),
        (phrase(&[1, 1]), "do not increase"),
        (phrase(&[0, 129]), "a phrase of 130 words"),
        (phrase(&(0..65).collect::<Vec<_>>()), "a phrase of 65 terms"),
        (fuzzy("ab", 3), "at distance 3"),
        (fuzzy(&"a".repeat(65), 1), "a fuzzy word of 65 bytes"),
        (prefix(""), "an empty prefix"),
    ] {
        let request = SearchRequest::new(query);
        let errors =
            [engine.submit(request.clone()).err().unwrap(), engine.snapshot().explain(&request).unwrap_err()];
        for error in errors {
            assert!(matches!(&error, Error::Usage(message) if message.contains(expected)), "{error}");
        }
    }
    assert_eq!(engine.metrics().rejected, 13);
}

#[test]
fn a_phrase_without_positions_says_what_to_do() {
    let schema = SchemaOptions { positions: false, ..SchemaOptions::default() }.schema();
    let index = crate::support::index_in_memory(&schema, &[TestDocument::new("1", "", "a b")], &[]);
    let error = answer_text(&index, "\"a b\"", AnswerOptions::default()).unwrap_err();
    assert!(matches!(&error, Error::Usage(message) if message.contains("positions")), "{error}");
    assert_eq!(answer_text(&index, "\"a\"", AnswerOptions::default()).unwrap().total, 1);
}

#[test]
fn text_of_all_scripts_is_found() {
    let longest = "l".repeat(TERM_BYTES_MAX);
    let docs = [
        TestDocument::new("greek", "ΟΔΥΣΣΕΥΣ", "ΣΊΣΥΦΟΣ ὀδυσσεύς"),
        TestDocument::new("cjk", "東京", "日本語のテキスト 12３"),
        TestDocument::new("turkish", "İSTANBUL", "Iğdır ısı"),
        TestDocument::new("marks", "", "e\u{301}te\u{301} été naïve"),
        TestDocument::new("symbols", "🦀", "a\u{200b}b c\u{ad}d x²y ½ ㎏ ﬁn"),
        TestDocument::new("controls", "\0\u{1}", "nul\0nul tab\ttab \u{feff}bom\r\nline"),
        TestDocument::new("long", "", format!("{longest} {longest}x after")),
        TestDocument::new("rtl", "", "שלום עולם مرحبا بالعالم"),
    ];
    let index = index_documents(&docs);
    let found = "\
        title:Οδυσσευς; ὈΔΥΣΣΕΎΣ; 日本語のテキスト; 12３; title:İstanbul; été; NAÏVE; x²y; ﬁn; \"a b\"; \
        \"c d\"; nul; \"nul nul tab\"; bom; שלום; \"مرحبا بالعالم\"; after";
    for text in found.split("; ").chain([longest.as_str()]) {
        assert_eq!(count_as_model(&docs, &index, text), 1, "{text}");
    }
    for text in ["IĞDIR", "title:🦀"] {
        assert_eq!(count_as_model(&docs, &index, text), 0, "{text}");
    }
    // A token that is too long is dropped and keeps its position.
    assert_eq!(count_as_model(&docs, &index, &format!("{longest}x")), 0);
    assert_eq!(count_as_model(&docs, &index, &format!("\"{longest} after\"")), 0);
    assert_eq!(count_as_model(&docs, &index, &format!("\"{longest} {longest}x after\"")), 1);
}

/// Terms that differ only in zero bytes at their end are different terms, in order, when runs are merged.
#[test]
fn terms_with_zero_bytes_stay_apart() {
    let terms =
        ["a", "a\0", "a\0\0", "abcdefg", "abcdefg\0", "abcdefgh", "abcdefgh\0", "abcdefghi", "\0", "\0\0"];
    let docs: Vec<TestDocument> = (0..40)
        .map(|number| TestDocument::new("", "", terms[number % 7..][..1 + number % 4].join(" ")))
        .collect();
    let schema = SchemaOptions { tokenizer: Tokenizer::Whitespace, ..SchemaOptions::default() }.schema();
    for cuts in [vec![], vec![5, 6, 20]] {
        let index = checked_index(&schema, &docs, &cuts, AddMethod::Batches(1), Merge::One);
        for term in terms {
            assert!(count_as_model(&docs, &index, term) > 0, "{term:?}");
        }
    }
}

/// More segments than one merge reads at once.
#[test]
fn many_segments_are_merged_in_passes() {
    let count = 2 * MERGE_FAN_IN + 3;
    let docs: Vec<TestDocument> = (0..count)
        .map(|number| TestDocument::new(number, "", format!("x y{} z{number}", number % 4)))
        .collect();
    let disk = MemDisk::new();
    let cuts: Vec<usize> = (1..count).collect();
    build(&(Arc::new(disk.clone()) as _), &schema(), &docs, &cuts, AddMethod::Commits, Merge::One);
    let index = Index::open_on(Arc::new(disk.clone())).unwrap();
    assert_eq!(index.segments().len(), 1);
    for text in ["x", "y1 AND NOT z5", "z100", "\"x y2\""] {
        assert!(count_as_model(&docs, &index, text) > 0, "{text}");
    }
    crate::support::script::check_no_orphans(&disk, Some(&index)).unwrap();
}

/// A writer with little memory writes several segments; the results do not depend on that.
#[test]
fn a_writer_with_little_memory_flushes_automatically() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let options = || WriterOptions { memory: MEMORY_MIN, ..WriterOptions::default() };
    let little = WriterOptions { memory: MEMORY_MIN - 1, ..WriterOptions::default() };
    let rejected = IndexWriter::open(disk.clone(), schema(), OpenMode::New, little);
    assert!(rejected.err().unwrap().to_string().contains("16M"));
    let mut writer = IndexWriter::open(disk.clone(), schema(), OpenMode::New, options()).unwrap();
    let mut count = 0;
    let mut text = String::new();
    for number in 0..24_000u64 {
        text.clear();
        (0..250)
            .for_each(|word: u64| text.push_str(&format!("t{} ", (number * 7919 + word * 104_729) % 90_000)));
        text.push_str(if number % 3 == 0 { "third" } else { "other" });
        count += u64::from(number % 3 == 0);
        writer.add(&number.to_string(), [("text", &text)]).unwrap();
    }
    writer.commit(Merge::Keep).unwrap();
    let kept = Index::open_on(disk.clone()).unwrap();
    assert!(kept.segments().len() > 1, "{} segments", kept.segments().len());
    writer.commit(Merge::One).unwrap();
    drop(writer);
    let merged = Index::open_on(disk.clone()).unwrap();
    assert_eq!(merged.segments().len(), 1);
    for text in ["third", "t1 t2 t3", "t7 AND third", "NOT other"] {
        let look = AnswerOptions { k: 100, ..AnswerOptions::default() };
        let [found, expected] = [&kept, &merged].map(|index| answer_text(index, text, look).unwrap());
        assert_eq!(found, expected, "{text}");
    }
    let counted = AnswerOptions { k: 0, ..AnswerOptions::default() };
    assert_eq!(answer_text(&merged, "third", counted).unwrap().total, count);
    assert_sound(disk.as_ref());
}

/// Rejected operations on an existing index, and the stop signal.
#[test]
fn writers_reject_invalid_operations() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    build(&disk, &schema(), &[TestDocument::new("1", "", "a")], &[], AddMethod::Commits, Merge::Keep);
    let open = |schema: Schema, mode| IndexWriter::open(disk.clone(), schema, mode, WriterOptions::default());
    let other = SchemaOptions { positions: false, ..SchemaOptions::default() }.schema();
    assert!(open(schema(), OpenMode::New).err().unwrap().to_string().contains("holds an index already"));
    assert!(open(other.clone(), OpenMode::Append).err().unwrap().to_string().contains("other settings"));
    let mut writer = open(schema(), OpenMode::Append).unwrap();
    assert_eq!(writer.commit(Merge::One).unwrap(), 1, "nothing to do");
    writer.add("2", [("text", "a")]).unwrap();
    writer.stop().raise();
    assert!(matches!(writer.commit(Merge::Keep), Err(Error::Interrupted)));
    drop(writer);
    assert_eq!(Index::open_on(disk.clone()).unwrap().documents(), 1);
    let mut writer = open(other.clone(), OpenMode::Replace).unwrap();
    assert_eq!(Index::open_on(disk.clone()).unwrap().documents(), 1, "not before the commit");
    assert_eq!(writer.commit(Merge::Keep).unwrap(), 2);
    let index = Index::open_on(disk.clone()).unwrap();
    assert!(index.documents() == 0 && *index.schema() == other);
}

#[test]
fn a_failed_ingest_commits_nothing() {
    let disk = MemDisk::new();
    for threads in [1, 3] {
        let options = WriterOptions::default();
        let mut writer = IndexWriter::open(Arc::new(disk.clone()), schema(), OpenMode::New, options).unwrap();
        let mut pieces = 0;
        let failed = writer.ingest(
            threads,
            || {
                pieces += 1;
                if pieces < 20 { Ok(Some(pieces)) } else { Err(Error::Failed("the source broke".into())) }
            },
            |piece: u32, add| {
                add(DocumentRef {
                    id: &piece.to_string(),
                    values: &[(1, "some words")],
                    ..DocumentRef::default()
                })
            },
            |()| Ok(()),
        );
        assert!(failed.unwrap_err().to_string().contains("the source broke"));
        assert!(writer.commit(Merge::One).is_err());
        drop(writer);
        assert!(disk.list().unwrap().is_empty(), "{threads} threads");
    }
}
