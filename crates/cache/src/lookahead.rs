//! How far ahead of the queries lists are fetched (thesis, sections 7.2.2 and 7.2.4).
//!
//! Adaptive: the segments of the terms that were fetched ahead are added up, those of a repeated term again; the term's
//! segments count as they are taken. A query that ends takes its own off. Before a chain is evicted, wait while
//!
//! ```text
//! rolling sum + segments of the eviction candidate > all segments
//! ```
//!
//! In the thesis this rule is what keeps a list from being evicted under a query. Here pins do, exactly; the rule sets the
//! pace. The queue of queries is its FIFO: each notes what was counted for it, so that queries may end in any order. And
//! it never holds up the oldest query, behind which there would be nobody to end its wait.

use std::collections::VecDeque;

/// How far ahead of the queries lists are fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookahead {
    /// The rolling sum of segments (thesis, section 7.2.4).
    Adaptive,
    /// At most so many queries beyond the oldest that has not ended (thesis, section 7.2.2).
    Queries(u64),
    /// As far as segments can be had that no query holds.
    Pins,
}

/// The rolling sum.
#[derive(Debug)]
pub(crate) struct Pace {
    pub(crate) lookahead: Lookahead,
    rolling_sum: u64,
    segments: u32,
}

/// The distance at one time (thesis, figures 8.13 and 8.14).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// How many queries had ended.
    pub ended: u64,
    /// How many queries beyond the oldest had all their lists found or ordered.
    pub queries: u64,
    /// The rolling sum.
    pub segments: u64,
}

/// The last samples, as many as there is room for.
#[derive(Debug, Default)]
pub(crate) struct Record {
    samples: VecDeque<Sample>,
    capacity: usize,
}

impl Pace {
    pub(crate) fn new(lookahead: Lookahead, segments: u32) -> Pace {
        Pace { lookahead, rolling_sum: 0, segments }
    }

    pub(crate) fn rolling_sum(&self) -> u64 {
        self.rolling_sum
    }

    /// A term of so many segments was fetched ahead, or found.
    pub(crate) fn push(&mut self, segments: u64) {
        self.rolling_sum += segments;
    }

    /// Terms of so many segments were finished.
    pub(crate) fn pop(&mut self, segments: u64) {
        self.rolling_sum -= segments;
    }

    /// Whether to wait before evicting a chain of `candidate` segments for a term of which `taken` segments were taken.
    pub(crate) fn waits(&self, taken: u32, candidate: u32) -> bool {
        let sum = self.rolling_sum + u64::from(taken) + u64::from(candidate);
        self.lookahead == Lookahead::Adaptive && sum > u64::from(self.segments)
    }

    /// Whether a query `ahead` places behind the oldest is too far ahead.
    pub(crate) fn is_too_far(&self, ahead: u64) -> bool {
        matches!(self.lookahead, Lookahead::Queries(queries) if ahead > queries)
    }
}

impl Record {
    /// Begins anew, with room for `capacity` samples.
    pub(crate) fn start(&mut self, capacity: usize) {
        *self = Record { samples: VecDeque::with_capacity(capacity), capacity };
    }

    pub(crate) fn add(&mut self, sample: Sample) {
        if self.capacity == 0 {
            return;
        }
        if self.samples.len() == self.capacity {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }

    pub(crate) fn samples(&self) -> Vec<Sample> {
        self.samples.iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace() -> Pace {
        Pace::new(Lookahead::Adaptive, 8)
    }

    /// A cache of eight segments and terms of 4, 1 and 4 segments, each used once.
    #[test]
    fn figure_7_8() {
        let mut pace = pace();
        pace.push(4); // time 1: t0 is fetched
        pace.push(1); // time 2: t1 is fetched, the query thread begins with t0
        assert_eq!(pace.rolling_sum(), 5);
        // Time 3: three segments of t2 are taken, the fourth would evict t0, which is in use.
        assert!(pace.waits(3, 4));
        pace.pop(4); // time 4: t0 is finished
        assert_eq!(pace.rolling_sum(), 1);
        // Time 5: the thesis leaves out what t2 has so far, 4 + 1 > 8; with it, 4 + 1 + 3 > 8. Neither waits.
        assert!(!pace.waits(0, 4) && !pace.waits(3, 4));
        pace.push(4);
        assert_eq!(pace.rolling_sum(), 5);
    }

    /// A term of 4 segments comes twice. Counted once, the sum would be 0 while it is in use for the second time.
    #[test]
    fn figure_7_9() {
        let mut wrong = pace();
        wrong.push(4); // time 1: t0
        wrong.pop(4); // time 3: the query thread has finished the first t0 and is at the second
        assert_eq!(wrong.rolling_sum(), 0);
        assert!(!wrong.waits(4, 4), "0 + 4 > 8, and the other 4 segments taken: t0 would be evicted");
        let mut right = pace();
        right.push(4);
        right.push(4); // time 2: the repeated t0
        right.pop(4);
        assert_eq!(right.rolling_sum(), 4);
        assert!(right.waits(4, 4), "t0 stays until it is finished for the second time");
    }

    /// Terms of 2, 5 and 2 segments: t0, t1, t0, t2. The query thread is at t1, which is least recently used.
    #[test]
    fn figure_7_10() {
        let mut pace = pace();
        pace.push(2); // time 1: t0
        pace.push(5); // time 2: t1
        pace.push(2); // time 3: t0 again
        pace.pop(2); // time 4: the query thread finishes t0
        // One of the two segments of t2 is taken, all 8 are in use.
        assert_eq!(pace.rolling_sum() + 1, 8);
        let sum_alone_waits = pace.rolling_sum() + 1 > 8;
        assert!(!sum_alone_waits, "8 > 8 is false: without the candidate t1 would be evicted");
        assert!(pace.waits(1, 5), "8 + 5 > 8");
        pace.pop(5); // t1 is finished
        assert_eq!(pace.rolling_sum() + 1, 3);
        assert!(!pace.waits(1, 5), "3 + 5 > 8 is false: t1 goes");
    }

    #[test]
    fn the_record_keeps_the_last() {
        let mut record = Record::default();
        let sample = |ended| Sample { ended, queries: 0, segments: 0 };
        record.add(sample(1));
        assert_eq!(record.samples(), []);
        record.start(2);
        (2..5).for_each(|ended| record.add(sample(ended)));
        assert_eq!(record.samples(), [sample(3), sample(4)]);
    }
}
