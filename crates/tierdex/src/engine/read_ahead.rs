//! How far evaluations read ahead, by how their device reads.

use tierdex_cache::{ReadCosts, SEEKING_READ_PAGES_MAX};

/// Limits of the evaluations of a search thread.
#[derive(Clone, Copy)]
pub(super) struct ReadAhead {
    /// Pages that an evaluation prefetches before its first read; the number doubles with each further
    /// prefetch. Before the first blocks are evaluated, little is known about which blocks will be skipped.
    pub(super) first_pages: usize,
    /// Pages that an evaluation pins, and so reads concurrently, at most.
    pub(super) pinned_pages_max: usize,
    /// Concurrent evaluations, at most.
    pub(super) evaluations_max: usize,
    /// Further evaluations that share the cache: an interactive one, and that of a caller. Of many
    /// evaluations none needs its whole share.
    pub(super) spare_evaluations: usize,
}

/// With 64 pinned pages `AND HH` and `OR HH` in 50 MB, 4.1 million documents, have 0.87 and 0.92 times the
/// queries a second; with 256 pages 1.01 and 1.04 times, for 1.04 times the bytes.
const USUAL: ReadAhead =
    ReadAhead { first_pages: 32, pinned_pages_max: 128, evaluations_max: usize::MAX, spare_evaluations: 0 };

/// A device that seeks reads many pages in the time of a seek. With the usual limits, and reads of up to 64
/// pages, one frequent term and two required ones had 0.65 and 0.60 times the queries a second (emulated hard
/// disk, cache of 5%). With more evaluations the median latency is 3 times as long at equal speed.
const SEEKING: ReadAhead = ReadAhead {
    first_pages: SEEKING_READ_PAGES_MAX,
    pinned_pages_max: SEEKING_READ_PAGES_MAX,
    evaluations_max: 2,
    spare_evaluations: 2,
};

impl ReadAhead {
    /// The limits for a device with these costs of reads.
    pub(super) fn of(costs: &ReadCosts) -> ReadAhead {
        if costs.is_seeking() { SEEKING } else { USUAL }
    }
}
