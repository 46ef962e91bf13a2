//! What was found, and what was read for it.

use super::list::PagedList;
use std::ops::AddAssign;

/// The ids that stand in all lists, and what was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Rising.
    pub ids: Vec<u32>,
    /// What it took.
    pub reads: Reads,
}

/// What an intersection read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// Pages read from disk. One that two threads read counts twice, and one that was read because it lies between two
    /// others counts too.
    pub pages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Reads that were asked for.
    pub reads: u64,
    /// Pages that were looked at without a read, for they were in memory.
    pub near: u64,
    /// Ids that a filter let pass and that did not stand in the page.
    pub false_positives: u64,
    /// Pages of the lists that were neither read nor looked at.
    pub skipped: u64,
}

impl Reads {
    /// Notes a read of `bytes` bytes, a multiple of the page.
    pub(super) fn read(&mut self, bytes: usize) {
        self.reads += 1;
        self.bytes += bytes as u64;
        self.pages += (bytes / super::page::PAGE_BYTES) as u64;
    }
}

impl AddAssign for Reads {
    fn add_assign(&mut self, other: Reads) {
        self.pages += other.pages;
        self.bytes += other.bytes;
        self.reads += other.reads;
        self.near += other.near;
        self.false_positives += other.false_positives;
        self.skipped += other.skipped;
    }
}

impl Found {
    /// Nothing, and nothing was read of `lists`.
    pub(super) fn nothing(lists: &[PagedList]) -> Found {
        Found::default().of(lists)
    }

    /// Parts in the order of their ids.
    pub(super) fn join(parts: Vec<Found>, lists: &[PagedList]) -> Found {
        let mut all = Found::default();
        for part in parts {
            all.ids.extend_from_slice(&part.ids);
            all.reads += part.reads;
        }
        all.of(lists)
    }

    /// Says which pages of `lists` were skipped.
    pub(super) fn of(mut self, lists: &[PagedList]) -> Found {
        let pages: u64 = lists.iter().map(|list| list.pages() as u64).sum();
        self.reads.skipped = pages.saturating_sub(self.reads.pages + self.reads.near);
        self
    }
}
