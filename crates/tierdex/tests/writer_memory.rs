//! The memory of a writer: of a batch with many fields, of documents that a merge encodes again, and of
//! deletes.

use cap::Cap;
use std::{alloc::System, sync::Arc};
use tierdex::internal::index::BatchBuilder;
use tierdex::io::{Disk, MemDisk, PosixDisk};
use tierdex::limits::{BATCH_BYTES, FIELDS_MAX, MEMORY_MIN};
use tierdex::schema::{Field, Schema, Stored};
use tierdex::{DocumentRef, Index, IndexWriter, Merge, OpenMode, WriterOptions};

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// Bytes of memory of a full batch, and its number of documents, in a schema with several fields of one
/// member.
fn fill_batch(fields: usize) -> (usize, usize) {
    let names: Vec<String> = (0..fields).map(|number| format!("field{number}")).collect();
    let schema = Arc::new(Schema::of(names.iter().map(|name| Field::new(name, &["text"])).collect()));
    let before = ALLOCATOR.allocated();
    let mut batch = BatchBuilder::new(schema, 1 << 30);
    for number in 0u32.. {
        let word = |at: u32| format!("w{:x}", (1000 * number + at).wrapping_mul(2654435761) >> 22);
        let text = (0..1000).map(word).collect::<Vec<_>>().join(" ");
        batch.add(DocumentRef { id: "id", values: &[(1, &text)], ..DocumentRef::default() }).unwrap();
        if batch.is_full() {
            break;
        }
    }
    (ALLOCATOR.allocated() - before, batch.documents())
}

/// Adds a member to documents of which one is large, within twice its memory.
fn rewrite_large_document() {
    let mut schema = Schema::of(vec![Field::new("title", &["title"])]);
    schema.members.push("text".to_string());
    let disk = MemDisk::new();
    let open = |schema: &Schema, mode| {
        IndexWriter::open(Arc::new(disk.clone()), schema.clone(), mode, WriterOptions::default()).unwrap()
    };
    let large = "a text that is repeated ".repeat(1 << 20);
    let mut writer = open(&schema, OpenMode::New);
    for text in ["before", &large, "behind"] {
        writer.add("", [("text", text)]).unwrap();
    }
    writer.commit(Merge::None).unwrap();
    drop(writer);
    schema.members.push("subject".to_string());
    let mut writer = open(&schema, OpenMode::Append);
    writer.add("", [("subject", "new")]).unwrap();
    // A larger allocation ends the process.
    ALLOCATOR.set_limit(ALLOCATOR.allocated() + 2 * large.len() + (4 << 20)).unwrap();
    writer.commit(Merge::One).unwrap();
    ALLOCATOR.set_limit(usize::MAX).unwrap();
    let index = Index::open_on(Arc::new(disk)).unwrap();
    let texts = (0..3).map(|document| index.searcher().stored(document).unwrap().unwrap());
    assert!(texts.map(|stored| stored.value("text").to_string()).eq(["before", &large, "behind"]));
}

/// Bytes that a step allocates at most, beside what there was before.
fn peak(step: impl FnOnce()) -> usize {
    // Fills memory up to its maximum so far, so that the maximum then measures the step.
    let ballast: Vec<u8> = Vec::with_capacity(ALLOCATOR.max_allocated() - ALLOCATOR.allocated());
    let before = ALLOCATOR.allocated();
    step();
    drop(ballast);
    ALLOCATOR.max_allocated() - before
}

/// Deletes many ids, of which few or most are of documents, with the least memory: ids take a share of it,
/// deletes a few bits a document, and a commit a batch and the statistics of the deleted documents.
fn deletes_within_the_memory_of_a_writer(stored: Stored, documents: usize, words: usize) {
    let dir = tempfile::tempdir().unwrap();
    let disk: Arc<dyn Disk> = Arc::new(PosixDisk::create(dir.path()).unwrap());
    let schema = Schema { stored, ..Schema::of(vec![Field::new("text", &["text"])]) };
    let options =
        WriterOptions { memory: MEMORY_MIN, updatable: true, threads: 4, ..WriterOptions::default() };
    let mut writer = IndexWriter::open(disk.clone(), schema, OpenMode::New, options).unwrap();
    let word = |number: usize| format!("w{:x} ", (number as u32).wrapping_mul(2_654_435_761) >> 8);
    let text = |document| (0..words).map(|at| word(document * words + at)).collect::<String>();
    for document in 0..documents {
        writer.add(&format!("id {document}"), [("text", text(document))]).unwrap();
    }
    writer.commit(Merge::One).unwrap();
    // Ids of unknown documents are looked up as others are.
    const UNKNOWN: usize = 700_000;
    let ids_max = MEMORY_MIN * 3 / 16 + 5 * documents + (1 << 20);
    for (percent, unknown) in [(10, 0), (90, 0), (90, UNKNOWN)] {
        let known = (0..documents).filter(|document| document % 100 < percent);
        let ids = known.chain(documents..documents + unknown);
        let deleted = peak(|| ids.for_each(|document| writer.delete(&format!("id {document}")).unwrap()));
        let committed = peak(|| assert!(writer.commit(Merge::None).is_ok()));
        let index = Index::open_on(disk.clone()).unwrap();
        assert_eq!(index.documents() as usize, documents / 100 * (100 - percent));
        let deletes = index.segments().iter().filter_map(|segment| segment.deletes());
        let statistics: usize = deletes.map(|deletes| deletes.memory()).sum();
        let commit_max = MEMORY_MIN + 8 * BATCH_BYTES + 5 * documents + 3 * statistics;
        let found = format!("{percent}%: {deleted} and {committed} bytes, {statistics} of statistics");
        assert!(deleted <= ids_max && committed <= commit_max, "{found}");
    }
    let merged = peak(|| assert!(writer.commit(Merge::One).is_ok()));
    assert!(merged <= MEMORY_MIN, "{merged}");
}

/// One test, because others would change the allocated bytes.
#[test]
fn a_writer_takes_the_memory_that_is_counted() {
    let (one, documents) = fill_batch(1);
    let (all, documents_of_all) = fill_batch(FIELDS_MAX);
    assert!(documents_of_all.abs_diff(documents / FIELDS_MAX) <= 1, "{documents} {documents_of_all}");
    assert!(one.max(all) <= 8 * BATCH_BYTES, "{one} {all}");
    rewrite_large_document();
    deletes_within_the_memory_of_a_writer(Stored::Nothing, 150_000, 2);
    deletes_within_the_memory_of_a_writer(Stored::Members, 40_000, 30);
}
