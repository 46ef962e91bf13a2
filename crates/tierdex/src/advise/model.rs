//! The time of queries by the cost of their reads.

/// Time of a query as a line: its time without reads, and `slope` seconds for each nanosecond that its reads
/// cost. The slope says how much of the reads is hidden by evaluations, how many queries are in progress at
/// the same time, and how the device differs from its curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TimeLine {
    without_reads: f64,
    pub(super) slope: f64,
}

impl TimeLine {
    /// The line through the times with all pages cached and with a small cache, in which reads have these
    /// costs. It does not fall.
    pub(super) fn through(costs: [f64; 2], seconds: [f64; 2]) -> TimeLine {
        let cost = costs[1] - costs[0];
        let slope = if cost > 0.0 { ((seconds[1] - seconds[0]) / cost).max(0.0) } else { 0.0 };
        // Not below half, if the first cache does not hold all pages.
        TimeLine { without_reads: (seconds[0] - slope * costs[0]).max(seconds[0] / 2.0), slope }
    }

    pub(super) fn seconds(self, cost: f64) -> f64 {
        self.without_reads + self.slope * cost
    }
}

/// The value below which this share of the values is.
pub(super) fn percentile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let at = (values.len() as f64 * share) as usize;
    values.get(at.min(values.len().saturating_sub(1))).copied().unwrap_or(0.0).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_grows_with_the_cost_of_reads() {
        let times = |costs: [f64; 2], seconds: [f64; 2]| {
            let line = TimeLine::through(costs, seconds);
            [0.0, 8.0, 40.0].map(|cost| line.seconds(cost))
        };
        assert_eq!(times([0.0, 8.0], [2.0, 4.0]), [2.0, 4.0, 12.0]);
        assert_eq!(times([2.0, 10.0], [4.0, 6.0]), [3.5, 5.5, 13.5]);
        assert_eq!(times([10.0, 30.0], [3.0, 7.0]), [1.5, 3.1, 9.5]);
        // Noise: the cache with misses was faster; nothing was missed.
        assert_eq!(times([0.0, 8.0], [2.0, 1.0]), [2.0; 3]);
        assert_eq!(times([0.0, 0.0], [2.0, 3.0]), [2.0; 3]);
    }

    #[test]
    fn percentiles_are_values() {
        assert_eq!(percentile((0..200).map(f64::from).collect(), 0.99), 198.0);
        assert_eq!((percentile(vec![4.0], 0.99), percentile(Vec::new(), 0.99)), (4.0, 0.0));
    }
}
