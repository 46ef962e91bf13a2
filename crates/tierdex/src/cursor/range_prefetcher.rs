//! Prefetching ahead of a pass over ranges of a file.

use crate::segment::read::BlockSource;
use std::{iter::Peekable, ops::Range, sync::Arc};
use tierdex_io::SealedFile;

/// Prefetches the ranges that a pass reads: whenever none of those prefetched is left, as many of the
/// following ones as the source prefetches. Neighbouring ranges are then read together.
pub struct RangePrefetcher<'a, I: Iterator> {
    source: &'a dyn BlockSource,
    file: &'a Arc<SealedFile>,
    /// The ranges in the order in which they are read.
    ranges: Peekable<I>,
    /// Number of prefetched ranges that have not been read.
    left: usize,
}

impl<'a, I: Iterator<Item = Range<u64>>> RangePrefetcher<'a, I> {
    /// For a pass over these ranges of a file.
    pub fn new(source: &'a dyn BlockSource, file: &'a Arc<SealedFile>, ranges: I) -> RangePrefetcher<'a, I> {
        RangePrefetcher { source, file, ranges: ranges.peekable(), left: 0 }
    }

    /// To be called before the next of the ranges is read.
    #[inline]
    pub fn before_read(&mut self) {
        if self.left == 0 && self.source.prefetches() && self.file.resident().is_none() {
            self.prefetch();
        }
        self.left = self.left.saturating_sub(1);
    }

    fn prefetch(&mut self) {
        while self.ranges.next_if(|range| self.source.prefetch(self.file, range.clone())).is_some() {
            self.left += 1;
        }
        if self.left == 0 {
            // The source prefetches nothing now: the range is read by itself.
            self.ranges.next();
        }
    }
}
