//! If metadata is in another memory region, an engine takes at most 64 KiB of DRAM for a segment, however
//! large the segment is.

mod support;

use cap::Cap;
use std::{alloc::System, sync::Arc};
use support::requests::{engine_options, parse_query};
use support::{build_in_memory, corpus::TestDocument};
use tierdex::io::{MemDisk, RegionKind, Size};
use tierdex::schema::{Field, Schema};
use tierdex::{Engine, Index, SearchRequest, internal::engine::MetaTier};

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// Every document has `terms` terms of its own, and a stored text of them.
fn write_segment(documents: usize, terms: usize) -> Arc<MemDisk> {
    let schema = Schema::of(vec![Field::new("text", &["text"])]);
    let term = |number: usize| format!("{:08x}t{number}", number.wrapping_mul(2654435761) as u32);
    let doc = |number: usize| {
        let own = (terms * number..terms * (number + 1)).map(term).collect::<Vec<_>>().join(" ");
        TestDocument::new(format!("document {number}"), "", format!("all {own}"))
    };
    let docs: Vec<TestDocument> = (0..documents).map(doc).collect();
    build_in_memory(&schema, &docs, &[])
}

/// Bytes that are allocated for an engine over the index, and bytes of its metadata.
fn engine_bytes(disk: Arc<MemDisk>, tier: MetaTier, region: &RegionKind) -> (usize, u64) {
    let before = ALLOCATOR.allocated();
    let index = Index::open_on(disk).unwrap();
    let options =
        engine_options(1000, 1).meta_tier(tier).cache_size(region.clone(), Size::Bytes(4096 * 1000));
    let engine = Engine::new(&index, &options).unwrap();
    let allocated = ALLOCATOR.allocated() - before;
    let request = SearchRequest::new(parse_query(&index, "all 00000000t0"));
    assert_eq!(engine.submit(request).unwrap().wait().unwrap().hits.len(), 10);
    let in_region = engine.memory().rows.iter().filter(|row| row.region.is_some() && row.what != "cache");
    (allocated, in_region.map(|row| row.bytes).sum())
}

#[test]
fn a_large_segment_keeps_64_kib_in_dram_if_metadata_is_in_a_region() {
    let path = format!("/dev/shm/tierdex-resident-{}", std::process::id());
    let region = RegionKind::File(path.into());
    let disks = [write_segment(100, 2), write_segment(40_000, 20)];
    for tier in [MetaTier::Region(region.clone()), MetaTier::Index(region.clone()), MetaTier::Disk] {
        let measure = |disk: &Arc<MemDisk>| engine_bytes(disk.clone(), tier.clone(), &region);
        let [(small, _), (large, in_region)] = [measure(&disks[0]), measure(&disks[1])];
        // More than the difference that is allowed below, if it were in DRAM.
        assert!(in_region > 100_000, "{in_region}");
        assert!(
            large.saturating_sub(small) <= 64 << 10,
            "{tier:?}: {small} and {large} bytes, {in_region} in the region"
        );
    }
}
