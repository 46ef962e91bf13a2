//! The result of an intersection, and its read statistics.

use super::list::PagedList;
use std::ops::AddAssign;

/// The ids that are in all lists, and the reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IntersectionResult {
    /// The ids, in increasing order.
    pub ids: Vec<u32>,
    /// Read statistics.
    pub reads: ReadStats,
}

/// Read statistics of an intersection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadStats {
    /// Pages read from disk. A page that two threads read counts twice; pages read because they are between
    /// two others count too.
    pub pages: u64,
    /// Bytes of `pages`.
    pub bytes: u64,
    /// Number of read operations.
    pub reads: u64,
    /// Number of times that a page was used that its list keeps in memory.
    pub resident: u64,
    /// Ids that passed a filter and were not in the page.
    pub false_positives: u64,
    /// Pages of the lists that were neither read nor accessed in memory.
    pub skipped: u64,
}

impl ReadStats {
    /// Counts a read of `bytes` bytes, a multiple of the page size.
    pub(super) fn count_read(&mut self, bytes: usize) {
        self.reads += 1;
        self.bytes += bytes as u64;
        self.pages += (bytes / super::page::PAGE_BYTES) as u64;
    }
}

impl AddAssign for ReadStats {
    fn add_assign(&mut self, other: ReadStats) {
        self.pages += other.pages;
        self.bytes += other.bytes;
        self.reads += other.reads;
        self.resident += other.resident;
        self.false_positives += other.false_positives;
        self.skipped += other.skipped;
    }
}

impl IntersectionResult {
    /// Sets the number of skipped pages of `lists`.
    pub(super) fn with_skipped(mut self, lists: &[PagedList]) -> IntersectionResult {
        let pages: u64 = lists.iter().map(|list| list.pages() as u64).sum();
        self.reads.skipped = pages.saturating_sub(self.reads.pages + self.reads.resident);
        self
    }
}
