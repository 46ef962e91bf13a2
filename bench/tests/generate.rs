//! Generated indexes are valid, have the requested sizes, and depend only on the flags.

use proptest::prelude::*;
use std::{collections::BTreeMap, sync::Arc};
use tierdex::internal::segment::read::{FILES, FieldReader, ListPart, RecordPart, SkipRecord};
use tierdex::{
    Index, IndexWriter, OpenMode, Query, SearchOptions, StopSignal, WriterOptions, codec::Codec,
    commit::Manifest, internal::index::check_on, io::Disk, io::MemDisk,
};
use tierdex_bench::{generate::Collection, generate::Flags, read_postings};

fn generate_in_memory(flags: &Flags, threads: usize) -> (Collection, MemDisk) {
    let disk = MemDisk::new();
    let collection = Collection::new(flags).unwrap();
    collection.create(Arc::new(disk.clone()), threads, &StopSignal::default()).unwrap();
    (collection, disk)
}

fn file_contents(disk: &MemDisk) -> BTreeMap<String, Vec<u8>> {
    let names = disk.list().unwrap();
    names.into_iter().map(|name| (name.clone(), disk.bytes(&name).unwrap())).collect()
}

/// All lists of a field by term: documents and frequencies.
fn lists_by_term(field: &FieldReader) -> Vec<(String, Vec<u32>, Vec<u32>)> {
    let mut lists = Vec::new();
    let mut stream = field.terms().stream();
    while let Some((term, info)) = stream.next().unwrap() {
        let term = String::from_utf8(term.to_vec()).unwrap();
        let list = read_postings(field, info).unwrap();
        lists.push((term, list.documents, list.frequencies));
    }
    lists
}

/// Checks that an index is valid and has the sizes of its flags.
fn check_index(flags: &Flags, collection: &Collection, disk: &MemDisk) {
    let report = check_on(disk).unwrap();
    assert!(report.problems.is_empty() && report.orphans.is_empty(), "{:?}", report.problems);
    assert_eq!(
        (report.documents, report.terms, report.postings),
        (flags.docs, flags.vocabulary, flags.postings)
    );
    let index = Index::open_on(Arc::new(disk.clone())).unwrap();
    let [segment] = index.segments() else { panic!("one segment") };
    let lists = lists_by_term(segment.field_of_term(0));
    for (rank, (term, documents, frequencies)) in (1..).zip(&lists) {
        assert_eq!((term, documents.len()), (&collection.term(rank), collection.documents(rank) as usize));
        assert!(documents.is_sorted_by(|one, next| one < next) && !frequencies.contains(&0));
    }
    assert!(lists.is_sorted_by(|(one, documents, _), (next, less, _)| {
        one < next && documents.len() >= less.len()
    }));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn every_collection_has_the_requested_sizes(
        docs in prop_oneof![1u64..20, 1u64..5000],
        vocabulary in prop_oneof![1u64..5, 1u64..400],
        share in 0.0f64..=1.0,
        seed in any::<u64>(),
    ) {
        let most = vocabulary * (docs * 3 / 4).max(1);
        // The square makes small shares, which are typical, more likely.
        let postings = vocabulary + ((most - vocabulary) as f64 * share * share) as u64;
        let flags = Flags::with_sizes(docs, postings, vocabulary, seed);
        let (collection, disk) = generate_in_memory(&flags, 1);
        check_index(&flags, &collection, &disk);
        prop_assert_eq!(file_contents(&disk), file_contents(&generate_in_memory(&flags, 3).1));
    }
}

#[test]
fn the_same_seed_gives_the_same_files() {
    let of = |seed, threads| {
        file_contents(&generate_in_memory(&Flags::with_sizes(3000, 100_000, 2000, seed), threads).1)
    };
    assert_eq!(of(7, 1), of(7, 2));
    let (one, other) = (of(7, 1), of(8, 1));
    for kind in ["postings", "norms"] {
        let differ = one.iter().filter(|(name, bytes)| name.ends_with(kind) && other[*name] != **bytes);
        assert_eq!(differ.count(), 1, "{kind}");
    }
}

/// The first lists are split into several jobs.
#[test]
fn long_lists_are_equal_for_any_number_of_threads() {
    let flags = Flags::with_sizes(150_000, 1_500_000, 200, 2);
    let (collection, disk) = generate_in_memory(&flags, 1);
    assert!(collection.documents(1) > 100_000);
    check_index(&flags, &collection, &disk);
    for threads in [2, 5] {
        assert!(file_contents(&disk) == file_contents(&generate_in_memory(&flags, threads).1), "{threads}");
    }
}

/// The postings of one index, fixed forever: a collection is the same on every machine.
#[test]
fn a_collection_is_the_same_on_every_machine() {
    let disk = generate_in_memory(&Flags::with_sizes(5000, 300_000, 3000, 1), 2).1;
    let index = Index::open_on(Arc::new(disk)).unwrap();
    let mut sum = 0u64;
    for (_, documents, frequencies) in lists_by_term(index.segments()[0].field_of_term(0)) {
        for number in documents.iter().chain(&frequencies) {
            sum = (sum.rotate_left(5) ^ u64::from(*number)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        }
    }
    assert_eq!(sum, 9_802_965_731_830_764_754);
}

#[test]
fn frequencies_of_document_numbers_only_are_one_and_take_no_bits() {
    let flags = Flags { ids_only: true, ..Flags::with_sizes(20_000, 1_000_000, 1000, 3) };
    let (collection, disk) = generate_in_memory(&flags, 2);
    check_index(&flags, &collection, &disk);
    let sizes = Manifest::read_newest(&disk).unwrap().unwrap().segments[0].fields[0].lists;
    let index = Index::open_on(Arc::new(disk)).unwrap();
    let lists = lists_by_term(index.segments()[0].field_of_term(0));
    assert!(lists.iter().all(|(_, _, frequencies)| frequencies.iter().all(|frequency| *frequency == 1)));
    assert!(sizes.freqs_bytes * 50 < sizes.docs_bytes, "{sizes:?}");
}

/// Also after the first chunk of 65,536 postings.
#[test]
fn uncompressed_documents_beside_compressed_frequencies_are_aligned() {
    let flags = Flags {
        codec: Codec::Raw,
        freq_codec: Some(Codec::Pfor256),
        ..Flags::with_sizes(150_000, 1_500_000, 200, 2)
    };
    let (collection, disk) = generate_in_memory(&flags, 2);
    assert!(collection.documents(1) > 100_000);
    check_index(&flags, &collection, &disk);
    let compressed = generate_in_memory(&Flags { codec: Codec::Auto, freq_codec: None, ..flags }, 2).1;
    let [index, compressed] = [disk, compressed].map(|disk| Index::open_on(Arc::new(disk)).unwrap());
    let field = index.segments()[0].field_of_term(0);
    assert!(lists_by_term(field) == lists_by_term(compressed.segments()[0].field_of_term(0)));
    let mut blocks = 0;
    let mut stream = field.terms().stream();
    while let Some((_, info)) = stream.next().unwrap() {
        let record = field.record(&info, &FILES, RecordPart::Whole).unwrap();
        let SkipRecord::Blocks(list) = record else { continue };
        for block in 0..list.blocks() {
            assert_eq!(list.range(ListPart::Docs, block).unwrap().start % 4, 0, "block {block}");
            blocks += 1;
        }
    }
    assert!(blocks > 1000);
}

#[test]
fn queries_match_the_document_frequencies() {
    let (collection, disk) = generate_in_memory(&Flags::with_sizes(20_000, 1_000_000, 10_000, 3), 2);
    let index = Index::open_on(Arc::new(disk)).unwrap();
    let searcher = index.searcher();
    for rank in [1, 2, 10, 100, 1000, 9999, 10_000] {
        let query = Query::parse(&collection.term(rank), index.schema()).unwrap();
        let found =
            searcher.search(&query, &SearchOptions { count: true, ..SearchOptions::default() }).unwrap();
        assert_eq!(found.total, u64::from(collection.documents(rank)));
        let hit = &found.hits[0];
        assert_eq!(searcher.id(hit.document).unwrap(), hit.document.to_string());
    }
}

#[test]
fn documents_have_similar_lengths_and_lists_reach_the_end() {
    let (docs, postings) = (40_000, 4_280_000);
    let disk = generate_in_memory(&Flags::with_sizes(docs, postings, 100_000, 5), 2).1;
    let index = Index::open_on(Arc::new(disk)).unwrap();
    let field = index.segments()[0].field_of_term(0);
    let mut lengths = vec![0u32; docs as usize];
    for (_, documents, frequencies) in lists_by_term(field) {
        for (document, frequency) in documents.iter().zip(&frequencies) {
            lengths[*document as usize] += frequency;
        }
        let last = f64::from(*documents.last().unwrap());
        let gap = docs as f64 / documents.len() as f64;
        assert!(documents.len() < 100 || docs as f64 - last < 100.0 * gap, "a list ends at {last}");
    }
    let mean = lengths.iter().map(|&length| f64::from(length)).sum::<f64>() / docs as f64;
    assert!((150.0..190.0).contains(&mean), "{mean}");
    // The length does not depend on the position of the document.
    for chunk in lengths.chunks(1000) {
        let here = chunk.iter().map(|&length| f64::from(length)).sum::<f64>() / 1000.0;
        assert!((here / mean - 1.0).abs() < 0.08, "{here} of {mean}");
    }
    let typical = lengths.iter().filter(|&&length| (f64::from(length) / mean - 1.0).abs() < 0.15).count();
    assert!(typical as f64 > 0.8 * docs as f64, "{typical}");
}

#[test]
fn invalid_sizes_are_rejected() {
    let cases = [
        ((0, 1, 1), "--docs 0"),
        ((u64::from(u32::MAX), 1, 1), "--docs 4294967295: an index has 1 to 4294967294 documents"),
        ((10, 10, 0), "--vocabulary 0: there are 1 to "),
        ((10, 10, 1 << 32), "--vocabulary"),
        ((10, 4, 5), "--postings 4: each of 5 terms"),
        ((10, 36, 5), "at most 35"),
        ((1, 0, 1), "--postings 0"),
        ((2, u64::MAX, 5), "at most 5"),
    ];
    for ((docs, postings, vocabulary), words) in cases {
        let error = Collection::new(&Flags::with_sizes(docs, postings, vocabulary, 1)).err().unwrap();
        assert!(matches!(&error, tierdex::Error::Usage(message) if message.contains(words)), "{error}");
    }
    assert!(Collection::new(&Flags::with_sizes(10, 35, 5, 1)).is_ok());
}

#[test]
fn a_stop_signal_ends_the_generation() {
    let collection = Collection::new(&Flags::with_sizes(50_000, 5_000_000, 1000, 1)).unwrap();
    for raise_at in [1, 2 << 20, 6 << 20] {
        let (disk, stop) = (MemDisk::new(), StopSignal::default());
        let options = WriterOptions { stop: stop.clone(), ..WriterOptions::default() };
        let mut writer =
            IndexWriter::open(Arc::new(disk.clone()), collection.schema(), OpenMode::New, options).unwrap();
        let ended = collection.write(&mut writer, 2, &mut |done| {
            if done >= raise_at {
                stop.raise();
            }
        });
        assert!(matches!(ended, Err(tierdex::Error::Interrupted)));
        drop(writer);
        assert!(disk.list().unwrap().is_empty());
    }
}
