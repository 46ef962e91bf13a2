//! Import and export of CIFF files, also of files that break the rules of the format.

use crate::support::random::Random;
use proptest::prelude::*;
use std::{collections::BTreeMap, io::Cursor, sync::Arc};
use tierdex::ciff::{CiffReport, export, import, schema};
use tierdex::internal::index::check_on;
use tierdex::io::MemDisk;
use tierdex::{Error, Index, IndexWriter, Merge, OpenMode, Result, WriterOptions};

/// A posting list: the term, the document frequency if a wrong one is to be written, and gap and frequency of
/// each posting.
type CiffList = (String, Option<i64>, Vec<(i64, i64)>);

/// The contents of a CIFF file; [`CiffFile::encode`] makes its bytes.
#[derive(Clone, Debug, Default)]
struct CiffFile {
    /// Numbers of lists and of documents in the header, if wrong ones are to be written.
    counts: Option<(i64, i64)>,
    lists: Vec<CiffList>,
    /// Number, id and length of each document.
    records: Vec<(i64, String, i64)>,
}

fn push_varint(out: &mut Vec<u8>, value: i64) {
    let mut value = value as u64;
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn push_number_field(out: &mut Vec<u8>, field: u8, value: i64) {
    if value != 0 {
        out.push(field << 3);
        push_varint(out, value);
    }
}

fn push_bytes_field(out: &mut Vec<u8>, field: u8, value: &[u8]) {
    out.push(field << 3 | 2);
    push_varint(out, value.len() as i64);
    out.extend_from_slice(value);
}

fn push_message(out: &mut Vec<u8>, message: &[u8]) {
    push_varint(out, message.len() as i64);
    out.extend_from_slice(message);
}

impl CiffFile {
    fn encode(&self) -> Vec<u8> {
        let (lists, documents) = self.counts.unwrap_or((self.lists.len() as i64, self.records.len() as i64));
        let (mut out, mut part) = (Vec::new(), Vec::new());
        for (field, value) in [(1, 1), (2, lists), (3, documents), (4, 1000), (5, 2000)] {
            push_number_field(&mut part, field, value);
        }
        push_bytes_field(&mut part, 8, b"made by a test");
        // A field that is not known.
        push_bytes_field(&mut part, 15, b"?");
        push_message(&mut out, &part);
        for (term, frequency, postings) in &self.lists {
            part.clear();
            push_bytes_field(&mut part, 1, term.as_bytes());
            push_number_field(&mut part, 2, frequency.unwrap_or(postings.len() as i64));
            for (gap, frequency) in postings {
                let mut posting = Vec::new();
                push_number_field(&mut posting, 1, *gap);
                push_number_field(&mut posting, 2, *frequency);
                push_bytes_field(&mut part, 4, &posting);
            }
            push_message(&mut out, &part);
        }
        for (document, id, length) in &self.records {
            part.clear();
            push_number_field(&mut part, 1, *document);
            push_bytes_field(&mut part, 2, id.as_bytes());
            push_number_field(&mut part, 3, *length);
            push_message(&mut out, &part);
        }
        out
    }
}

/// A file of two documents, whose terms and records are not in order.
fn sample_file() -> CiffFile {
    let list = |term: &str, postings: &[(i64, i64)]| (term.to_string(), None, postings.to_vec());
    CiffFile {
        counts: None,
        lists: vec![list("disk", &[(0, 2), (1, 1)]), list("cold", &[(1, 3)])],
        records: vec![(1, "second".to_string(), 4), (0, "first".to_string(), 2)],
    }
}

fn import_file(file: &[u8]) -> Result<(Arc<MemDisk>, Index, CiffReport)> {
    let disk = Arc::new(MemDisk::new());
    let mut writer = IndexWriter::open(disk.clone(), schema(), OpenMode::New, WriterOptions::default())?;
    let report = import(&mut writer, &mut Cursor::new(file), "given.ciff")?;
    writer.commit(Merge::None)?;
    let problems = check_on(disk.as_ref())?.problems;
    assert!(problems.is_empty(), "{problems:?}");
    let index = Index::open_on(disk.clone())?;
    Ok((disk, index, report))
}

fn export_file(index: &Index) -> Vec<u8> {
    let mut file = Vec::new();
    export(index, "text", "made by a test", &mut file).unwrap();
    file
}

/// Documents and frequencies of each term.
fn term_counts(index: &Index) -> BTreeMap<String, (u64, u64)> {
    let terms = index.searcher().terms(0, "", None, usize::MAX).unwrap();
    terms.into_iter().map(|term| (term.term, (term.documents, term.occurrences))).collect()
}

#[test]
fn terms_and_records_may_be_in_any_order() {
    let (_, index, report) = import_file(&sample_file().encode()).unwrap();
    assert_eq!((report.documents, report.lists, report.postings), (2, 2, 3));
    assert_eq!((report.collection, &*report.description), ((2000, 1000), "made by a test"));
    assert_eq!((report.missing_tokens, report.raised_lengths, report.other_frequencies), (0, 0, 0));
    let searcher = index.searcher();
    assert_eq!((searcher.id(0).unwrap(), searcher.id(1).unwrap()), ("first".into(), "second".into()));
    let expected = [("cold", (1, 3)), ("disk", (2, 3))];
    assert_eq!(term_counts(&index), expected.map(|(term, counts)| (term.to_string(), counts)).into());
}

#[test]
fn lengths_that_are_not_the_sum_of_frequencies() {
    let mut file = sample_file();
    // The length of the first document is greater than the sum of its frequencies, as if the file had only
    // some of the terms; that of the second is less.
    (file.records[1].2, file.records[0].2) = (100, 1);
    file.lists[0].1 = Some(77);
    let (_, index, report) = import_file(&file.encode()).unwrap();
    assert_eq!((report.missing_tokens, report.raised_lengths, report.other_frequencies), (98, 1, 1));
    let stats = index.manifest().segments[0].fields[0];
    assert_eq!((stats.tokens, stats.documents), (104, 2));
    // The exported file has the lengths, but not the list of the added term.
    let exported = export_file(&index);
    let (_, again, report) = import_file(&exported).unwrap();
    assert_eq!((report.lists, report.missing_tokens, report.raised_lengths), (2, 98, 0));
    assert_eq!(export_file(&again), exported);
}

#[test]
fn terms_that_are_too_long_are_skipped_and_terms_that_queries_miss_are_counted() {
    let mut file = sample_file();
    file.lists.push(("x".repeat(300), None, vec![(0, 5), (1, 1)]));
    file.lists.push(("ELM".to_string(), None, vec![(0, 1)]));
    file.lists.push(("new york".to_string(), None, vec![(1, 1)]));
    (file.records[1].2, file.records[0].2) = (8, 6);
    let (_, index, report) = import_file(&file.encode()).unwrap();
    assert_eq!((report.lists, report.postings, report.long_terms), (4, 5, 1));
    assert_eq!((report.changed_terms, report.first_changed_term.as_deref()), (2, Some("ELM")));
    // The lengths are those of the file, though the tokens of the long term are in no list.
    assert_eq!((report.missing_tokens, report.raised_lengths), (6, 0));
    assert_eq!(index.manifest().segments[0].fields[0].tokens, 14);
    assert!(!term_counts(&index).keys().any(|term| term.len() > 255));
}

#[test]
fn files_that_break_the_rules_are_rejected_with_one_line() {
    type Change = fn(&mut CiffFile);
    let changes: [(Change, &str); 21] = [
        (|file| file.lists[0].2[1].0 = 0, "do not increase"),
        (|file| file.lists[0].2[1].0 = -1, "a document gap is -1"),
        (|file| file.lists[0].2[0].0 = i64::from(i32::MAX), "document 2147483647 of 2"),
        (|file| file.lists[0].2[1].0 = 2, "document 2 of 2"),
        (|file| file.lists[0].2[0].1 = 0, "frequency 0"),
        (|file| file.lists[0].2[0].1 = -5, "a frequency is -5"),
        (|file| file.lists[0].2[0].1 = 1 << 40, "a frequency is 1099511627776"),
        (|file| file.lists[0].2[0].1 = (1 << 26) + 1, "frequency 67108865"),
        (|file| (file.lists[0].2[1].1, file.lists[1].2[0].1) = (1 << 26, 1 << 26), "more than 67108864"),
        (|file| file.lists[0].2.clear(), "no postings"),
        (|file| file.lists[0].0.clear(), "no term"),
        (|file| file.lists[0].0 = "cold".to_string(), "two lists"),
        (|file| file.lists[0].0 = "\0".to_string(), "reserved"),
        (|file| file.records[0].0 = 0, "document 0 has two records"),
        (|file| file.records[0].0 = 2, "document 2 of 2"),
        (|file| file.records[0].1 = "x".repeat(4097), "4097 bytes"),
        (|file| file.records[0].1.clear(), "the id is empty"),
        (|file| file.records[1].1 = "a\nb".to_string(), "control character U+000A at byte 2"),
        (|file| file.records[0].2 = -1, "a document length is -1"),
        (|file| file.counts = Some((2, i64::from(i32::MAX))), "too short"),
        (|file| file.counts = Some((1, 2)), ""),
    ];
    for (change, message) in changes {
        let mut file = sample_file();
        change(&mut file);
        let error = import_file(&file.encode()).err().unwrap_or_else(|| panic!("accepted, not {message:?}"));
        let text = error.to_string();
        assert!(text.contains(message) && !text.contains('\n'), "{text:?} is not {message:?}");
    }
    let mut bytes = sample_file().encode();
    bytes.push(0);
    assert!(import_file(&bytes).err().unwrap().to_string().contains("bytes follow"));
    let none = CiffFile::default().encode();
    assert!(matches!(import_file(&none).err().unwrap(), Error::Usage(_)));
    let at = "given.ciff, byte ";
    assert!(import_file(b"\x02\x08\x02").err().unwrap().to_string().starts_with(at));
}

/// Changed files are an error or a sound index; truncated ones are an error.
#[test]
fn damaged_files_are_errors() {
    let good = sample_file().encode();
    for len in 0..good.len() {
        assert!(import_file(&good[..len]).is_err(), "{len} bytes");
    }
    let (mut random, mut rejected) = (Random::new(7), 0);
    for _ in 0..2000 {
        let mut bytes = good.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len());
            bytes[at] = random.below(256) as u8;
        }
        if let Err(error) = import_file(&bytes) {
            rejected += 1;
            assert!(!error.to_string().contains('\n'), "{error}");
        }
    }
    assert!(rejected > 500, "{rejected} of 2000 rejected");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    /// An exported index, imported and exported again, gives the same file; searches find the same.
    #[test]
    fn an_export_is_imported_as_it_was(
        texts in prop::collection::vec(prop::collection::vec(0u32..60, 0..40), 1..400),
        cut in 0usize..400,
    ) {
        let disk = Arc::new(MemDisk::new());
        let options = WriterOptions::default();
        let mut writer = IndexWriter::open(disk.clone(), schema(), OpenMode::New, options).unwrap();
        for (number, words) in texts.iter().enumerate() {
            let text: Vec<String> = words.iter().map(|word| format!("w{}", word * word / 40)).collect();
            writer.add(&format!("d{number}"), [("text", &text.join(" "))]).unwrap();
            if number == cut {
                writer.commit(Merge::None).unwrap();
            }
        }
        writer.commit(Merge::None).unwrap();
        let index = Index::open_on(disk).unwrap();
        let exported = export_file(&index);
        let (_, again, report) = import_file(&exported).unwrap();
        prop_assert_eq!(report.missing_tokens + report.raised_lengths + report.other_frequencies, 0);
        prop_assert_eq!(term_counts(&again), term_counts(&index));
        prop_assert_eq!(export_file(&again), exported);
        for word in 0..10 {
            let query = tierdex::Query::parse(&format!("w{word} w{}", word * 3), &schema()).unwrap();
            let options = tierdex::SearchOptions { count: true, ..Default::default() };
            let (one, other) = (index.searcher(), again.searcher());
            prop_assert_eq!(one.search(&query, &options).unwrap(), other.search(&query, &options).unwrap());
        }
    }
}
