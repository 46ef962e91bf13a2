//! A histogram of latencies that threads add to without a lock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Buckets in which a latency doubles: quantiles are at most a quarter too high.
const BUCKETS_PER_DOUBLING: u32 = 4;

/// Buckets: up to 2^27 µs, more than two minutes; the last has all longer latencies.
const BUCKETS: usize = 27 * BUCKETS_PER_DOUBLING as usize;

/// Counts latencies in buckets of increasing width.
pub(super) struct LatencyHistogram {
    counts: [AtomicU64; BUCKETS],
    longest: AtomicU64,
}

/// Latencies of answered requests, from arrival to result. Quantiles are upper bounds of the exact value, at
/// most a quarter above it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Latencies {
    /// Half of the requests took at most this long.
    pub p50: Duration,
    /// 99% took at most this long.
    pub p99: Duration,
    /// 99.9% took at most this long.
    pub p999: Duration,
    /// The longest latency.
    pub longest: Duration,
}

impl Default for LatencyHistogram {
    fn default() -> LatencyHistogram {
        LatencyHistogram { counts: [const { AtomicU64::new(0) }; BUCKETS], longest: AtomicU64::new(0) }
    }
}

impl LatencyHistogram {
    pub(super) fn add(&self, latency: Duration) {
        let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        self.counts[bucket(micros)].fetch_add(1, Ordering::Relaxed);
        if self.longest.load(Ordering::Relaxed) < micros {
            self.longest.fetch_max(micros, Ordering::Relaxed);
        }
    }

    /// Quantiles of all latencies so far; zero if there are none.
    pub(super) fn quantiles(&self) -> Latencies {
        let counts = self.counts.each_ref().map(|count| count.load(Ordering::Relaxed));
        let longest = Duration::from_micros(self.longest.load(Ordering::Relaxed));
        let all: u64 = counts.iter().sum();
        let quantile = |per_mille: u64| {
            let rank = (all * per_mille).div_ceil(1000);
            let mut below = 0;
            let found = counts.iter().position(|count| {
                below += count;
                below >= rank && rank > 0
            });
            found.map_or(Duration::ZERO, |bucket| Duration::from_micros(largest_of(bucket)).min(longest))
        };
        Latencies { p50: quantile(500), p99: quantile(990), p999: quantile(999), longest }
    }
}

/// The bucket of a number of microseconds: below four each number has its own.
fn bucket(micros: u64) -> usize {
    let micros = micros.max(1);
    let doublings = micros.ilog2();
    let fraction = ((u128::from(micros) * u128::from(BUCKETS_PER_DOUBLING)) >> doublings) as usize;
    let part = fraction - BUCKETS_PER_DOUBLING as usize;
    (doublings as usize * BUCKETS_PER_DOUBLING as usize + part).min(BUCKETS - 1)
}

/// The largest number of microseconds of a bucket.
fn largest_of(at: usize) -> u64 {
    let (doublings, part) = (at as u32 / BUCKETS_PER_DOUBLING, at as u64 % u64::from(BUCKETS_PER_DOUBLING));
    let next = (u64::from(BUCKETS_PER_DOUBLING) + part + 1) << doublings;
    next.div_ceil(u64::from(BUCKETS_PER_DOUBLING)) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_upper_bounds_within_a_quarter() {
        let histogram = LatencyHistogram::default();
        assert_eq!(histogram.quantiles(), Latencies::default());
        (1..=100_000).for_each(|micros| histogram.add(Duration::from_micros(micros)));
        let Latencies { p50, p99, p999, longest } = histogram.quantiles();
        for (found, exact) in [(p50, 50_000), (p99, 99_000), (p999, 99_900), (longest, 100_000)] {
            let found = found.as_micros();
            assert!(found >= exact && found <= exact + exact / 4, "{found} of {exact}");
        }
    }

    #[test]
    fn each_latency_is_at_most_the_largest_of_its_bucket() {
        for micros in (1..10_000).chain([1 << 20, (1 << 26) + 7]) {
            let at = bucket(micros);
            assert!(largest_of(at) >= micros && (at == 0 || largest_of(at - 1) < micros), "{micros}");
        }
        assert_eq!((bucket(0), bucket(u64::MAX)), (0, BUCKETS - 1));
    }
}
