//! Indexes, options and requests for tests of the engine.

use std::sync::Arc;
use tierdex::io::{MemDisk, ReadKind, RegionKind, Size};
use tierdex::schema::{Field, Schema, Source};
use tierdex::{
    EngineOptions, Index, IndexWriter, Merge, OpenMode, Query, SearchHit, SearchOptions, SearchRequest,
    WriterOptions, internal::engine::MetaTier, internal::index::ListsBuilder,
};

/// Options with a cache of `pages` pages, without a read queue; dictionaries and skip data on disk.
pub fn options(pages: u64, threads: usize) -> EngineOptions {
    EngineOptions::new()
        .cache_size(RegionKind::Dram, Size::Bytes(4096 * pages))
        .reads(ReadKind::Pread, 4)
        .gap_pages(pages % 3)
        .meta_tier(MetaTier::Disk)
        .threads(threads)
}

/// Documents and score bits.
pub fn bits(hits: &[SearchHit]) -> Vec<(u32, u32)> {
    hits.iter().map(|hit| (hit.document, hit.score.to_bits())).collect()
}

/// Parses a query.
pub fn parse(index: &Index, text: &str) -> Query {
    Query::parse(text, index.schema()).unwrap()
}

/// Six terms in about every second document, and a rare one.
pub fn large(documents: u32) -> Arc<MemDisk> {
    let disk = Arc::new(MemDisk::new());
    let field = Field { positions: false, ..Field::new("text", Source::Text) };
    let schema = Schema { fields: vec![field], stored: false };
    let mut writer =
        IndexWriter::open(disk.clone(), schema, OpenMode::New, WriterOptions::default()).unwrap();
    let list = |number: u32| -> (Vec<u32>, Vec<u32>) {
        let holds = |document: &u32| document.wrapping_mul(2654435761 + 2 * number) >> 31 == 0;
        let documents: Vec<u32> = (0..documents).filter(holds).collect();
        let frequencies = documents.iter().map(|document| 1 + document % (number + 2)).collect();
        (documents, frequencies)
    };
    let mut lists: Vec<_> = (0..6).map(list).collect();
    lists.insert(0, (vec![7, 70, 700], vec![1; 3]));
    let mut lengths = vec![0; documents as usize];
    for (documents, frequencies) in &lists {
        documents.iter().zip(frequencies).for_each(|(document, times)| lengths[*document as usize] += times);
    }
    let id = |document: u32, id: &mut String| id.push_str(&document.to_string());
    let give = |builder: &mut ListsBuilder<'_, '_>| {
        let terms = ["rare", "t0", "t1", "t2", "t3", "t4", "t5"];
        lists.iter().zip(terms).try_for_each(|((documents, frequencies), term)| {
            builder.term(term, |list| list.extend(documents, frequencies))
        })
    };
    writer.import(lengths.clone(), id, give).unwrap();
    writer.commit(Merge::Keep).unwrap();
    disk
}

/// Scores and counts every document.
pub fn heavy(index: &Index) -> SearchRequest {
    let options = SearchOptions { exhaustive: true, count: true, k: 10, ..SearchOptions::default() };
    SearchRequest::new(parse(index, "t0 t1 t2 t3 t4 t5")).options(options)
}
