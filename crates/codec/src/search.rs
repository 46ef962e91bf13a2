//! Intersection of two sorted blocks, and checks and increments of decoded values.

use crate::{block::Intersection, kernel::Kernel};

/// Whether the values are strictly increasing.
pub fn is_increasing(values: &[u32]) -> bool {
    Kernel::active().is_increasing(values)
}

/// Adds 1 to each value, wrapping mod 2^32, and returns the largest value before the addition; 0 if there
/// are none.
pub fn add_one(values: &mut [u32]) -> u32 {
    Kernel::active().add_one(values)
}

/// Finds the values that two strictly increasing blocks share.
///
/// If the values are not strictly increasing, the positions found are unspecified.
///
/// # Panics
/// If a block has more than [`BLOCK`](crate::BLOCK) values.
pub fn intersect(first: &[u32], second: &[u32], shared: &mut Intersection) {
    Kernel::active().intersect(first, second, shared);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pseudorandom number of 24 bits.
    fn random_24_bits(k: u32) -> u32 {
        let z = k.wrapping_mul(0x9e37_79b9);
        (z ^ z >> 15).wrapping_mul(0x85eb_ca6b) >> 8
    }

    /// `n` increasing values with gaps of 1 to `gap`.
    fn increasing_values(seed: u32, n: usize, gap: u32) -> Vec<u32> {
        let gaps = (0..n as u32).map(|k| 1 + random_24_bits(seed.wrapping_add(k)) % gap);
        gaps.scan(0, |sum, gap| {
            *sum += gap;
            Some(*sum)
        })
        .collect()
    }

    #[test]
    fn every_kernel_intersects_two_blocks() {
        for kernel in Kernel::available() {
            let mut shared = Intersection::new();
            for seed in 0..2000 {
                let (n, m) =
                    (random_24_bits(seed) as usize % 257, random_24_bits(seed + 5000) as usize % 257);
                let gap = 1 + random_24_bits(seed + 9000) % 40;
                let (a, b) =
                    (increasing_values(seed * 3, n, gap), increasing_values(seed * 7 + 1, m, 1 + gap / 2));
                kernel.intersect(&a, &b, &mut shared);
                let at = |position: &u8| usize::from(*position);
                let found: Vec<u32> = shared.first().iter().map(|position| a[at(position)]).collect();
                let same: Vec<u32> = shared.second().iter().map(|position| b[at(position)]).collect();
                let expect: Vec<u32> = a.iter().copied().filter(|value| b.contains(value)).collect();
                assert_eq!((&found, &same), (&expect, &expect), "{kernel:?}, {seed}");
            }
        }
    }

    #[test]
    fn every_kernel_detects_values_that_are_not_increasing() {
        for kernel in Kernel::available() {
            for n in 0..100 {
                let values = increasing_values(n as u32, n, 1 << 25);
                assert!(kernel.is_increasing(&values));
                for position in 1..n {
                    let mut values = values.clone();
                    values[position] = values[position - 1];
                    assert!(!kernel.is_increasing(&values), "{kernel:?}, {position} of {n}");
                }
            }
            assert!(!kernel.is_increasing(&[1 << 31, 1]) && kernel.is_increasing(&[1, 1 << 31, u32::MAX]));
        }
    }

    #[test]
    fn every_kernel_adds_one() {
        for kernel in Kernel::available() {
            for n in 0..100 {
                let values: Vec<u32> = (0..n).map(random_24_bits).map(|value| value << 8).collect();
                let mut sums = values.clone();
                assert_eq!(kernel.add_one(&mut sums), values.iter().copied().max().unwrap_or(0));
                assert!(values.iter().zip(&sums).all(|(value, sum)| value + 1 == *sum));
            }
            let mut most = [u32::MAX, 1];
            assert_eq!((kernel.add_one(&mut most), most), (u32::MAX, [0, 2]));
        }
    }

    #[test]
    fn every_kernel_intersects_equal_and_disjoint_blocks() {
        for kernel in Kernel::available() {
            let mut shared = Intersection::new();
            let all: Vec<u32> = (0..256).map(|k| u32::MAX - 255 + k).collect();
            kernel.intersect(&all, &all, &mut shared);
            let positions: Vec<u8> = (0..=255).collect();
            assert_eq!((shared.first(), shared.second()), (&positions[..], &positions[..]));
            kernel.intersect(&all, &(0..256).collect::<Vec<_>>(), &mut shared);
            assert_eq!(shared.first(), []);
            kernel.intersect(&all, &[], &mut shared);
            kernel.intersect(&[], &all, &mut shared);
            assert_eq!(shared.second(), []);
        }
    }

    #[test]
    fn blocks_that_are_not_increasing_stay_in_bounds() {
        for kernel in Kernel::available() {
            let mut shared = Intersection::new();
            for (a, b) in [([7; 256], [7; 256]), ([u32::MAX; 256], [0; 256]), ([0; 256], [u32::MAX; 256])] {
                kernel.intersect(&a, &b, &mut shared);
                assert!(shared.first().len() <= 256);
            }
            for seed in 0..2000 {
                let [n, m] = [seed, seed + 5000]
                    .map(|seed| random_24_bits(seed) as usize % [257, 20][seed as usize % 2]);
                let values = |n, seed| {
                    (0..n as u32).map(|k| random_24_bits(seed + k) >> (seed % 24)).collect::<Vec<_>>()
                };
                kernel.intersect(&values(n, seed), &values(m, seed * 7), &mut shared);
                let within =
                    |positions: &[u8], n| positions.iter().all(|position| usize::from(*position) < n);
                assert!(within(shared.first(), n) && within(shared.second(), m), "{kernel:?}, {seed}");
            }
        }
    }
}
