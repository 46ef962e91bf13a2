//! Simulates commits of any sizes, with deletes, and checks what the policy promises.

use super::*;
use proptest::prelude::*;

/// Bytes of a document in the simulation.
const DOCUMENT_BYTES: u64 = 700;

fn of_documents(documents: u32) -> SegmentSize {
    SegmentSize { bytes: DOCUMENT_BYTES * u64::from(documents), documents, deleted: 0 }
}

/// An index that is only sizes.
#[derive(Default)]
struct SimulatedIndex {
    segments: Vec<SegmentSize>,
    bytes_added: u64,
    bytes_merged: u64,
    segments_max: usize,
}

impl SimulatedIndex {
    fn commit(&mut self, policy: MergePolicy, documents: u32) {
        let added = of_documents(documents);
        self.bytes_added += added.bytes;
        self.segments.push(added);
        let mut kept = Vec::new();
        let mut copied = 0;
        for range in policy.choose_merges(&self.segments, u64::MAX) {
            assert!(range.start >= copied, "the ranges are in order and do not overlap");
            kept.extend_from_slice(&self.segments[copied..range.start]);
            let live = self.segments[range.clone()].iter().map(|one| one.documents - one.deleted).sum();
            kept.push(of_documents(live));
            self.bytes_merged += of_documents(live).bytes;
            copied = range.end;
        }
        kept.extend_from_slice(&self.segments[copied..]);
        self.segments = kept;
        self.segments_max = self.segments_max.max(self.segments.len());
        assert!(policy.choose_merges(&self.segments, u64::MAX).is_empty(), "one pass is enough");
    }

    fn write_amplification(&self) -> f64 {
        (self.bytes_added + self.bytes_merged) as f64 / self.bytes_added as f64
    }
}

/// The number of documents of each commit, ten million in all, is drawn between two bounds, evenly in its
/// logarithm; the bounds may be equal.
fn commits() -> impl Strategy<Value = (u32, u32, u64)> {
    (200u32..2_000_000, 200u32..2_000_000, any::<u64>()).prop_map(|(a, b, seed)| (a.min(b), a.max(b), seed))
}

fn next_random(state: &mut u64) -> f64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    (*state >> 11) as f64 / (1u64 << 53) as f64
}

fn simulate(least: u32, most: u32, seed: u64) -> SimulatedIndex {
    let (mut index, mut state, mut left) = (SimulatedIndex::default(), seed, 10_000_000);
    while left > 0 {
        let spread = f64::from(most) / f64::from(least);
        let documents = (f64::from(least) * spread.powf(next_random(&mut state))) as u32;
        let documents = documents.clamp(1, left);
        index.commit(MergePolicy::default(), documents);
        left -= documents;
    }
    index
}

proptest! {
    #[test]
    fn ten_million_documents_have_at_most_24_segments((least, most, seed) in commits()) {
        let index = simulate(least, most, seed);
        prop_assert!(index.segments_max <= 24, "{} segments", index.segments_max);
        prop_assert!(index.write_amplification() < 12.0, "{}", index.write_amplification());
    }

    #[test]
    fn ranges_are_valid_and_within_the_cap(
        sizes in prop::collection::vec((0u64..1 << 34, 1u32..1_000_000, 0u32..100), 0..40), cap in 0u64..1 << 36,
    ) {
        let of = |&(bytes, documents, percent): &(u64, u32, u32)| SegmentSize {
            bytes, documents, deleted: (u64::from(documents) * u64::from(percent) / 100) as u32,
        };
        let sizes: Vec<SegmentSize> = sizes.iter().map(of).collect();
        let policy = MergePolicy::default();
        let mut end = 0;
        let mut is_chosen = vec![false; sizes.len()];
        for range in policy.choose_merges(&sizes, cap) {
            prop_assert!(range.start >= end && range.end > range.start && range.end <= sizes.len());
            end = range.end;
            let live: u64 = sizes[range.clone()].iter().map(SegmentSize::live_bytes).sum();
            prop_assert!(live <= cap);
            is_chosen[range].fill(true);
        }
        for (size, is_chosen) in sizes.iter().zip(is_chosen) {
            let is_mostly_live = 5 * u64::from(size.deleted) < u64::from(size.documents);
            prop_assert!(is_chosen || is_mostly_live || size.live_bytes() > cap, "{size:?} is never rewritten");
        }
    }
}

#[test]
fn the_leftmost_five_of_a_level_are_merged() {
    let policy = MergePolicy { floor_bytes: DOCUMENT_BYTES, ..MergePolicy::default() };
    let choose = |documents: &[u32]| {
        let sizes: Vec<SegmentSize> = documents.iter().map(|documents| of_documents(*documents)).collect();
        let merges = policy.choose_merges(&sizes, u64::MAX).into_iter();
        merges.map(|range| (range.start, range.end)).collect::<Vec<_>>()
    };
    assert_eq!(choose(&[1, 1, 1, 1]), []);
    assert_eq!(choose(&[1, 1, 1, 1, 1]), [(0, 5)]);
    assert_eq!(choose(&[1, 1, 1, 1, 1, 1]), [(0, 5)]);
    // A large segment is not merged with small ones.
    assert_eq!(choose(&[125, 1, 1, 1, 1]), []);
    assert_eq!(choose(&[125, 1, 1, 1, 1, 1]), [(1, 6)]);
    // Small segments between large ones are merged with them.
    assert_eq!(choose(&[125, 1, 1, 1, 125]), [(0, 5)]);
    // A merge that causes others is one merge of all.
    assert_eq!(choose(&[25, 25, 25, 25, 5, 5, 5, 5, 1, 1, 1, 1, 1]), [(0, 13)]);
}

#[test]
fn a_segment_with_a_fifth_deleted_is_written_again() {
    let policy = MergePolicy::default();
    let with = |deleted| SegmentSize { bytes: 1 << 40, documents: 1000, deleted };
    assert_eq!(policy.choose_merges(&[with(0), with(199), with(200)], u64::MAX), vec![2..3]);
    assert!(policy.choose_merges(&[with(200)], 1 << 30).is_empty(), "no space");
    assert!(policy.choose_merges(&[SegmentSize { documents: 0, ..with(0) }], u64::MAX).is_empty());
}

/// Most segments: as many of each level as are not merged, each of the smallest size, the largest first.
#[test]
fn the_most_segments_of_ten_million_documents_are_24() {
    let policy = MergePolicy::default();
    for document_bytes in [500, 700, 1000, 1500] {
        let (mut sizes, mut left) = (Vec::new(), 10_000_000 * document_bytes);
        for level in 0..10 {
            let smallest = if level == 0 { 1 } else { policy.floor_bytes * 5_u64.pow(level - 1) };
            let count = (left / smallest).min(4);
            sizes.extend((0..count).map(|_| SegmentSize { bytes: smallest, documents: 1, deleted: 0 }));
            left -= count * smallest;
        }
        sizes.reverse();
        assert!(policy.choose_merges(&sizes, u64::MAX).is_empty());
        assert!((20..=24).contains(&sizes.len()), "{} segments", sizes.len());
    }
    let index = simulate(200, 200, 1);
    assert!(index.segments_max <= 24 && index.write_amplification() < 8.0, "{}", index.write_amplification());
}

/// The write amplification of commits of one size, for docs/decisions.
#[test]
fn write_amplification_grows_with_the_logarithm() {
    let of = |documents| simulate(documents, documents, 1).write_amplification();
    let (rare, often) = (of(100_000), of(6_000));
    println!("commits of 100,000 documents: {rare:.2}; of 6,000: {often:.2}");
    assert!(rare < often && rare < 5.0 && often < 8.0, "{rare} {often}");
}
