//! Generated lists: uniform ids, clustered ids, and term frequencies.

use crate::Random;
use std::ops::Range;

/// Exclusive upper limit of ids.
pub(super) const IDS_END: u32 = 50_000_000;

/// A part of a clustered list with fewer ids than this is not divided further.
const CLUSTER_IDS_MIN: usize = 10;

/// The largest generated frequency.
const FREQUENCY_MAX: usize = 127;

/// Length class K of the lists of [`one_or_two_byte_list`]: 2^16 to 2^17 - 1 ids.
pub(super) const ONE_BYTE_LENGTH_CLASS: u32 = 16;

/// `2^k` to `2^(k+1) - 1` ids, uniform in the domain.
pub(super) fn uniform_list(random: &mut Random, k: u32) -> Vec<u32> {
    let (count, mut list) = (random_length(random, k), Vec::new());
    push_uniform(random, count, 0..IDS_END, &mut list);
    list
}

/// `2^k` to `2^(k+1) - 1` ids in clusters.
pub(super) fn clustered_list(random: &mut Random, k: u32) -> Vec<u32> {
    let (count, mut list) = (random_length(random, k), Vec::new());
    push_clustered(random, count, 0..IDS_END, &mut list);
    list
}

/// Ids; `VByte` encodes `percent` of their differences in one byte and the others in two, in random order.
pub(super) fn one_or_two_byte_list(random: &mut Random, percent: u32) -> Vec<u32> {
    let mut id = 0;
    let mut next = |random: &mut Random| {
        let two = random.below(100) >= percent;
        id += if two { 128 + random.below((1 << 14) - 128) } else { 1 + random.below(127) };
        id
    };
    (0..random_length(random, ONE_BYTE_LENGTH_CLASS)).map(|_| next(random)).collect()
}

/// Frequencies of a Zipf distribution truncated at [`FREQUENCY_MAX`]; each list has an exponent of its own.
pub(super) fn zipf_list(random: &mut Random) -> Vec<u32> {
    let exponent = 1.6 + 0.8 * random.unit();
    let weights = (1..=FREQUENCY_MAX).map(|frequency| (frequency as f64).powf(-exponent));
    let sums: Vec<f64> = weights
        .scan(0.0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        })
        .collect();
    let draw = |random: &mut Random| {
        let at = random.unit() * sums[FREQUENCY_MAX - 1];
        sums.partition_point(|&sum| sum <= at) as u32 + 1
    };
    let count = random_length(random, 14);
    (0..count).map(|_| draw(random)).collect()
}

/// A random length of class `k`: `2^k` to `2^(k+1) - 1`.
fn random_length(random: &mut Random, k: u32) -> usize {
    (1usize << k) + random.below(1 << k) as usize
}

/// Appends `count` distinct ids of `range` in increasing order; every set of ids has the same probability.
fn push_uniform(random: &mut Random, count: usize, range: Range<u32>, out: &mut Vec<u32>) {
    let size = range.len();
    assert!(count <= size, "a range of {size} has no {count} ids");
    if count <= size / 2 {
        let chosen = sample_below(random, count, size);
        out.extend(chosen.into_iter().map(|at| range.start + at));
        return;
    }
    let mut left_out = sample_below(random, size - count, size).into_iter().peekable();
    out.extend(range.clone().filter(|id| left_out.next_if_eq(&(id - range.start)).is_none()));
}

/// `count` distinct numbers below `size` in increasing order. `count` is at most half of `size`.
fn sample_below(random: &mut Random, count: usize, size: usize) -> Vec<u32> {
    let mut chosen = Vec::with_capacity(count);
    while chosen.len() < count {
        let missing = count - chosen.len();
        chosen.extend((0..missing).map(|_| random.below(size as u32)));
        chosen.sort_unstable();
        chosen.dedup();
    }
    chosen
}

/// Appends `count` clustered ids of `range` in increasing order, by the recursive model of Anh and Moffat
/// ("Index compression using 64-bit words", 2010). The range is split at a random point, and each part gets
/// half of the ids. With probability 1/4 the first part is filled uniformly, with probability 1/4 the
/// second; the other parts are split again.
fn push_clustered(random: &mut Random, count: usize, range: Range<u32>, out: &mut Vec<u32>) {
    let size = range.len();
    if count == size || count < CLUSTER_IDS_MIN {
        return push_uniform(random, count, range, out);
    }
    let first = count / 2;
    let cut = range.start + first as u32 + random.below((size - count) as u32);
    let choice = random.below(4);
    let half = |uniformly: bool| if uniformly { push_uniform } else { push_clustered };
    half(choice == 0)(random, first, range.start..cut, out);
    half(choice == 1)(random, count - first, cut..range.end, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_list(list: &[u32], k: u32) {
        assert!((1 << k..2 << k).contains(&list.len()), "{} ids for K {k}", list.len());
        assert!(list.is_sorted_by(|a, b| a < b));
        assert!(list.iter().all(|&id| id < IDS_END));
    }

    #[test]
    fn ids_increase_in_the_domain_and_lists_have_the_length_of_their_class() {
        let mut random = Random::new(7);
        for k in [0, 1, 3, 4, 10, 15, 20] {
            for _ in 0..3 {
                assert_list(&uniform_list(&mut random, k), k);
                assert_list(&clustered_list(&mut random, k), k);
            }
        }
    }

    #[test]
    fn dense_and_full_ranges_are_filled() {
        let mut random = Random::new(8);
        for count in [0, 1, 9, 10, 499, 501, 999, 1000] {
            for fill in [push_uniform, push_clustered] {
                let mut list = vec![5];
                fill(&mut random, count, 100..1100, &mut list);
                assert_eq!(list.len(), count + 1);
                assert!(list[1..].iter().all(|id| (100..1100).contains(id)));
                assert!(list.is_sorted_by(|a, b| a < b));
            }
        }
    }

    #[test]
    fn only_uniform_ids_are_spread_evenly() {
        let spread = |list: &[u32]| {
            let mut gaps: Vec<u32> = list.windows(2).map(|pair| pair[1] - pair[0]).collect();
            gaps.sort_unstable();
            f64::from(gaps[gaps.len() / 2]) / (f64::from(IDS_END) / list.len() as f64)
        };
        let mut random = Random::new(9);
        // Gaps of a uniform list are exponentially distributed: their median is ln 2 times their mean.
        assert!((spread(&uniform_list(&mut random, 16)) - std::f64::consts::LN_2).abs() < 0.02);
        assert!(spread(&clustered_list(&mut random, 16)) < 0.5);
    }

    #[test]
    fn frequencies_are_small_and_spread() {
        let list = zipf_list(&mut Random::new(10));
        assert!((1 << 14..2 << 14).contains(&list.len()));
        assert!(list.iter().all(|frequency| (1..=FREQUENCY_MAX as u32).contains(frequency)));
        let ones = list.iter().filter(|&&frequency| frequency == 1).count() as f64 / list.len() as f64;
        assert!((0.35..0.75).contains(&ones), "{ones}");
        let bits = |block: &[u32]| f64::from(32 - block.iter().max().unwrap().leading_zeros());
        let mean = list.chunks(256).map(bits).sum::<f64>() / list.len().div_ceil(256) as f64;
        assert!((5.0..=7.0).contains(&mean), "{mean}");
    }

    #[test]
    fn differences_take_one_or_two_bytes() {
        for percent in [0, 30, 100] {
            let list = one_or_two_byte_list(&mut Random::new(11), percent);
            assert!((1 << ONE_BYTE_LENGTH_CLASS..2 << ONE_BYTE_LENGTH_CLASS).contains(&list.len()));
            let gaps = || list.windows(2).map(|pair| pair[1] - pair[0]);
            assert!(gaps().all(|gap| (1..1 << 14).contains(&gap)));
            let short = gaps().filter(|&gap| gap < 128).count() as f64 / gaps().count() as f64;
            assert!((short - f64::from(percent) / 100.0).abs() < 0.01, "{percent}: {short}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_lists() {
        let list = |seed| clustered_list(&mut Random::new(seed), 10);
        assert_eq!(list(1), list(1));
        assert_ne!(list(1), list(2));
    }
}
