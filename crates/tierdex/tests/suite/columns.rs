//! Columns: values are read as they were written, in any number of segments, merged, and with deletes; a
//! merged segment has the bytes of one that was written from its documents.

use crate::support::forge::read_payload;
use crate::support::random::Random;
use std::collections::BTreeMap;
use std::sync::Arc;
use tierdex::commit::FileKind;
use tierdex::internal::{index::check_on, segment::layout::parse_file_name};
use tierdex::io::{Disk, MemDisk};
use tierdex::schema::{Column, ColumnType, ColumnValue, Schema};
use tierdex::{
    Document, DocumentRef, Engine, EngineOptions, Error, Index, IndexWriter, Merge, OpenMode, Query,
    SearchRequest, TotalHits, WriterOptions,
};

/// Columns of all types, single and multi-valued, whose values are in order, at random, equal, sparse, or of
/// all sizes.
fn columns() -> Vec<Column> {
    use ColumnType::{Bool, Date, F64, I64, U64};
    let multi = |name: &str, of| Column { multi: true, ..Column::new(name, of) };
    vec![
        Column::new("created", Date),
        Column::new("year", I64),
        Column::new("any", U64),
        Column::new("price", F64),
        Column::new("sold", Bool),
        multi("sizes", U64),
        multi("deltas", I64),
        Column::new("rare", U64),
        Column::new("same", I64),
        Column::new("absent", F64),
    ]
}

fn schema() -> Schema {
    Schema::default().with_columns(columns())
}

/// A document, whose values depend on its number.
fn document(number: usize) -> Document {
    let mut random = Random::new(number as u64);
    let mut document = Document::new(number).with("text", format!("word{} all", number % 7));
    let mut add = |name: &str, value| document.columns.push((name.to_string(), value));
    add("created", ColumnValue::Date(1_700_000_000_000_000 + 60_000_000 * number as i64));
    if !random.one_in(5) {
        add("year", ColumnValue::I64(1900 + random.below(130) as i64));
    }
    if random.one_in(2) {
        let extremes = [0, 1, u64::MAX, u64::MAX - 1, 1 << 63];
        let value =
            if random.one_in(3) { *random.pick(&extremes) } else { random.next() >> random.below(64) };
        add("any", ColumnValue::U64(value));
    }
    let prices = [-0.0, 0.0, f64::MIN_POSITIVE, -1e300, f64::INFINITY, 19.99, 5e-324];
    add("price", ColumnValue::F64(*random.pick(&prices) * (1 + random.below(3)) as f64));
    add("sold", ColumnValue::Bool(random.one_in(10)));
    for _ in 0..random.skewed(6) {
        add("sizes", ColumnValue::U64(30 + 2 * random.below(10) as u64));
    }
    for _ in 0..if number % 997 == 5 { 255 } else { random.below(2) } {
        add("deltas", ColumnValue::I64(random.next() as i64 >> random.below(60)));
    }
    if random.one_in(300) {
        add("rare", ColumnValue::U64(random.below(1000) as u64));
    }
    add("same", ColumnValue::I64(-7));
    document
}

/// The values of a document in a column, as they are read.
fn expected(document: &Document, column: &Column) -> Vec<ColumnValue> {
    let values = document.columns.iter().filter(|(name, _)| *name == column.name);
    let mut values: Vec<_> = values.map(|(_, value)| *value).collect();
    values.sort_by(|a, b| match (a, b) {
        (ColumnValue::U64(a), ColumnValue::U64(b)) => a.cmp(b),
        (ColumnValue::I64(a), ColumnValue::I64(b)) => a.cmp(b),
        _ => std::cmp::Ordering::Equal,
    });
    values
}

fn open(disk: &Arc<MemDisk>, mode: OpenMode, updatable: bool) -> IndexWriter {
    let options = WriterOptions { updatable, ..WriterOptions::default() };
    IndexWriter::open(disk.clone(), schema(), mode, options).unwrap()
}

/// Writes a segment for the documents before each of `cuts`, and one for the last ones.
fn write_segments(disk: &Arc<MemDisk>, documents: &[Document], cuts: &[usize]) -> IndexWriter {
    let (mut writer, mut from) = (open(disk, OpenMode::New, true), 0);
    for cut in cuts.iter().copied().chain([documents.len()]) {
        writer.add_all(documents[from..cut].to_vec(), 1).unwrap();
        writer.commit(Merge::None).unwrap();
        from = cut;
    }
    writer
}

/// Compares all values of an index of these documents.
fn check_values(disk: &Arc<MemDisk>, documents: &BTreeMap<String, Document>) {
    let problems = check_on(disk.as_ref()).unwrap().problems;
    assert!(problems.is_empty(), "{}", problems[0]);
    let index = Index::open_on(disk.clone()).unwrap();
    let engine = Engine::new(&index, &EngineOptions::new()).unwrap();
    let snapshot = engine.snapshot();
    let mut found = 0;
    for (id, document) in documents {
        let number = snapshot.find_id(id).unwrap().unwrap();
        for column in columns() {
            let values = snapshot.values(number, &column.name).unwrap();
            assert_eq!(values, expected(document, &column), "{id} {}", column.name);
            found += values.len();
        }
    }
    assert!(found >= 4 * documents.len());
}

fn by_id(documents: &[Document]) -> BTreeMap<String, Document> {
    documents.iter().map(|document| (document.id.clone(), document.clone())).collect()
}

/// The payloads of the columns of the only segment, by their numbers.
fn payloads(disk: &MemDisk) -> BTreeMap<usize, Vec<u8>> {
    let named = disk.list().unwrap().into_iter().filter_map(|name| {
        let (_, number, kind) = parse_file_name(&name)?;
        (kind == FileKind::Column).then(|| (number, read_payload(disk, &name).1))
    });
    named.collect()
}

/// Numbers of documents of an index: around the ends of blocks, and of several blocks.
const SIZES: [usize; 6] = [1, 255, 4095, 4096, 4097, 9000];

#[test]
fn values_are_read_as_they_were_written() {
    for size in SIZES {
        let documents: Vec<Document> = (0..size).map(document).collect();
        let disk = Arc::new(MemDisk::new());
        let mut writer = open(&disk, OpenMode::New, false);
        writer.add_all(documents.clone(), 2).unwrap();
        writer.commit(Merge::Keep).unwrap();
        check_values(&disk, &by_id(&documents));
        // No file is written for a column without values.
        let absent = columns().len() - 1;
        assert!(!payloads(&disk).contains_key(&absent) && payloads(&disk).contains_key(&(absent - 1)));
    }
}

#[test]
fn merged_columns_have_the_bytes_of_new_ones() {
    let documents: Vec<Document> = (0..9000).map(document).collect();
    // Segments of any size, one of which has the first value of the rare column.
    for cuts in [vec![4096], vec![1, 2, 300, 4500, 8999], (500..9000).step_by(500).collect()] {
        let disk = Arc::new(MemDisk::new());
        let mut writer = write_segments(&disk, &documents, &cuts);
        check_values(&disk, &by_id(&documents));
        writer.commit(Merge::One).unwrap();
        check_values(&disk, &by_id(&documents));
        let new = Arc::new(MemDisk::new());
        let mut writer = open(&new, OpenMode::New, true);
        writer.add_all(documents.clone(), 2).unwrap();
        writer.commit(Merge::Keep).unwrap();
        assert!(payloads(&disk) == payloads(&new), "{cuts:?}");
    }
}

#[test]
fn deleted_documents_leave_no_values_after_a_merge() {
    let documents: Vec<Document> = (0..6000).map(document).collect();
    let disk = Arc::new(MemDisk::new());
    let mut writer = open(&disk, OpenMode::New, true);
    writer.add_all(documents.clone(), 2).unwrap();
    writer.commit(Merge::None).unwrap();
    // Documents are replaced by those of other numbers, and others are deleted.
    let replaced = |number: usize| Document { id: number.to_string(), ..document(100_000 + number) };
    let replacements: Vec<Document> = (0..6000).step_by(7).map(replaced).collect();
    writer.add_all(replacements.clone(), 1).unwrap();
    for number in (1..6000_usize).step_by(3).filter(|number| !number.is_multiple_of(7)) {
        writer.delete(&number.to_string()).unwrap();
    }
    writer.commit(Merge::None).unwrap();
    let is_left = |number: &usize| !number.is_multiple_of(7) && number % 3 != 1;
    let left: Vec<Document> = (0..6000).filter(is_left).map(document).chain(replacements).collect();
    check_values(&disk, &by_id(&left));
    writer.commit(Merge::One).unwrap();
    check_values(&disk, &by_id(&left));
    let new = Arc::new(MemDisk::new());
    let mut writer = open(&new, OpenMode::New, true);
    writer.add_all(left, 2).unwrap();
    writer.commit(Merge::Keep).unwrap();
    assert!(payloads(&disk) == payloads(&new));
}

#[test]
fn columns_are_added_to_an_index() {
    let disk = Arc::new(MemDisk::new());
    let options = WriterOptions::default;
    let mut writer = IndexWriter::open(disk.clone(), Schema::default(), OpenMode::New, options()).unwrap();
    let without = |number: usize| Document { columns: Vec::new(), ..document(number) };
    writer.add_all((0..100).map(without), 1).unwrap();
    writer.commit(Merge::None).unwrap();
    drop(writer);
    let mut writer = open(&disk, OpenMode::Append, false);
    writer.add_all((100..5000).map(document), 1).unwrap();
    writer.commit(Merge::None).unwrap();
    let all: Vec<Document> = (0..100).map(without).chain((100..5000).map(document)).collect();
    check_values(&disk, &by_id(&all));
    writer.commit(Merge::One).unwrap();
    check_values(&disk, &by_id(&all));
    drop(writer);
    // A column cannot be left out, nor changed.
    let mut schema = schema();
    schema.columns[1].multi = true;
    for schema in [Schema::default(), schema] {
        let error = IndexWriter::open(disk.clone(), schema, OpenMode::Append, options()).err().unwrap();
        assert!(error.to_string().contains("column"), "{error}");
    }
}

#[test]
fn wrong_values_are_rejected_and_the_writer_goes_on() {
    let disk = Arc::new(MemDisk::new());
    let mut writer = open(&disk, OpenMode::New, false);
    let year = |value: i64| (1, ColumnValue::I64(value));
    let many: Vec<_> = (0..256).map(|value| (5, ColumnValue::U64(value))).collect();
    let rejected: [(&[(usize, ColumnValue)], &str); 5] = [
        (&[(1, ColumnValue::U64(5))], "column `year`: U64(5) is not an integer from -2^63 to 2^63-1"),
        (&[(3, ColumnValue::F64(f64::NAN))], "column `price`: F64(NaN) is not a number"),
        (&[year(1), year(1)], "column `year` has more than 1 value in a document"),
        (&many, "column `sizes` has more than 255 values in a document"),
        (&[(99, ColumnValue::Bool(true))], "the schema has no column of number 99"),
    ];
    for (columns, expected) in rejected {
        let document = DocumentRef { id: "x", columns, ..DocumentRef::default() };
        let error = writer.add_document(document).unwrap_err();
        assert!(matches!(error, Error::Usage(_)));
        assert_eq!(error.to_string(), expected);
    }
    writer.add_document(DocumentRef { id: "y", columns: &many[1..], ..DocumentRef::default() }).unwrap();
    writer.add_document(DocumentRef { id: "z", columns: &[year(5)], ..DocumentRef::default() }).unwrap();
    writer.commit(Merge::Keep).unwrap();
    let index = Index::open_on(disk).unwrap();
    let engine = Engine::new(&index, &EngineOptions::new()).unwrap();
    assert_eq!(engine.snapshot().values(0, "sizes").unwrap().len(), 255);
    assert_eq!(engine.snapshot().values(1, "year").unwrap(), [ColumnValue::I64(5)]);
    assert!(engine.snapshot().values(0, "yeer").unwrap_err().to_string().contains("no column `yeer`"));
    assert!(engine.snapshot().values(2, "year").unwrap_err().to_string().contains("no document 2"));
}

/// A filter in the query language, and the documents that pass it.
type Filter = (String, Predicate);

type Predicate = Box<dyn Fn(&Document) -> bool>;

fn values_of<'d>(document: &'d Document, name: &'static str) -> impl Iterator<Item = ColumnValue> + 'd {
    document.columns.iter().filter(move |(of, _)| *of == name).map(|(_, value)| *value)
}

/// A random filter by one column.
fn random_filter(random: &mut Random) -> Filter {
    let (low, high) = (random.below(9000) as i64 - 200, random.below(3000) as i64);
    match random.below(9) {
        0 => {
            let minute = |number: i64| 1_700_000_000_000_000 + 60_000_000 * number;
            let text = |number: i64| ColumnValue::Date(minute(number)).to_string();
            let query = format!("created:[{} TO {}}}", text(low), text(low + high));
            let is_within = move |value| matches!(value, ColumnValue::Date(at) if (minute(low)..minute(low + high)).contains(&at));
            (query, Box::new(move |document| values_of(document, "created").any(is_within)))
        }
        1 => {
            let from = 1890 + random.below(150) as i64;
            let is_within = move |value| matches!(value, ColumnValue::I64(year) if year >= from);
            (format!("year:>={from}"), Box::new(move |document| values_of(document, "year").any(is_within)))
        }
        2 => {
            let years = [0; 4].map(|_| 1890 + random.below(150) as i64);
            let list = years.map(|year| year.to_string()).join(" ");
            let is_within = move |value| matches!(value, ColumnValue::I64(year) if years.contains(&year));
            (format!("year:({list})"), Box::new(move |document| values_of(document, "year").any(is_within)))
        }
        3 => {
            let below = *random.pick(&["0", "1e-300", "19.99", "-0.5", "inf", "1e300", "60"]);
            let number: f64 = below.parse().unwrap();
            let is_within = move |value| matches!(value, ColumnValue::F64(price) if price < number);
            (format!("price:<{below}"), Box::new(move |document| values_of(document, "price").any(is_within)))
        }
        4 => {
            let is_within = |value| value == ColumnValue::Bool(true);
            ("sold:true".to_string(), Box::new(move |document| values_of(document, "sold").any(is_within)))
        }
        5 => {
            let (from, to) = (28 + random.below(20) as u64, 28 + random.below(25) as u64);
            let is_within = move |value| matches!(value, ColumnValue::U64(size) if from < size && size < to);
            (
                format!("sizes:{{{from} TO {to}}}"),
                Box::new(move |document| values_of(document, "sizes").any(is_within)),
            )
        }
        6 => {
            let name = *random.pick(&["any", "rare", "deltas", "absent", "same", "sizes"]);
            (format!("{name}:*"), Box::new(move |document| values_of(document, name).next().is_some()))
        }
        7 => {
            let limit = random.next() >> random.below(64);
            let is_within = move |value| matches!(value, ColumnValue::U64(value) if value <= limit);
            (format!("any:<={limit}"), Box::new(move |document| values_of(document, "any").any(is_within)))
        }
        _ => {
            let limit = random.next() as i64 >> random.below(64);
            let is_within = move |value| matches!(value, ColumnValue::I64(value) if value > limit);
            (
                format!("deltas:>{limit}"),
                Box::new(move |document| values_of(document, "deltas").any(is_within)),
            )
        }
    }
}

/// The ids of all hits with their scores, and the number of matches.
fn search(engine: &Engine, query: &str, k: usize) -> (Vec<(String, f32)>, u64) {
    let snapshot = engine.snapshot();
    let parsed = Query::parse(query, snapshot.schema()).unwrap();
    let hits = engine.search(SearchRequest::new(parsed.clone()).k(k).count(true).ids(true)).unwrap();
    let counted = engine.search(SearchRequest::new(parsed).k(0).count(true)).unwrap();
    assert_eq!(hits.total, counted.total, "{query}");
    let TotalHits::Exact(total) = hits.total else { panic!("{query}") };
    let scores = hits.hits.iter().map(|hit| hit.score);
    (hits.ids().unwrap().iter().map(|id| id.to_string()).zip(scores).collect(), total)
}

/// Searches with filters are those without, less the documents that do not pass, in the same order, with the
/// same scores, however the index is divided.
#[test]
fn filters_select_documents_and_keep_scores() {
    let documents: Vec<Document> = (0..9000).map(document).collect();
    let replaced: Vec<Document> = (0..9000)
        .step_by(11)
        .map(|number| Document { id: number.to_string(), ..document(50_000 + number) })
        .collect();
    let mut found = 0;
    for (cuts, dram) in [(vec![], None), (vec![700, 5000, 5001], Some(40_000_000)), (vec![4096], None)] {
        let disk = Arc::new(MemDisk::new());
        let mut writer = write_segments(&disk, &documents, &cuts);
        let mut all = by_id(&documents);
        if !cuts.is_empty() {
            writer.add_all(replaced.clone(), 1).unwrap();
            writer.commit(Merge::None).unwrap();
            all.extend(by_id(&replaced));
        }
        let index = Index::open_on(disk.clone()).unwrap();
        let options = EngineOptions::new().threads(2).hits_max(20_000);
        let options = if let Some(dram) = dram { options.dram(dram) } else { options };
        let engine = Engine::new(&index, &options).unwrap();
        let mut random = Random::new(cuts.len() as u64 + 1);
        for round in 0..150 {
            let text = *random.pick(&["word1", "all", "word2 word3", "+word4 all", "*:*", "absentword"]);
            let (filter, passes) = random_filter(&mut random);
            let (other, passes_other) = random_filter(&mut random);
            let (base, _) = search(&engine, text, 20_000);
            let form = random.below(5);
            let (query, passes): (_, Predicate) = match form {
                0 => (format!("+({text}) #{filter}"), passes),
                1 => (format!("+({text}) +{filter}"), passes),
                2 => (format!("+({text}) -{filter}"), Box::new(move |document| !passes(document))),
                3 => (
                    format!("+({text}) #{filter} #{other}"),
                    Box::new(move |document| passes(document) && passes_other(document)),
                ),
                _ => (
                    format!("+({text}) #({filter} {other})"),
                    Box::new(move |document| passes(document) || passes_other(document)),
                ),
            };
            let expected: Vec<(String, f32)> = base.into_iter().filter(|(id, _)| passes(&all[id])).collect();
            found += expected.len();
            let (mut hits, total) = search(&engine, &query, 20_000);
            assert_eq!(total, expected.len() as u64, "{round}: {query}");
            assert!(hits == expected, "{round}: {query}");
            hits.truncate(10);
            assert_eq!(search(&engine, &query, 10).0, hits, "{round}: {query}");
            // The filter alone: all documents with score 0, or those of another commit.
            let (alone, total) = search(&engine, &filter, 20_000);
            assert!(alone.iter().all(|(_, score)| *score == 0.0) && alone.len() as u64 == total, "{filter}");
            let none = search(&engine, &format!("*:* -{filter}"), 0).1;
            assert_eq!(total + none, all.len() as u64, "{filter}");
        }
    }
    assert!(found > 100_000, "{found}");
}

#[test]
fn wrong_clauses_are_faults_with_their_place() {
    let schema = schema();
    for (query, expected) in [
        ("disk year:[1990 TO x]", "query, byte 6: column `year`: `x` is not an integer from -2^63 to 2^63-1"),
        ("created:>yesterday", "query, byte 1: column `created`: `yesterday` is not a date such as"),
        ("year:[1990 2000]", "query, byte 1: write a range as `[low TO high]`"),
        ("year:>=", "query, byte 1: a value is missing after the name of the column"),
        ("sold:maybe", "query, byte 1: column `sold`: `maybe` is not true or false"),
    ] {
        let error = Query::parse(query, &schema).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
        let (_, warnings) = Query::parse_lenient(query, &schema);
        assert_eq!(warnings[0].to_string(), error);
    }
    // A range without values matches nothing.
    let empty = Query::parse("year:{5 TO 6}", &schema).unwrap();
    assert_eq!(empty, Query::Column { column: 1, ranges: Vec::new(), boost: 0.0 });
    let now = 1_700_000_000_000_000;
    let (query, _) = Query::parse_at("created:>=now-1h", &schema, now).unwrap();
    let from = ColumnValue::Date(now - 3_600_000_000);
    assert_eq!(query, Query::range(&schema, "created", from..).unwrap());
    assert_eq!(Query::exists(&schema, "year").unwrap(), Query::parse("year:*", &schema).unwrap());
    let years = [1990, 1991, 2000].map(ColumnValue::I64);
    assert_eq!(
        Query::terms(&schema, "year", &years).unwrap(),
        Query::parse("year:(1990 2000 1991)", &schema).unwrap()
    );
    assert!(Query::range(&schema, "year", ColumnValue::U64(1)..).is_err());
}
