//! An updatable index answers as a new index of the live documents, in the order of their last
//! write.

use crate::support::corpus::{SchemaOptions, TestDocument, random_documents};
use crate::support::queries::random_query_text;
use crate::support::{
    AnswerOptions, add_document, add_documents, answer_query, assert_sound, index_in_memory, random::Random,
};
use std::sync::Arc;
use tierdex::internal::segment::read::OpenSegment;
use tierdex::io::{Disk, MemDisk, SealedFile};
use tierdex::schema::Field;
use tierdex::{Engine, Index, IndexWriter, Merge, OpenMode, Query, Schema, SearchOptions, WriterOptions};

/// The live documents, in the order of their last write.
#[derive(Clone, Default)]
struct Model(Vec<TestDocument>);

impl Model {
    fn write(&mut self, document: &TestDocument) {
        self.delete(&document.id);
        self.0.push(document.clone());
    }

    fn delete(&mut self, id: &str) {
        self.0.retain(|document| document.id != id);
    }
}

fn open(disk: &Arc<dyn Disk>, schema: &Schema, mode: OpenMode) -> IndexWriter {
    let options = WriterOptions { memory: 16 << 20, updatable: true, ..WriterOptions::default() };
    IndexWriter::open(disk.clone(), schema.clone(), mode, options).unwrap()
}

/// Compares an index with a new one of the documents of the model.
fn check(disk: &Arc<dyn Disk>, schema: &Schema, model: &Model, random: &mut Random, what: &str) {
    let index = Index::open_on(disk.clone()).unwrap();
    assert_eq!(index.documents() as usize, model.0.len(), "{what}");
    let fresh = index_in_memory(schema, &model.0, &[]);
    let searcher = index.searcher();
    for document in model.0.iter().step_by(7) {
        let found = searcher.find_id(&document.id).unwrap().expect("the document is there");
        assert_eq!(searcher.id(found).unwrap(), document.id, "{what}");
        if let Some(stored) = searcher.stored(found).unwrap() {
            assert_eq!(stored.value("text"), document.text, "{what}: {}", document.id);
        }
    }
    assert_eq!(searcher.find_id("no such id").unwrap(), None);
    // Of many ids at once, by keys and by a scan of an index without them.
    let ids = model.0.iter().map(|document| document.id.as_str());
    let ids: Vec<&str> = ids.clone().chain(["no such id"]).chain(ids.rev()).collect();
    for index in [&index, &fresh] {
        let searcher = index.searcher();
        for (found, id) in searcher.find_ids(&ids).unwrap().into_iter().zip(&ids) {
            let found = found.map(|document| searcher.id(document).unwrap());
            assert_eq!(found.as_deref(), Some(*id).filter(|id| *id != "no such id"), "{what}");
        }
    }
    // The numbers of documents differ, their order does not.
    let compared = |index: &Index, query: &Query, k| {
        let look = AnswerOptions { k, shown: 3, ..AnswerOptions::default() };
        let mut answer = answer_query(index, query, look).ok()?;
        let searcher = index.searcher();
        let ids: Vec<String> = answer.hits.iter().map(|hit| searcher.id(hit.document).unwrap()).collect();
        answer.hits.iter_mut().for_each(|hit| hit.document = 0);
        Some((answer, ids))
    };
    for _ in 0..12 {
        let text = random_query_text(random, schema);
        let (query, _) = Query::parse_lenient(&text, schema);
        for k in [0, 3, usize::MAX] {
            assert_eq!(compared(&index, &query, k), compared(&fresh, &query, k), "{what}: {text}, k {k}");
        }
    }
}

/// Random histories of writes, deletes, commits, merges and new writers.
#[test]
fn histories_give_the_results_of_a_new_index() {
    crate::support::on_two_threads(10, |seed| {
        let mut random = Random::new(seed as u64);
        let options = SchemaOptions { stored: true, ..SchemaOptions::default() };
        let schema = if seed % 3 == 0 { SchemaOptions::one_field() } else { options }.schema();
        let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
        let (mut model, mut committed) = (Model::default(), Model::default());
        let mut writer = open(&disk, &schema, OpenMode::New);
        let mut docs = random_documents(seed as u64, 1200).into_iter().cycle();
        let ids = 40 + random.below(400);
        for step in 0..12 {
            for _ in 0..random.below(150) {
                let id = format!("id-{}", random.skewed(ids));
                if random.one_in(5) {
                    writer.delete(&id).unwrap();
                    model.delete(&id);
                } else {
                    let document = TestDocument { id, ..docs.next().unwrap() };
                    add_document(&mut writer, &document).unwrap();
                    model.write(&document);
                }
            }
            match random.below(6) {
                0 => {
                    drop(writer);
                    model = committed.clone();
                    let mode =
                        if Index::open_on(disk.clone()).is_ok() { OpenMode::Append } else { OpenMode::New };
                    writer = open(&disk, &schema, mode);
                }
                kind => {
                    let merge = if kind == 1 { Merge::One } else { Merge::Keep };
                    writer.commit(merge).unwrap();
                    committed = model.clone();
                    check(
                        &disk,
                        &schema,
                        &committed,
                        &mut random,
                        &format!("seed {seed}, step {step}, {merge:?}"),
                    );
                    assert_sound(disk.as_ref());
                }
            }
        }
    });
}

#[test]
fn the_last_of_equal_ids_in_a_batch_is_left() {
    let schema = SchemaOptions::one_field().schema();
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let mut writer = open(&disk, &schema, OpenMode::New);
    let mut model = Model::default();
    for number in 0..3000 {
        let document =
            TestDocument::new(if number % 3 == 0 { "same" } else { "other" }, "", format!("w{number} all"));
        add_document(&mut writer, &document).unwrap();
        model.write(&document);
    }
    writer.commit(Merge::Keep).unwrap();
    check(&disk, &schema, &model, &mut Random::new(1), "two ids");
    assert_eq!(model.0.len(), 2);

    writer.delete("same").unwrap();
    writer.delete("other").unwrap();
    writer.add("other", [("text", "again")]).unwrap();
    writer.commit(Merge::Keep).unwrap();
    let model = Model(vec![TestDocument::new("other", "", "again")]);
    check(&disk, &schema, &model, &mut Random::new(1), "deleted and written again");
}

#[test]
fn an_index_may_lose_all_documents() {
    let schema = SchemaOptions::one_field().schema();
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let mut writer = open(&disk, &schema, OpenMode::New);
    writer.add("a", [("text", "one")]).unwrap();
    writer.commit(Merge::Keep).unwrap();
    writer.delete("a").unwrap();
    writer.delete("never written").unwrap();
    writer.commit(Merge::Keep).unwrap();
    let index = Index::open_on(disk.clone()).unwrap();
    assert_eq!((index.documents(), index.segments().len()), (0, 0));
    assert_sound(disk.as_ref());
    writer.add("a", [("text", "two")]).unwrap();
    writer.commit(Merge::Keep).unwrap();
    check(&disk, &schema, &Model(vec![TestDocument::new("a", "", "two")]), &mut Random::new(1), "again");
}

/// A snapshot keeps the documents that later commits delete.
#[test]
fn a_snapshot_keeps_what_later_commits_delete() {
    let schema = SchemaOptions::one_field().schema();
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let mut writer = open(&disk, &schema, OpenMode::New);
    for number in 0..100 {
        writer.add(&number.to_string(), [("text", "word")]).unwrap();
    }
    writer.commit(Merge::Keep).unwrap();
    let engine =
        Engine::new(&Index::open_on(disk.clone()).unwrap(), &crate::support::requests::engine_options(50, 1))
            .unwrap();
    let count = |engine: &Engine| {
        let query = Query::parse("word", &schema).unwrap();
        let options = SearchOptions { k: 3, count: true, ..SearchOptions::default() };
        let found = engine.search(tierdex::SearchRequest::new(query).options(options)).unwrap();
        (found.hits[0].document, found.total.value())
    };
    assert_eq!(count(&engine), (0, 100));
    for round in 1..=40 {
        writer.delete(&(round - 1).to_string()).unwrap();
        writer.commit(Merge::Keep).unwrap();
        assert_eq!(count(&engine).1, 101 - round, "not refreshed");
        engine.refresh().unwrap();
        assert_eq!(count(&engine).1, 100 - round);
    }
}

/// Reads from each file of a segment so far, by the kind of the file.
fn reads_by_kind(segment: &OpenSegment) -> [u64; 4] {
    let reads =
        |kind| segment.files().filter(|file| file.name().ends_with(kind)).map(|file| file.reads()).sum();
    let all = segment.files().map(SealedFile::reads).sum::<u64>();
    let [keys, ids, stored]: [u64; 3] = [".keys", ".ids", ".stored"].map(reads);
    [keys, ids, stored, all - keys - ids - stored]
}

/// A page of the keys of each segment, and in that of the document a page of the index of ids, a page of ids,
/// a page of the block index of stored text, and the block.
#[test]
fn a_document_is_fetched_by_its_id_with_one_read_of_each_index() {
    let word = |number: u32| format!("w{:x} ", number.wrapping_mul(2_654_435_761) >> 4);
    let text = |document: u32| (0..130).map(|at| word(document * 130 + at)).collect::<String>();
    let docs = TestDocument::of_texts((0..5000).map(text));
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let schema = Schema::of(vec![Field::new("text", &["text"])]);
    let mut writer = open(&disk, &schema, OpenMode::New);
    for part in docs.chunks(4900) {
        add_documents(&mut writer, part);
        writer.commit(Merge::None).unwrap();
    }
    let index = Index::open_on(disk).unwrap();
    let searcher = index.searcher();
    let fetch = |document: &TestDocument| {
        let found = searcher.find_id(&document.id).unwrap().unwrap();
        assert_eq!(searcher.stored(found).unwrap().unwrap().value("text"), document.text);
    };
    // The first look-ups read what stays resident.
    docs.iter().for_each(fetch);
    let [first, second] = index.segments() else { panic!("two segments are wanted") };
    assert!(first.stored().unwrap().blocks() > 2 * 128, "a block index of two pages is wanted");
    let before = [first, second].map(reads_by_kind);
    docs[..4900].iter().for_each(fetch);
    let after = [first, second].map(reads_by_kind);
    let reads = |segment: usize| [0, 1, 2, 3].map(|kind| after[segment][kind] - before[segment][kind]);
    let ([keys, ids, stored, others], [keys_of_second, ids_of_second, stored_of_second, others_of_second]) =
        (reads(0), reads(1));
    // The page before is also read for the first key of a page. A few ids may have the same hash.
    assert!(keys.max(keys_of_second) < 4900 + 20, "{keys} {keys_of_second}");
    assert!(ids < 2 * 4900 + 20 && ids_of_second < 20, "{ids} {ids_of_second}");
    assert_eq!((stored, stored_of_second, others, others_of_second), (2 * 4900, 0, 0, 0));
}
