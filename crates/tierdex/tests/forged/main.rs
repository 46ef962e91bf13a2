//! Forged files of every kind: the payload is changed, and the file written again with valid checksums.
//!
//! Every operation on such an index must return an error or a result: never a panic, and never more memory
//! than the index could need.

mod columns;
#[path = "../support/mod.rs"]
mod support;

use cap::Cap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{alloc::System, collections::BTreeMap, sync::Arc};
use support::corpus::{SchemaOptions, TestDocument, random_documents};
use support::deleted::{build_deleted, statistics_of};
use support::forge::{forge_file, read_payload};
use support::grown::GrownCase;
use support::{
    AddMethod, all_tunings, assert_sound, build, lent::LentLists, random::Random, schema, test_size,
};
use tierdex::commit::{DeletesMeta, FieldStats, FileKind, FileMeta, Manifest, ManifestSegment, SegmentMeta};
use tierdex::internal::bytes::push_varint;
use tierdex::internal::index::PreviewBytes;
use tierdex::internal::segment::layout::{file_name, parse_file_name};
use tierdex::internal::segment::{deletes::open_deletes, read::FILES};
use tierdex::io::{Disk, Identity, MemDisk, RegionKind, panic_message};
use tierdex::limits::COLUMN_BLOCK_DOCS;
use tierdex::{
    Engine, EngineOptions, Error, Index, IndexWriter, Merge, OpenMode, Query, SearchOptions, SearchRequest,
    WriterOptions, ciff::export, codec::Codec, internal::engine::MetaTier, internal::index::check_on,
    schema::Schema,
};

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// Maximum bytes of memory of the operations on one forged index. Operations on intact indexes take about 5
/// MB.
const MEMORY_MAX: usize = 64 << 20;

/// Queries, separated by semicolons.
const QUERIES: &str = "\
    all; w0 w3 prefix2; w0 AND prefix2; all AND w0 AND w3; \"w0 w0\"; \"all w0 w3\"; \"all über1\"~2; \
    title:w0 +w3 -w4 #all; NOT all; wo* w*; prefyx2~1 only5~2; *:*";

/// An intact index. With many documents it has lists of several superblocks.
fn intact_index(documents: usize, words: usize) -> MemDisk {
    intact_index_of(documents, words, &schema())
}

fn intact_index_of(documents: usize, words: usize, schema: &Schema) -> MemDisk {
    let mut docs = random_documents(1, documents);
    let cut = |text: &str| text.split(' ').take(words).collect::<Vec<_>>().join(" ");
    docs.iter_mut().for_each(|doc| (doc.title, doc.text) = (cut(&doc.title), cut(&doc.text)));
    let disk = MemDisk::new();
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    build(&shared, schema, &docs, &[documents - 20], AddMethod::Commits, Merge::None);
    assert_sound(&disk);
    disk
}

/// An updatable index with deletes in both of its segments; the second has two layers of their statistics.
fn deleted_index() -> MemDisk {
    let docs = deleted_documents();
    let disk = build_deleted(&schema(), &docs, docs.len() - 60, &[0..30, 31..33]);
    assert_sound(&disk);
    disk
}

fn deleted_documents() -> Vec<TestDocument> {
    let mut docs = random_documents(3, 700);
    docs.iter_mut().for_each(|doc| doc.text = doc.text.split(' ').take(4).collect::<Vec<_>>().join(" "));
    docs
}

/// A random offset: often near the end, where tails are, or near the beginning.
fn random_offset(len: usize, random: &mut Random) -> usize {
    match random.below(4) {
        0 => len - 1 - random.below(len.min(64)),
        1 => random.below(len.min(64)),
        _ => random.below(len),
    }
}

/// Changes one to three bytes, numbers or ranges of a payload.
fn change_bytes(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..1 + random.below(3) {
        if bytes.is_empty() {
            return bytes.push(random.next() as u8);
        }
        let at = random_offset(bytes.len(), random);
        let end = bytes.len().min(at + 1 + random.below(64));
        match random.below(12) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = *random.pick(&[0, 1, 0x7F, 0x80, 0xFE, 0xFF]),
            2..=4 => change_number(bytes, at, random),
            5 => bytes[at..end].fill(*random.pick(&[0, 0xFF, 0x80])),
            6 => bytes[at..end].iter_mut().for_each(|byte| *byte = random.next() as u8),
            7 => {
                let from = random.below(bytes.len() - (end - at) + 1);
                bytes.copy_within(from..from + (end - at), at);
            }
            8 => bytes.truncate(at),
            9 => drop(bytes.drain(at..end)),
            10 => bytes.extend_from_within(at..end),
            // A variable-length integer of any valid length.
            _ => {
                let mut varint = vec![0xFF; random.below(10)];
                varint.push(random.below(2) as u8);
                drop(bytes.splice(at..at + 1, varint));
            }
        }
    }
}

/// Changes an integer of two, four or eight bytes to an extreme or an adjacent value.
fn change_number(bytes: &mut [u8], at: usize, random: &mut Random) {
    let width = *random.pick(&[2, 4, 8]);
    let at = if random.one_in(2) { at / width * width } else { at };
    let Some(place) = bytes.get_mut(at..at + width) else { return };
    let mut number = [0; 8];
    number[..width].copy_from_slice(place);
    let number = u64::from_le_bytes(number);
    let changed = match random.below(7) {
        0 => 0,
        1 => u64::MAX,
        2 => number.wrapping_add(1),
        3 => number.wrapping_sub(1),
        4 => number.wrapping_mul(2),
        5 => 1 << random.below(64),
        _ => number.wrapping_add(1 << random.below(40)),
    };
    place.copy_from_slice(&changed.to_le_bytes()[..width]);
}

/// Runs all operations on an index; returns the first error. All errors must be one line.
fn run_all_operations(disk: &MemDisk, random: &mut Random) -> Result<(), Error> {
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let report = check_on(disk)?;
    let index = Index::open_on(shared.clone())?;
    let searcher = index.searcher();
    let mut errors: Vec<Error> = report.problems;
    let kept = random.one_in(2);
    if kept {
        errors.extend(support::load_into_region(&index, RegionKind::Dram).err());
    }
    let mut found = Vec::new();
    for keys in index.segments().iter().filter_map(|segment| segment.keys()) {
        errors.extend(keys.look_up(random.next() as u32, &FILES, &mut found).err());
    }
    errors.extend(read_columns(&index, random).err());
    let lent = (!kept && random.one_in(2)).then(|| LentLists::load(&index));
    let lent = lent.and_then(|lent| lent.map_err(|error| errors.push(error)).ok());
    // Exports and a search for ids read the whole index, which takes much longer than a query.
    if random.one_in(40) {
        for field in &index.schema().fields {
            errors.extend(export(&index, &field.name, "", &mut std::io::sink()).err());
        }
        errors.extend(searcher.scan_ids(|_| true, |document, _| searcher.stored(document).map(drop)).err());
    }
    for text in QUERIES.split("; ") {
        let query = Query::parse(text, index.schema())?;
        let (count, exhaustive) = (random.one_in(2), random.one_in(4));
        let (k, tuning) = (*random.pick(&[1, 10, 100_000]), *random.pick(&all_tunings()));
        let options = SearchOptions { k, count, exhaustive, tuning, ..SearchOptions::default() };
        let found = match &lent {
            Some(lent) => lent.search(&query, &options),
            None => searcher.search(&query, &options),
        };
        let shown = found.and_then(|found| {
            searcher.for_each_id(&found.hits, &found.ids, |_, _| Ok::<(), Error>(()))?;
            let shown = found.hits.iter().take(3);
            shown.clone().try_for_each(|hit| searcher.stored(hit.document).map(drop))?;
            shown
                .clone()
                .try_for_each(|hit| searcher.preview(hit.document, &[0], PreviewBytes::MAX, &FILES).map(drop))
        });
        errors.extend(shown.err());
        let options = SearchOptions { k, count, tuning, ..SearchOptions::default() };
        errors.extend(searcher.explain(&query, &options, None).err());
    }
    errors.extend(run_batch(&index, random).err());
    if random.one_in(4) {
        errors.extend(merge_index(&shared).err());
    }
    for error in &errors {
        assert!(!error.to_string().contains('\n'), "{error}");
    }
    errors.into_iter().next().map_or(Ok(()), Err)
}

/// Reads values of columns of some documents and of some blocks, and finds values in ranges.
fn read_columns(index: &Index, random: &mut Random) -> Result<(), Error> {
    let searcher = index.searcher();
    for column in index.segments().iter().flat_map(|segment| segment.columns()) {
        let directory = column.directory()?;
        let (mut bytes, mut scratch, mut marked) = (Vec::new(), Vec::new(), [0; COLUMN_BLOCK_DOCS / 64]);
        let block = directory.read_block(random.below(column.blocks()), &FILES, &mut bytes)?;
        let bounds = column.units_within(random.next() >> random.below(64), u64::MAX);
        block.mark(&Vec::from_iter(bounds), &mut scratch, &mut marked);
        column.for_each(&FILES, |_, _| Ok(()))?;
        for _ in 0..4 {
            let document = random.below(index.documents() as usize) as u32;
            match searcher.values(document, column.number(), &FILES) {
                // A deleted document.
                Ok(_) | Err(Error::Usage(_)) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// Runs all queries in an engine, with dictionaries and skip records on disk or resident.
fn run_batch(index: &Index, random: &mut Random) -> Result<(), Error> {
    let meta = random.pick(&[MetaTier::Disk, MetaTier::Terms, MetaTier::Index(RegionKind::Dram)]).clone();
    let options = EngineOptions::new()
        .dram(24 << 20)
        .hits_max(10)
        .read_costs(tierdex::ReadCosts::of_gap(2))
        .meta_tier(meta);
    let engine = Engine::new(index, &options.threads(1).growth(0))?;
    let queries: Vec<Query> =
        QUERIES.split("; ").map(|text| Query::parse(text, index.schema())).collect::<Result<_, _>>()?;
    let mut queries = queries.into_iter();
    let mut first = Ok(());
    let tuning = *random.pick(&all_tunings());
    let options = SearchOptions { k: 10, count: false, ids: true, tuning, ..SearchOptions::default() };
    let request = |query| SearchRequest::new(query).options(options);
    engine.run_ordered(
        || Ok::<_, Error>(queries.next().map(request)),
        |_, found| {
            first = std::mem::replace(&mut first, Ok(())).and(found.map(drop));
            Ok(())
        },
    )?;
    first
}

fn merge_index(disk: &Arc<dyn Disk>) -> Result<(), Error> {
    let schema = Manifest::read_newest(disk.as_ref())?.map_or_else(schema, |manifest| manifest.schema);
    let mut writer = IndexWriter::open(disk.clone(), schema, OpenMode::Append, WriterOptions::default())?;
    writer.add("new", [("title", "title"), ("text", "all w0")])?;
    writer.commit(Merge::One).map(drop)
}

/// Trials for each kind of file.
fn trial_count() -> u64 {
    test_size(300, 3000)
}

#[test]
fn a_forged_file_gives_an_error_or_a_result() {
    let raw = SchemaOptions { codec: Codec::Raw, ..SchemaOptions::default() }.schema();
    let grown = GrownCase::new(SchemaOptions::default(), random_documents(2, 300), 200);
    let grown = grown.build_in_steps(Merge::None);
    let samples = [
        intact_index(330, 4),
        intact_index(17_000, 1),
        intact_index_of(1500, 2, &raw),
        grown,
        deleted_index(),
        columns::columns_index(),
    ];
    // Intact indexes first: all operations succeed within the memory limit.
    for disk in &samples {
        (0..4).for_each(|seed| run_all_operations(&disk.snapshot(), &mut Random::new(seed)).unwrap());
    }
    let mut counts: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
    let mut files: BTreeMap<FileKind, Vec<(usize, String)>> = BTreeMap::new();
    for (number, disk) in samples.iter().enumerate() {
        for name in disk.list().unwrap() {
            let kind = parse_file_name(&name).map_or(FileKind::Manifest, |(_, _, kind)| kind);
            files.entry(kind).or_default().push((number, name));
        }
    }
    assert_eq!(files.len(), 13, "a kind of file is missing");
    for (kind, files) in &files {
        for trial in 0..trial_count() {
            let mut random = Random::new(trial * 16 + *kind as u64);
            // Files of the large indexes take longer, and are chosen less often.
            let (number, name) = loop {
                let (number, name) = random.pick(files);
                if [0, 3, 4, 5].contains(number) || random.one_in(8) {
                    break (*number, name);
                }
            };
            let disk = samples[number].snapshot();
            let (identity, mut bytes) = read_payload(&disk, name);
            change_bytes(&mut bytes, &mut random);
            forge_file(&disk, name, identity, &bytes);
            ALLOCATOR.set_limit(ALLOCATOR.allocated() + MEMORY_MAX).unwrap();
            let done = catch_unwind(AssertUnwindSafe(|| run_all_operations(&disk, &mut random)));
            ALLOCATOR.set_limit(usize::MAX).unwrap();
            let outcome =
                done.unwrap_or_else(|panic| panic!("{name}, trial {trial}: {}", panic_message(&*panic)));
            counts.entry(kind.name()).or_default()[usize::from(outcome.is_err())] += 1;
        }
    }
    println!("kind: answered, rejected: {counts:?}");
    for (kind, [_, rejected]) in counts {
        assert!(rejected * 2 > trial_count(), "{kind}: {rejected} of {} were rejected", trial_count());
    }
}

/// An index whose manifest has another number of documents that have a field.
fn forge_document_count(disk: &MemDisk, (segment, field): (usize, usize), documents: u32) -> MemDisk {
    forge_segment(disk, segment, |meta| meta.fields[field].documents = documents)
}

/// An index whose manifest has another entry of a segment.
fn forge_segment(disk: &MemDisk, segment: usize, change: impl FnOnce(&mut SegmentMeta)) -> MemDisk {
    forge_entry(disk, segment, |entry| change(&mut entry.meta))
}

/// An index whose manifest has another entry of a segment, with its deletes.
fn forge_entry(disk: &MemDisk, segment: usize, change: impl FnOnce(&mut ManifestSegment)) -> MemDisk {
    let forged = disk.snapshot();
    let manifest = Manifest::read_newest(disk).unwrap().unwrap();
    let name = Manifest::file_name(manifest.generation);
    let (identity, mut bytes) = read_payload(disk, &name);
    let mut entry = manifest.segments[segment].clone();
    let (mut before, mut after) = (Vec::new(), Vec::new());
    entry.write(&mut before);
    change(&mut entry);
    entry.write(&mut after);
    let at = bytes.windows(before.len()).position(|of| of == before).unwrap();
    drop(bytes.splice(at..at + before.len(), after));
    forge_file(&forged, &name, identity, &bytes);
    forged
}

/// Scores depend on the number of documents that have a field: an impossible number is rejected when the
/// index is opened, and a wrong one is detected by a check.
#[test]
fn a_wrong_number_of_documents_with_a_field_is_detected() {
    let disk = intact_index(330, 4);
    let segments = Manifest::read_newest(&disk).unwrap().unwrap().segments;
    let (mut rejected, mut found) = (0, 0);
    for (number, segment) in segments.iter().enumerate() {
        for (field, stats) in segment.fields.iter().enumerate() {
            let right = stats.documents;
            let others = [0, 1, right - 1, right + 1, segment.documents, segment.documents + 1, u32::MAX];
            for documents in others.into_iter().filter(|other| *other != right) {
                let forged = forge_document_count(&disk, (number, field), documents);
                let problems = check_on(&forged).unwrap().problems;
                let impossible =
                    documents == 0 || documents > segment.documents || u64::from(documents) > stats.tokens;
                let (file, words) = if impossible {
                    assert!(Index::open_on(Arc::new(forged.clone())).err().unwrap().is_corrupt());
                    rejected += 1;
                    ("manifest-".to_string(), "impossible numbers".to_string())
                } else {
                    found += 1;
                    let words = format!("{right} documents have tokens; the manifest says {documents}");
                    (file_name(segment.id, field, FileKind::Norms), words)
                };
                let [problem] = problems.as_slice() else { panic!("{problems:?}") };
                let problem = problem.to_string();
                assert!(problem.contains(&file) && problem.contains(&words), "{problem}");
                assert!(problem.contains("at byte "), "{problem}");
                for seed in 0..8 {
                    assert!(run_all_operations(&forged.snapshot(), &mut Random::new(seed)).is_err());
                }
            }
            assert!(
                check_on(&forge_document_count(&disk, (number, field), right)).unwrap().problems.is_empty()
            );
        }
    }
    assert!(rejected >= 12 && found >= 8, "{rejected} {found}");
}

/// A segment has at least one field, at most those of the schema, and files of no others.
#[test]
fn a_wrong_number_of_fields_is_rejected() {
    let disk = intact_index(330, 4);
    type Change = fn(&mut SegmentMeta);
    let changes: [(Change, &str); 3] = [
        (|meta| meta.fields.clear(), "a segment with impossible fields"),
        (|meta| meta.fields.push(FieldStats::default()), "a segment with impossible fields"),
        (|meta| meta.fields.truncate(1), "too many files in a segment"),
    ];
    for (number, (change, expected)) in changes.into_iter().enumerate() {
        let forged = forge_segment(&disk, number % 2, change);
        let error = Index::open_on(Arc::new(forged.clone())).err().unwrap();
        assert!(error.is_corrupt() && error.to_string().contains(expected), "{error}");
        assert!(check_on(&forged).unwrap().problems[0].to_string().contains(expected));
        assert!(merge_index(&(Arc::new(forged) as _)).is_err());
    }
}

/// Checks that another payload of a file, with valid checksums, is found.
#[track_caller]
fn assert_forgery_found(disk: &MemDisk, name: &str, identity: Identity, payload: &[u8], expected: &str) {
    let forged = disk.snapshot();
    forge_file(&forged, name, identity, payload);
    assert_found(&forged, expected);
}

/// Checks that a check finds one problem with these words, and that a merge fails or leaves it.
#[track_caller]
fn assert_found(forged: &MemDisk, expected: &str) {
    let problems = check_on(forged).unwrap().problems;
    let [problem] = problems.as_slice() else { panic!("{expected}: {problems:?}") };
    assert!(problem.is_corrupt() && problem.to_string().contains(expected), "{problem}, not {expected}");
    for seed in 0..4 {
        assert!(run_all_operations(&forged.snapshot(), &mut Random::new(seed)).is_err(), "{expected}");
    }
}

#[test]
fn impossible_deletes_in_the_manifest_are_rejected() {
    let disk = deleted_index();
    type Change = fn(&mut ManifestSegment, &mut DeletesMeta);
    let changes: [(Change, &str); 7] = [
        (|of, deletes| deletes.documents = of.documents, "without documents that are not deleted"),
        (|_, deletes| deletes.documents = u32::MAX, "without documents that are not deleted"),
        (|_, deletes| deletes.layers.clear(), "impossible number of layers"),
        (|_, deletes| deletes.layers = vec![deletes.layers[0]; 5], "impossible number of layers"),
        (|_, deletes| deletes.layers.push(deletes.layers[0]), "not unique"),
        (|of, deletes| deletes.file.number = of.id, "not unique"),
        (
            |of, _| of.meta.files.retain(|file| file.kind != FileKind::Keys),
            "without keys in an updatable index",
        ),
    ];
    for (change, expected) in changes {
        let forged = forge_entry(&disk, 1, |entry| {
            let mut deletes = entry.deletes.take().unwrap();
            change(entry, &mut deletes);
            entry.deletes = Some(deletes);
        });
        assert_found(&forged, expected);
        assert!(Index::open_on(Arc::new(forged.clone())).err().unwrap().is_corrupt());
        assert!(merge_index(&(Arc::new(forged) as _)).is_err());
    }
    // Another number of deleted documents than the file has.
    let forged = forge_entry(&disk, 0, |entry| entry.deletes.as_mut().unwrap().documents -= 1);
    assert_found(&forged, "another number of documents than the manifest says");
    let keyless = intact_index(330, 4);
    let forged = forge_segment(&keyless, 0, |meta| {
        let ids = *meta.files.iter().find(|file| file.kind == FileKind::Ids).unwrap();
        meta.files.push(FileMeta { kind: FileKind::Keys, ..ids });
    });
    assert_found(&forged, "or with keys in another");
}

#[test]
fn impossible_deleted_documents_are_rejected() {
    let disk = deleted_index();
    let manifest = Manifest::read_newest(&disk).unwrap().unwrap();
    let segment = &manifest.segments[0];
    let name = file_name(segment.deletes.as_ref().unwrap().file.number, 0, FileKind::Deletes);
    let open = open_deletes(&disk, segment).unwrap().unwrap();
    let right: Vec<u32> = open.documents().iter().collect();
    let payload = |id: u64, documents: u32, deleted: &[u32]| {
        let mut payload = Vec::new();
        let numbers = [id, u64::from(documents), deleted.len() as u64];
        numbers.into_iter().for_each(|number| push_varint(&mut payload, number));
        let mut previous = u32::MAX;
        for block in deleted.chunks(256) {
            Codec::Auto.encode(block, previous, &mut payload);
            previous = block[block.len() - 1];
        }
        payload
    };
    let changed = |change: &dyn Fn(&mut Vec<u32>)| {
        let mut deleted = right.clone();
        change(&mut deleted);
        payload(segment.id, segment.documents, &deleted)
    };
    let (identity, bytes) = read_payload(&disk, &name);
    assert_eq!(bytes, changed(&|_| {}));
    let (last, order) = (right.len() - 1, "deleted documents that are not in order");
    for (payload, expected) in [
        (payload(segment.id + 1, segment.documents, &right), "deletes of another segment"),
        (payload(segment.id, segment.documents + 1, &right), "another number of documents"),
        (changed(&|deleted| deleted.truncate(last)), "another number of documents"),
        (changed(&|deleted| deleted.swap(3, 4)), order),
        (changed(&|deleted| deleted[3] = deleted[2]), order),
        (changed(&|deleted| deleted[last] = segment.documents), order),
        (changed(&|deleted| deleted[last] = u32::MAX), order),
        ([&bytes[..], &[0]].concat(), "unexpected bytes follow"),
        ([&bytes[..], &[0; 1 << 16]].concat(), "impossibly large"),
    ] {
        assert_forgery_found(&disk, &name, identity, &payload, expected);
    }
}

#[test]
fn impossible_statistics_of_deleted_documents_are_detected() {
    let (disk, docs) = (deleted_index(), deleted_documents());
    let manifest = Manifest::read_newest(&disk).unwrap().unwrap();
    let segment = &manifest.segments[0];
    let name = file_name(segment.deletes.as_ref().unwrap().layers[0].number, 0, FileKind::DeletedStatistics);
    let deleted: Vec<_> = docs[..docs.len() - 60].iter().step_by(3).cloned().collect();
    let payload = |number: u64, docs: &[TestDocument]| {
        let mut payload = Vec::new();
        push_varint(&mut payload, number);
        statistics_of(&schema(), docs).write(&mut payload);
        payload
    };
    let (identity, bytes) = read_payload(&disk, &name);
    assert_eq!(bytes, payload(segment.id, &deleted));
    // The same documents, but for the text of the first.
    let with_text = |text: &str| {
        let mut docs = deleted.clone();
        docs[0].text = text.to_string();
        payload(segment.id, &docs)
    };
    let count = statistics_of(&schema(), &docs[..1]).field(0).tokens as usize;
    let others = "are not those of the posting lists";
    for (payload, expected) in [
        (payload(segment.id + 1, &deleted), "deletes of another segment"),
        (payload(segment.id, &docs[..docs.len() - 60]), "statistics of more documents than are deleted"),
        (payload(segment.id, &deleted[1..]), others),
        (with_text(&"w0 ".repeat(count + 1)), others),
        // As many tokens, of a frequent term.
        (with_text(&"w0 ".repeat(count)), others),
        (with_text(&"absent ".repeat(count)), others),
        (bytes[..bytes.len() - 1].to_vec(), "ends early"),
    ] {
        assert_forgery_found(&disk, &name, identity, &payload, expected);
    }
}

#[test]
fn impossible_keys_are_detected() {
    let disk = deleted_index();
    let documents = Manifest::read_newest(&disk).unwrap().unwrap().segments[0].documents as usize;
    let name = file_name(1, 0, FileKind::Keys);
    let (identity, bytes) = read_payload(&disk, &name);
    // The first entry is at offset 4,096 of the file.
    let entries = 4096 - 64;
    let set = |at: usize, number: u32| {
        let mut bytes = bytes.clone();
        bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
        bytes
    };
    let swapped = {
        let mut bytes = bytes.clone();
        let (first, second) = bytes[entries + 800..entries + 816].split_at_mut(8);
        first.swap_with_slice(second);
        bytes
    };
    let order = "entries that are not in order, or of no document";
    let document = |entry: usize| entries + 8 * entry + 4;
    let of_second = u32::from_le_bytes(*bytes[document(1)..].first_chunk().unwrap());
    for (payload, expected) in [
        (swapped, order),
        (set(document(0), documents as u32), order),
        (set(document(0), u32::MAX), order),
        (set(document(0), of_second), "has another hash"),
        (set(entries + 8 * documents, 0), "a page begins with another hash"),
        (set(bytes.len() - 8, documents as u32 + 1), "the tail does not fit the file"),
        (bytes[..bytes.len() - 8].to_vec(), "the tail does not fit the file"),
    ] {
        assert_forgery_found(&disk, &name, identity, &payload, expected);
    }
}

/// Tests the test itself: the harness detects a forged payload with valid checksums that nothing else
/// reports.
#[test]
fn a_forgery_has_valid_checksums() {
    let disk = intact_index(330, 4);
    let name = file_name(1, 0, FileKind::Norms);
    let (identity, mut bytes) = read_payload(&disk, &name);
    bytes[3] ^= 1;
    forge_file(&disk, &name, identity, &bytes);
    let problems = check_on(&disk).unwrap().problems;
    assert!(problems.len() == 1 && !problems[0].to_string().contains("checksum"), "{problems:?}");
}
