//! The memory of a writer: of a batch with many fields, and of documents that a merge encodes again.

use cap::Cap;
use std::{alloc::System, sync::Arc};
use tierdex::internal::index::BatchBuilder;
use tierdex::io::MemDisk;
use tierdex::limits::{BATCH_BYTES, FIELDS_MAX};
use tierdex::schema::{Field, Schema};
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
        batch.add(DocumentRef { id: "id", values: &[(1, &text)], others: "" }).unwrap();
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

/// One test, because others would change the allocated bytes.
#[test]
fn a_writer_takes_the_memory_that_is_counted() {
    let (one, documents) = fill_batch(1);
    let (all, documents_of_all) = fill_batch(FIELDS_MAX);
    assert!(documents_of_all.abs_diff(documents / FIELDS_MAX) <= 1, "{documents} {documents_of_all}");
    assert!(one.max(all) <= 8 * BATCH_BYTES, "{one} {all}");
    rewrite_large_document();
}
