//! What a ranking does with a block of values that have been decoded: scores for all of them, those that
//! score enough, and the best of many.
//!
//! Scores have the form that BM25 has: `weight * (f / (f + k))` in `f32` and in this order, where `f` is how
//! often something stands at a value and `k` belongs to the value's code. All kernels give the same bits.

use crate::{BLOCK, Kernel};

/// A number for each code of one byte.
pub struct ByCode {
    numbers: [f32; 256],
    /// The first byte of each number, the second, and so on: vector instructions look up bytes where they
    /// would have to gather words.
    pub(crate) planes: [[u8; 256]; 4],
}

impl ByCode {
    /// The number of each code.
    pub fn new(numbers: [f32; 256]) -> ByCode {
        let byte = |plane: usize| numbers.map(|number: f32| number.to_le_bytes()[plane]);
        ByCode { numbers, planes: std::array::from_fn(byte) }
    }

    /// The number of a code.
    #[inline]
    pub fn get(&self, code: u8) -> f32 {
        self.numbers[usize::from(code)]
    }
}

/// What a value's score depends on beside its frequency.
#[derive(Clone, Copy)]
pub struct Saturation<'a> {
    /// The score of a frequency without end.
    pub weight: f32,
    /// `k` of each code.
    pub k: &'a ByCode,
    /// The code of each value from 0 on.
    pub codes: &'a [u8],
}

impl Saturation<'_> {
    /// Scores of a block of values.
    ///
    /// # Panics
    /// If a value has no code, or if there are not as many frequencies and scores as values, or more than
    /// [`BLOCK`].
    pub fn score(&self, values: &[u32], frequencies: &[u32], scores: &mut [f32]) {
        Kernel::active().score(self, values, frequencies, scores);
    }

    /// Adds the scores of the values whose bits are set to their sums: bit `i mod 8` of byte `i div 8` and
    /// the `i`-th sum are those of `first + i`. Bits without a sum are not looked at. There is a frequency
    /// for each value.
    ///
    /// # Panics
    /// If there are more sums than bits, or if a value that has a sum has no code.
    pub fn add_bits(&self, bits: &[u8], first: u32, frequencies: &[u32], sums: &mut [f32]) {
        Kernel::active().bitmap_score(self, bits, first, frequencies, sums);
    }

    /// Score of one value.
    ///
    /// # Panics
    /// If it has no code.
    #[inline]
    pub fn score_of(&self, value: u32, frequency: u32) -> f32 {
        let f = frequency as f32;
        self.weight * (f / (f + self.k.get(self.codes[value as usize])))
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

/// Sums of scores that were large enough, rising by their values.
#[derive(Default)]
pub struct Swept {
    values: Vec<u32>,
    sums: Vec<f32>,
    found: usize,
    positive: usize,
}

impl Swept {
    pub(crate) const SLACK: usize = 16;

    /// The values whose sums they are.
    pub fn values(&self) -> &[u32] {
        &self.values[..self.found]
    }

    /// The sums.
    pub fn sums(&self) -> &[f32] {
        &self.sums[..self.found]
    }

    /// How many sums were greater than 0, whether or not they were large enough.
    pub fn positive(&self) -> usize {
        self.positive
    }

    /// Makes room for so many sums and a vector more, and gives the values, the sums, and how many of them
    /// there are and are positive.
    pub(crate) fn parts(&mut self, sums: usize) -> (&mut [u32], &mut [f32], &mut usize, &mut usize) {
        if self.values.len() < sums + Swept::SLACK {
            self.values.resize(sums + Swept::SLACK, 0);
            self.sums.resize(sums + Swept::SLACK, 0.0);
        }
        (&mut self.values, &mut self.sums, &mut self.found, &mut self.positive)
    }
}

/// Finds which sums, of the values from `first` on, are at least `least`, counts those that are greater than
/// 0, and makes all of them 0.
pub fn sweep(sums: &mut [f32], first: u32, least: f32, swept: &mut Swept) {
    Kernel::active().sweep(sums, first, least, swept);
}

/// Moves the values from place `from` on whose scores are at least `least` to the front, with their scores
/// and their `rows`, in the order in which they stand; returns how many they are. What stands behind them
/// then is not known. There may be no rows at all.
///
/// # Panics
/// If there are not as many scores as values, nor as many rows or none, or if there are fewer than `from`.
pub fn keep_at_least(
    values: &mut [u32],
    scores: &mut [f32],
    rows: &mut [u32],
    from: usize,
    least: f32,
) -> usize {
    Kernel::active().keep_at_least(values, scores, rows, from, least)
}

/// Moves the largest `k` of `keys` to the front, in no order, and returns the smallest of these. `scratch` is
/// room for the work, and grows to at most as many and eight.
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
        let codes: Vec<u8> = (0..5000).map(|_| next() as u8).collect();
        let k = ByCode::new(std::array::from_fn(|code| 0.3 + code as f32 * 0.0117));
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
    fn every_kernel_adds_the_same_scores_of_bits() {
        let mut next = random(3);
        let codes: Vec<u8> = (0..3000).map(|_| next() as u8).collect();
        let k = ByCode::new(std::array::from_fn(|code| 0.3 + code as f32 * 0.0117));
        let saturation = Saturation { weight: 3.7, k: &k, codes: &codes };
        for len in (0..200).step_by(3) {
            let first = 8 * (next() as u32 % 170);
            let bits: Vec<u8> = (0..len).map(|_| (next() & next()) as u8).collect();
            let values = (0..8 * len).filter(|i| bits[i / 8] >> (i % 8) & 1 == 1);
            let values: Vec<u32> = values.map(|i| first + i as u32).collect();
            let frequencies: Vec<u32> = values.iter().map(|_| 1 + next() as u32 % 9).collect();
            let sums_len = (8 * len).saturating_sub(next() as usize % 20).min(3000 - first as usize);
            let start: Vec<f32> = (0..sums_len).map(|_| (next() % 100) as f32 / 7.0).collect();
            let mut expected = start.clone();
            for (value, frequency) in values.iter().zip(&frequencies) {
                if let Some(sum) = expected.get_mut((value - first) as usize) {
                    *sum += saturation.score_of(*value, *frequency);
                }
            }
            for kernel in Kernel::available() {
                let mut sums = start.clone();
                kernel.bitmap_score(&saturation, &bits, first, &frequencies, &mut sums);
                assert_eq!(sums, expected, "{kernel:?}, {len}");
            }
        }
    }

    #[test]
    fn values_without_a_code_are_refused() {
        let codes = [1; 100];
        let saturation = Saturation { weight: 1.0, k: &ByCode::new([1.0; 256]), codes: &codes };
        for kernel in Kernel::available() {
            for value in [100, 101, 1 << 31, u32::MAX] {
                let run = || kernel.score(&saturation, &[0, 1, value], &[1; 3], &mut [0.0; 3]);
                assert!(std::panic::catch_unwind(run).is_err(), "{kernel:?}, {value}");
            }
        }
    }

    #[test]
    fn every_kernel_keeps_the_same_values() {
        let mut next = random(4);
        for n in 0..200 {
            let values: Vec<u32> = (0..n).map(|i| i * 3).collect();
            let scores: Vec<f32> = values.iter().map(|_| (next() % 20) as f32).collect();
            let from = next() as usize % (n as usize + 1);
            for least in [f32::NEG_INFINITY, 7.0, 19.0, 20.0] {
                let expected: Vec<usize> = (from..n as usize).filter(|i| scores[*i] >= least).collect();
                for kernel in Kernel::available() {
                    for rows in [vec![], values.iter().map(|value| value + 1).collect::<Vec<_>>()] {
                        let (mut values, mut scores, mut rows) = (values.clone(), scores.clone(), rows);
                        let before = scores.clone();
                        let kept = kernel.keep_at_least(&mut values, &mut scores, &mut rows, from, least);
                        assert_eq!(kept, expected.len(), "{kernel:?}");
                        for (k, place) in expected.iter().enumerate() {
                            assert_eq!((values[k], scores[k]), (3 * *place as u32, before[*place]));
                            assert!(rows.is_empty() || rows[k] == values[k] + 1, "{kernel:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn every_kernel_finds_the_same_places() {
        let mut next = random(2);
        for n in 0..=BLOCK {
            let scores: Vec<f32> = (0..n).map(|_| (next() % 20) as f32).collect();
            for least in [f32::NEG_INFINITY, 0.0, 7.0, 19.0, 20.0, f32::INFINITY] {
                let expected: Vec<u8> = (0..n).filter(|i| scores[*i] >= least).map(|i| i as u8).collect();
                for kernel in Kernel::available() {
                    let mut places = Places::new();
                    kernel.at_least(&scores, least, &mut places);
                    assert_eq!(places.get(), expected, "{kernel:?}");
                    let (mut sums, mut swept) = (scores.clone(), Swept::default());
                    for first in [70, u32::MAX - 255] {
                        sums.copy_from_slice(&scores);
                        kernel.sweep(&mut sums, first, least, &mut swept);
                        assert_eq!(swept.positive(), scores.iter().filter(|score| **score > 0.0).count());
                        let values: Vec<u32> =
                            expected.iter().map(|place| first + u32::from(*place)).collect();
                        let enough: Vec<f32> =
                            scores.iter().copied().filter(|score| *score >= least).collect();
                        assert_eq!((swept.values(), swept.sums()), (&values[..], &enough[..]), "{kernel:?}");
                        assert!(sums.iter().all(|sum| *sum == 0.0));
                    }
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
