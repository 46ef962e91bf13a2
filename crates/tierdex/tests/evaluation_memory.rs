//! Compares the memory that an evaluation reserves with the memory that it allocates.

mod support;

use cap::Cap;
use std::{alloc::System, sync::Arc, time::Instant};
use support::corpus::{SchemaOptions, TestDocument, random_documents_in_bursts};
use support::deleted::{delete, updatable_writer};
use support::lists::{Postings, write_lists};
use support::requests::{engine_options, parse_query};
use support::{grown::GrownCase, index_in_memory};
use tierdex::io::MemDisk;
use tierdex::schema::{Field, Schema, Stored};
use tierdex::{Engine, Index, Merge, OpenMode, SearchRequest};

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// One test, because the allocator also counts the memory of other tests and of the threads that run them.
#[test]
fn memory_of_evaluations() {
    evaluations_reserve_what_they_allocate();
    evaluations_with_deleted_documents_reserve_what_they_allocate();
    ids_are_read_within_the_reserved_memory();
    a_prefix_that_is_asked_again_reserves_what_it_allocates();
    kept_prefixes_stay_within_their_bound();
}

const DOCUMENTS: u32 = 300_000;

/// Terms `h0` to `h5` in about half of the documents, and `m0` to `m1023` in a hundredth.
fn index_lists() -> Index {
    let contains = |document: &u32, number: u32, of: u32| {
        (document.wrapping_mul(2_654_435_761).wrapping_add(number * 97)).wrapping_mul(2 * number + 40_503)
            >> 8
            < (1 << 24) / of
    };
    let list = |number: u32, of: u32| -> Postings {
        let documents: Vec<u32> = (0..DOCUMENTS).filter(|document| contains(document, number, of)).collect();
        let frequencies = documents.iter().map(|document| 1 + document % 5 * (document % 11 / 10)).collect();
        (documents, frequencies)
    };
    let terms = (0..6).map(|number| (format!("h{number}"), list(number, 2)));
    let terms = terms.chain((0..1024).map(|number| (format!("m{number:04}"), list(number + 6, 100))));
    Index::open_on(write_lists(DOCUMENTS, &terms.collect::<Vec<_>>())).unwrap()
}

/// A term in all documents, whose skip record is so long that only the entries that are needed are read.
fn index_long_list() -> Index {
    const DOCUMENTS: u32 = 1_200_000;
    let frequencies = (0..DOCUMENTS).map(|document| 1 + document % 5 * (document % 11 / 10)).collect();
    let list = ("all".to_string(), ((0..DOCUMENTS).collect(), frequencies));
    Index::open_on(write_lists(DOCUMENTS, &[list])).unwrap()
}

/// Documents of words.
fn texts() -> Vec<TestDocument> {
    let word = |document: usize, at: usize| format!("w{}", (document * 31 + at * at * 7) % (3 + at));
    let text = |document| (0..40).map(|at| word(document, at)).collect::<Vec<_>>().join(" ");
    TestDocument::of_texts((0..20_000).map(text))
}

/// The schema of these documents, with positions.
fn text_schema(stored: Stored) -> Schema {
    let field = Field { positions: true, ..Field::new("text", &["text"]) };
    Schema { stored, ..Schema::of(vec![field]) }
}

fn index_texts() -> Index {
    index_in_memory(&text_schema(Stored::Nothing), &texts(), &[])
}

/// The same documents, of which some are deleted; their terms are known if they are stored.
fn index_with_deletes(percent: usize, stored: Stored) -> Index {
    let (docs, disk) = (texts(), Arc::new(MemDisk::new()));
    let mut writer = updatable_writer(&(disk.clone() as _), &text_schema(stored), OpenMode::New).unwrap();
    support::add_documents(&mut writer, &docs);
    writer.commit(Merge::None).unwrap();
    delete(&mut writer, &docs, (0..docs.len()).filter(|number| number * 7 % 100 < percent));
    writer.commit(Merge::None).unwrap();
    Index::open_on(disk).unwrap()
}

/// Half of the documents are in segments without the field `title`.
fn index_with_added_field() -> Index {
    let case = GrownCase::new(SchemaOptions::default(), random_documents_in_bursts(1, 12_000), 6000);
    Index::open_on(Arc::new(case.build_in_steps(Merge::None))).unwrap()
}

/// Bytes that an engine reserves for a request and its evaluation, and bytes that it allocates, if the
/// request was answered this number of times `before`.
fn measure_reserved_and_allocated(index: &Index, text: &str, k: usize, before: usize) -> (u64, u64) {
    measure_request(index, SearchRequest::new(parse_query(index, text)).k(k).ids(false), before)
}

fn measure_request(index: &Index, request: SearchRequest, before: usize) -> (u64, u64) {
    let engine = Engine::new(index, &engine_options(20_000, 1)).unwrap();
    // Once the search thread has answered a request, it has allocated what it keeps.
    let expired = request.clone().deadline(Instant::now());
    assert!(matches!(engine.search(expired), Err(tierdex::Error::Expired { .. })));
    (0..before).for_each(|_| drop(engine.search(request.clone()).unwrap()));
    // Fills memory up to its maximum so far, so that the maximum then measures the request.
    let ballast: Vec<u8> = Vec::with_capacity(ALLOCATOR.max_allocated() - ALLOCATOR.allocated());
    let before = ALLOCATOR.allocated();
    let hits = engine.search(request).unwrap();
    let allocated = (ALLOCATOR.max_allocated() - before) as u64;
    drop((hits, ballast));
    let reserved = engine.metrics().reserved_max;
    let reserved = reserved.iter().filter(|row| !row.what.contains("metadata"));
    (reserved.map(|row| row.bytes).sum(), allocated)
}

/// A reservation is never too small. It is at most 15% too large, or more for queries whose memory depends on
/// the data; each case has its maximum in percent.
fn evaluations_reserve_what_they_allocate() {
    let (lists, long, texts) = (index_lists(), index_long_list(), index_texts());
    let many = |mark: &str| (0..1024).map(|n| format!("{mark}m{n:04}")).collect::<Vec<_>>().join(" ");
    let texts_of = |index, cases: &[(&str, usize, u64)]| {
        let case = |(text, k, percent): &(&str, usize, u64)| (index, text.to_string(), *k, *percent);
        cases.iter().map(case).collect::<Vec<_>>()
    };
    let mut cases = texts_of(
        &lists,
        &[
            ("h0 h1", 10, 115),
            ("h0 h1", 100_000, 115),
            ("h0 h1 h2 m0003 m0004", 10, 115),
            ("m0003 m0004", 10, 115),
            ("+h0 +h1", 10, 115),
            ("+h0 +h1 +h2 +m0003 +m0004", 10, 115),
            ("+h0 h1 m0001", 10, 115),
            ("(h0 h1 h2)~2", 10, 115),
            ("+(h0 h1) +(h2 h3)", 10, 115),
            ("h0 h1 h2", 0, 115),
            ("+h0 +h1 +h2", 0, 115),
            // Fewer pages are pinned than may be.
            ("+h0 -h1", 10, 120),
            ("+h0 +m0001 +m0002", 0, 120),
            ("h0 m0001", 0, 120),
            // With many hits no candidate is looked up, and no posting is selected.
            ("h0", 1000, 120),
            ("h0 h1", 1000, 120),
            // Few blocks are read, seldom with the rest of their pages, and few documents are candidates.
            ("m0007", 10, 128),
            ("h0", 10, 138),
            // Documents that pass only the filter are offered if too few match the optional term.
            ("#h0 h1", 10, 121),
            ("#m0001 h1", 10, 137),
            // Candidates are looked up in the group only if they are few, with batches.
            ("(h0 h1)~2 h2", 10, 126),
            // Each level of groups has buffers for any data, which are seldom in use together.
            ("+(h0 h1) +((h0 h1 h2) m0003 m0004)~2", 10, 190),
            ("+(h0 h1) +((h0 h2)~2 h1 m0004)~2", 0, 225),
        ],
    );
    cases.extend([(&lists, many(""), 10, 115), (&lists, many("+"), 10, 115)]);
    cases.extend(texts_of(&long, &[("all", 1, 115), ("all", 10, 115)]));
    cases.extend(texts_of(
        &texts,
        &[
            ("w1~1", 10, 115),
            ("w1*", 10, 115),
            // The lists of the prefix are closed before others are read.
            ("+w1* +w2", 10, 132),
            // Positions of a block are read up to a length that those of few blocks have.
            ("\"w1 w2\"", 10, 147),
            ("\"w1 w2\"~2", 10, 146),
            ("\"w1 w2\"", 0, 152),
            ("+w3 +\"w1 w2\"", 10, 129),
        ],
    ));
    let grown = index_with_added_field();
    cases.extend(texts_of(
        &grown,
        &[("title:w0 w2", 10, 190), ("title:w*", 10, 190), ("+title:\"w0 w2\" w3", 10, 300)],
    ));
    check_reservations(cases);
}

/// Deleted documents take nothing of a reservation, whether few or most are deleted. If their terms are not
/// known, matches are counted by evaluation.
fn evaluations_with_deleted_documents_reserve_what_they_allocate() {
    for (percent, stored) in [(10, Stored::Members), (90, Stored::Members), (90, Stored::Nothing)] {
        let index = index_with_deletes(percent, stored);
        assert_eq!(index.documents() as usize, 200 * (100 - percent));
        let mut cases = vec![
            ("w1", 10, 130),
            ("w1", 1000, 125),
            ("w1 w2", 10, 115),
            ("+w1 +w2", 10, 115),
            // What is not in use at the same time, as in the cases without deleted documents.
            ("w1 w2", 0, 140),
            ("+w1 -w2", 0, 145),
            ("*:*", 10, 125),
            ("*:* w1", 0, 140),
            ("w1*", 10, 120),
            ("w1~1", 10, 120),
            ("\"w1 w2\"", 10, 135),
        ];
        if stored == Stored::Nothing {
            cases.extend([("w1", 0, 130), ("+w1 +w2", 0, 120)]);
        }
        let cases = cases.into_iter().map(|(text, k, percent)| (&index, text.to_string(), k, percent));
        check_reservations(cases.collect());
    }
}

/// Compares what is reserved for queries with what is allocated, given the text, the number of hits, and the
/// largest reservation in percent of each.
fn check_reservations(cases: Vec<(&Index, String, usize, u64)>) {
    let mut wrong = Vec::new();
    for (index, text, k, percent_max) in cases {
        let (reserved, allocated) = measure_reserved_and_allocated(index, &text, k, 0);
        let percent = 100 * reserved / allocated;
        let text = &text[..text.len().min(30)];
        if !(100..=percent_max).contains(&percent) {
            let found = format!("{text}, k {k}: {reserved} bytes are reserved and {allocated} allocated");
            wrong.push(format!("{found}, {percent}% and not 100% to {percent_max}%"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// External ids are read at the end of an evaluation, in what it and its result have reserved.
fn ids_are_read_within_the_reserved_memory() {
    let index = index_texts();
    for k in [10, 1000, 20_000] {
        let request = |ids| SearchRequest::new(parse_query(&index, "w1")).k(k).ids(ids);
        let (reserved, allocated) = measure_request(&index, request(true), 0);
        let (reserved_without, _) = measure_request(&index, request(false), 0);
        let found = format!("k {k}: {reserved} bytes are reserved and {allocated} allocated");
        assert!(reserved >= allocated && reserved > reserved_without, "{found}");
    }
}

/// The sets of prefixes that are kept for later queries are part of an evaluation that fills them.
fn a_prefix_that_is_asked_again_reserves_what_it_allocates() {
    let (lists, texts) = (index_lists(), index_texts());
    for (index, text) in [(&lists, "m*"), (&lists, "+h0 #m01*"), (&texts, "w1*"), (&texts, "+w1* +w2")] {
        for before in 0..3 {
            let (reserved, allocated) = measure_reserved_and_allocated(index, text, 10, before);
            let found = format!("{text} after {before}: {reserved} reserved, {allocated} allocated");
            assert!(reserved >= allocated, "{found}");
        }
    }
}

/// Kept prefixes take the memory that the memory report of the engine has for them, and no more.
fn kept_prefixes_stay_within_their_bound() {
    const SLACK_BYTES: usize = 64 << 10;
    let index = index_lists();
    let engine = Engine::new(&index, &engine_options(200, 1).dram(64 << 20)).unwrap();
    let report = engine.memory().rows.iter().find(|row| row.what == "prefixes of recent queries");
    let bytes = report.unwrap().bytes as usize;
    let search = |text: &str| {
        let request = SearchRequest::new(parse_query(&index, text)).ids(false);
        engine.search(request).unwrap().hits.len()
    };
    // The search thread keeps the buffers of windows.
    search("*:* h0");
    let before = ALLOCATOR.allocated();
    let mut largest = 0;
    for number in (0..100).flat_map(|number| [number; 3]) {
        assert_eq!(search(&format!("m{number:03}*")), 10);
        largest = largest.max(ALLOCATOR.allocated().saturating_sub(before));
    }
    assert!(largest <= bytes + SLACK_BYTES, "{largest} bytes are allocated, of {bytes}");
    assert!(2 * largest > bytes, "{largest} bytes are allocated, of {bytes}");
}
