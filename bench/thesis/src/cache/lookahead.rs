//! How far ahead of the queries lists are fetched (thesis, sections 7.2.2 and 7.2.4).
//!
//! The adaptive lookahead keeps a rolling sum of the cells of all lists that were fetched ahead; a repeated
//! list counts again, and the list that is being allocated counts by the cells that it has so far. A query
//! that ends subtracts its own lists. Before an entry is evicted, the worker waits while
//!
//! ```text
//! rolling sum + cells of the eviction candidate > all cells
//! ```
//!
//! In the thesis this rule keeps a list from being evicted while a query uses it. Here pins do that
//! exactly, and the rule only sets the pace. The query queue is its FIFO: each query records what was added
//! for it, so queries may end in any order. The rule never delays the oldest query, as no older query could
//! end and release it.

use std::collections::VecDeque;

/// How far ahead of the queries lists are fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookahead {
    /// By the rolling sum of cells (thesis, section 7.2.4).
    Adaptive,
    /// At most this many queries behind the oldest that has not ended (thesis, section 7.2.2).
    Queries(u64),
}

/// Decides how far ahead of the queries lists are fetched, by the rolling sum and its limit.
#[derive(Debug)]
pub(crate) struct PrefetchPace {
    pub(crate) lookahead: Lookahead,
    rolling_sum: u64,
    cells: u32,
}

/// The lookahead at one time (thesis, figures 8.13 and 8.14).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookaheadSample {
    /// How many queries had ended.
    pub ended: u64,
    /// How many queries behind the oldest had all their lists found in the cache or queued for the worker.
    pub queries: u64,
    /// The rolling sum, in cells.
    pub cells: u64,
}

/// Keeps the last samples, up to a fixed number.
#[derive(Debug, Default)]
pub(crate) struct LookaheadLog {
    samples: VecDeque<LookaheadSample>,
    capacity: usize,
}

impl PrefetchPace {
    pub(crate) fn new(lookahead: Lookahead, cells: u32) -> PrefetchPace {
        PrefetchPace { lookahead, rolling_sum: 0, cells }
    }

    pub(crate) fn rolling_sum(&self) -> u64 {
        self.rolling_sum
    }

    /// A list of `cells` cells was fetched ahead, or found in the cache.
    pub(crate) fn add_cells(&mut self, cells: u64) {
        self.rolling_sum += cells;
    }

    /// Lists of `cells` cells in all are no longer used by the query that has ended.
    pub(crate) fn subtract_cells(&mut self, cells: u64) {
        self.rolling_sum -= cells;
    }

    /// Whether to wait before evicting an entry of `candidate` cells for a list that has `taken` cells so
    /// far.
    pub(crate) fn must_wait(&self, taken: u32, candidate: u32) -> bool {
        let sum = self.rolling_sum + u64::from(taken) + u64::from(candidate);
        self.lookahead == Lookahead::Adaptive && sum > u64::from(self.cells)
    }

    /// Whether lists of a query may not be fetched yet, if `queries_before` queries before it have not ended.
    pub(crate) fn exceeds_lookahead(&self, queries_before: u64) -> bool {
        matches!(self.lookahead, Lookahead::Queries(queries) if queries_before > queries)
    }
}

impl LookaheadLog {
    /// Restarts with a capacity of `capacity` samples.
    pub(crate) fn restart(&mut self, capacity: usize) {
        *self = LookaheadLog { samples: VecDeque::with_capacity(capacity), capacity };
    }

    pub(crate) fn add_sample(&mut self, sample: LookaheadSample) {
        if self.capacity == 0 {
            return;
        }
        if self.samples.len() == self.capacity {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }

    pub(crate) fn samples(&self) -> Vec<LookaheadSample> {
        self.samples.iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace_of_eight_cells() -> PrefetchPace {
        PrefetchPace::new(Lookahead::Adaptive, 8)
    }

    /// A cache of eight cells and terms of 4, 1 and 4 cells, each used once.
    #[test]
    fn the_rolling_sum_is_that_of_figure_7_8() {
        let mut pace = pace_of_eight_cells();
        pace.add_cells(4); // time 1: t0 is fetched
        pace.add_cells(1); // time 2: t1 is fetched, the query thread begins with t0
        assert_eq!(pace.rolling_sum(), 5);
        // Time 3: three cells of t2 are taken; the fourth would evict t0, which is in use.
        assert!(pace.must_wait(3, 4));
        pace.subtract_cells(4); // time 4: t0 is finished
        assert_eq!(pace.rolling_sum(), 1);
        // Time 5: the thesis omits the cells that t2 has so far, 4 + 1 > 8; with them, 4 + 1 + 3 > 8.
        // Neither waits.
        assert!(!pace.must_wait(0, 4) && !pace.must_wait(3, 4));
        pace.add_cells(4);
        assert_eq!(pace.rolling_sum(), 5);
    }

    /// A term of 4 cells is repeated. Counted once, the sum would be 0 during its second use.
    #[test]
    fn the_rolling_sum_is_that_of_figure_7_9() {
        let mut wrong = pace_of_eight_cells();
        wrong.add_cells(4); // time 1: t0
        wrong.subtract_cells(4); // time 3: the query thread has finished the first t0 and is at the second
        assert_eq!(wrong.rolling_sum(), 0);
        assert!(!wrong.must_wait(4, 4), "0 + 4 > 8, and the other 4 cells taken: t0 would be evicted");
        let mut right = pace_of_eight_cells();
        right.add_cells(4);
        right.add_cells(4); // time 2: the repeated t0
        right.subtract_cells(4);
        assert_eq!(right.rolling_sum(), 4);
        assert!(right.must_wait(4, 4), "t0 stays until it is finished for the second time");
    }

    /// Terms of 2, 5 and 2 cells: t0, t1, t0, t2. The query thread uses t1, which is least recently used.
    #[test]
    fn the_rolling_sum_is_that_of_figure_7_10() {
        let mut pace = pace_of_eight_cells();
        pace.add_cells(2); // time 1: t0
        pace.add_cells(5); // time 2: t1
        pace.add_cells(2); // time 3: t0 again
        pace.subtract_cells(2); // time 4: the query thread finishes t0
        // One of the two cells of t2 is taken, and all 8 are in use.
        assert_eq!(pace.rolling_sum() + 1, 8);
        let sum_alone_waits = pace.rolling_sum() + 1 > 8;
        assert!(!sum_alone_waits, "8 > 8 is false: without the candidate t1 would be evicted");
        assert!(pace.must_wait(1, 5), "8 + 5 > 8");
        pace.subtract_cells(5); // t1 is finished
        assert_eq!(pace.rolling_sum() + 1, 3);
        assert!(!pace.must_wait(1, 5), "3 + 5 > 8 is false: t1 goes");
    }

    #[test]
    fn the_log_keeps_the_last_samples() {
        let mut record = LookaheadLog::default();
        let sample = |ended| LookaheadSample { ended, queries: 0, cells: 0 };
        record.add_sample(sample(1));
        assert_eq!(record.samples(), []);
        record.restart(2);
        (2..5).for_each(|ended| record.add_sample(sample(ended)));
        assert_eq!(record.samples(), [sample(3), sample(4)]);
    }
}
