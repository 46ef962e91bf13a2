//! Indexes that are much larger than the memory budget: dictionaries and skip data on disk, and the cache,
//! norms and page checksums in a memory region.

use crate::support::requests::{assert_same_hits, parse_query, write_frequent_terms};
use tierdex::io::{RegionKind, Size};
use tierdex::{Engine, EngineOptions, Index, ReadCosts, SearchRequest, internal::engine::MetaTier};

const QUERIES: [&str; 5] = ["t1", "t0", "rare", "+t2 +t3", "t4 rare"];

fn options(region: RegionKind) -> EngineOptions {
    EngineOptions::new().cache_size(region, Size::Bytes(1 << 20)).read_costs(ReadCosts::of_gap(1)).threads(2)
}

#[test]
fn a_budget_that_the_metadata_exceed_gives_the_same_hits() {
    let disk = write_frequent_terms(1_200_000);
    let [index, resident] = [(); 2].map(|()| Index::open_on(disk.clone()).unwrap());
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let beside = || options(RegionKind::File(dir.path().join("cache")));
    let report = Engine::memory_report(&index, &beside().meta_tier(MetaTier::Disk).dram(1 << 20));
    let budget = report.least().unwrap();
    let engine = Engine::new(&index, &beside().dram(budget)).unwrap();
    assert_eq!(engine.settings().meta_tier, MetaTier::Disk);
    assert!(engine.memory().needed() <= budget);
    let resident = Engine::new(&resident, &options(RegionKind::Dram).meta_tier(MetaTier::Dram)).unwrap();
    // Of the long skip records of frequent terms one hit needs few entries, a thousand hits need all of them.
    for (text, k) in QUERIES.iter().flat_map(|text| [1, 10, 1000].map(|k| (text, k))) {
        let request = || SearchRequest::new(parse_query(&index, text)).k(k);
        let (found, expected) = (engine.search(request()).unwrap(), resident.search(request()).unwrap());
        assert!(!expected.hits.is_empty());
        assert_same_hits(&found.hits, &expected.hits, &format!("{text}, top {k}"));
    }
    assert!(engine.stats().reads > 0);
}

/// Of the parts that are in DRAM, only the skip data that is reserved for a query grows with the documents.
#[test]
fn the_needed_budget_grows_by_half_a_byte_a_document_at_most() {
    const FEW: u32 = 100_000;
    const MANY: u32 = 600_000;
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let needed = |documents| {
        let index = Index::open_on(write_frequent_terms(documents)).unwrap();
        let options = options(RegionKind::File(dir.path().join("cache"))).meta_tier(MetaTier::Disk);
        Engine::memory_report(&index, &options.growth(0).dram(1 << 30)).needed()
    };
    let (few, many) = (needed(FEW), needed(MANY));
    assert!(few < many, "{few} bytes for {FEW} documents, {many} for {MANY}");
    assert!(many - few <= u64::from(MANY - FEW) / 2 + 1024, "{few} bytes for {FEW}, {many} for {MANY}");
}
