//! Compares two runs query by query: difference of the means, wins, losses and ties, and a paired t-test.

/// The values of the second run compared with those of the first.
#[derive(Debug, PartialEq)]
pub struct PairedComparison {
    /// Mean of the differences.
    pub difference: f64,
    /// Queries for which the second run is better.
    pub wins: u64,
    /// Queries for which it is worse.
    pub losses: u64,
    /// Queries with equal values.
    pub ties: u64,
    /// Two-sided p-value of the paired t-test; `None` if all differences are equal or there is one query.
    pub p: Option<f64>,
}

impl PairedComparison {
    /// Compares the values of the same queries.
    pub fn new(first: &[f64], second: &[f64]) -> PairedComparison {
        let differences: Vec<f64> = second.iter().zip(first).map(|(second, first)| second - first).collect();
        let count = |which: fn(f64) -> bool| differences.iter().filter(|value| which(**value)).count() as u64;
        let n = differences.len() as f64;
        let mean = differences.iter().sum::<f64>() / n.max(1.0);
        let squares: f64 = differences.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = (squares / (n - 1.0) / n).sqrt();
        // Differences that are equal but for rounding have no variance to test against.
        let is_tested = n > 1.0 && deviation > 1e-12;
        PairedComparison {
            difference: mean,
            wins: count(|value| value > 0.0),
            losses: count(|value| value < 0.0),
            ties: count(|value| value == 0.0),
            p: is_tested.then(|| two_sided_p_value(mean / deviation, differences.len() as u64 - 1)),
        }
    }
}

/// Two-sided p-value of Student's t, by the finite series for an integer number of degrees of freedom
/// (Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4).
fn two_sided_p_value(t: f64, freedom: u64) -> f64 {
    let angle = (t.abs() / (freedom as f64).sqrt()).atan();
    let (sine, cosine) = (angle.sin(), angle.cos());
    let is_odd = freedom % 2 == 1;
    let (mut term, mut sum) = if is_odd { (cosine, 0.0) } else { (1.0, 0.0) };
    let mut factor = if is_odd { 2 } else { 1 };
    while factor < freedom {
        sum += term;
        term *= factor as f64 / (factor + 1) as f64 * cosine * cosine;
        factor += 2;
    }
    let within = match is_odd {
        true => std::f64::consts::FRAC_2_PI * (angle + sine * sum),
        false => sine * sum,
    };
    (1.0 - within).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of `scipy.stats.t.sf(t, n) * 2`.
    #[test]
    fn p_values_are_those_of_the_t_distribution() {
        for (t, freedom, expected) in SCIPY_P_VALUES {
            let found = two_sided_p_value(*t, *freedom);
            assert!((found - expected).abs() < 1e-10, "{t}, {freedom}: {found}");
            assert_eq!(found, two_sided_p_value(-t, *freedom));
        }
    }

    const SCIPY_P_VALUES: &[(f64, u64, f64)] = &[
        (0.5, 1, 0.7048327646991335),
        (2.0, 1, 0.2951672353008665),
        (1.3, 2, 0.3232470318160403),
        (2.5, 3, 0.08770664700806556),
        (0.7, 4, 0.5225001655934502),
        (3.1, 10, 0.011250657216083414),
        (1.96, 49, 0.05569560784626004),
        (2.2, 224, 0.028829022299377914),
        (0.01, 7, 0.9923003176436217),
        (12.0, 30, 5.580185415199261e-13),
    ];

    #[test]
    fn queries_are_compared_in_pairs() {
        let found = PairedComparison::new(&[0.1, 0.5, 0.5, 0.2], &[0.3, 0.4, 0.5, 0.9]);
        assert_eq!((found.wins, found.losses, found.ties), (2, 1, 1));
        assert!((found.difference - 0.2).abs() < 1e-12);
        assert_eq!(PairedComparison::new(&[0.1], &[0.2]).p, None);
        assert_eq!(PairedComparison::new(&[0.5, 0.25], &[0.75, 0.5]).p, None);
    }
}
