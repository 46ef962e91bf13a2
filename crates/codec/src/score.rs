//! What a ranking does with a block of values that have been decoded: scores for all of them, those that score enough,
//! and the best of many.
//!
//! Scores have the form that BM25 has: `weight * (f / (f + k))` in `f32` and in this order, where `f` is how often
//! something stands at a value and `k` belongs to the value's code. All kernels give the same bits.

use crate::{BLOCK, Kernel};

/// A code of one byte for each value from 0 on.
#[derive(Clone, Debug, Default)]
pub struct Codes {
    /// The codes, and [`Codes::SLACK`] zeros.
    bytes: Vec<u8>,
}

impl Codes {
    /// Four bytes can be read wherever a code stands.
    pub(crate) const SLACK: usize = 3;

    /// Takes the codes of 0, 1, and so on.
    pub fn new(mut codes: Vec<u8>) -> Codes {
        codes.extend([0; Codes::SLACK]);
        Codes { bytes: codes }
    }

    /// The codes of all values.
    pub fn all(&self) -> &[u8] {
        &self.bytes[..self.bytes.len().saturating_sub(Codes::SLACK)]
    }
}

/// What a value's score depends on beside its frequency.
#[derive(Clone, Copy)]
pub struct Saturation<'a> {
    /// The score of a frequency without end.
    pub weight: f32,
    /// `k` of each code.
    pub k: &'a [f32; 256],
    /// Which code each value has.
    pub codes: &'a Codes,
}

impl Saturation<'_> {
    /// Scores of a block of values.
    ///
    /// # Panics
    /// If a value has no code, or if there are not as many frequencies and scores as values, or more than [`BLOCK`].
    pub fn score(&self, values: &[u32], frequencies: &[u32], scores: &mut [f32]) {
        Kernel::active().score(self, values, frequencies, scores);
    }

    /// Score of one value.
    ///
    /// # Panics
    /// If it has no code.
    #[inline]
    pub fn score_of(&self, value: u32, frequency: u32) -> f32 {
        let f = frequency as f32;
        self.weight * (f / (f + self.k[usize::from(self.codes.all()[value as usize])]))
    }
}

/// Places in a block, rising.
pub struct Places {
    /// The slack lets a whole vector be written wherever the last place may be.
    places: [u8; BLOCK + Places::SLACK],
    count: usize,
}

impl Places {
    pub(crate) const SLACK: usize = 16;

    /// None.
    pub fn new() -> Places {
        Places { places: [0; _], count: 0 }
    }

    /// The places.
    pub fn get(&self) -> &[u8] {
        &self.places[..self.count]
    }

    /// Where the next places go, and the number of those that are there.
    pub(crate) fn parts(&mut self) -> (&mut [u8; BLOCK + Places::SLACK], &mut usize) {
        (&mut self.places, &mut self.count)
    }
}

impl Default for Places {
    fn default() -> Places {
        Places::new()
    }
}

/// Finds the scores of a block that are at least `least`.
///
/// # Panics
/// If there are more than [`BLOCK`].
pub fn at_least(scores: &[f32], least: f32, places: &mut Places) {
    Kernel::active().at_least(scores, least, places);
}

/// Finds the values of a block that are at least `least`, such as frequencies.
///
/// # Panics
/// If there are more than [`BLOCK`].
pub fn values_at_least(values: &[u32], least: u32, places: &mut Places) {
    Kernel::active().values_at_least(values, least, places);
}

/// Number of scores that are greater than 0.
pub fn positive(scores: &[f32]) -> usize {
    Kernel::active().positive(scores)
}

/// Moves the largest `k` of `keys` to the front, in no order, and returns the smallest of these. `scratch` is room for the work, and grows to at most as
/// many and eight.
///
/// # Panics
/// If there are fewer than `k`.
pub fn largest(keys: &mut [u64], k: usize, scratch: &mut Vec<u64>) -> u64 {
    Kernel::active().largest(keys, k, scratch)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random.
    fn random(seed: u64) -> impl FnMut() -> u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.wrapping_mul(0x2545_f491_4f6c_dd1d)
        }
    }

    #[test]
    fn every_kernel_scores_alike_to_the_bit() {
        let mut next = random(1);
        let codes = Codes::new((0..5000).map(|_| next() as u8).collect());
        let k: [f32; 256] = std::array::from_fn(|code| 0.3 + code as f32 * 0.0117);
        for n in 0..=BLOCK {
            let mut values: Vec<u32> = (0..n).map(|_| next() as u32 % 5000).collect();
            values.sort_unstable();
            values.iter_mut().rev().take(1).for_each(|last| *last = 4999);
            let frequencies: Vec<u32> =
                (0..n).map(|i| if i % 7 == 0 { next() as u32 | 1 } else { 1 + next() as u32 % 9 }).collect();
            let saturation = Saturation { weight: 3.7, k: &k, codes: &codes };
            let expected: Vec<u32> =
                values.iter().zip(&frequencies).map(|(v, f)| saturation.score_of(*v, *f).to_bits()).collect();
            for kernel in Kernel::available() {
                let mut scores = vec![0.0; n];
                kernel.score(&saturation, &values, &frequencies, &mut scores);
                assert_eq!(
                    scores.iter().map(|score| score.to_bits()).collect::<Vec<_>>(),
                    expected,
                    "{kernel:?}"
                );
            }
        }
    }

    #[test]
    fn values_without_a_code_are_refused() {
        let codes = Codes::new(vec![1; 100]);
        let saturation = Saturation { weight: 1.0, k: &[1.0; 256], codes: &codes };
        for kernel in Kernel::available() {
            for value in [100, 101, 1 << 31, u32::MAX] {
                let run = || kernel.score(&saturation, &[0, 1, value], &[1; 3], &mut [0.0; 3]);
                assert!(std::panic::catch_unwind(run).is_err(), "{kernel:?}, {value}");
            }
        }
    }

    #[test]
    fn every_kernel_finds_the_same_places() {
        let mut next = random(2);
        for n in 0..=BLOCK {
            let scores: Vec<f32> = (0..n).map(|_| (next() % 20) as f32).collect();
            for kernel in Kernel::available() {
                assert_eq!(kernel.positive(&scores), scores.iter().filter(|score| **score > 0.0).count());
            }
            for least in [f32::NEG_INFINITY, 0.0, 7.0, 19.0, 20.0, f32::INFINITY] {
                let expected: Vec<u8> = (0..n).filter(|i| scores[*i] >= least).map(|i| i as u8).collect();
                for kernel in Kernel::available() {
                    let mut places = Places::new();
                    kernel.at_least(&scores, least, &mut places);
                    assert_eq!(places.get(), expected, "{kernel:?}");
                    if least.is_finite() {
                        let values: Vec<u32> =
                            scores.iter().map(|score| *score as u32 + u32::MAX / 2).collect();
                        kernel.values_at_least(&values, least as u32 + u32::MAX / 2, &mut places);
                        assert_eq!(places.get(), expected, "{kernel:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn every_kernel_moves_the_largest_to_the_front() {
        let mut next = random(3);
        for n in (0..70).chain([255, 256, 1000, 2048, 5000]) {
            for (k, range) in
                [(0, u64::MAX), (1, u64::MAX), (n / 3, 10), (n / 2, u64::MAX), (n, 1), (n / 2, 1)]
            {
                let keys: Vec<u64> = (0..n).map(|_| next() % range).collect();
                let k = k.min(n);
                let mut expected = keys.clone();
                expected.sort_unstable_by(|a, b| b.cmp(a));
                for kernel in Kernel::available() {
                    let mut found = keys.clone();
                    let least = kernel.largest(&mut found, k, &mut Vec::new());
                    assert_eq!(least, k.checked_sub(1).map_or(u64::MAX, |last| expected[last]));
                    found[..k].sort_unstable_by(|a, b| b.cmp(a));
                    assert_eq!(found[..k], expected[..k], "{kernel:?}, {k} of {n}");
                    found.sort_unstable_by(|a, b| b.cmp(a));
                    assert_eq!(found, expected, "{kernel:?}, {k} of {n}");
                }
            }
        }
    }
}
