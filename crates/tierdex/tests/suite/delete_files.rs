//! Keys and deletes of committed documents: what commits, merges and checks make of them.

use crate::support::corpus::{TestDocument, random_documents};
use crate::support::delete_script::live_ids;
use crate::support::deleted::{build_deleted, delete, statistics_of, updatable_writer};
use crate::support::forge::{forge_file, read_payload};
use crate::support::{add_documents, assert_sound, open_writer, schema};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tierdex::commit::{FileKind, KeySeed, Manifest};
use tierdex::internal::bytes::{push_bytes, push_varint};
use tierdex::internal::index::check_on;
use tierdex::internal::segment::deletes::{DeletedStatistics, TermDeletes, open_deletes};
use tierdex::internal::segment::{layout::file_name, read::FILES};
use tierdex::io::{Disk, MemDisk};
use tierdex::schema::{Schema, Stored};
use tierdex::{Index, IndexWriter, Merge, OpenMode, WriterOptions};

fn updatable(disk: &MemDisk, schema: &Schema, mode: OpenMode) -> IndexWriter {
    updatable_writer(&(Arc::new(disk.clone()) as _), schema, mode).unwrap()
}

fn manifest(disk: &MemDisk) -> Manifest {
    Manifest::read_newest(disk).unwrap().unwrap()
}

/// A new index of a segment for each part.
fn build_parts(parts: &[&[TestDocument]]) -> (MemDisk, IndexWriter) {
    let disk = MemDisk::new();
    let mut writer = updatable(&disk, &schema(), OpenMode::New);
    for docs in parts {
        add_documents(&mut writer, docs);
        writer.commit(Merge::None).unwrap();
    }
    (disk, writer)
}

fn terms_of<'s>(all: impl Iterator<Item = &'s DeletedStatistics>) -> BTreeMap<(usize, Vec<u8>), (u32, u64)> {
    let mut terms = BTreeMap::new();
    for statistics in all {
        let add = |field: usize, term: &[u8], deletes: TermDeletes| {
            let sum: &mut (u32, u64) = terms.entry((field, term.to_vec())).or_default();
            *sum = (sum.0 + deletes.documents, sum.1 + deletes.occurrences);
            Ok(())
        };
        statistics.for_each(add).unwrap();
    }
    terms
}

/// Compares the deletes of the newest commit with the live documents: sets, terms and sums.
fn check_against(disk: &MemDisk, docs: &[TestDocument], left: &BTreeSet<&str>) {
    assert_sound(disk);
    let live: BTreeSet<String> = live_ids(disk).unwrap().into_iter().collect();
    assert!(live.iter().map(String::as_str).eq(left.iter().copied()));
    let (index, manifest) = (Index::open_on(Arc::new(disk.clone())).unwrap(), manifest(disk));
    for (segment, open) in manifest.segments.iter().zip(index.segments()) {
        if let Some(deletes) = open_deletes(disk, segment).unwrap() {
            assert!((1..=4).contains(&deletes.layers().len()));
            let (mut ids, mut next) = (BTreeSet::new(), 0);
            let add = |id: &str| {
                if deletes.documents().contains(next) {
                    ids.insert(id.to_string());
                }
                next += 1;
                Ok(())
            };
            open.ids().for_each(add).unwrap();
            assert_eq!(ids.len() as u32, segment.documents - segment.live_documents());
            let deleted: Vec<_> = docs.iter().filter(|doc| ids.contains(&doc.id)).cloned().collect();
            let expected = statistics_of(&schema(), &deleted);
            let layers = deletes.layers().iter().map(|layer| &**layer);
            assert_eq!(terms_of(layers), terms_of([&expected].into_iter()));
            for field in 0..2 {
                let (all, live) = (segment.stats(field), deletes.live_stats(field, segment.stats(field)));
                let gone = expected.field(field);
                assert_eq!(
                    (all.documents - live.documents, all.tokens - live.tokens),
                    (gone.documents, gone.tokens)
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Commits with deletes, reopened writers and merges against a set of ids.
    #[test]
    fn deletes_are_those_of_a_model(
        seed in 0u64..1000,
        steps in prop::collection::vec((prop::collection::vec(0usize..200, 0..30), 0usize..12, 0u8..8), 1..9),
    ) {
        let docs = random_documents(seed, 200);
        let (disk, mut writer) = build_parts(&[&docs[..60], &docs[60..90]]);
        let (mut next, mut left) = (90, docs[..90].iter().map(|doc| doc.id.as_str()).collect::<BTreeSet<_>>());
        for (deleted, added, kind) in &steps {
            for doc in deleted.iter().filter(|number| **number < next).map(|number| &docs[*number]) {
                writer.delete(&doc.id).unwrap();
                left.remove(doc.id.as_str());
            }
            let added = &docs[next..(next + added).min(docs.len())];
            add_documents(&mut writer, added);
            left.extend(added.iter().map(|doc| doc.id.as_str()));
            next += added.len();
            writer.commit(if *kind < 2 { Merge::One } else { Merge::None }).unwrap();
            check_against(&disk, &docs, &left);
            if *kind == 3 {
                drop(writer);
                writer = updatable(&disk, &schema(), OpenMode::Append);
            }
        }
        prop_assert!(check_on(&disk).unwrap().orphans.is_empty());
    }
}

/// Many commits of a few deletes: old statistics are written again only a few times.
#[test]
fn layers_of_statistics_merge_geometrically() {
    let docs = random_documents(3, 400);
    let (disk, mut writer) = build_parts(&[&docs]);
    let (mut counts, mut sizes) = (BTreeSet::new(), Vec::new());
    for number in 0..120 {
        delete(&mut writer, &docs, number..number + 1);
        writer.commit(Merge::None).unwrap();
        let manifest = manifest(&disk);
        let deletes = manifest.segments[0].deletes.as_ref().unwrap();
        assert_eq!(deletes.documents as usize, number + 1);
        counts.insert(deletes.layers.len());
        sizes = deletes.layers.iter().map(|layer| layer.seal.len).collect();
    }
    assert!(counts.iter().copied().eq(1..=counts.len()) && counts.len() <= 4, "{counts:?}");
    assert!(counts.len() > 1 && sizes.is_sorted_by(|a, b| a >= b), "{counts:?} {sizes:?}");
    let left = docs[120..].iter().map(|doc| doc.id.as_str()).collect();
    check_against(&disk, &docs, &left);
}

#[test]
fn a_segment_without_documents_is_dropped() {
    let docs = random_documents(4, 20);
    let (disk, mut writer) = build_parts(&[&docs[..12], &docs[12..]]);
    delete(&mut writer, &docs, 0..5);
    writer.commit(Merge::None).unwrap();
    delete(&mut writer, &docs, 5..12);
    writer.commit(Merge::None).unwrap();
    assert!(manifest(&disk).segments.iter().map(|segment| segment.id).eq([2]));
    check_against(&disk, &docs, &docs[12..].iter().map(|doc| doc.id.as_str()).collect());
    // All documents of the index.
    delete(&mut writer, &docs[12..], 0..8);
    writer.commit(Merge::None).unwrap();
    assert_eq!((manifest(&disk).segments.len(), manifest(&disk).live_documents()), (0, 0));
    assert_sound(&disk);
    assert!(check_on(&disk).unwrap().orphans.is_empty());
}

#[test]
fn deletes_that_were_not_committed_are_lost() {
    let docs = random_documents(5, 10);
    let (disk, mut writer) = build_parts(&[&docs]);
    for _ in 0..2 {
        delete(&mut writer, &docs, 3..4);
        drop(writer);
        assert_eq!((manifest(&disk).documents(), manifest(&disk).live_documents()), (10, 10));
        writer = updatable(&disk, &schema(), OpenMode::Append);
    }
    delete(&mut writer, &docs, 3..4);
    // Once more, and an id that no document has.
    delete(&mut writer, &docs, 3..4);
    writer.delete("unknown").unwrap();
    writer.commit(Merge::None).unwrap();
    assert_eq!((manifest(&disk).documents(), manifest(&disk).live_documents()), (10, 9));
    delete(&mut writer, &docs, 3..4);
    writer.commit(Merge::None).unwrap();
    assert_eq!(manifest(&disk).generation, 2, "nothing was deleted");
}

/// Documents are deleted by their numbers in the newest commit, of an index that is not updatable too.
#[test]
fn documents_are_deleted_by_their_numbers() {
    let docs = random_documents(6, 30);
    let disk = MemDisk::new();
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let mut writer = open_writer(&shared, &schema(), OpenMode::New);
    for part in [&docs[..10], &docs[10..]] {
        add_documents(&mut writer, part);
        writer.commit(Merge::None).unwrap();
    }
    let index = Index::open_on(shared.clone()).unwrap();
    let error = writer.delete_documents(&index, &[3, 30]).unwrap_err().to_string();
    assert!(error.contains("has no document 30"), "{error}");
    assert!(writer.delete(&docs[1].id).unwrap_err().to_string().contains("not updatable"));
    assert_eq!(writer.delete_documents(&index, &[12, 3, 29, 3]).unwrap(), 3);
    assert_eq!(writer.delete_documents(&index, &[4, 3]).unwrap(), 1);
    writer.commit(Merge::None).unwrap();
    let error = writer.delete_documents(&index, &[5]).unwrap_err().to_string();
    assert!(error.contains("another commit"), "{error}");
    let gone = [3, 4, 12, 29];
    let left = docs.iter().enumerate().filter(|(number, _)| !gone.contains(number));
    check_against(&disk, &docs, &left.map(|(_, doc)| doc.id.as_str()).collect());
}

/// Without stored values the terms of deleted documents are not known: numbers of documents are checked, and
/// the index is sound.
#[test]
fn documents_are_deleted_without_their_terms() {
    let docs = random_documents(6, 30);
    let unstored = Schema { stored: Stored::Nothing, ..schema() };
    let disk = MemDisk::new();
    let mut writer = updatable(&disk, &unstored, OpenMode::New);
    add_documents(&mut writer, &docs);
    writer.commit(Merge::None).unwrap();
    delete(&mut writer, &docs, 0..3);
    writer.commit(Merge::None).unwrap();
    assert_sound(&disk);
    let deletes = open_deletes(&disk, &manifest(&disk).segments[0]).unwrap().unwrap();
    assert!(!deletes.are_terms_known());
    writer.commit(Merge::One).unwrap();
    assert_sound(&disk);
    assert_eq!((manifest(&disk).documents(), manifest(&disk).segments[0].live_documents()), (27, 27));
}

/// Whether an index is updatable is decided when it is made, and kept.
#[test]
fn an_index_stays_updatable_or_not() {
    let options = |updatable| WriterOptions { updatable, ..WriterOptions::default() };
    for updatable in [false, true] {
        let disk = MemDisk::new();
        let shared: Arc<dyn Disk> = Arc::new(disk.clone());
        let open =
            |mode, updatable| IndexWriter::open(shared.clone(), schema(), mode, options(updatable)).unwrap();
        let has_keys = || {
            let index = Index::open_on(shared.clone()).unwrap();
            assert_sound(&disk);
            assert_eq!(index.manifest().key_seed, updatable.then(KeySeed::default));
            index.segments().iter().map(|segment| segment.keys().is_some()).collect::<Vec<_>>()
        };
        for mode in [OpenMode::New, OpenMode::Append, OpenMode::Replace] {
            let mut writer = open(mode, updatable != (mode == OpenMode::Append));
            writer.add(&format!("{mode:?}"), [("text", "all")]).unwrap();
            writer.commit(Merge::None).unwrap();
            assert!(has_keys().iter().all(|has| *has == updatable), "{mode:?}");
        }
    }
}

/// Imported segments have keys too; a document is found by its id in any segment.
#[test]
fn documents_are_found_by_their_ids() {
    let mut schema = Schema { stored: Stored::Nothing, ..Schema::default() };
    schema.fields[0].positions = false;
    let disk = MemDisk::new();
    let mut writer = updatable(&disk, &schema, OpenMode::New);
    for number in 0..900 {
        writer.add(&format!("added {number}"), [("text", "all")]).unwrap();
    }
    let write_id = |number: u32, id: &mut String| *id = format!("imported {number}");
    let lists = |lists: &mut tierdex::internal::index::ListsBuilder<'_, '_>| {
        lists.term("all", |list| list.extend(&(0..600).collect::<Vec<u32>>(), &[1; 600]))
    };
    writer.import(vec![1; 600], write_id, lists).unwrap();
    writer.commit(Merge::None).unwrap();
    for merge in [Merge::None, Merge::One] {
        writer.commit(merge).unwrap();
        assert_sound(&disk);
        let index = Index::open_on(Arc::new(disk.clone())).unwrap();
        let (seed, mut found) = (index.manifest().key_seed.unwrap(), Vec::new());
        for number in (0..900).step_by(7) {
            for (id, expected) in [
                (format!("added {number}"), Some(number)),
                (format!("imported {number}"), (number < 600).then_some(900 + number)),
            ] {
                let (mut documents, mut first) = (Vec::new(), 0);
                for segment in index.segments() {
                    let keys = segment.keys().unwrap();
                    keys.look_up(seed.hash(id.as_bytes()), &FILES, &mut found).unwrap();
                    documents.extend(found.iter().map(|document| first + document));
                    first += segment.documents();
                }
                documents.retain(|document| index.searcher().id(*document).unwrap() == id);
                assert!(documents.into_iter().eq(expected), "{id}");
            }
        }
    }
}

/// A commit that forgets its deletes has two documents of an id.
#[test]
fn a_check_finds_two_documents_of_an_id() {
    let docs = [("a", "one"), ("b", "two"), ("a", "three")];
    let docs = docs.map(|(id, text)| TestDocument::new(id, "", text));
    for parts in [vec![&docs[..]], vec![&docs[..2], &docs[2..]]] {
        let (disk, writer) = build_parts(&parts);
        assert_sound(&disk);
        drop(writer);
        let mut manifest = manifest(&disk);
        assert_eq!((manifest.documents(), manifest.live_documents()), (3, 2));
        manifest.segments.iter_mut().for_each(|segment| segment.deletes = None);
        manifest.generation += 1;
        manifest.prepare(&disk, "manifest.tmp").unwrap();
        manifest.publish(&disk, "manifest.tmp").unwrap();
        let problems = check_on(&disk).unwrap().problems;
        assert!(problems.len() == 1 && problems[0].to_string().contains("has the id of another document"));
    }
}

/// Impossible entries of the files from which documents were read.
#[test]
fn impossible_input_files_are_rejected() {
    let docs = random_documents(3, 700);
    let disk = build_deleted(&schema(), &docs, 640, &[0..30, 31..33]);
    let manifest = Manifest::read_newest(&disk).unwrap().unwrap();
    let name = file_name(manifest.input_files.unwrap().number, 0, FileKind::InputFiles);
    let (identity, _) = read_payload(&disk, &name);
    let file = |path: &[u8], ids: &[(u64, &[u8])]| {
        let mut bytes = Vec::new();
        push_bytes(&mut bytes, path);
        bytes.extend_from_slice(&[3; 9]);
        for (shared, suffix) in ids {
            push_varint(&mut bytes, shared + 1);
            push_bytes(&mut bytes, suffix);
        }
        bytes.push(0);
        bytes
    };
    let cut = |mut bytes: Vec<u8>| {
        bytes.pop();
        bytes
    };
    let cases: [(Vec<u8>, &str); 12] = [
        (file(b"", &[]), "an empty path"),
        (file(&[b'p'; 4097], &[]), "impossibly long"),
        (file(b"path", &[(5, b"")]), "shares more bytes than there are"),
        (file(b"path", &[(u64::MAX - 1, b"")]), "shares more bytes than there are"),
        (file(b"path", &[(0, b"b"), (0, b"a")]), "ids that do not ascend"),
        (file(b"path", &[(0, b"b"), (1, b"")]), "ids that do not ascend"),
        (file(b"path", &[(0, &[0xff])]), "an id that is not UTF-8"),
        (file(b"path", &[(0, &[b'i'; 4097])]), "impossibly long"),
        (cut(file(b"path", &[(0, b"a")])), "ends early"),
        ([file(b"path", &[]), vec![0x80]].concat(), "ends early"),
        ([file(b"path", &[]), vec![0xff; 10]].concat(), "a number that is too large"),
        ([file(b"path", &[]), file(b"path", &[])].concat(), "a path that occurs twice"),
    ];
    let check = |payload: &[u8]| {
        let forged = disk.snapshot();
        forge_file(&forged, &name, identity, payload);
        check_on(&forged).unwrap().problems
    };
    let valid = [vec![0], file(b"path", &[(0, b"a"), (1, b"b")]), file(b"pathb", &[])].concat();
    assert!(check(&valid).is_empty(), "{:?}", check(&valid));
    for (files, expected) in cases {
        let problems = check(&[vec![0], files].concat());
        assert!(
            problems.len() == 1 && problems[0].to_string().contains(expected),
            "{problems:?}: {expected}"
        );
    }
    for (settings, expected) in [(vec![1, 0xff], "settings that are not UTF-8"), (vec![0xff; 3], "")] {
        let problems = check(&settings);
        assert!(problems.len() == 1 && problems[0].to_string().contains(expected), "{problems:?}");
    }
}
