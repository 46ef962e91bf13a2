//! Forged files of every kind: the payload is changed, and the file written again with valid checksums.
//!
//! Every operation on such an index must return an error or a result: never a panic, and never more memory
//! than the index could need. `TIERDEX_TEST_FORGERIES` is the number of trials for each kind of file, by
//! default 700.

mod support;

use cap::Cap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{alloc::System, collections::BTreeMap, ops::Range, sync::Arc};
use support::corpus::{SchemaOptions, random_documents};
use support::grown::GrownCase;
use support::{AddMethod, all_tunings, assert_sound, build, lent::LentLists, random::Random, schema};
use tierdex::commit::{FieldStats, FileKind, Manifest, SegmentMeta};
use tierdex::internal::segment::layout::{file_name, identity, parse_file_name};
use tierdex::io::{Disk, Identity, MemDisk, RegionKind, SealedFile, SealedWriter, panic_message};
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
    build(&shared, schema, &docs, &[documents - 20], AddMethod::Commits, Merge::Keep);
    assert_sound(&disk);
    disk
}

/// The payload of a file, with the identity under which it is sealed.
fn read_payload(disk: &MemDisk, name: &str) -> (Identity, Vec<u8>) {
    let manifest = Manifest::newest(disk).unwrap().unwrap();
    let identity = match parse_file_name(name) {
        Some((segment, field, kind)) => identity(segment, field, kind),
        None => Identity { kind: FileKind::Manifest as u8, field: 0, segment: manifest },
    };
    let file = SealedFile::open_unsealed(disk, name, identity).unwrap();
    let Range { start, end } = file.payload();
    (identity, file.read(start, (end - start) as usize).unwrap())
}

/// Replaces the payload of a file, and writes its new length and checksum to the manifest.
fn forge_file(disk: &MemDisk, name: &str, identity: Identity, payload: &[u8]) {
    disk.remove(name).unwrap();
    let mut file = SealedWriter::create(disk, name, identity).unwrap();
    file.write(payload).unwrap();
    let seal = file.finish().unwrap();
    let Some((segment, field, kind)) = parse_file_name(name) else { return };
    let mut manifest = Manifest::read_newest(disk).unwrap().unwrap();
    let segment = manifest.segments.iter_mut().find(|of| of.id == segment).unwrap();
    let file = segment.files.iter_mut().find(|of| of.kind == kind && (of.field == field || !kind.of_field()));
    file.unwrap().seal = seal;
    manifest.prepare(disk, "new").unwrap();
    disk.remove(&Manifest::file_name(manifest.generation)).unwrap();
    manifest.publish(disk, "new").unwrap();
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
            shown.clone().try_for_each(|hit| searcher.preview(hit.document, &[0]).map(drop))
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

fn trial_count() -> u64 {
    std::env::var("TIERDEX_TEST_FORGERIES").ok().and_then(|count| count.parse().ok()).unwrap_or(700)
}

#[test]
fn a_forged_file_gives_an_error_or_a_result() {
    let raw = SchemaOptions { codec: Codec::Raw, ..SchemaOptions::default() }.schema();
    let grown = GrownCase::new(SchemaOptions::default(), random_documents(2, 300), 200);
    let grown = grown.build_in_steps(Merge::Keep);
    let samples = [intact_index(330, 4), intact_index(17_000, 1), intact_index_of(1500, 2, &raw), grown];
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
    assert_eq!(files.len(), 8, "a kind of file is missing");
    for (kind, files) in &files {
        for trial in 0..trial_count() {
            let mut random = Random::new(trial * 16 + *kind as u64);
            // Files of the large indexes take longer, and are chosen less often.
            let (number, name) = loop {
                let (number, name) = random.pick(files);
                if [0, 3].contains(number) || random.one_in(8) {
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
    let forged = disk.snapshot();
    let manifest = Manifest::read_newest(disk).unwrap().unwrap();
    let name = Manifest::file_name(manifest.generation);
    let (identity, mut bytes) = read_payload(disk, &name);
    let mut meta = manifest.segments[segment].clone();
    let (mut before, mut after) = (Vec::new(), Vec::new());
    meta.write(&mut before);
    change(&mut meta);
    meta.write(&mut after);
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
