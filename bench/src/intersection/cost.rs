//! What a read costs, and what bytes cost: whether two pages are better read together with those between them.

use super::page::PAGE_BYTES;

/// Seconds a read and bytes a second, at the depth at which they were measured: so many bytes in so many reads take about
/// reads times seconds and bytes by rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CostModel {
    /// Of each read, whatever its length.
    pub read_seconds: f64,
    /// Of long reads.
    pub bytes_per_second: f64,
    /// Of testing an id against a filter.
    pub test_seconds: f64,
}

impl Default for CostModel {
    /// A disk of 120,000 reads of 4 KiB and 2 GB a second.
    fn default() -> CostModel {
        CostModel { read_seconds: 6.3e-6, bytes_per_second: 2e9, test_seconds: 50e-9 }
    }
}

impl CostModel {
    /// The line through two kinds of reads: each has bytes a read, and seconds a read.
    pub fn fit(short: (usize, f64), long: (usize, f64)) -> CostModel {
        let rate = (long.0 - short.0) as f64 / (long.1 - short.1).max(1e-9);
        let read_seconds = (short.1 - short.0 as f64 / rate).max(1e-7);
        CostModel { read_seconds, bytes_per_second: rate, ..CostModel::default() }
    }

    /// Seconds of so many bytes in so many reads.
    pub fn seconds(&self, reads: u64, bytes: u64) -> f64 {
        reads as f64 * self.read_seconds + bytes as f64 / self.bytes_per_second
    }

    /// The most pages between two others that cost less than a second read.
    pub fn gap_pages(&self) -> usize {
        (self.read_seconds * self.bytes_per_second / PAGE_BYTES as f64) as usize
    }

    /// Seconds of `kept` pages that lie anywhere among `pages`, each as likely as any other: those nearer to the one before
    /// than the gap are read with it.
    fn seconds_of_some(&self, kept: f64, pages: f64) -> f64 {
        let share = (kept / pages).clamp(1e-6, 1.0);
        let gap = self.gap_pages().min(1 << 10) as i32;
        let alone = (1.0 - share).powi(gap + 1);
        let between: f64 = (1..=gap).map(|len| f64::from(len) * share * (1.0 - share).powi(len)).sum();
        let bytes = kept * (1.0 + between) * PAGE_BYTES as f64;
        // One read there is, also if all are neighbours.
        (kept * alone).max(1.0) * self.read_seconds + bytes / self.bytes_per_second
    }

    /// Whether `ids` tests are worth it, if instead of `reads` reads of `pages` pages about `kept` pages of these remain.
    pub(super) fn is_worth_testing(&self, ids: usize, (reads, pages): (u64, u64), kept: f64) -> bool {
        let saved = self.seconds(reads, pages * PAGE_BYTES as u64) - self.seconds_of_some(kept, pages as f64);
        saved > ids as f64 * self.test_seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_points_give_the_line() {
        let (per_read, rate) = (7e-6, 2.5e9);
        let at = |bytes: usize| (bytes, per_read + bytes as f64 / rate);
        let model = CostModel::fit(at(4096), at(131_072));
        assert!((model.read_seconds / per_read - 1.0).abs() < 1e-6);
        assert!((model.bytes_per_second / rate - 1.0).abs() < 1e-6);
        assert_eq!(model.gap_pages(), 4);
        assert!(CostModel::fit((4096, 1e-3), (131_072, 1e-3)).read_seconds > 0.0);
    }

    #[test]
    fn tests_pay_where_few_pages_remain() {
        let model = CostModel::default();
        assert!(model.is_worth_testing(10_000, (300, 9_000), 1_000.0));
        assert!(!model.is_worth_testing(10_000_000, (300, 9_000), 9_000.0));
        assert!(!model.is_worth_testing(10, (1, 1), 1.0));
        let slow_reads = CostModel { read_seconds: 14e-6, bytes_per_second: 2e9, ..model };
        assert!(slow_reads.is_worth_testing(10_000, (306, 9_417), 1_400.0));
    }
}
