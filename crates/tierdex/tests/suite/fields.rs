//! The statistics of a field are those of the documents that have it: those with at least one token in it.

use crate::support::corpus::{SchemaOptions, TestDocument};
use crate::support::{AddMethod, Answer, AnswerOptions, answer_text, checked_index, open_writer};
use std::sync::Arc;
use tierdex::io::{Disk, MemDisk};
use tierdex::schema::{Field, NormKind, Schema, Stored};
use tierdex::{DocumentRef, Index, Merge, OpenMode, commit::FieldStats};

const TEXT_FIELD: usize = 0;
const TITLE_FIELD: usize = 1;

/// Titles without tokens: empty, of separators, and of stop words.
const NO_TITLES: [&str; 4] = ["", " ", "-- !", "The of, the"];

fn schema(norms: NormKind) -> Schema {
    SchemaOptions { norms, stop_words: true, ..SchemaOptions::default() }.schema()
}

/// A thousand documents, of which every tenth has a title.
fn documents_with_few_titles() -> Vec<TestDocument> {
    let title = |number: usize| match (number % 10, number / 10) {
        (3, which) => {
            let rare = if which % 4 == 0 { "rare ".repeat(1 + which % 3) } else { String::new() };
            format!("{}{rare}{}", "common ".repeat(1 + which % 2), "filler ".repeat(which % 7))
        }
        (rest, _) => NO_TITLES[rest % 4].to_string(),
    };
    (0..1000).map(|number| TestDocument::new(number, &title(number), "all have a text")).collect()
}

fn index_documents(docs: &[TestDocument], schema: &Schema, cuts: &[usize], last: Merge) -> Index {
    checked_index(schema, docs, cuts, AddMethod::Commits, last)
}

fn all_matches(index: &Index, text: &str) -> Answer {
    answer_text(index, text, AnswerOptions { shown: 0, ..AnswerOptions::default() }).unwrap()
}

/// Statistics of a field in each segment.
fn field_stats(index: &Index, field: usize) -> Vec<FieldStats> {
    index.segments().iter().map(|segment| segment.meta().fields[field]).collect()
}

/// Documents whose title contains a word, best first, with their BM25 scores for a collection of `all`
/// documents with this average length.
fn rank_by_title(docs: &[TestDocument], word: &str, (all, average): (f64, f64)) -> Vec<(u32, f64)> {
    let words = |doc: &TestDocument| doc.title.split_whitespace().map(str::to_string).collect::<Vec<_>>();
    let count = |doc: &TestDocument| words(doc).iter().filter(|of| *of == word).count() as f64;
    let with = docs.iter().filter(|doc| count(doc) > 0.0).count() as f64;
    let idf = (1.0 + (all - with + 0.5) / (with + 0.5)).ln();
    let mut ranked = Vec::new();
    for (number, doc) in (0..).zip(docs) {
        let (f, length) = (count(doc), words(doc).len() as f64);
        if f > 0.0 {
            ranked.push((number, idf * f * 2.2 / (f + 1.2 * (0.25 + 0.75 * length / average))));
        }
    }
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    ranked
}

#[test]
fn a_field_of_few_documents_ranks_by_their_statistics() {
    let docs = documents_with_few_titles();
    let titles = docs.iter().skip(3).step_by(10);
    let tokens: usize = titles.map(|doc| doc.title.split_whitespace().count()).sum();
    let statistics = (100.0, tokens as f64 / 100.0);
    let parts: [(&[usize], Merge); 4] =
        [(&[], Merge::None), (&[500], Merge::None), (&[3, 4, 13], Merge::None), (&[3, 800], Merge::One)];
    for norms in [NormKind::Byte, NormKind::Exact] {
        let schema = schema(norms);
        for word in ["rare", "common"] {
            let query = format!("title:{word}");
            let expected = rank_by_title(&docs, word, statistics);
            let others = rank_by_title(&docs, word, (1000.0, tokens as f64 / 1000.0));
            let mut first = None;
            for (cuts, last) in parts {
                let index = index_documents(&docs, &schema, cuts, last);
                assert_eq!(index.segments().len(), if last == Merge::One { 1 } else { cuts.len() + 1 });
                let of_title = field_stats(&index, TITLE_FIELD);
                assert_eq!(of_title.iter().map(|stats| stats.documents).sum::<u32>(), 100);
                assert_eq!(of_title.iter().map(|stats| stats.tokens).sum::<u64>(), tokens as u64);
                let of_text = field_stats(&index, TEXT_FIELD);
                assert_eq!(of_text.iter().map(|stats| stats.documents).sum::<u32>(), 1000);
                let found = all_matches(&index, &query);
                assert_eq!(found.hits.len(), expected.len());
                for (row, expected) in found.hits.iter().zip(&expected) {
                    let score = f64::from(f32::from_bits(row.score_bits));
                    assert_eq!(row.document, expected.0, "{query} {cuts:?}");
                    let error = score / expected.1 - 1.0;
                    assert!(error.abs() < 1e-5, "{query} {cuts:?}: {score} {expected:?}");
                    // The score by the statistics of all documents would be another one.
                    let (_, other) = others.iter().find(|other| other.0 == row.document).unwrap();
                    assert!((score / other - 1.0).abs() > 0.01, "{query}: {score} and {other}");
                }
                assert_eq!(first.get_or_insert_with(|| found.clone()), &found, "{query} {cuts:?}");
            }
        }
    }
}

/// Documents without the field do not change its scores, wherever they are in the index.
#[test]
fn documents_without_the_field_change_no_score() {
    let text = |number: usize| format!("{} {}", "word ".repeat(1 + number % 3), "more ".repeat(number % 40));
    let docs: Vec<TestDocument> =
        (0..2000).map(|number| TestDocument::new(number, "title", text(number))).collect();
    let mut behind = docs.clone();
    behind.extend((2000..3000).map(|number| TestDocument::new(number, "title", "")));
    let mut between = Vec::new();
    for doc in &docs {
        between.extend([doc.clone(), TestDocument { text: "of the".to_string(), ..doc.clone() }]);
    }
    for norms in [NormKind::Byte, NormKind::Exact] {
        let schema = schema(norms);
        let plain = index_documents(&docs, &schema, &[], Merge::None);
        for (docs, apart) in [(&behind, 1), (&between, 2)] {
            for (cuts, last) in [(&[][..], Merge::None), (&[700, 2000], Merge::None), (&[700], Merge::One)] {
                let index = index_documents(docs, &schema, cuts, last);
                assert!(index.documents() > plain.documents());
                for (query, k) in [("word", 10), ("word", 5000), ("+word more", 10), ("wor~1 absent", 20)] {
                    for exhaustive in [false, true] {
                        let look = AnswerOptions { k, exhaustive, shown: 0, ..AnswerOptions::default() };
                        let mut expected = answer_text(&plain, query, look).unwrap();
                        expected.hits.iter_mut().for_each(|row| row.document *= apart);
                        let found = answer_text(&index, query, look).unwrap();
                        assert_eq!(found, expected, "{query} {k} {cuts:?}");
                    }
                }
            }
        }
    }
}

/// The average length is 1 if no document has the field, in a segment and in the whole index.
#[test]
fn a_field_that_no_document_has_is_searched() {
    let bare: Vec<TestDocument> =
        (0..300).map(|number| TestDocument::new(number, NO_TITLES[number % 4], "all have a text")).collect();
    let mut titled = bare.clone();
    titled.extend((300..320).map(|number| TestDocument::new(number, "a title", "all")));
    for norms in [NormKind::Byte, NormKind::Exact] {
        let schema = schema(norms);
        for (docs, hits) in [(&bare, 0), (&titled, 20)] {
            for last in [Merge::None, Merge::One] {
                let index = index_documents(docs, &schema, &[100, 300.min(docs.len() - 1)], last);
                if last == Merge::None {
                    assert_eq!(field_stats(&index, TITLE_FIELD)[..2], [FieldStats::default(); 2]);
                    assert_eq!(index.segments()[0].average_length(TITLE_FIELD), 1.0);
                }
                let found = all_matches(&index, "title:title");
                assert_eq!(found.total, hits);
                let scores = found.hits.iter().map(|row| f32::from_bits(row.score_bits));
                assert!(scores.clone().all(|score| score.is_finite() && score > 0.0));
                assert_eq!(all_matches(&index, "title:titel~2 title:t*").total, hits);
                assert_eq!(all_matches(&index, "title:title all").total, docs.len() as u64);
            }
        }
    }
}

/// Values, also of members that a schema does not name, stay as they are when a merge adds members.
#[test]
fn stored_values_survive_added_members() {
    let mut schema = Schema { stored: Stored::All, ..Schema::default() };
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let (first, others) = (["one", "two", "three"], "{\"year\": 2024}");
    let mut writer = open_writer(&disk, &schema, OpenMode::New);
    for number in 0..3000 {
        let id = number.to_string();
        let values = first.map(|value| (1, value));
        let values = &values[..number % 4];
        writer
            .add_document(DocumentRef { id: &id, values, columns: &[], others: &others[..number % 15] })
            .unwrap();
    }
    writer.commit(Merge::None).unwrap();
    drop(writer);
    schema.members.extend(["from", "to"].map(str::to_string));
    schema.fields.push(Field::new("from", &["from"]));
    for merge in [Merge::None, Merge::One] {
        let mut writer = open_writer(&disk, &schema, OpenMode::Append);
        writer.add("new", [("from", "a"), ("from", "b"), ("text", "new"), ("title", "title")]).unwrap();
        writer.commit(merge).unwrap();
        crate::support::assert_sound(disk.as_ref());
        let index = Index::open_on(disk.clone()).unwrap();
        let stored = |document| index.searcher().stored(document).unwrap().unwrap();
        for number in 0..3000 {
            let stored = stored(number as u32);
            assert_eq!(stored.values("text"), &first[..number % 4]);
            assert_eq!(stored.others(), &others[..number % 15]);
            assert!(stored.values("from").is_empty() && stored.title().is_empty());
        }
        assert_eq!((stored(3000).values("from").len(), stored(3000).title()), (2, "title"));
        assert_eq!(all_matches(&index, "from:a from:b").total, if merge == Merge::One { 2 } else { 1 });
    }
}
