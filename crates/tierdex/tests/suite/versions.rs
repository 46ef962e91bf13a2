//! Indexes of older format versions are read, and written again by the next commit.
//!
//! `tests/format-6` is an index of version 6: three documents in two segments, with positions and English
//! stop words. `tests/format-7` is this index, written again in version 7, with a third segment of one
//! document that has a second field. `tests/format-8` is an updatable index of version 8: four documents in
//! two segments, the first of which has a deleted one.

use std::collections::BTreeSet;
use std::{path::Path, sync::Arc};
use tierdex::commit::{FORMAT_VERSION, FileKind};
use tierdex::internal::segment::layout::parse_file_name;
use tierdex::io::{Disk, FaultDisk, FaultPlan, Op, PosixDisk, WriteFile};
use tierdex::schema::{Field, Schema};
use tierdex::{
    Engine, EngineOptions, Error, Index, IndexWriter, Merge, OpenMode, Query, SearchRequest, StopSignal,
    WriterOptions,
};

/// The older versions of which there is an index, each with its highest number of a segment.
const OLDER: [(u16, u64); 3] = [(6, 2), (7, 5), (8, 4)];

fn copy_of(version: u16) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/format-{version}"));
    for file in std::fs::read_dir(golden).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), dir.path().join(file.file_name())).unwrap();
    }
    dir
}

/// Compares the version, the ids of the hits of queries, and the stored values of the first document.
#[track_caller]
fn check_index(dir: &Path, version: u16, queries: &[(&str, &[&str])]) {
    let index = Index::open(dir).unwrap();
    assert_eq!(index.manifest().version, version);
    let engine = Engine::new(&index, &EngineOptions::new()).unwrap();
    for (query, expected) in queries {
        let parsed = Query::parse(query, index.schema()).unwrap();
        let hits = engine.search(SearchRequest::new(parsed).ids(true)).unwrap();
        let mut ids = hits.ids().unwrap();
        ids.sort();
        assert_eq!(ids, *expected, "{query}");
    }
    let stored = engine.snapshot().stored(0).unwrap().unwrap();
    assert_eq!((stored.title(), stored.value("text")), ("Cats", "cats and dogs"));
    assert!(tierdex::check(dir).unwrap().problems.is_empty());
}

const QUERIES: &[(&str, &[&str])] = &[
    ("dogs", &["a", "b"]),
    ("\"cats and dogs\"", &["a"]),
    ("birds", &["c"]),
    ("cáfe", &["c"]),
    ("and", &[]),
];

fn append(dir: &Path, schema: Schema) -> tierdex::Result<IndexWriter> {
    let disk = Arc::new(PosixDisk::open(dir)?);
    IndexWriter::open(disk, schema, OpenMode::Append, WriterOptions::default())
}

#[test]
fn older_versions_are_read() {
    for (version, _) in OLDER {
        check_index(copy_of(version).path(), version, QUERIES);
    }
    check_index(copy_of(7).path(), 7, &[("tags:pets", &["d"]), ("tags:dogs cats", &["a", "d"])]);
}

#[test]
fn a_commit_writes_an_older_version_again() {
    for (merge, (version, last)) in OLDER.map(|of| [(Merge::None, of), (Merge::One, of)]).concat() {
        let dir = copy_of(version);
        let schema = Index::open(dir.path()).unwrap().schema().clone();
        let mut writer = append(dir.path(), schema).unwrap();
        writer.add("e", [("text", "more dogs"), ("title", "Dogs")]).unwrap();
        writer.commit(merge).unwrap();
        let queries: Vec<(&str, &[&str])> = QUERIES
            .iter()
            .map(|(query, ids)| (*query, if *query == "dogs" { &["a", "b", "e"] } else { *ids }))
            .collect();
        check_index(dir.path(), FORMAT_VERSION, &queries);
        drop(writer);
        // The files of the older version are removed.
        let index = Index::open(dir.path()).unwrap();
        for segment in &index.manifest().segments {
            assert!(segment.id > last, "{}", segment.id);
        }
        assert!(tierdex::check(dir.path()).unwrap().orphans.is_empty());
    }
}

/// A commit that merges all segments does not write them in the current version first.
#[test]
fn an_upgrade_writes_each_document_once() {
    for (merge, with_document, expected) in
        [(Merge::None, false, 2), (Merge::None, true, 3), (Merge::One, false, 1), (Merge::One, true, 2)]
    {
        let dir = copy_of(6);
        let schema = Index::open(dir.path()).unwrap().schema().clone();
        let disk = FaultDisk::new(PosixDisk::open(dir.path()).unwrap(), FaultPlan::none());
        let shared = Arc::new(disk.clone());
        let mut writer =
            IndexWriter::open(shared, schema, OpenMode::Append, WriterOptions::default()).unwrap();
        if with_document {
            writer.add("d", [("text", "more dogs")]).unwrap();
        }
        writer.commit(merge).unwrap();
        let created = disk.log().into_iter().filter(|operation| operation.op == Op::Create);
        let numbers: BTreeSet<u64> = created
            .filter_map(|operation| parse_file_name(&operation.file))
            .map(|(number, ..)| number)
            .collect();
        assert_eq!(numbers.len(), expected, "{merge:?}, {with_document}");
        drop(writer);
        check_index(dir.path(), FORMAT_VERSION, &[("birds", &["c"]), ("\"cats and dogs\"", &["a"])]);
    }
}

/// A disk that raises a stop signal when a file of a kind is created.
struct StoppingDisk {
    disk: PosixDisk,
    kind: &'static str,
    stop: StopSignal,
}

impl Disk for StoppingDisk {
    tierdex::io::forward_disk!(self, self.disk; list open rename remove sync_dir lock describe);

    fn create(&self, name: &str) -> tierdex::io::Result<Box<dyn WriteFile>> {
        if name.ends_with(self.kind) {
            self.stop.raise();
        }
        self.disk.create(name)
    }
}

#[test]
fn an_upgrade_is_stopped() {
    let kinds = [".terms", ".ids", ".stored"].map(|kind| [(kind, Merge::None), (kind, Merge::One)]).concat();
    for ((version, _), (kind, merge)) in
        OLDER.iter().flat_map(|of| kinds.iter().map(move |kind| (*of, *kind)))
    {
        let dir = copy_of(version);
        let schema = Index::open(dir.path()).unwrap().schema().clone();
        let options = WriterOptions::default();
        let disk =
            StoppingDisk { disk: PosixDisk::open(dir.path()).unwrap(), kind, stop: options.stop.clone() };
        let mut writer = IndexWriter::open(Arc::new(disk), schema, OpenMode::Append, options).unwrap();
        assert!(matches!(writer.commit(merge), Err(Error::Interrupted)), "{kind} {merge:?}");
        drop(writer);
        check_index(dir.path(), version, QUERIES);
        assert!(tierdex::check(dir.path()).unwrap().orphans.is_empty());
    }
}

#[test]
fn fields_are_added_to_an_older_version() {
    let dir = copy_of(6);
    let older = Index::open(dir.path()).unwrap().schema().clone();
    let mut schema = older.clone();
    schema.members.push("tags".to_string());
    schema.fields.push(Field::new("tags", &["tags"]));
    let mut writer = append(dir.path(), schema.clone()).unwrap();
    writer.add("d", [("tags", "pets"), ("tags", "dogs")]).unwrap();
    writer.commit(Merge::None).unwrap();
    drop(writer);
    let added: &[(&str, &[&str])] = &[("tags:dogs", &["d"]), ("tags:pets dogs", &["a", "b", "d"])];
    check_index(dir.path(), FORMAT_VERSION, &[QUERIES, added].concat());
    let index = Index::open(dir.path()).unwrap();
    assert!(index.manifest().segments.iter().all(|segment| segment.file(1, FileKind::Terms).is_some()));
    // A commit that only adds a field changes no segment.
    let before = index.manifest().segments.clone();
    schema.fields.push(Field::new("notes", &["text"]));
    append(dir.path(), schema.clone()).unwrap().commit(Merge::None).unwrap();
    let index = Index::open(dir.path()).unwrap();
    assert_eq!(index.manifest().segments, before);
    assert_eq!(index.schema(), &schema);
    // What the index has cannot be changed.
    schema.fields[0].positions = false;
    let message = append(dir.path(), schema).err().unwrap().to_string();
    assert!(message.contains("positions: yes, here no"), "{message}");
    let message = append(dir.path(), older).err().unwrap().to_string();
    assert!(message.contains("members: title, text, tags, here title, text"), "{message}");
}
