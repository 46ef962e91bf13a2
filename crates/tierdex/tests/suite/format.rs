//! Generates the examples of docs/format again and compares them. `UPDATE_EXAMPLES=1` writes them to the
//! pages.

use crate::support::{corpus::TestDocument, deleted};
use std::path::{Path, PathBuf};
use std::{collections::BTreeMap, fmt::Write, sync::Arc};
use tierdex::commit::{FileKind, Manifest};
use tierdex::input_files::InputFile;
use tierdex::internal::engine::MetaTier;
use tierdex::internal::segment::layout::{file_name, identity};
use tierdex::io::{Disk, Identity, MemDisk, PosixDisk, ReadKind, SealedFile};
use tierdex::schema::{Column, ColumnType, ColumnValue};
use tierdex::{
    DocumentRef, Engine, EngineOptions, Index, IndexWriter, Merge, OpenMode, Query, ReadCosts, SearchRequest,
    WriterOptions, codec::Codec, internal::transform::norm, schema::Schema,
};

fn write_index(positions: bool, documents: &[(&str, &str, &str)]) -> MemDisk {
    let disk = MemDisk::new();
    let mut schema = Schema::default();
    schema.fields[0].positions = positions;
    let mut writer =
        IndexWriter::open(Arc::new(disk.clone()), schema, OpenMode::New, WriterOptions::default()).unwrap();
    for (id, title, text) in documents {
        writer.add(id, [("title", title), ("text", text)]).unwrap();
    }
    writer.commit(Merge::One).unwrap();
    disk
}

fn small_example_index() -> MemDisk {
    write_index(
        true,
        &[("a", "Cats", "cats and dogs"), ("b", "", "dogs dogs dogs"), ("c", "Birds", "and birds")],
    )
}

/// *Small* as an updatable index, of which document 1 is deleted.
fn deleted_example_index() -> MemDisk {
    let docs = [("a", "Cats", "cats and dogs"), ("b", "", "dogs dogs dogs"), ("c", "Birds", "and birds")];
    let docs = docs.map(|(id, title, text)| TestDocument::new(id, title, text));
    let mut schema = Schema::default();
    schema.fields[0].positions = true;
    let disk = MemDisk::new();
    let mut writer =
        deleted::updatable_writer(&(Arc::new(disk.clone()) as _), &schema, OpenMode::New).unwrap();
    crate::support::add_documents(&mut writer, &docs);
    writer.commit(Merge::None).unwrap();
    deleted::delete(&mut writer, &docs, [1].into_iter());
    writer.commit(Merge::None).unwrap();
    disk
}

/// *Small* with two columns.
fn column_example_index() -> MemDisk {
    let disk = MemDisk::new();
    let sizes = Column { multi: true, ..Column::new("sizes", ColumnType::U64) };
    let schema = Schema::default().with_columns(vec![Column::new("year", ColumnType::I64), sizes]);
    let mut writer =
        IndexWriter::open(Arc::new(disk.clone()), schema, OpenMode::New, WriterOptions::default()).unwrap();
    let year = |year| (0, ColumnValue::I64(year));
    let size = |size| (1, ColumnValue::U64(size));
    let columns: [(&str, &[(usize, ColumnValue)]); 3] =
        [("a", &[year(1987), size(30), size(10)]), ("b", &[size(20)]), ("c", &[year(1999)])];
    for (id, columns) in columns {
        writer.add_document(DocumentRef { id, columns, ..DocumentRef::default() }).unwrap();
    }
    writer.commit(Merge::One).unwrap();
    disk
}

/// An updatable index without documents, and a list of two files.
fn input_files_example_index() -> MemDisk {
    let disk = MemDisk::new();
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let mut writer = deleted::updatable_writer(&shared, &Schema::default(), OpenMode::New).unwrap();
    let mut input_files = writer.create_input_files("tsv").unwrap();
    let path = b"a.tsv".to_vec();
    input_files.add_file(&InputFile { path, bytes: 20, modified: Some(1_700_000_000_000_000_000) }).unwrap();
    input_files.add_id("a.tsv:1").unwrap();
    input_files.add_id("a.tsv:2").unwrap();
    input_files.add_file(&InputFile { path: b"b.txt".to_vec(), bytes: 5, modified: None }).unwrap();
    input_files.add_id("b.txt").unwrap();
    writer.set_input_files(input_files).unwrap();
    writer.commit(Merge::None).unwrap();
    disk
}

/// The payload of the file of this number, which all fields share.
fn read_numbered(disk: &MemDisk, number: u64, kind: FileKind) -> (u64, Vec<u8>) {
    let file = SealedFile::open_unsealed(disk, &file_name(number, 0, kind), identity(number, 0, kind));
    let file = file.unwrap();
    let range = file.payload();
    (range.start, file.read(range.start, (range.end - range.start) as usize).unwrap())
}

/// The payload of a manifest.
fn manifest_example(disk: &MemDisk, generation: u64) -> String {
    let manifest = disk.bytes(&Manifest::file_name(generation)).unwrap();
    let payload_end = u64::from_le_bytes(manifest[manifest.len() - 44..][..8].try_into().unwrap());
    hex_dump((64, manifest[64..payload_end as usize].to_vec()))
}

fn long_list_index() -> MemDisk {
    let ids: Vec<String> = (0..300).map(|i| i.to_string()).collect();
    let text = |i: usize| if i.is_multiple_of(3) { "x x" } else { "x" };
    let documents: Vec<_> = ids.iter().enumerate().map(|(i, id)| (id.as_str(), "", text(i))).collect();
    write_index(false, &documents)
}

/// The payload of a file of the only segment.
fn read_payload(disk: &MemDisk, kind: FileKind) -> (u64, Vec<u8>) {
    read_payload_of(disk, 0, kind)
}

/// The payload of a file of a field or column of the only segment.
fn read_payload_of(disk: &MemDisk, number: usize, kind: FileKind) -> (u64, Vec<u8>) {
    let manifest = Manifest::read_newest(disk).unwrap().unwrap();
    let segment = &manifest.segments[0];
    let seal = segment.file(number, kind).unwrap().seal;
    let name = file_name(segment.id, number, kind);
    let file = SealedFile::open(disk, &name, identity(segment.id, number, kind), seal).unwrap();
    let range = file.payload();
    (range.start, file.read(range.start, (range.end - range.start) as usize).unwrap())
}

/// The payload of the file that an engine writes after one query.
fn hot_pages_example(disk: &MemDisk) -> String {
    let dir = tempfile::tempdir().unwrap();
    let options = EngineOptions::new().meta_tier(MetaTier::Disk).threads(1).reads(ReadKind::Pread, 1);
    let options = options.read_costs(ReadCosts::of_gap(0)).hot_pages(dir.path().join("hot"));
    let engine = Engine::new(&Index::open_on(Arc::new(disk.clone())).unwrap(), &options).unwrap();
    let query = Query::parse("dogs", engine.snapshot().schema()).unwrap();
    engine.search(SearchRequest::new(query)).unwrap();
    drop(engine);
    let identity = Identity { kind: FileKind::HotPages as u8, field: 0, segment: 0 };
    let file = SealedFile::open_unsealed(&PosixDisk::open(dir.path()).unwrap(), "hot", identity).unwrap();
    let range = file.payload();
    hex_dump((range.start, file.read(range.start, (range.end - range.start) as usize).unwrap()))
}

fn hex_dump((start, bytes): (u64, Vec<u8>)) -> String {
    let mut out = String::new();
    let mut zeros = false;
    for (i, row) in bytes.chunks(16).enumerate() {
        let last = (i + 1) * 16 >= bytes.len();
        let zero = row.iter().all(|&byte| byte == 0) && !last;
        if zero {
            if !zeros {
                out.push_str("*\n");
            }
        } else {
            let digits: Vec<String> = row.iter().map(|byte| format!("{byte:02x}")).collect();
            writeln!(out, "{:>6}  {}", start + 16 * i as u64, digits.join(" ")).unwrap();
        }
        zeros = zero;
    }
    out
}

fn codec_examples() -> String {
    let mut out = String::new();
    let ids = [3, 9, 27, 81, 243, 729];
    let every_16: Vec<u32> = (0..256).map(|i| 16 * i).collect();
    let mut ones = vec![1; 64];
    ones[5] = 9;
    let mut show = |codec: Codec, what: &str, values: &[u32]| {
        let mut bytes = Vec::new();
        codec.encode(values, u32::MAX, &mut bytes);
        let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(out, "{:<14} {what:<26} {}", codec.name(), digits.join(" ")).unwrap();
    };
    for codec in [Codec::Raw, Codec::VByte, Codec::VByteDelta, Codec::Pfor256, Codec::Pfor256Delta] {
        show(codec, "3 9 27 81 243 729", &ids);
    }
    show(Codec::Pfor256Delta, "0 16 32 ... 4080", &every_16);
    show(Codec::Pfor256, "1 258 66051 16909060", &[1, 258, 66_051, 16_909_060]);
    show(Codec::Pfor256, "64 times 1, but 9 at 5", &ones);
    show(Codec::Pfor256, "256 times 70000", &[70_000; 256]);
    out
}

fn all_examples() -> BTreeMap<&'static str, String> {
    let (small, long) = (small_example_index(), long_list_index());
    let of = |disk: &MemDisk, kind| hex_dump(read_payload(disk, kind));
    let (start, stored) = read_payload(&small, FileKind::Stored);
    let tail = stored.len() - 32;
    let deleted = deleted_example_index();
    let numbered = |number, kind| hex_dump(read_numbered(&deleted, number, kind));
    let columns = column_example_index();
    let column = |number| hex_dump(read_payload_of(&columns, number, FileKind::Column));
    BTreeMap::from([
        ("envelope", hex_dump((0, small.bytes(&file_name(1, 0, FileKind::Norms)).unwrap()))),
        ("manifest", manifest_example(&small, 1)),
        ("manifest-deletes", manifest_example(&deleted, 2)),
        ("input-files", hex_dump(read_numbered(&input_files_example_index(), 1, FileKind::InputFiles))),
        ("keys", numbered(1, FileKind::Keys)),
        ("deletes", numbered(2, FileKind::Deletes)),
        ("deleted-statistics", numbered(3, FileKind::DeletedStatistics)),
        ("column", column(0)),
        ("column-multi", column(1)),
        ("manifest-columns", manifest_example(&columns, 1)),
        ("terms", of(&small, FileKind::Terms)),
        ("skips-small", of(&small, FileKind::Skips)),
        ("skips-long", of(&long, FileKind::Skips)),
        ("postings-long", of(&long, FileKind::Postings)),
        ("positions", of(&small, FileKind::Positions)),
        ("norms", of(&small, FileKind::Norms)),
        ("ids", of(&small, FileKind::Ids)),
        ("stored-tail", hex_dump((start + tail as u64, stored[tail..].to_vec()))),
        ("codecs", codec_examples()),
        ("hot-pages", hot_pages_example(&small)),
    ])
}

fn format_pages() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/format");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Replaces the examples of a page; returns it with the names of its examples.
fn replace_examples(page: &str, examples: &BTreeMap<&'static str, String>) -> (String, Vec<String>) {
    let mut out = String::new();
    let mut names = Vec::new();
    let mut rest = page;
    while let Some((before, after)) = rest.split_once("<!-- example: ") {
        let (name, after) = after.split_once(" -->\n```hex\n").expect("a hex block follows the mark");
        let (_, after) = after.split_once("```\n").expect("the hex block is closed");
        let example = examples.get(name).unwrap_or_else(|| panic!("no example is called {name}"));
        write!(out, "{before}<!-- example: {name} -->\n```hex\n{example}```\n").unwrap();
        names.push(name.to_string());
        rest = after;
    }
    out.push_str(rest);
    (out, names)
}

#[test]
fn the_examples_of_the_documents_are_current() {
    let examples = all_examples();
    let mut shown = Vec::new();
    for path in format_pages() {
        let page = std::fs::read_to_string(&path).unwrap();
        let (right, names) = replace_examples(&page, &examples);
        shown.extend(names);
        if std::env::var_os("UPDATE_EXAMPLES").is_some() {
            std::fs::write(&path, right).unwrap();
        } else {
            assert!(
                page == right,
                "{}: an example differs; UPDATE_EXAMPLES=1 writes it anew",
                path.display()
            );
        }
    }
    shown.sort();
    assert_eq!(shown, examples.keys().map(|name| name.to_string()).collect::<Vec<_>>());
}

#[test]
fn the_table_of_norms_is_correct() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/format/norms.md");
    let page = std::fs::read_to_string(page).unwrap();
    let rows = page.lines().filter_map(|line| {
        let cells: Vec<String> = line.split('|').map(|cell| cell.trim().replace(',', "")).collect();
        let [_, length, code, ranked, _] = cells.as_slice() else { return None };
        Some((length.parse::<u32>().ok()?, code.parse::<u8>().ok()?, ranked.parse::<f32>().ok()?))
    });
    let mut checked = 0;
    for (length, code, ranked) in rows {
        assert_eq!((norm::encode(length), norm::length(code)), (code, ranked), "length {length}");
        checked += 1;
    }
    assert_eq!(checked, 5);
}

#[test]
fn the_table_of_codecs_is_correct() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/format/codecs.md");
    let page = std::fs::read_to_string(page).unwrap();
    for codec in Codec::ALL {
        let row = format!("| {} | `{}` |", codec.id(), codec.name());
        assert!(page.contains(&row), "{row}");
    }
}
