//! The same documents give the same bytes, independent of threads, batches, and the commits in which they
//! were added.

use crate::support::corpus::{SchemaOptions, TestDocument, random_documents};
use crate::support::deleted::{build_deleted, updatable_writer};
use crate::support::grown::GrownCase;
use crate::support::{AddMethod, add_documents, assert_sound, build, open_writer, read_files, schema};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tierdex::io::{Disk, MemDisk};
use tierdex::{DocumentRef, Index, IndexWriter, Merge, OpenMode, WriterOptions};
use tierdex::{codec::Codec, schema::NormKind, schema::Schema};

/// [`file_payloads`] without stored documents, whose blocks depend on the batches in which they were
/// compressed.
fn list_payloads(disk: &MemDisk) -> BTreeMap<String, Vec<u8>> {
    let mut payloads = file_payloads(disk);
    payloads.retain(|name, _| name != "stored");
    payloads
}

/// Payloads of the files of an index of one segment, by field and kind. Headers depend on the segment id.
fn file_payloads(disk: &MemDisk) -> BTreeMap<String, Vec<u8>> {
    let index = Index::open_on(Arc::new(disk.clone())).unwrap();
    let [segment] = index.segments() else { panic!("one segment is wanted") };
    let files = segment.files();
    let payload = |file: &tierdex::io::SealedFile| {
        let range = file.payload();
        let (_, name) = file.name().split_once('.').unwrap();
        (name.to_string(), file.read(range.start, (range.end - range.start) as usize).unwrap())
    };
    files.map(payload).collect()
}

fn build_merged(schema: &Schema, docs: &[TestDocument], cuts: &[usize], growth: AddMethod) -> MemDisk {
    let disk = MemDisk::new();
    build(&(Arc::new(disk.clone()) as _), schema, docs, cuts, growth, Merge::One);
    disk
}

/// Adds documents in pieces of seven with `threads` threads; returns the files, and the numbers of the pieces
/// in the order of their reports.
fn ingest_documents(docs: &[TestDocument], threads: usize) -> (BTreeMap<String, Vec<u8>>, Vec<usize>) {
    let disk = MemDisk::new();
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let mut writer = open_writer(&shared, &schema(), OpenMode::New);
    let mut pieces = docs.chunks(7).enumerate();
    let reports = Mutex::new(Vec::new());
    let parse = |(number, piece): (usize, &[TestDocument]),
                 add: &mut dyn FnMut(DocumentRef<'_>) -> tierdex::Result<()>| {
        if number % 3 == 0 {
            std::thread::yield_now();
        }
        piece.iter().try_for_each(|doc| doc.with_numbers(&schema(), &mut *add))?;
        Ok(number)
    };
    let report = |number| {
        reports.lock().unwrap().push(number);
        Ok(())
    };
    writer.ingest(threads, || Ok(pieces.next()), parse, report).unwrap();
    writer.commit(Merge::None).unwrap();
    drop(writer);
    (read_files(&disk), reports.into_inner().unwrap())
}

#[test]
fn bytes_do_not_depend_on_threads() {
    let docs = random_documents(11, 2000);
    let (one, order) = ingest_documents(&docs, 1);
    assert!(one.len() > 10 && order.is_sorted() && order.len() == docs.len().div_ceil(7));
    for threads in [2, 4] {
        for _ in 0..3 {
            let (many, order_of_many) = ingest_documents(&docs, threads);
            assert!(many == one, "{threads} threads give other bytes");
            assert_eq!(order_of_many, order);
        }
    }
}

/// Segments whose postings are encoded in several ranges of terms, by a flush and by a merge.
#[test]
fn bytes_do_not_depend_on_threads_that_encode() {
    let word = |document: u64, word: u64| (document * 7919 + word * word * 104_729) % 50_000;
    let text =
        |document| (0..60).map(move |number| format!("w{} ", word(document, number))).collect::<String>();
    let documents: Vec<TestDocument> =
        (0..30_000).map(|document| TestDocument::new(document.to_string(), "all", text(document))).collect();
    let write = |threads| {
        let disk = MemDisk::new();
        let options = WriterOptions { threads, ..WriterOptions::default() };
        let mut writer = IndexWriter::open(Arc::new(disk.clone()), schema(), OpenMode::New, options).unwrap();
        add_documents(&mut writer, &documents[..20_000]);
        writer.commit(Merge::Keep).unwrap();
        add_documents(&mut writer, &documents[20_000..]);
        writer.commit(Merge::Keep).unwrap();
        let written = read_files(&disk);
        writer.commit(Merge::One).unwrap();
        drop(writer);
        assert_sound(&disk);
        [written, read_files(&disk)]
    };
    let one = write(1);
    assert!(one[0].len() > one[1].len(), "two segments, then one");
    for threads in [2, 5] {
        assert!(write(threads) == one, "{threads} threads give other bytes");
    }
}

#[test]
fn two_runs_give_the_same_bytes() {
    let docs = random_documents(12, 900);
    for growth in [AddMethod::Commits, AddMethod::Writers, AddMethod::Batches(50)] {
        let write = || read_files(&build_merged(&schema(), &docs, &[100, 500], growth));
        assert!(write() == write(), "{growth:?}");
    }
}

#[test]
fn a_merged_segment_equals_a_flushed_one() {
    for (seed, codec) in (20..).zip(Codec::ALL) {
        for positions in [true, false] {
            let schema = SchemaOptions { codec: *codec, positions, ..SchemaOptions::default() }.schema();
            let docs = random_documents(seed, 800);
            let flushed = list_payloads(&build_merged(&schema, &docs, &[], AddMethod::Commits));
            assert!(flushed.len() > 8);
            for (cuts, growth) in [
                (vec![600], AddMethod::Commits),
                (vec![1, 256, 257, 700], AddMethod::Writers),
                ((1..100).map(|cut| 8 * cut).collect(), AddMethod::Commits),
                (vec![], AddMethod::Batches(17)),
            ] {
                let merged = list_payloads(&build_merged(&schema, &docs, &cuts, growth));
                for (name, bytes) in &flushed {
                    assert!(merged[name] == *bytes, "{}, {growth:?}, {cuts:?}: {name} differs", codec.name());
                }
            }
        }
    }
}

/// Merged keys are those of a segment with all documents.
#[test]
fn merged_keys_equal_written_ones() {
    let docs = random_documents(14, 1400);
    let keys = |cuts: &[usize]| {
        let disk = MemDisk::new();
        let shared: Arc<dyn Disk> = Arc::new(disk.clone());
        let mut writer = updatable_writer(&shared, &schema(), OpenMode::New).unwrap();
        for (start, end) in [0].iter().chain(cuts).zip(cuts.iter().chain(&[docs.len()])) {
            add_documents(&mut writer, &docs[*start..*end]);
            writer.commit(Merge::None).unwrap();
        }
        writer.commit(Merge::One).unwrap();
        file_payloads(&disk).remove("keys").unwrap()
    };
    let written = keys(&[]);
    assert!(keys(&[700]) == written && keys(&[1, 512, 513, 1025]) == written);
}

#[test]
fn deletes_give_the_same_bytes_again() {
    let docs = random_documents(15, 300);
    let write = || read_files(&build_deleted(&schema(), &docs, 200, &[0..20, 30..35, 50..51]));
    assert!(write() == write());
}

/// Segments that lack a field are merged into the bytes of an index that had the field from the start.
#[test]
fn a_merge_adds_a_field_as_if_it_had_been_there() {
    for (seed, norms) in [(1, NormKind::Byte), (2, NormKind::Exact)] {
        let options = SchemaOptions { norms, ..SchemaOptions::default() };
        for older in [1, 300, 599] {
            let case = GrownCase::new(options, random_documents(seed, 600), older);
            let fresh = file_payloads(&case.build_fresh(Merge::One));
            let merged = file_payloads(&case.build_in_steps(Merge::One));
            assert!(fresh.contains_key("1.norms") && merged.len() == fresh.len());
            for (name, bytes) in &fresh {
                assert!(merged[name] == *bytes, "{older} documents before the field: {name} differs");
            }
        }
    }
}

#[test]
fn an_error_in_a_piece_stops_all_threads() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    for threads in [1, 2, 4] {
        let mut writer = open_writer(&disk, &schema(), OpenMode::New);
        let mut numbers = 0..1000;
        let parse = |number: i32, _: &mut dyn FnMut(DocumentRef<'_>) -> tierdex::Result<()>| match number {
            40 => Err(tierdex::Error::Usage("piece 40 is bad".to_string())),
            _ => Ok(()),
        };
        let error = writer.ingest(threads, || Ok(numbers.next()), parse, |()| Ok(())).unwrap_err();
        assert_eq!(error.to_string(), "piece 40 is bad");
    }
}
