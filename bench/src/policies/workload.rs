//! Sequences of queries drawn from a set.

use crate::Random;
use serde::{Deserialize, Serialize};

/// A sequence of queries. The first part fills the cache, the second is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Workload {
    /// The set four times; the first time is not measured
    Cyclic,
    /// The queries of the set one after the other; each is one of the last hundred again with a probability
    /// of 25%
    Rp25,
    /// As rp25, with 50%
    Rp50,
    /// Random queries of the set; the r-th most frequent has a share proportional to 1/r
    Zipf,
    /// Random queries of the first tenth of the set, alternating with a scan of the others
    Scan,
    /// The set once, in its order, all of it measured: for query logs, which repeat queries by themselves
    Log,
}

/// Length of a workload, in multiples of the number of queries in the set.
const SET_REPETITIONS: usize = 4;

/// Number of last queries from which a repeated one is drawn, as in the thesis (section 5.2.3).
const RECENT_QUERIES: usize = 100;

impl Workload {
    /// The numbers of the queries, of a set of `count`, and how many of them are not measured.
    pub(super) fn draw(self, count: usize, random: &mut Random) -> (Vec<usize>, usize) {
        let below = |random: &mut Random, bound: usize| random.below(bound as u32) as usize;
        let length = SET_REPETITIONS * count;
        match self {
            Workload::Cyclic => ((0..length).map(|at| at % count).collect(), count),
            Workload::Rp25 | Workload::Rp50 => {
                let percent = if self == Workload::Rp25 { 25 } else { 50 };
                let (mut drawn, mut fresh) = (Vec::with_capacity(length), 0);
                while drawn.len() < length {
                    if !drawn.is_empty() && random.below(100) < percent {
                        let recent = drawn.len().min(RECENT_QUERIES);
                        drawn.push(drawn[drawn.len() - 1 - below(random, recent)]);
                    } else {
                        drawn.push(fresh % count);
                        fresh += 1;
                    }
                }
                (drawn, count)
            }
            Workload::Zipf => {
                let mut sum = 0.0;
                let sums: Vec<f64> = (1..=count)
                    .map(|rank| {
                        sum += 1.0 / rank as f64;
                        sum
                    })
                    .collect();
                let draw = |random: &mut Random| {
                    let at = random.unit() * sum;
                    sums.partition_point(|sum| *sum <= at).min(count - 1)
                };
                ((0..length).map(|_| draw(random)).collect(), count)
            }
            Workload::Scan => {
                let hot = count.div_ceil(10);
                let cold = (hot..count).flat_map(|cold| [below(random, hot), cold]);
                let drawn: Vec<usize> = (0..hot).chain(cold.collect::<Vec<_>>()).collect();
                (drawn, hot)
            }
            Workload::Log => ((0..count).collect(), 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_draw_all_kinds_of_sequences() {
        use Workload::{Cyclic, Log, Rp25, Rp50, Scan, Zipf};
        for workload in [Cyclic, Rp25, Rp50, Zipf, Scan, Log] {
            for count in [1, 2, 30, 1000] {
                let (drawn, warm) = workload.draw(count, &mut Random::new(1));
                assert!(drawn.iter().all(|query| *query < count), "{workload:?}");
                assert!(warm <= drawn.len() && !drawn.is_empty(), "{workload:?}");
            }
        }
        assert_eq!(Cyclic.draw(2, &mut Random::new(1)), (vec![0, 1, 0, 1, 0, 1, 0, 1], 2));
        for (workload, percent) in [(Rp25, 25), (Rp50, 50)] {
            // A new query of a set of 4,000 is none of the last hundred.
            let (drawn, _) = workload.draw(4000, &mut Random::new(1));
            let repeats =
                (1..drawn.len()).filter(|at| drawn[at.saturating_sub(100)..*at].contains(&drawn[*at]));
            let share = 100.0 * repeats.count() as f64 / drawn.len() as f64;
            assert!((share - f64::from(percent)).abs() < 2.0, "{workload:?}: {share}%");
        }
        let (drawn, warm) = Scan.draw(1000, &mut Random::new(1));
        let hot = drawn[warm..].iter().filter(|query| **query < 100).count();
        assert_eq!((hot, drawn.len() - warm), (900, 1800));
        let (drawn, _) = Zipf.draw(1000, &mut Random::new(1));
        let first = drawn.iter().filter(|query| **query == 0).count();
        assert!((450..620).contains(&first), "{first} of 4,000, and 534 are expected");
    }
}
