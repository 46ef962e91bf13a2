//! The cost model of reads, which decides whether two pages are read together with the pages between them.

use super::page::PAGE_BYTES;

/// A linear cost model, valid for the queue depth at which it was measured: the time is the number of reads
/// times `read_seconds` plus the bytes divided by `bytes_per_second`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CostModel {
    /// Fixed cost of a read, in seconds.
    pub read_seconds: f64,
    /// Bandwidth of long reads.
    pub bytes_per_second: f64,
    /// Cost of testing an id against a filter, in seconds.
    pub test_seconds: f64,
}

impl Default for CostModel {
    /// A device with 120,000 reads of 4 KiB per second and 2 GB/s.
    fn default() -> CostModel {
        CostModel { read_seconds: 6.3e-6, bytes_per_second: 2e9, test_seconds: 50e-9 }
    }
}

impl CostModel {
    /// Fits the model to short and long reads, each given as bytes per read and seconds per read.
    pub fn fit(short: (usize, f64), long: (usize, f64)) -> CostModel {
        let rate = (long.0 - short.0) as f64 / (long.1 - short.1).max(1e-9);
        let read_seconds = (short.1 - short.0 as f64 / rate).max(1e-7);
        CostModel { read_seconds, bytes_per_second: rate, ..CostModel::default() }
    }

    /// Seconds of `reads` reads with `bytes` bytes in all.
    pub fn seconds(&self, reads: u64, bytes: u64) -> f64 {
        reads as f64 * self.read_seconds + bytes as f64 / self.bytes_per_second
    }

    /// Largest number of pages between two others that cost less than a separate read.
    pub fn gap_pages(&self) -> usize {
        (self.read_seconds * self.bytes_per_second / PAGE_BYTES as f64) as usize
    }

    /// Expected seconds for reading `kept` random pages out of `pages`. A page at most
    /// [`CostModel::gap_pages`] after the one before is read together with it.
    fn seconds_of_random_pages(&self, kept: f64, pages: f64) -> f64 {
        let share = (kept / pages).clamp(1e-6, 1.0);
        let gap = self.gap_pages().min(1 << 10) as i32;
        let alone = (1.0 - share).powi(gap + 1);
        let between: f64 = (1..=gap).map(|len| f64::from(len) * share * (1.0 - share).powi(len)).sum();
        let bytes = kept * (1.0 + between) * PAGE_BYTES as f64;
        // At least one read, also if all pages are adjacent.
        (kept * alone).max(1.0) * self.read_seconds + bytes / self.bytes_per_second
    }

    /// Whether testing `ids` ids against filters costs less than it saves. Without filters, `reads` reads
    /// have `pages` pages; with filters, `kept` of these pages are expected to be read.
    pub(super) fn is_worth_testing(&self, ids: usize, reads: u64, pages: u64, kept: f64) -> bool {
        let saved =
            self.seconds(reads, pages * PAGE_BYTES as u64) - self.seconds_of_random_pages(kept, pages as f64);
        saved > ids as f64 * self.test_seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_points_determine_the_model() {
        let (per_read, rate) = (7e-6, 2.5e9);
        let at = |bytes: usize| (bytes, per_read + bytes as f64 / rate);
        let model = CostModel::fit(at(4096), at(131_072));
        assert!((model.read_seconds / per_read - 1.0).abs() < 1e-6);
        assert!((model.bytes_per_second / rate - 1.0).abs() < 1e-6);
        assert_eq!(model.gap_pages(), 4);
        assert!(CostModel::fit((4096, 1e-3), (131_072, 1e-3)).read_seconds > 0.0);
    }

    #[test]
    fn filter_tests_pay_where_few_pages_remain() {
        let model = CostModel::default();
        assert!(model.is_worth_testing(10_000, 300, 9_000, 1_000.0));
        assert!(!model.is_worth_testing(10_000_000, 300, 9_000, 9_000.0));
        assert!(!model.is_worth_testing(10, 1, 1, 1.0));
        let slow_reads = CostModel { read_seconds: 14e-6, bytes_per_second: 2e9, ..model };
        assert!(slow_reads.is_worth_testing(10_000, 306, 9_417, 1_400.0));
    }
}
