//! If metadata is in another memory region, an engine takes at most 64 KiB of DRAM for a segment, however
//! large the segment is, and what it reports for deleted documents.

mod support;

use cap::Cap;
use std::{alloc::System, sync::Arc};
use support::corpus::TestDocument;
use support::deleted::{delete, updatable_writer};
use support::requests::{engine_options, parse_query};
use tierdex::io::{MemDisk, RegionKind, Size};
use tierdex::schema::{Field, Schema};
use tierdex::{Engine, Index, Merge, OpenMode, SearchRequest, internal::engine::MetaTier};

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// Every document has `terms` terms of its own, and a stored text of them. Each that `is_deleted` is deleted
/// by the second commit.
fn write_segment(documents: usize, terms: usize, is_deleted: impl Fn(&usize) -> bool) -> Arc<MemDisk> {
    let schema = Schema::of(vec![Field::new("text", &["text"])]);
    let term = |number: usize| format!("{:08x}t{number}", number.wrapping_mul(2654435761) as u32);
    let doc = |number: usize| {
        let own = (terms * number..terms * (number + 1)).map(term).collect::<Vec<_>>().join(" ");
        TestDocument::new(format!("document {number}"), "", format!("all {own}"))
    };
    let docs: Vec<TestDocument> = (0..documents).map(doc).collect();
    let disk = Arc::new(MemDisk::new());
    let mut writer = updatable_writer(&(disk.clone() as _), &schema, OpenMode::New).unwrap();
    support::add_documents(&mut writer, &docs);
    writer.commit(Merge::None).unwrap();
    delete(&mut writer, &docs, (0..documents).filter(is_deleted));
    writer.commit(Merge::None).unwrap();
    disk
}

/// Bytes that are allocated for an engine over the index, of its metadata in the region, and of its deleted
/// documents.
fn engine_bytes(disk: &Arc<MemDisk>, tier: &MetaTier, region: &RegionKind) -> (usize, u64, u64) {
    let before = ALLOCATOR.allocated();
    let index = Index::open_on(disk.clone()).unwrap();
    let options =
        engine_options(1000, 1).meta_tier(tier.clone()).cache_size(region.clone(), Size::Bytes(4096 * 1000));
    let engine = Engine::new(&index, &options).unwrap();
    let allocated = ALLOCATOR.allocated() - before;
    let request = SearchRequest::new(parse_query(&index, "all 00000000t0"));
    assert_eq!(engine.submit(request).unwrap().wait().unwrap().hits.len(), 10);
    let report = engine.memory();
    let in_region = report.rows.iter().filter(|row| row.region.is_some() && row.what != "cache");
    let deletes = report.rows.iter().find(|row| row.what == "deleted documents and their statistics");
    (allocated, in_region.map(|row| row.bytes).sum(), deletes.map_or(0, |row| row.bytes))
}

/// One test, because others would change the allocated bytes.
#[test]
fn engines_take_the_memory_that_is_counted() {
    a_large_segment_keeps_64_kib_in_dram_if_metadata_is_in_a_region();
    deleted_documents_take_what_is_reported();
}

fn region() -> RegionKind {
    RegionKind::File(format!("/dev/shm/tierdex-resident-{}", std::process::id()).into())
}

fn tiers() -> [MetaTier; 3] {
    [MetaTier::Region(region()), MetaTier::Index(region()), MetaTier::Disk]
}

fn a_large_segment_keeps_64_kib_in_dram_if_metadata_is_in_a_region() {
    let disks = [write_segment(100, 2, |_| false), write_segment(40_000, 20, |_| false)];
    for tier in tiers() {
        let [(small, ..), (large, in_region, _)] =
            disks.each_ref().map(|disk| engine_bytes(disk, &tier, &region()));
        // More than the difference that is allowed below, if it were in DRAM.
        assert!(in_region > 100_000, "{in_region}");
        assert!(
            large.saturating_sub(small) <= 64 << 10,
            "{tier:?}: {small} and {large} bytes, {in_region} in the region"
        );
    }
}

fn deleted_documents_take_what_is_reported() {
    let whole = write_segment(20_000, 20, |_| false);
    for percent in [10, 90] {
        let deleted = write_segment(20_000, 20, |number| number % 100 >= 100 - percent);
        for tier in tiers() {
            let [(without, _, none), (with, _, reported)] =
                [&whole, &deleted].map(|disk| engine_bytes(disk, &tier, &region()));
            let allocated = with.saturating_sub(without) as u64;
            let found = format!("{tier:?}, {percent}%: {allocated} bytes, {reported} reported");
            assert!(none == 0 && reported > 100_000, "{found}");
            assert!(allocated <= reported + (16 << 10) && 100 * reported <= 115 * allocated, "{found}");
        }
    }
}
