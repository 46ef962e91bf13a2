//! Distributions as tables, so that a number is drawn by a lookup. They are computed by addition,
//! multiplication and division only, whose results are the same on every machine.

use crate::Random;

/// Number of values of the exponential distribution.
const EXPONENTIAL_VALUES: usize = 1 << 15;

/// The integer that stands for 1 in values of the exponential distribution: 16 fraction bits.
const FIXED_POINT_ONE: f64 = 65_536.0;

/// Number of values of a frequency distribution.
const FREQUENCY_VALUES: usize = 1 << 13;

/// Largest number of values that can be read from any offset of a row. The first values are repeated after
/// its end.
pub(super) const EXCERPT_VALUES_MAX: usize = 515;

/// Number of classes of lists, by the number of their postings divided by the number of documents. One more
/// class is for lists with all documents.
const FREQUENCY_CLASSES: usize = 32;

/// The tables of all distributions: rows of values in random order, in which a value occurs as often as its
/// probability demands.
pub(super) struct Tables {
    /// Prefix sums of the values of the exponential distribution, wrapping, beginning with 0.
    sums: Vec<u32>,
    /// The frequencies of each class.
    frequencies: Vec<Vec<u8>>,
}

impl Tables {
    /// The tables. All frequencies are 1 if `ids_only`.
    pub(super) fn new(ids_only: bool) -> Tables {
        let row = |class| {
            if ids_only { vec![1; FREQUENCY_VALUES + EXCERPT_VALUES_MAX] } else { frequency_values(class) }
        };
        Tables { sums: shuffled_prefix_sums(), frequencies: (0..=FREQUENCY_CLASSES).map(row).collect() }
    }

    /// The prefix sum at an offset of the row that `bits` select, and the next `count` prefix sums.
    #[inline]
    pub(super) fn sums(&self, bits: u32, count: usize) -> (u32, &[u32]) {
        let from = bits as usize % EXPONENTIAL_VALUES;
        (self.sums[from], &self.sums[from + 1..][..count])
    }

    /// The frequencies of a list with `postings` postings in `documents` documents.
    pub(super) fn frequencies(&self, postings: u32, documents: u32) -> &[u8] {
        let class = u64::from(postings) * FREQUENCY_CLASSES as u64 / u64::from(documents);
        &self.frequencies[class as usize]
    }
}

/// `count` frequencies from an offset of the row that `bits` select.
#[inline]
pub(super) fn frequency_excerpt(frequencies: &[u8], bits: u32, count: usize) -> &[u8] {
    &frequencies[bits as usize % FREQUENCY_VALUES..][..count]
}

/// Shuffles values, always into the same order, and repeats the first ones at the end.
fn shuffle_and_extend<T: Copy>(mut row: Vec<T>) -> Vec<T> {
    Random::new(row.len() as u64).shuffle(&mut row);
    row.extend_from_within(..EXCERPT_VALUES_MAX);
    row
}

/// The expected order statistics of n exponentially distributed numbers: 1/n, 1/n + 1/(n - 1), ... (Rényi,
/// 1953). Their mean is 1.
fn exponential_values() -> Vec<u32> {
    let mut sum = 0.0;
    let next = |left: usize| {
        sum += 1.0 / left as f64;
        (sum * FIXED_POINT_ONE) as u32
    };
    (1..=EXPONENTIAL_VALUES).rev().map(next).collect()
}

fn shuffled_prefix_sums() -> Vec<u32> {
    let mut sum = 0u32;
    let add = |gap: u32| {
        sum = sum.wrapping_add(gap);
        sum
    };
    std::iter::once(0).chain(shuffle_and_extend(exponential_values()).into_iter().map(add)).collect()
}

/// Frequencies of lists with a share `p` of the documents: one plus a negative binomial variable with mean
/// 0.2 + 4 p² and shape 0.35 + 8 p². Mosteller and Wallace found that distribution for words in texts of
/// equal length (Inference and Disputed Authorship, 1964): rare words occur in bursts, frequent ones nearly
/// at random.
fn frequency_values(class: usize) -> Vec<u8> {
    let share = class as f64 / FREQUENCY_CLASSES as f64;
    let (mean, shape) = (0.2 + 4.0 * share * share, 0.35 + 8.0 * share * share);
    let ratio = mean / (mean + shape);
    let mut weights = vec![1.0];
    for more in 1..255u8 {
        let last = weights[usize::from(more) - 1];
        weights.push(last * ratio * (f64::from(more) - 1.0 + shape) / f64::from(more));
    }
    let total: f64 = weights.iter().sum();
    let mut row = vec![0; FREQUENCY_VALUES];
    let (mut frequency, mut up_to) = (0, weights[0]);
    for (at, slot) in row.iter_mut().enumerate() {
        let middle = (at as f64 + 0.5) / FREQUENCY_VALUES as f64 * total;
        while up_to <= middle && frequency < 254 {
            frequency += 1;
            up_to += weights[frequency];
        }
        *slot = frequency as u8 + 1;
    }
    shuffle_and_extend(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_distribution_has_its_mean_and_its_median() {
        let gaps = exponential_values();
        assert!(gaps.is_sorted() && gaps[0] >= 1);
        let mean =
            gaps.iter().map(|&gap| f64::from(gap) / FIXED_POINT_ONE).sum::<f64>() / EXPONENTIAL_VALUES as f64;
        assert!((mean - 1.0).abs() < 1e-4, "{mean}");
        let median = f64::from(gaps[EXPONENTIAL_VALUES / 2]) / FIXED_POINT_ONE;
        assert!((median - std::f64::consts::LN_2).abs() < 1e-4, "{median}");
    }

    #[test]
    fn excerpts_wrap_around_the_row() {
        let tables = Tables::new(false);
        let gaps = |before: u32, sums: &[u32]| {
            let each = std::iter::once(&before).chain(sums).zip(sums);
            each.map(|(one, next)| next.wrapping_sub(*one)).collect::<Vec<_>>()
        };
        for from in [0, 1, 777, EXPONENTIAL_VALUES as u32 - 1] {
            let (before, sums) = tables.sums(from, EXCERPT_VALUES_MAX);
            let (next, its) = tables.sums(from + 1, EXCERPT_VALUES_MAX - 1);
            assert_eq!(gaps(before, sums)[1..], gaps(next, its));
            let row = tables.frequencies(1, 100);
            assert_eq!(
                frequency_excerpt(row, from, EXCERPT_VALUES_MAX)[1..],
                frequency_excerpt(row, from + 1, EXCERPT_VALUES_MAX)[..514]
            );
        }
    }

    #[test]
    fn frequent_terms_have_larger_frequencies() {
        let tables = Tables::new(false);
        for (postings, expected) in [(1, 1.2), (50, 2.2), (75, 3.45)] {
            let row = &tables.frequencies(postings, 100)[..FREQUENCY_VALUES];
            let mean = row.iter().copied().map(f64::from).sum::<f64>() / FREQUENCY_VALUES as f64;
            assert!((mean - expected).abs() < 0.06, "{postings} of 100: {mean}");
            assert_eq!(row.iter().min(), Some(&1));
        }
        let row = &tables.frequencies(1, 100)[..FREQUENCY_VALUES];
        let ones = row.iter().filter(|&&frequency| frequency == 1).count();
        assert!((0.8..0.9).contains(&(ones as f64 / FREQUENCY_VALUES as f64)));
    }
}
