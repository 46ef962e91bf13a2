//! An index, options and requests for tests of the engine.

use super::lists::write_lists;
use std::sync::Arc;
use tierdex::io::{MemDisk, ReadKind, RegionKind, Size};
use tierdex::{
    Engine, EngineOptions, Hits, Index, Query, SearchHit, SearchOptions, SearchRequest,
    internal::engine::MetaTier,
};

/// Options of an engine with a cache of `pages` pages, reads by threads, and dictionaries and skip records on
/// disk.
pub fn engine_options(pages: u64, threads: usize) -> EngineOptions {
    EngineOptions::new()
        .cache_size(RegionKind::Dram, Size::Bytes(4096 * pages))
        .reads(ReadKind::Pread, 4)
        .read_costs(tierdex::ReadCosts::of_gap(pages % 3))
        .meta_tier(MetaTier::Disk)
        .threads(threads)
}

/// The document and the bits of the score of each hit.
pub fn documents_and_score_bits(hits: &[SearchHit]) -> Vec<(u32, u32)> {
    hits.iter().map(|hit| (hit.document, hit.score.to_bits())).collect()
}

/// Checks that two results have the same documents and scores.
#[track_caller]
pub fn assert_same_hits(found: &[SearchHit], expected: &[SearchHit], what: &str) {
    assert_eq!(documents_and_score_bits(found), documents_and_score_bits(expected), "{what}");
}

/// Runs queries as a batch; calls `answer` with their results in order.
pub fn run_queries(
    engine: &Engine,
    queries: &[Query],
    search: &SearchOptions,
    mut answer: impl FnMut(usize, tierdex::Result<Hits>),
) {
    let mut source = queries.iter();
    let request = |query: &Query| SearchRequest::new(query.clone()).options(*search);
    let next = || Ok::<_, ()>(source.next().map(request));
    let run = engine.run_ordered(next, |number, found| {
        answer(number, found);
        Ok(())
    });
    assert!(run.is_ok());
}

/// Parses a query.
pub fn parse_query(index: &Index, text: &str) -> Query {
    Query::parse(text, index.schema()).unwrap()
}

/// Writes an index of six terms, each in about half of the documents, and a rare term.
pub fn write_frequent_terms(documents: u32) -> Arc<MemDisk> {
    let list = |number: u32| {
        let holds = |document: &u32| document.wrapping_mul(2654435761 + 2 * number) >> 31 == 0;
        let documents: Vec<u32> = (0..documents).filter(holds).collect();
        let frequencies = documents.iter().map(|document| 1 + document % (number + 2)).collect();
        (format!("t{number}"), (documents, frequencies))
    };
    let rare = ("rare".to_string(), (vec![7, 70, 700], vec![1; 3]));
    write_lists(documents, &[rare].into_iter().chain((0..6).map(list)).collect::<Vec<_>>())
}

/// A request that scores and counts every document, which takes long.
pub fn exhaustive_request(index: &Index) -> SearchRequest {
    let options = SearchOptions { exhaustive: true, count: true, k: 10, ..SearchOptions::default() };
    SearchRequest::new(parse_query(index, "t0 t1 t2 t3 t4 t5")).options(options)
}
