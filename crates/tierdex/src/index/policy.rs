//! Chooses which segments a commit merges.
//!
//! The *level* of a segment is the logarithm to base [`MergePolicy::fan_in`] of its bytes, as a multiple of
//! a smallest size; smaller segments have level 0. Deleted documents do not count. As in Lucene's
//! `LogMergePolicy`, only adjacent segments are merged, so that documents keep their order:
//!
//! 1. From the left, a *group* begins at a segment of the highest level among those not yet in a group, and
//!    ends at the last segment of that level: levels of groups decrease. Its segments of lower levels are
//!    between others.
//! 2. The first five segments of the leftmost group that has five are replaced by one with their bytes, until
//!    no group has five. This is done with sizes only: a segment that would be merged twice is written once.
//! 3. Segments that take no part are written again if a fifth of their documents is deleted, whatever their
//!    size: else large segments would never be.

use crate::segment::SegmentMeta;
use std::ops::Range;

/// When segments are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergePolicy {
    /// Number of adjacent segments of similar size that are merged.
    pub fan_in: usize,
    /// Bytes of a segment of level 1.
    pub floor_bytes: u64,
    /// Deleted documents in percent from which on a segment is written again.
    pub deleted_percent: u32,
}

impl Default for MergePolicy {
    fn default() -> MergePolicy {
        MergePolicy { fan_in: 5, floor_bytes: 5 << 19, deleted_percent: 20 }
    }
}

/// What the policy knows of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentSize {
    /// Bytes of all files.
    pub bytes: u64,
    /// Number of documents, deleted or not.
    pub documents: u32,
    /// Number of deleted documents.
    pub deleted: u32,
}

impl SegmentSize {
    /// The size of a segment of which this number of documents is deleted.
    pub fn of(segment: &SegmentMeta, deleted: u32) -> SegmentSize {
        let bytes = segment.files.iter().map(|file| file.seal.len).fold(0, u64::saturating_add);
        SegmentSize { bytes, documents: segment.documents, deleted }
    }

    /// Bytes of a segment with the live documents.
    pub fn live_bytes(&self) -> u64 {
        let live = self.documents.saturating_sub(self.deleted);
        (u128::from(self.bytes) * u128::from(live) / u128::from(self.documents.max(1))) as u64
    }
}

/// Segments that are one after the merges that were chosen so far.
struct Merged {
    segments: Range<usize>,
    live_bytes: u64,
}

impl MergePolicy {
    /// The ranges of segments that are to be replaced by one each, in order. None would have more than
    /// `bytes_max`.
    pub fn choose_merges(&self, segments: &[SegmentSize], bytes_max: u64) -> Vec<Range<usize>> {
        let single = |(at, size): (usize, &SegmentSize)| Merged {
            segments: at..at + 1,
            live_bytes: size.live_bytes(),
        };
        let mut merged: Vec<Merged> = segments.iter().enumerate().map(single).collect();
        while let Some(group) = self.next_group(&merged, bytes_max) {
            let segments = merged[group.start].segments.start..merged[group.end - 1].segments.end;
            let live_bytes = sum_bytes(&merged[group.clone()]);
            merged.splice(group, [Merged { segments, live_bytes }]);
        }
        let is_rewritten = |one: &Merged| {
            let size = segments[one.segments.start];
            let deleted = 100 * u64::from(size.deleted);
            let limit = u64::from(self.deleted_percent) * u64::from(size.documents);
            deleted > 0 && deleted >= limit && one.live_bytes <= bytes_max
        };
        let chosen = merged.iter().filter(|one| one.segments.len() > 1 || is_rewritten(one));
        chosen.map(|one| one.segments.clone()).collect()
    }

    /// The first segments of the leftmost group that has enough of them.
    fn next_group(&self, segments: &[Merged], bytes_max: u64) -> Option<Range<usize>> {
        let mut start = 0;
        while start < segments.len() {
            let level_at = |at: usize| self.level(segments[at].live_bytes);
            let highest = (start..segments.len()).map(level_at).max()?;
            let end = (start..segments.len()).rfind(|at| level_at(*at) == highest)? + 1;
            let mut first = start;
            while end - first >= self.fan_in.max(2) {
                let group = first..first + self.fan_in.max(2);
                if sum_bytes(&segments[group.clone()]) <= bytes_max {
                    return Some(group);
                }
                first += 1;
            }
            start = end;
        }
        None
    }

    fn level(&self, bytes: u64) -> u32 {
        (bytes / self.floor_bytes.max(1)).checked_ilog(self.fan_in.max(2) as u64).map_or(0, |level| level + 1)
    }
}

fn sum_bytes(segments: &[Merged]) -> u64 {
    segments.iter().fold(0, |sum, one| sum.saturating_add(one.live_bytes))
}

#[cfg(test)]
mod tests;
