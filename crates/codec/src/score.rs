//! Scores of a block, and filters over arrays of scores: a selection vector, window sums, the largest keys.
//!
//! A score is an unsigned 32-bit integer, so that a sum of scores does not depend on the order of summation.
//! It has the form of BM25: `max(1, round_ties_even(weight * (f / (f + k))))`, where `f` is the frequency of
//! a value and `k` belongs to the code of the value. The argument of the rounding is computed in `f32` and
//! in this order: a sum, a division, a multiplication. All kernels give the same bits.

use crate::block::{Selection, Survivors};
use crate::{kernel::Kernel, saturation::Saturation};

impl Saturation<'_> {
    /// Scores of a block of values, each at least 1.
    ///
    /// # Panics
    /// If a value has no code, if `frequencies` or `scores` is not as long as `values`, or if there are more
    /// than [`BLOCK`](crate::BLOCK) values.
    pub fn score(&self, values: &[u32], frequencies: &[u32], scores: &mut [u32]) {
        Kernel::active().score(self, values, frequencies, scores);
    }

    /// Adds the scores of the values of a bitmap to their sums, mod 2^32. Bit `i mod 8` of byte `i div 8`
    /// and the `i`-th sum belong to value `first + i`. There is one frequency for each set bit; bits without
    /// a sum are ignored.
    ///
    /// # Panics
    /// If there are more sums than bits, or if a value that has a sum has no code.
    pub fn add_bits(&self, bits: &[u8], first: u32, frequencies: &[u32], sums: &mut [u32]) {
        Kernel::active().score_bitmap(self, bits, first, frequencies, sums);
    }
}

/// Selects the values of a block that are at least `threshold`, such as scores or frequencies.
///
/// # Panics
/// If there are more than [`BLOCK`](crate::BLOCK) values.
pub fn values_at_least(values: &[u32], threshold: u32, selection: &mut Selection) {
    Kernel::active().values_at_least(values, threshold, selection);
}

/// Collects the sums that are greater than 0 and at least `threshold`, counts those greater than 0, and sets
/// all sums to 0. The first sum belongs to value `first`.
pub fn drain_at_least(sums: &mut [u32], first: u32, threshold: u32, survivors: &mut Survivors) {
    Kernel::active().drain_at_least(sums, first, threshold, survivors);
}

/// Sets the bits of the sums that are greater than 0: bit `i mod 8` of byte `i div 8` belongs to the `i`-th
/// sum. Other bits keep their value.
///
/// # Panics
/// If there are more sums than bits.
pub fn mark_positive(sums: &[u32], bits: &mut [u8]) {
    Kernel::active().mark_positive(sums, bits);
}

/// Sets the sums to 0 whose bits are clear: bit `i mod 8` of byte `i div 8` belongs to the `i`-th sum. Bits
/// without a sum are ignored.
///
/// # Panics
/// If there are more sums than bits.
pub fn keep_marked(sums: &mut [u32], bits: &[u8]) {
    Kernel::active().keep_marked(sums, bits);
}

/// Copies the values whose bits are set to the front of `out`, in the same order: bit `i mod 8` of byte
/// `i div 8` belongs to value `i`; a value without a bit is not copied. Returns their number; the contents
/// after them are unspecified.
///
/// # Panics
/// If `out` is shorter than the values, or if the number of bytes of the bits is not a multiple of four.
pub fn copy_marked(values: &[u32], bits: &[u8], out: &mut [u32]) -> usize {
    Kernel::active().copy_marked(values, bits, out)
}

/// Compacts values and scores: moves those from index `from` on whose score is at least `threshold` to the
/// front, in the same order. Returns their number; the contents after them are unspecified.
///
/// # Panics
/// If values and scores differ in length, or if `from` is greater than their length.
pub fn keep_at_least(values: &mut [u32], scores: &mut [u32], from: usize, threshold: u32) -> usize {
    Kernel::active().keep_at_least(values, scores, from, threshold)
}

/// Moves the largest `k` of `keys` to the front, in no order, and returns the smallest of these. `scratch`
/// is a reusable buffer; it grows to at most eight entries more than there are keys.
///
/// # Panics
/// If there are fewer than `k` keys.
pub fn largest(keys: &mut [u64], k: usize, scratch: &mut Vec<u64>) -> u64 {
    Kernel::active().largest(keys, k, scratch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::BLOCK;
    use crate::saturation::{CodeTable, WEIGHT_MAX};

    /// A generator of pseudorandom numbers (xorshift64*).
    fn random_numbers(seed: u64) -> impl FnMut() -> u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.wrapping_mul(0x2545_f491_4f6c_dd1d)
        }
    }

    /// Weights from 0, with which every score is 1, to the maximum.
    const WEIGHTS: [f32; 8] =
        [0.0, 1e-30, 1.4, 2.5, 3.7 * 4096.0, 8_388_609.0, 1.9 * (1 << 30) as f32, WEIGHT_MAX];

    /// `k` of each code. Code 9 has `k` = 0, with which every score is the weight.
    fn k_of_codes() -> CodeTable {
        CodeTable::new(std::array::from_fn(|code| if code == 9 { 0.0 } else { 0.3 + code as f32 * 0.0117 }))
    }

    /// A score by its definition.
    fn score_by_definition(weight: f32, f: u32, k: f32) -> u32 {
        let f = f as f32;
        let exact = f64::from(weight * (f / (f + k)));
        let (below, above) = (exact.floor(), exact.ceil());
        let rounded = match (exact - below).total_cmp(&0.5) {
            std::cmp::Ordering::Less => below,
            std::cmp::Ordering::Equal => [below, above][below as usize % 2],
            std::cmp::Ordering::Greater => above,
        };
        if rounded < 1.0 { 1 } else { rounded as u32 }
    }

    #[test]
    fn every_kernel_gives_the_defined_scores() {
        let mut next = random_numbers(1);
        let codes: Vec<u8> = (0..5000).map(|_| next() as u8).collect();
        let k = k_of_codes();
        for (n, weight) in (0..=BLOCK).flat_map(|n| WEIGHTS.map(|weight| (n, weight))) {
            let mut values: Vec<u32> = (0..n).map(|_| next() as u32 % 5000).collect();
            values.sort_unstable();
            values.iter_mut().rev().take(1).for_each(|last| *last = 4999);
            let frequencies: Vec<u32> =
                (0..n).map(|i| if i % 7 == 0 { next() as u32 | 1 } else { 1 + next() as u32 % 9 }).collect();
            let saturation = Saturation { weight, k: &k, codes: &codes };
            let both = values.iter().zip(&frequencies);
            let expected: Vec<u32> = both
                .clone()
                .map(|(v, f)| score_by_definition(weight, *f, k.get(codes[*v as usize])))
                .collect();
            let one_by_one: Vec<u32> = both.map(|(v, f)| saturation.score_of(*v, *f)).collect();
            assert_eq!(one_by_one, expected, "{weight}");
            for kernel in Kernel::available() {
                let mut scores = vec![0; n];
                kernel.score(&saturation, &values, &frequencies, &mut scores);
                assert_eq!(scores, expected, "{kernel:?}, {weight}");
            }
        }
    }

    #[test]
    fn scores_are_rounded_to_even_and_stay_in_bounds() {
        // With frequency 1, `f / (f + k)` is a half for `k` = 1 and 1 for `k` = 0.
        let numbers = CodeTable::new(std::array::from_fn(|code| code as f32));
        let most = WEIGHT_MAX as u32;
        assert_eq!(most, (1 << 31) - 128);
        for (weight, k, score) in [
            (0.0, 1, 1),
            (1.0, 1, 1),
            (1.0, 0, 1),
            (3.0, 1, 2),
            (5.0, 1, 2),
            (7.0, 1, 4),
            (9.0, 1, 4),
            (8_388_609.0, 1, 4_194_304),
            (8_388_611.0, 1, 4_194_306),
            (16_777_215.0, 0, 16_777_215),
            (WEIGHT_MAX, 1, (1 << 30) - 64),
            (WEIGHT_MAX, 0, most),
            // Weights outside the contract have defined scores, the same for every kernel.
            ((1_u32 << 31) as f32, 0, most),
            (1e30, 0, most),
            (f32::INFINITY, 0, most),
            (f32::NAN, 0, 1),
            (-1.0, 0, 1),
            (-1e30, 0, 1),
            (f32::NEG_INFINITY, 0, 1),
        ] {
            let saturation = Saturation { weight, k: &numbers, codes: &[k; 33] };
            assert_eq!(saturation.score_of(0, 1), score, "{weight}, {k}");
            for kernel in Kernel::available() {
                let mut scores = [0; 33];
                kernel.score(&saturation, &[3; 33], &[1; 33], &mut scores);
                assert_eq!(scores, [score; 33], "{kernel:?}, {weight}, {k}");
                let mut sums = [100; 33];
                kernel.score_bitmap(&saturation, &[0xff; 5], 0, &[1; 40], &mut sums);
                assert_eq!(sums, [100 + score; 33], "{kernel:?}, {weight}, {k}");
                // 0 divided by 0 is not a number.
                kernel.score(&saturation, &[3; 33], &[0; 33], &mut scores);
                assert_eq!(scores, [1; 33], "{kernel:?}, {weight}, {k}");
            }
        }
    }

    #[test]
    fn every_kernel_adds_the_same_scores_of_bits() {
        let mut next = random_numbers(3);
        let codes: Vec<u8> = (0..3000).map(|_| next() as u8).collect();
        let k = k_of_codes();
        for (len, weight) in (0..200).step_by(3).flat_map(|len| WEIGHTS.map(|weight| (len, weight))) {
            let saturation = Saturation { weight, k: &k, codes: &codes };
            let first = 8 * (next() as u32 % 170);
            let bits: Vec<u8> = (0..len).map(|_| (next() & next()) as u8).collect();
            let values = (0..8 * len).filter(|i| bits[i / 8] >> (i % 8) & 1 == 1);
            let values: Vec<u32> = values.map(|i| first + i as u32).collect();
            let frequencies: Vec<u32> = values.iter().map(|_| 1 + next() as u32 % 9).collect();
            let sums_len = (8 * len).saturating_sub(next() as usize % 20).min(3000 - first as usize);
            // With a large weight some sums wrap.
            let start: Vec<u32> = (0..sums_len).map(|_| next() as u32).collect();
            let mut expected = start.clone();
            for (value, frequency) in values.iter().zip(&frequencies) {
                if let Some(sum) = expected.get_mut((value - first) as usize) {
                    let score = score_by_definition(weight, *frequency, k.get(codes[*value as usize]));
                    *sum = sum.wrapping_add(score);
                }
            }
            for kernel in Kernel::available() {
                let mut sums = start.clone();
                kernel.score_bitmap(&saturation, &bits, first, &frequencies, &mut sums);
                assert_eq!(sums, expected, "{kernel:?}, {len}, {weight}");
            }
        }
    }

    #[test]
    fn sums_do_not_depend_on_the_order() {
        let mut next = random_numbers(5);
        let (codes, k, n) = ([7; 256], k_of_codes(), 256);
        let lists: Vec<(f32, Vec<u32>)> =
            (0..9).map(|i| (1e6 / (i + 1) as f32, (0..n).map(|_| 1 + next() as u32 % 9).collect())).collect();
        for kernel in Kernel::available() {
            let sums = [false, true].map(|reversed| {
                let mut sums = [0; 256];
                let add = |(weight, frequencies): &(f32, Vec<u32>)| {
                    let saturation = Saturation { weight: *weight, k: &k, codes: &codes };
                    kernel.score_bitmap(&saturation, &[0xff; 32], 0, frequencies, &mut sums);
                };
                if reversed {
                    lists.iter().rev().for_each(add)
                } else {
                    lists.iter().for_each(add)
                }
                sums
            });
            assert_eq!(sums[0], sums[1], "{kernel:?}");
        }
    }

    #[test]
    fn values_without_a_code_panic() {
        let codes = [1; 100];
        let saturation = Saturation { weight: 1.0, k: &CodeTable::new([1.0; 256]), codes: &codes };
        for kernel in Kernel::available() {
            for value in [100, 101, 1 << 31, u32::MAX] {
                let run = || kernel.score(&saturation, &[0, 1, value], &[1; 3], &mut [0; 3]);
                assert!(std::panic::catch_unwind(run).is_err(), "{kernel:?}, {value}");
            }
        }
    }

    /// `n` random sums, of which some are 0, some are small, and some are at and above 2^31.
    fn some_sums(n: usize, next: &mut impl FnMut() -> u64) -> Vec<u32> {
        let sum = |kind| match kind % 5 {
            0 | 1 => 0,
            2 => u32::MAX - (kind >> 32) as u32 % 10,
            3 => (1 << 31) - 5 + (kind >> 32) as u32 % 10,
            _ => (kind >> 32) as u32 % 10,
        };
        (0..n).map(|_| sum(next())).collect()
    }

    /// Thresholds below, above and among [`some_sums`].
    const THRESHOLDS: [u32; 9] = [0, 1, 2, 7, 20, (1 << 31) - 1, 1 << 31, u32::MAX - 3, u32::MAX];

    #[test]
    fn every_kernel_keeps_the_same_values() {
        let mut next = random_numbers(4);
        for n in 0..200 {
            let values: Vec<u32> = (0..n as u32).map(|i| i * 3).collect();
            let scores = some_sums(n, &mut next);
            let from = next() as usize % (n + 1);
            for threshold in THRESHOLDS {
                let expected: Vec<usize> = (from..n).filter(|i| scores[*i] >= threshold).collect();
                for kernel in Kernel::available() {
                    let (mut kept_values, mut kept_scores) = (values.clone(), scores.clone());
                    let kept = kernel.keep_at_least(&mut kept_values, &mut kept_scores, from, threshold);
                    assert_eq!(kept, expected.len(), "{kernel:?}");
                    for (k, i) in expected.iter().enumerate() {
                        let (found, expected) = ((kept_values[k], kept_scores[k]), (values[*i], scores[*i]));
                        assert_eq!(found, expected, "{kernel:?}, {threshold}");
                    }
                }
            }
        }
    }

    #[test]
    fn every_kernel_selects_the_same_positions() {
        let mut next = random_numbers(2);
        for n in 0..=BLOCK {
            let scores = some_sums(n, &mut next);
            for threshold in THRESHOLDS {
                let expected: Vec<u8> = (0..n).filter(|i| scores[*i] >= threshold).map(|i| i as u8).collect();
                for kernel in Kernel::available() {
                    let mut selection = Selection::new();
                    kernel.values_at_least(&scores, threshold, &mut selection);
                    assert_eq!(selection.positions(), expected, "{kernel:?}, {threshold}");
                }
            }
        }
    }

    #[test]
    fn every_kernel_drains_alike() {
        let mut next = random_numbers(6);
        for n in 0..700 {
            let start = some_sums(n, &mut next);
            let positive = start.iter().filter(|sum| **sum > 0).count();
            for (threshold, first) in
                THRESHOLDS.into_iter().flat_map(|threshold| [(threshold, 70), (threshold, u32::MAX - 255)])
            {
                let large = |i: &usize| start[*i] > 0 && start[*i] >= threshold;
                let values: Vec<u32> = (0..n).filter(large).map(|i| first.wrapping_add(i as u32)).collect();
                let found: Vec<u32> = (0..n).filter(large).map(|i| start[i]).collect();
                for kernel in Kernel::available() {
                    let (mut sums, mut survivors) = (start.clone(), Survivors::default());
                    kernel.drain_at_least(&mut sums, first, threshold, &mut survivors);
                    let kept = (survivors.values(), survivors.sums(), survivors.positive());
                    assert_eq!(kept, (&values[..], &found[..], positive), "{kernel:?}");
                    assert!(sums.iter().all(|sum| *sum == 0), "{kernel:?}, {n}");
                }
            }
        }
    }

    #[test]
    fn every_kernel_marks_positive_sums_and_keeps_marked_ones() {
        let mut next = random_numbers(7);
        for n in 0..700 {
            // Bits without a sum keep their value, including whole bytes of them.
            for spare in [0, 1, 2, 9] {
                let start = some_sums(n, &mut next);
                let bits: Vec<u8> = (0..n.div_ceil(8) + spare).map(|_| (next() & next()) as u8).collect();
                let mut marked = bits.clone();
                let mut kept = start.clone();
                for (i, sum) in kept.iter_mut().enumerate() {
                    marked[i / 8] |= u8::from(*sum > 0) << (i % 8);
                    *sum = if bits[i / 8] >> (i % 8) & 1 == 1 { *sum } else { 0 };
                }
                for kernel in Kernel::available() {
                    let (mut sums, mut marks) = (start.clone(), bits.clone());
                    kernel.mark_positive(&sums, &mut marks);
                    assert_eq!(marks, marked, "{kernel:?}, {n}");
                    kernel.keep_marked(&mut sums, &bits);
                    assert_eq!(sums, kept, "{kernel:?}, {n}");
                }
            }
        }
    }

    #[test]
    fn every_kernel_copies_marked_values() {
        let mut next = random_numbers(11);
        for n in 0..600 {
            let bits: Vec<u8> = (0..4 * (n % 20)).map(|_| (next() | next()) as u8).collect();
            let range = 10 * (n as u64 % 20 + 1) * 4;
            let mut values: Vec<u32> = (0..n).map(|_| (next() % range) as u32).collect();
            if n > 3 {
                values[n / 2] = u32::MAX - (next() % 3) as u32;
            }
            let is_marked = |value: &&u32| {
                bits.get(**value as usize / 8).is_some_and(|byte| byte >> (**value % 8) & 1 == 1)
            };
            let expect: Vec<u32> = values.iter().filter(is_marked).copied().collect();
            for kernel in Kernel::available() {
                let mut out = vec![0; n];
                let copied = kernel.copy_marked(&values, &bits, &mut out);
                assert_eq!(out[..copied], expect, "{kernel:?}, {n}");
            }
        }
    }

    #[test]
    fn marks_of_half_words_and_short_buffers_panic() {
        for kernel in Kernel::available() {
            for (values, bits, out) in [(1, 8, 0), (17, 8, 16), (1, 6, 1), (20, 15, 20)] {
                let copy = || kernel.copy_marked(&vec![1; values], &vec![0; bits], &mut vec![0; out]);
                assert!(std::panic::catch_unwind(copy).is_err(), "{kernel:?}, {values}, {bits}, {out}");
            }
        }
    }

    #[test]
    fn sums_without_a_bit_panic() {
        for kernel in Kernel::available() {
            for (sums, bits) in [(1, 0), (9, 1), (64, 7), (65, 8), (513, 64), (600, 64)] {
                let mark = || kernel.mark_positive(&vec![1; sums], &mut vec![0; bits]);
                assert!(std::panic::catch_unwind(mark).is_err(), "{kernel:?}, {sums}");
                let keep = || kernel.keep_marked(&mut vec![1; sums], &vec![0; bits]);
                assert!(std::panic::catch_unwind(keep).is_err(), "{kernel:?}, {sums}");
            }
        }
    }

    #[test]
    fn every_kernel_moves_the_largest_to_the_front() {
        let mut next = random_numbers(3);
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
                    let kth = kernel.largest(&mut found, k, &mut Vec::new());
                    assert_eq!(kth, k.checked_sub(1).map_or(u64::MAX, |last| expected[last]));
                    found[..k].sort_unstable_by(|a, b| b.cmp(a));
                    assert_eq!(found[..k], expected[..k], "{kernel:?}, {k} of {n}");
                    found.sort_unstable_by(|a, b| b.cmp(a));
                    assert_eq!(found, expected, "{kernel:?}, {k} of {n}");
                }
            }
        }
    }
}
