//! Ratios of pairs: their geometric mean, its interval, and a verdict.
//!
//! The interval contains 95% of the geometric means of bootstrap samples: as many pairs as there are, drawn
//! from them with replacement (Efron: Bootstrap methods, Annals of Statistics, 1979).

use crate::random::Random;
use std::fmt;

/// Bootstrap samples.
const SAMPLES: usize = 4000;

/// Seed of the samples, so that the same ratios have the same interval.
const SEED: u64 = 1;

/// Ratios from here on, and to its inverse, are equal.
const EQUAL: f64 = 0.97;

/// Widest interval around [`EQUAL`] that decides about a cell.
const OPEN_WIDTH: f64 = 0.06;

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
    /// None of these.
    Undecided,
}

impl Estimate {
    /// The estimate of the ratios of one cell.
    pub(super) fn of(ratios: &[f64]) -> Estimate {
        geometric_mean_of_all(&[ratios.to_vec()])
    }

    pub(super) fn width(&self) -> f64 {
        self.to - self.from
    }

    /// Whether the interval leaves open if the second build is slower by 3%, and more pairs can decide.
    pub(super) fn is_open(&self) -> bool {
        (self.from..=self.to).contains(&EQUAL) && self.width() > OPEN_WIDTH
    }
}

/// The estimate over several cells: the geometric mean of their geometric means. Each sample draws from the
/// pairs of each cell.
pub(super) fn geometric_mean_of_all(cells: &[Vec<f64>]) -> Estimate {
    let logs: Vec<Vec<f64>> =
        cells.iter().map(|ratios| ratios.iter().map(|ratio| ratio.ln()).collect()).collect();
    let mean =
        |values: &mut dyn Iterator<Item = f64>, count: usize| values.sum::<f64>() / count.max(1) as f64;
    let of_all = |of_cell: &mut dyn FnMut(&[f64]) -> f64| {
        mean(&mut logs.iter().map(|logs| of_cell(logs)), logs.len()).exp()
    };
    let ratio = of_all(&mut |logs| mean(&mut logs.iter().copied(), logs.len()));
    let mut random = Random::new(SEED);
    let mut samples: Vec<f64> = (0..SAMPLES)
        .map(|_| {
            of_all(&mut |logs| {
                let mut drawn = (0..logs.len()).map(|_| logs[random.below(logs.len() as u32) as usize]);
                mean(&mut drawn, logs.len())
            })
        })
        .collect();
    samples.sort_unstable_by(f64::total_cmp);
    let quantile = |part: f64| samples[((SAMPLES - 1) as f64 * part).round() as usize];
    Estimate { ratio, from: quantile(0.025), to: quantile(0.975) }
}

impl Verdict {
    /// The verdict of an estimate.
    pub(super) fn of(found: &Estimate) -> Verdict {
        match found {
            found if found.from >= EQUAL && found.to <= 1.0 / EQUAL => Verdict::Equal,
            found if found.from > 1.0 => Verdict::Faster,
            found if found.to < 1.0 => Verdict::Slower,
            _ => Verdict::Undecided,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::Equal => "equal within 3%",
            Verdict::Undecided => "undecided",
        })
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
        assert!(many.width() < few.width() / 2.0 && (many.ratio - 1.0).abs() < 0.02);
        let exact = Estimate::of(&[2.0, 2.0]);
        assert!((exact.ratio - 2.0).abs() < 1e-12 && exact.width() < 1e-12);
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
    fn verdicts_follow_from_intervals() {
        let verdict = |from, to| Verdict::of(&Estimate { ratio: 1.0, from, to });
        assert_eq!((verdict(1.01, 1.2), verdict(0.8, 0.99)), (Verdict::Faster, Verdict::Slower));
        assert_eq!((verdict(0.98, 1.02), verdict(1.001, 1.02)), (Verdict::Equal, Verdict::Equal));
        assert_eq!((verdict(0.9, 1.1), verdict(0.96, 1.01)), (Verdict::Undecided, Verdict::Undecided));
        let is_open = |from, to| Estimate { ratio: 1.0, from, to }.is_open();
        assert!(is_open(0.95, 1.05) && !is_open(0.95, 1.0) && !is_open(0.98, 1.2));
    }
}
