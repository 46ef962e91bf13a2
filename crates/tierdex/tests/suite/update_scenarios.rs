//! Updates and deletes in the cases that the tests and the defects of other search engines show, with the
//! public thread or test that has each. After a commit the index is compared with a new one of the live
//! documents.

use crate::support::corpus::{SchemaOptions, TestDocument};
use crate::support::deleted::updatable_writer;
use crate::support::queries::random_query_text;
use crate::support::requests::{documents_and_score_bits, engine_options, parse_query};
use crate::support::{AnswerOptions, script::check_no_orphans};
use crate::support::{
    add_document, answer_text, assert_sound, crash_images, exhaustive_search, index_in_memory, random::Random,
};
use std::{collections::BTreeSet, sync::Arc};
use tierdex::commit::Manifest;
use tierdex::io::errno::EIO;
use tierdex::io::{Disk, Effect, FaultDisk, FaultPlan, MemDisk, OpClass, Repeat};
use tierdex::limits::{ID_BYTES_MAX, PREFIX_EXPANSIONS_MAX};
use tierdex::{Engine, Error, Index, IndexWriter, Merge, OpenMode, Query, Schema, Scorer, SearchRequest};

const MERGES: [Merge; 3] = [Merge::Keep, Merge::None, Merge::One];

/// An updatable index, its writer, and the documents that it must have after the next commit.
struct UpdatedIndex {
    disk: Arc<MemDisk>,
    schema: Schema,
    writer: Option<IndexWriter>,
    committed: Vec<TestDocument>,
    next: Vec<TestDocument>,
}

impl UpdatedIndex {
    fn new() -> UpdatedIndex {
        let (disk, schema) = (Arc::new(MemDisk::new()), SchemaOptions::default().schema());
        let writer = Some(updatable_writer(&(disk.clone() as _), &schema, OpenMode::New).unwrap());
        UpdatedIndex { disk, schema, writer, committed: Vec::new(), next: Vec::new() }
    }

    fn shared(&self) -> Arc<dyn Disk> {
        self.disk.clone()
    }

    fn writer(&mut self) -> &mut IndexWriter {
        self.writer.as_mut().unwrap()
    }

    fn write(&mut self, document: TestDocument) {
        add_document(self.writer(), &document).unwrap();
        self.next.retain(|of| of.id != document.id);
        self.next.push(document);
    }

    fn delete(&mut self, id: &str) {
        self.writer().delete(id).unwrap();
        self.next.retain(|of| of.id != id);
    }

    /// Commits; returns the index, which was compared.
    fn commit(&mut self, merge: Merge, what: &str) -> Index {
        self.writer().commit(merge).unwrap();
        self.committed = self.next.clone();
        self.check(what)
    }

    /// Drops the writer without a commit, and opens another.
    fn roll_back(&mut self) {
        self.writer = None;
        let is_new = Index::open_on(self.shared()).is_err();
        let mode = if is_new { OpenMode::New } else { OpenMode::Append };
        self.writer = Some(updatable_writer(&self.shared(), &self.schema, mode).unwrap());
        self.next = self.committed.clone();
    }

    /// Checks that the newest commit has the documents that were committed, in order.
    fn check(&self, what: &str) -> Index {
        assert_sound(self.disk.as_ref());
        let index = Index::open_on(self.shared()).unwrap();
        let fresh = index_in_memory(&self.schema, &self.committed, &[]);
        assert_documents(&index, &self.committed, &fresh, what);
        index
    }
}

/// Checks documents, their order, the terms of the dictionaries and the scores of an index. `fresh` is a new
/// one of these documents.
fn assert_documents(index: &Index, docs: &[TestDocument], fresh: &Index, what: &str) {
    assert_eq!(index.documents(), docs.len() as u64, "{what}");
    let (schema, searcher) = (index.schema(), index.searcher());
    for field in 0..schema.fields.len() {
        let terms = |index: &Index| index.searcher().terms(field, "", None, usize::MAX).unwrap();
        assert_eq!(terms(index), terms(fresh), "{what}");
    }
    // All documents have equal scores in the first query, so that they are in their order.
    for text in ["*:*", "all", "title:all", "w1 w2 title:w3", "+all -w1", "w*", "w11~1", "\"all w2\""] {
        let query = Query::parse(text, schema).unwrap();
        let options = exhaustive_search(usize::MAX, Scorer::default());
        let found = searcher.search(&query, &options).unwrap();
        let expected = fresh.searcher().search(&query, &options).unwrap();
        let scores =
            |hits| documents_and_score_bits(hits).into_iter().map(|(_, score)| score).collect::<Vec<_>>();
        assert_eq!(
            (found.total, scores(&found.hits)),
            (expected.total, scores(&expected.hits)),
            "{what}: {text}"
        );
        for (found, expected) in found.hits.iter().zip(&expected.hits) {
            let (doc, stored) = (&docs[expected.document as usize], searcher.stored(found.document).unwrap());
            let shown = TestDocument::new(
                searcher.id(found.document).unwrap(),
                &stored.as_ref().unwrap().values("title").join("|"),
                stored.unwrap().values("text").join("|"),
            );
            assert_eq!(shown, *doc, "{what}: {text}");
        }
    }
    for doc in docs {
        let found = searcher.find_id(&doc.id).unwrap().expect("the id is found");
        assert_eq!(searcher.id(found).unwrap(), doc.id, "{what}");
    }
}

/// A document whose words depend on a number, with a term of its own.
fn document(id: impl ToString, number: usize) -> TestDocument {
    let words = (0..number % 4).map(|at| format!(" w{}", (number * 7 + at) % 20)).collect::<String>();
    let title = if number.is_multiple_of(3) { format!("all w{}", number % 5) } else { String::new() };
    TestDocument::new(id, &title, format!("all only{number}{words}"))
}

/// Runs a script: `a=1` writes document 1 with the id `a`, `-a` deletes it, `|` commits, and `~` drops the
/// writer and opens another.
fn run_script(script: &str, merge: Merge, what: &str) -> Vec<String> {
    let mut index = UpdatedIndex::new();
    for step in script.split(' ') {
        match step.split_once('=') {
            Some((id, number)) => index.write(document(id, number.parse().unwrap())),
            None if step == "|" => drop(index.commit(merge, what)),
            None if step == "~" => index.roll_back(),
            None => index.delete(step.strip_prefix('-').unwrap()),
        }
    }
    let number = |doc: &TestDocument| doc.text.split(' ').nth(1).unwrap().replace("only", "");
    index.committed.iter().map(|doc| format!("{}={}", doc.id, number(doc))).collect()
}

#[test]
fn scripts_leave_the_documents_that_they_say() {
    for (what, script, left) in [
        // SeekStorm PR#70, Lucene `testRAMDeletes`.
        ("a delete before the first commit", "a=1 b=2 -a |", "b=2"),
        ("deletes between writes of an id", "a=1 -a a=2 -a a=3 b=4 |", "a=3 b=4"),
        ("a delete, then a write in the same batch", "a=1 b=2 | -a a=3 |", "b=2 a=3"),
        ("two writes, then a delete", "a=1 a=2 -a b=3 |", "b=3"),
        ("a delete of an id that is written later", "-a a=1 | -b b=2 |", "a=1 b=2"),
        ("a write of the same document", "a=1 b=2 | a=1 |", "b=2 a=1"),
        ("an id that is the start of another", "a=1 ab=2 abc=3 | -ab a=4 |", "abc=3 a=4"),
        // Lucene `testBothDeletes`, `testIndexingThenDeleting`.
        ("deletes of committed and of new documents", "a=1 b=2 | c=3 d=4 -a -c |", "b=2 d=4"),
        ("a delete in a commit that follows", "a=1 b=2 | c=3 | -a | -c d=4 |", "b=2 d=4"),
        ("an id that is deleted again and again", "a=1 b=2 | -a | -a | a=3 | -a -a |", "b=2"),
        // Lucene `testDeleteAllSimple`, `testDeleteAllRollback`.
        ("all documents, then others", "a=1 b=2 | c=3 -a -b -c d=4 |", "d=4"),
        ("all documents, rolled back", "a=1 b=2 | c=3 -a -b -c ~ d=4 |", "a=1 b=2 d=4"),
        ("all documents, and a commit of nothing", "a=1 b=2 | -a -b | | b=3 |", "b=3"),
        ("all documents before the first commit", "a=1 b=2 -a -b | c=3 |", "c=3"),
        // tantivy#2666.
        ("updates that are rolled back twice", "a=1 b=2 | a=3 -b ~ a=4 c=5 ~ c=6 |", "a=1 b=2 c=6"),
        ("a first writer that is rolled back", "a=1 b=2 ~ b=3 |", "b=3"),
        ("a rolled back delete of a deleted id", "a=1 b=2 | -a | a=3 -b ~ -a c=4 |", "b=2 c=4"),
        // tantivy#96, turso#8917: the segment of the delete is not that of the document any more.
        ("a delete of a merged document", "a=1 | b=2 | c=3 | d=4 | e=5 | -b | -d f=6 |", "a=1 c=3 e=5 f=6"),
        ("updates of merged documents", "a=1 b=2 | c=3 | d=4 | b=5 | e=6 | a=7 b=8 |", "c=3 d=4 e=6 a=7 b=8"),
        ("a merge of segments that lose all", "a=1 | b=2 | c=3 | -a -b -c d=4 |", "d=4"),
    ] {
        for merge in MERGES {
            let what = format!("{what}, {merge:?}");
            assert_eq!(run_script(script, merge, &what).join(" "), left, "{what}");
        }
    }
}

/// Many documents in one commit, then each is written again in a commit of its own (tantivy#729, PR#730). The
/// number of segments has a bound (tantivy#680).
#[test]
fn updates_one_by_one_lose_no_document() {
    let mut index = UpdatedIndex::new();
    (0..24).for_each(|id| index.write(document(id, id)));
    index.commit(Merge::Keep, "the first");
    for round in 1..4 {
        for id in 0..24 {
            index.write(document(id, 100 * round + id));
            let committed = index.commit(Merge::Keep, "an update");
            assert!(committed.segments().len() <= 4, "{} segments", committed.segments().len());
        }
    }
}

/// Hundreds of commits: statistics are those of a new index, they do not drift (milvus#52431, spiceai#12056).
/// Their files are removed.
#[test]
fn statistics_do_not_drift_over_many_commits() {
    let (mut index, mut random) = (UpdatedIndex::new(), Random::new(1));
    for number in 0..400 {
        for _ in 0..random.below(4) {
            let id = random.below(60).to_string();
            if random.one_in(3) {
                index.delete(&id);
            } else {
                index.write(document(id, random.below(200)));
            }
        }
        let merge = if random.one_in(5) { Merge::None } else { Merge::Keep };
        index.writer().commit(merge).unwrap();
        index.committed = index.next.clone();
        if number % 20 == 19 {
            let committed = index.check(&format!("commit {number}"));
            check_no_orphans(index.disk.as_ref(), Some(&committed)).unwrap();
        }
    }
}

/// Documents are written and all deleted, many times (Lucene `testDeleteAllRepeated`): nothing is left.
#[test]
fn nothing_is_left_of_documents_that_are_all_deleted() {
    let mut index = UpdatedIndex::new();
    for round in 0..30 {
        (0..9).for_each(|id| index.write(document(id, 10 * round + id)));
        if round % 2 == 0 {
            index.commit(MERGES[round % 3], "written");
        }
        (0..9).for_each(|id| index.delete(&id.to_string()));
        let committed = index.commit(MERGES[round % 3], "deleted");
        assert_eq!(committed.segments().len(), 0);
        check_no_orphans(index.disk.as_ref(), Some(&committed)).unwrap();
    }
}

/// Totals of all documents, of a term and of other queries, after each delete, counted or as hits
/// (SeekStorm#66, PR#71, PR#74; tantivy#289).
#[test]
fn totals_leave_out_deleted_documents() {
    let mut index = UpdatedIndex::new();
    let docs: Vec<_> =
        (0..300).map(|id| TestDocument::new(id, "all", format!("all w{} same", id % 2))).collect();
    for (number, doc) in docs.iter().enumerate() {
        index.write(doc.clone());
        if [7, 200].contains(&number) {
            index.commit(Merge::None, "written");
        }
    }
    index.writer().commit(Merge::None).unwrap();
    let mut left: BTreeSet<usize> = (0..300).collect();
    for deleted in [0, 3, 7, 8, 9, 201, 255, 256, 299, 150] {
        index.delete(&deleted.to_string());
        left.remove(&deleted);
        index.writer().commit(Merge::None).unwrap();
        let committed = Index::open_on(index.shared()).unwrap();
        let engine = Engine::new(&committed, &engine_options(50, 1)).unwrap();
        let odd = left.iter().filter(|number| *number % 2 == 1).count();
        let all = left.len();
        for (text, expected) in [
            ("*:*", all),
            ("all", all),
            ("title:all", all),
            ("w1", odd),
            ("*:* -w1", all - odd),
            ("+all +w1", odd),
            ("w0 w1", all),
            ("#all w1", all),
            ("w*", all),
            ("\"w1 same\"", odd),
            ("(all w1 same)~3", odd),
        ] {
            for k in [0, 1, 10, 1000] {
                let options = tierdex::SearchOptions { k, count: true, ..Default::default() };
                let query = parse_query(&committed, text);
                let found = committed.searcher().search(&query, &options).unwrap();
                assert_eq!(
                    (found.total, found.hits.len()),
                    (expected as u64, k.min(expected)),
                    "{text}, k {k}"
                );
                let found = engine.search(SearchRequest::new(query).options(options)).unwrap();
                let total = (found.total.value(), found.hits.len());
                assert_eq!(total, (expected as u64, k.min(expected)), "{text}, k {k}, engine");
            }
        }
    }
}

/// Terms of deleted documents alone are not in the dictionary (haystack PR#11997), and take no part in fuzzy
/// words and prefixes, which stand for a number of terms at most.
#[test]
fn terms_of_deleted_documents_alone_are_not_found() {
    let mut index = UpdatedIndex::new();
    index.write(TestDocument::new("live", "", "all wordxy only1"));
    index.commit(Merge::None, "live");
    // More terms than a fuzzy word stands for, nearer than the live one and in more documents.
    let near = |number: u8| format!("word{}", char::from(b'0' + number));
    let near = (0..10).map(near).chain((b'a'..=b'z').map(|letter| format!("wor{}d", char::from(letter))));
    let near = near.chain((b'a'..=b'z').map(|letter| format!("w{}ord", char::from(letter))));
    let near = near.collect::<Vec<_>>().join(" ");
    let many = (0..=PREFIX_EXPANSIONS_MAX).map(|number| format!("wo{number}")).collect::<Vec<_>>().join(" ");
    for id in ["dead1", "dead2"] {
        index.write(TestDocument::new(id, "", format!("all {near}")));
    }
    index.write(TestDocument::new("dead3", "", many));
    index.write(TestDocument::new("also live", "", "all only2"));
    index.writer().commit(Merge::None).unwrap();
    let committed = Index::open_on(index.shared()).unwrap();
    let total = |index: &Index, text: &str| {
        answer_text(index, text, AnswerOptions::default()).map(|found| found.total)
    };
    assert_eq!(total(&committed, "word~2").unwrap(), 2, "the live term is not among the best");
    assert!(total(&committed, "wo*").is_err(), "too many terms");
    for id in ["dead1", "dead2", "dead3"] {
        index.delete(id);
    }
    for merge in [Merge::None, Merge::One] {
        let committed = index.commit(merge, "deleted");
        assert_eq!(total(&committed, "word~2").unwrap(), 1);
        assert_eq!(total(&committed, "wo*").unwrap(), 1);
        for text in ["word1", "wo7", "+all +word1", "\"all word1\"", "worad wobd"] {
            assert_eq!(total(&committed, text).unwrap(), 0, "{text}");
        }
        let stats = committed.searcher().terms(0, "wo", None, usize::MAX).unwrap();
        assert_eq!(stats.len(), 1);
    }
}

/// A field that deleted documents alone have has no average length.
#[test]
fn a_field_of_deleted_documents_alone_matches_nothing() {
    for merge in MERGES {
        let mut index = UpdatedIndex::new();
        for number in 0..40 {
            let title = if number % 4 == 0 { "all w1 w3" } else { "" };
            index.write(TestDocument::new(number, title, "all w1 w2"));
        }
        index.commit(Merge::None, "with titles");
        (0..40).step_by(4).for_each(|number| index.delete(&number.to_string()));
        index.commit(merge, "without titles");
        index.write(TestDocument::new("title", "all", "w2"));
        index.commit(merge, "a title again");
    }
}

/// Stored values and ids are those of the documents with the postings, after merges that drop documents
/// (tantivy#1088): of blocks of stored text in part, from the start, to the end, and whole.
#[test]
fn stored_text_stays_in_step_with_postings() {
    let mut index = UpdatedIndex::new();
    let filler = |number: usize| format!(" w{} w{} w{}", number % 11, number % 13, number % 17).repeat(20);
    for number in 0..1500 {
        let doc = document(number, number);
        index.write(TestDocument { text: format!("{}{}", doc.text, filler(number)), ..doc });
        if [400, 900].contains(&number) {
            index.writer().commit(Merge::None).unwrap();
        }
    }
    index.writer().commit(Merge::None).unwrap();
    let gone = |number: &usize| {
        matches!(number, 0..30 | 100..390 | 401 | 900 | 1000..1200 | 1499) || number % 5 == 2
    };
    (0..1500).filter(gone).for_each(|number| index.delete(&number.to_string()));
    for merge in [Merge::None, Merge::One] {
        let committed = index.commit(merge, "deleted");
        for number in 0..1500 {
            let found = crate::support::matching_documents(&committed, &format!("only{number}"));
            let texts = found.iter().map(|document| {
                let stored = committed.searcher().stored(*document).unwrap().unwrap();
                (committed.searcher().id(*document).unwrap(), stored.value("text").to_string())
            });
            let texts: Vec<_> = texts.collect();
            let doc = index.committed.iter().find(|doc| doc.id == number.to_string());
            let expected = doc.map(|doc| (doc.id.clone(), doc.text.clone()));
            assert_eq!(texts, expected.into_iter().collect::<Vec<_>>(), "{merge:?}, {number}");
        }
    }
}

/// A segment is written again when a fifth of it is deleted, also if no merge takes it (tantivy#706, Lucene
/// `testOnlyDeletesTriggersMergeOnClose`).
#[test]
fn a_large_segment_is_written_again() {
    let mut index = UpdatedIndex::new();
    let mut random = Random::new(5);
    for id in 0..100 {
        let text = (0..4000).map(|_| format!("x{} ", random.next() % 10_000)).collect::<String>();
        index.write(TestDocument::new(id, "", text));
    }
    index.commit(Merge::Keep, "large");
    index.write(document("small", 1));
    let committed = index.commit(Merge::Keep, "small");
    let sizes = |index: &Index| index.manifest().segments.iter().map(|of| of.documents).collect::<Vec<_>>();
    assert_eq!(sizes(&committed), [100, 1]);
    let large = committed.manifest().segments[0].id;
    for id in 0..20 {
        index.delete(&(5 * id).to_string());
        index.writer().commit(Merge::Keep).unwrap();
        let committed = Index::open_on(index.shared()).unwrap();
        let is_kept = committed.manifest().segments[0].id == large;
        assert_eq!(is_kept, id < 19, "{} of 100 deleted", id + 1);
        assert_eq!(sizes(&committed), [if is_kept { 100 } else { 80 }, 1]);
        check_no_orphans(index.disk.as_ref(), Some(&committed)).unwrap();
    }
    index.commit(Merge::Keep, "deleted");
}

/// A document that is rejected replaces none, and an id that is rejected deletes none (Lucene
/// `testErrorInDocsWriterAdd`); the writer goes on.
#[test]
fn what_is_rejected_changes_nothing() {
    let mut index = UpdatedIndex::new();
    index.write(document("a", 1));
    index.write(document("b", 2));
    index.commit(Merge::Keep, "written");
    let large = "x".repeat(index.writer().document_bytes_max() + 1);
    let long = "i".repeat(ID_BYTES_MAX + 1);
    let is_rejected = |error: Error| matches!(error, Error::TooLarge(_) | Error::Usage(_));
    let rejected = [
        index.writer().add("a", [("text", &large)]).unwrap_err(),
        index.writer().add("a", [("no such member", "all")]).unwrap_err(),
        index.writer().add(&long, [("text", "all")]).unwrap_err(),
        index.writer().delete(&long).unwrap_err(),
    ];
    assert!(rejected.into_iter().all(is_rejected));
    index.write(document("b", 3));
    index.commit(Merge::Keep, "after errors");
    // The longest id.
    index.write(document(&long[1..], 4));
    index.write(document(&long[1..], 5));
    index.write(document("", 6));
    index.commit(Merge::Keep, "ids");
    index.delete(&long[1..]);
    index.delete("");
    index.commit(Merge::Keep, "deleted ids");
}

/// The ids of deletes exceed their memory, so that they are looked up before the commit. Documents that are
/// written after them stay, whether in the same segment or not.
#[test]
fn deletes_that_are_looked_up_early_have_no_effect_on_later_documents() {
    const DOCUMENTS: usize = 1500;
    let mut index = UpdatedIndex::new();
    let doc = |number: usize, text| TestDocument::new(format!("{number:x<4000}"), "", text);
    (0..DOCUMENTS).for_each(|number| index.write(doc(number, "all w1")));
    index.writer().commit(Merge::None).unwrap();
    for round in 0..3 {
        for number in 0..DOCUMENTS {
            if (number + round) % 3 == 0 {
                index.write(doc(number, "all w2"));
            }
            index.delete(&doc(number, "").id);
            if (number + round) % 10 == 0 {
                index.write(doc(number, "all w3"));
            }
        }
    }
    let committed = index.commit(Merge::None, "looked up early");
    let segments = committed.manifest().segments.len();
    assert!(segments > 1 && index.next.len() > 100, "{segments} segments: ids were looked up by the commit");
}

/// Documents of a commit are deleted by their numbers while documents with their ids are written.
#[test]
fn documents_are_deleted_by_number_beside_updates() {
    for merge in MERGES {
        let mut index = UpdatedIndex::new();
        (0..6).for_each(|id| index.write(document(id, id)));
        let committed = index.commit(Merge::None, "written");
        index.write(document(0, 10));
        assert_eq!(index.writer().delete_documents(&committed, &[0, 1]).unwrap(), 2);
        index.write(document(2, 12));
        index.write(document(1, 11));
        index.delete("2");
        assert_eq!(index.writer().delete_documents(&committed, &[1, 3]).unwrap(), 1);
        index.next.retain(|doc| doc.id != "3");
        index.commit(merge, "deleted");
    }
}

/// A commit of updates that ends at any operation, by a crash or an error, leaves all old documents or all
/// new ones: not the deletes without the documents that replace them. A commit that fails consumes no delete
/// (tantivy#476), so that the next writer finds all again.
#[test]
fn updates_are_committed_together_or_not_at_all() {
    let schema = SchemaOptions::default().schema();
    let start = MemDisk::new();
    let mut writer = updatable_writer(&(Arc::new(start.clone()) as _), &schema, OpenMode::New).unwrap();
    let old: Vec<_> = (0..12).map(|id| document(id, id)).collect();
    for part in old.chunks(6) {
        crate::support::add_documents(&mut writer, part);
        writer.commit(Merge::None).unwrap();
    }
    drop(writer);
    // Document 11 is deleted, and all others are replaced in two commits.
    let renewed: Vec<_> = (0..11).map(|id| document(id, 20 + id)).collect();
    let halves = [[&old[5..11], &renewed[..5]].concat(), renewed[5..].to_vec()];
    let states = [old.clone(), halves[0].clone(), [&renewed[..5], &renewed[5..]].concat()];
    let fresh = states.each_ref().map(|docs| index_in_memory(&schema, docs, &[]));
    let assert_state = |disk: Arc<dyn Disk>, state: usize, what: &str| {
        assert_sound(disk.as_ref());
        assert_documents(&Index::open_on(disk).unwrap(), &states[state], &fresh[state], what);
    };
    let update = |disk: &Arc<dyn Disk>, merge| -> tierdex::Result<u64> {
        let mut writer = updatable_writer(disk, &schema, OpenMode::Append)?;
        writer.delete("11")?;
        renewed[..5].iter().try_for_each(|doc| add_document(&mut writer, doc))?;
        writer.commit(merge)?;
        renewed[5..].iter().try_for_each(|doc| add_document(&mut writer, doc))?;
        writer.commit(merge)
    };
    // Before a sync most may be lost: several states of the disk are checked.
    let (any, syncs) = ((OpClass::Any, 100), (OpClass::Sync, 20));
    for (merge, effect, (class, least), step, images) in [
        (Merge::None, Effect::Crash, syncs, 1, 8),
        (Merge::One, Effect::Crash, syncs, 1, 8),
        (Merge::None, Effect::Crash, any, 3, 1),
        (Merge::One, Effect::Crash, any, 4, 1),
        (Merge::None, Effect::Error(EIO), any, 5, 1),
        (Merge::One, Effect::Error(EIO), any, 6, 1),
    ] {
        let plan = |at| FaultPlan { class, at, effect, repeat: Repeat::Once };
        for at in (1..).step_by(step) {
            let disk = FaultDisk::new(start.snapshot(), plan(at));
            let updated = update(&(Arc::new(disk.clone()) as _), merge);
            if disk.injected() == 0 {
                assert!(updated.is_ok() && at > least, "{at} operations");
                break;
            }
            for image in crash_images(10 * at..10 * at + 8).skip(at as usize % 3).take(images) {
                let found = Arc::new(disk.inner().crash(image));
                let what = format!("{merge:?}, {class:?}, {effect:?} at {at}, {image:?}");
                let generation = Manifest::read_newest(found.as_ref()).unwrap().unwrap().generation;
                assert!(updated.is_err() || generation == 4, "{what}: acknowledged and lost");
                assert_state(found.clone(), generation as usize - 2, &what);
                if at % 7 == 0 {
                    update(&(found.clone() as _), merge).unwrap();
                    assert_state(found, 2, &what);
                }
            }
        }
    }
}

/// Hits of engines with deletes, and after merges, which change no score (weaviate PR#12168, elastic#24429).
#[test]
fn a_merge_of_deletes_changes_no_score() {
    let (mut index, mut random) = (UpdatedIndex::new(), Random::new(3));
    for doc in crate::support::corpus::random_documents(3, 900) {
        index.write(doc);
        if random.one_in(200) {
            index.writer().commit(Merge::None).unwrap();
        }
    }
    (0..900).filter(|_| random.one_in(3)).for_each(|number| index.delete(&format!("doc-{number}")));
    let found = [Merge::None, Merge::Keep, Merge::One].map(|merge| {
        let committed = index.commit(merge, "deleted");
        let engine = Engine::new(&committed, &engine_options(60, 1)).unwrap();
        let mut random = Random::new(9);
        let answer = |_| {
            let query = Query::parse_lenient(&random_query_text(&mut random, &index.schema), &index.schema).0;
            let found = engine.search(SearchRequest::new(query).k(20)).ok()?;
            let ids = found.hits.iter().map(|hit| committed.searcher().id(hit.document).unwrap());
            Some(ids.zip(found.hits.iter().map(|hit| hit.score.to_bits())).collect::<Vec<_>>())
        };
        (0..60).map(answer).collect::<Vec<_>>()
    });
    assert!(found[0] == found[1] && found[1] == found[2]);
}
