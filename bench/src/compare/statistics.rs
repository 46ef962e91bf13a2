//! Ratios of pairs: their geometric mean, its interval, and a verdict.
//!
//! The interval contains 95% of the geometric means of bootstrap samples: as many pairs as there are, drawn
//! from them with replacement (Efron: Bootstrap methods, Annals of Statistics, 1979).

use crate::{random::Random, value_names::value_names};

/// Number of bootstrap samples.
const BOOTSTRAP_SAMPLES: usize = 4000;

/// Seed of the samples, so that the same ratios have the same interval.
const BOOTSTRAP_SEED: u64 = 1;

/// Ratios from this one up to its inverse (1.031) count as equal.
const EQUAL_RATIO_MIN: f64 = 0.97;

/// A cell whose interval is at most this wide is not measured again, even if its verdict is undecided.
const OPEN_INTERVAL_WIDTH: f64 = 0.06;

/// A geometric mean of ratios and its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Estimate {
    pub(super) ratio: f64,
    pub(super) from: f64,
    pub(super) to: f64,
}

/// What an interval says about the second build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The interval is above 1, and not within 3% of it.
    Faster,
    /// The interval is below 1, and not within 3% of it.
    Slower,
    /// The interval is within 3% of 1.
    Equal,
    /// The interval is too wide to say.
    Undecided,
}

value_names!(
    Verdict;
    Faster = "faster", Slower = "slower", Equal = "equal within 3%", Undecided = "undecided"
);

impl Estimate {
    /// The estimate of the ratios of one cell.
    pub(super) fn of(ratios: &[f64]) -> Estimate {
        geometric_mean_of_all(&[ratios.to_vec()])
    }

    pub(super) fn interval_width(&self) -> f64 {
        self.to - self.from
    }

    /// Whether the interval is wide, and leaves open if the second build is slower by 3% or is undecided.
    pub(super) fn needs_more_pairs(&self) -> bool {
        let decides =
            !(self.from..=self.to).contains(&EQUAL_RATIO_MIN) && Verdict::of(self) != Verdict::Undecided;
        !decides && self.interval_width() > OPEN_INTERVAL_WIDTH
    }
}

/// The estimate over several cells: the geometric mean of their geometric means. A sample draws rounds, the
/// same for all cells that have equally many pairs: pairs of a round share the state of the machine.
pub(super) fn geometric_mean_of_all(cells: &[Vec<f64>]) -> Estimate {
    let logs: Vec<Vec<f64>> =
        cells.iter().map(|ratios| ratios.iter().map(|ratio| ratio.ln()).collect()).collect();
    let mean = |all: &mut dyn Iterator<Item = f64>, count: usize| all.sum::<f64>() / count.max(1) as f64;
    let of_all = |of_cell: &mut dyn FnMut(&[f64]) -> f64| {
        mean(&mut logs.iter().map(|logs| of_cell(logs)), logs.len()).exp()
    };
    let ratio = of_all(&mut |logs| mean(&mut logs.iter().copied(), logs.len()));
    let mut random = Random::new(BOOTSTRAP_SEED);
    let rounds = cells.iter().map(Vec::len).max().unwrap_or(0);
    let mut samples: Vec<f64> = (0..BOOTSTRAP_SAMPLES)
        .map(|_| {
            let rounds: Vec<f64> = (0..rounds).map(|_| random.unit()).collect();
            of_all(&mut |logs| {
                let drawn = rounds[..logs.len()].iter().map(|round| (round * logs.len() as f64) as usize);
                mean(&mut drawn.map(|drawn| logs[drawn]), logs.len())
            })
        })
        .collect();
    samples.sort_unstable_by(f64::total_cmp);
    let quantile = |part: f64| samples[((BOOTSTRAP_SAMPLES - 1) as f64 * part).round() as usize];
    Estimate { ratio, from: quantile(0.025), to: quantile(0.975) }
}

impl Verdict {
    /// The verdict of an estimate.
    pub(super) fn of(found: &Estimate) -> Verdict {
        match found {
            found if found.from >= EQUAL_RATIO_MIN && found.to <= 1.0 / EQUAL_RATIO_MIN => Verdict::Equal,
            found if found.from > 1.0 => Verdict::Faster,
            found if found.to < 1.0 => Verdict::Slower,
            _ => Verdict::Undecided,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_contains_the_mean_and_narrows_with_more_pairs() {
        let mut random = Random::new(7);
        let mut ratios = |count: usize| (0..count).map(|_| 0.9 + 0.2 * random.unit()).collect::<Vec<_>>();
        let (few, many) = (Estimate::of(&ratios(10)), Estimate::of(&ratios(200)));
        for found in [few, many] {
            assert!(found.from < found.ratio && found.ratio < found.to, "{found:?}");
        }
        assert!(many.interval_width() < few.interval_width() / 2.0 && (many.ratio - 1.0).abs() < 0.02);
        let exact = Estimate::of(&[2.0, 2.0]);
        assert!((exact.ratio - 2.0).abs() < 1e-12 && exact.interval_width() < 1e-12);
    }

    #[test]
    fn most_intervals_contain_the_true_ratio() {
        let mut random = Random::new(3);
        let mut contained = 0;
        for _ in 0..200 {
            let ratios: Vec<f64> = (0..20).map(|_| (0.2 * (random.unit() - 0.5)).exp()).collect();
            let found = Estimate::of(&ratios);
            contained += usize::from((found.from..=found.to).contains(&1.0));
        }
        assert!((175..=199).contains(&contained), "{contained} of 200");
    }

    #[test]
    fn the_mean_of_all_cells_weighs_each_cell_alike() {
        let found = geometric_mean_of_all(&[vec![4.0; 30], vec![1.0; 2]]);
        assert!((found.ratio - 2.0).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn cells_of_a_round_are_drawn_together() {
        let drift = [0.9, 0.95, 1.0, 1.05, 1.1, 1.2];
        let (one, four) = (Estimate::of(&drift), geometric_mean_of_all(&vec![drift.to_vec(); 4]));
        assert!((one.interval_width() - four.interval_width()).abs() < 1e-12, "{one:?} {four:?}");
    }

    #[test]
    fn verdicts_follow_from_intervals() {
        let verdict = |from, to| Verdict::of(&Estimate { ratio: 1.0, from, to });
        assert_eq!((verdict(1.01, 1.2), verdict(0.8, 0.99)), (Verdict::Faster, Verdict::Slower));
        assert_eq!((verdict(0.98, 1.02), verdict(1.001, 1.02)), (Verdict::Equal, Verdict::Equal));
        assert_eq!((verdict(0.9, 1.1), verdict(0.96, 1.01)), (Verdict::Undecided, Verdict::Undecided));
        let needs_more_pairs = |from, to| Estimate { ratio: 1.0, from, to }.needs_more_pairs();
        assert!(needs_more_pairs(0.95, 1.05) && needs_more_pairs(0.98, 1.2) && needs_more_pairs(0.92, 0.99));
        assert!(!needs_more_pairs(0.95, 1.0) && !needs_more_pairs(1.01, 1.2) && !needs_more_pairs(0.8, 0.9));
    }
}
