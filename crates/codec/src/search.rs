//! Values that two sorted blocks share.

use crate::{BLOCK, Kernel};

/// Places of shared values in both of two blocks.
pub struct Shared {
    /// The slack lets a whole vector be written wherever the last place may be.
    places: [[u8; BLOCK + Shared::SLACK]; 2],
    count: usize,
}

impl Shared {
    pub(crate) const SLACK: usize = 16;

    /// None.
    pub fn new() -> Shared {
        Shared { places: [[0; _]; 2], count: 0 }
    }

    /// Places in the first block.
    pub fn first(&self) -> &[u8] {
        &self.places[0][..self.count]
    }

    /// Places in the second block, in the same order.
    pub fn second(&self) -> &[u8] {
        &self.places[1][..self.count]
    }

    /// Where the next places go, and the number of those that are there.
    pub(crate) fn parts(&mut self) -> (&mut [[u8; BLOCK + Shared::SLACK]; 2], &mut usize) {
        (&mut self.places, &mut self.count)
    }
}

impl Default for Shared {
    fn default() -> Shared {
        Shared::new()
    }
}

/// Whether each value is greater than the one before it.
pub fn rises(values: &[u32]) -> bool {
    Kernel::active().rises(values)
}

/// Adds 1 to each value, to the largest of all with nothing carried, and returns the largest there was; 0 if there are
/// none.
pub fn add_one(values: &mut [u32]) -> u32 {
    Kernel::active().add_one(values)
}

/// Finds the values that stand in both of two strictly rising blocks.
///
/// If they do not rise, some places are found, in both blocks or only in one.
///
/// # Panics
/// If one has more than [`BLOCK`] values.
pub fn intersect(first: &[u32], second: &[u32], shared: &mut Shared) {
    Kernel::active().intersect(first, second, shared);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number that looks random.
    fn mixed(k: u32) -> u32 {
        let z = k.wrapping_mul(0x9e37_79b9);
        (z ^ z >> 15).wrapping_mul(0x85eb_ca6b) >> 8
    }

    /// `n` rising values, each from 1 to `gap` above the one before.
    fn rising(seed: u32, n: usize, gap: u32) -> Vec<u32> {
        let gaps = (0..n as u32).map(|k| 1 + mixed(seed.wrapping_add(k)) % gap);
        gaps.scan(0, |sum, gap| {
            *sum += gap;
            Some(*sum)
        })
        .collect()
    }

    #[test]
    fn every_kernel_finds_what_two_blocks_share() {
        for kernel in Kernel::available() {
            let mut shared = Shared::new();
            for seed in 0..2000 {
                let (n, m) = (mixed(seed) as usize % 257, mixed(seed + 5000) as usize % 257);
                let gap = 1 + mixed(seed + 9000) % 40;
                let (a, b) = (rising(seed * 3, n, gap), rising(seed * 7 + 1, m, 1 + gap / 2));
                kernel.intersect(&a, &b, &mut shared);
                let at = |place: &u8| usize::from(*place);
                let found: Vec<u32> = shared.first().iter().map(|place| a[at(place)]).collect();
                let same: Vec<u32> = shared.second().iter().map(|place| b[at(place)]).collect();
                let expect: Vec<u32> = a.iter().copied().filter(|value| b.contains(value)).collect();
                assert_eq!((&found, &same), (&expect, &expect), "{kernel:?}, {seed}");
            }
        }
    }

    #[test]
    fn every_kernel_sees_what_does_not_rise() {
        for kernel in Kernel::available() {
            for n in 0..100 {
                let values = rising(n as u32, n, 1 << 25);
                assert!(kernel.rises(&values));
                for place in 1..n {
                    let mut values = values.clone();
                    values[place] = values[place - 1];
                    assert!(!kernel.rises(&values), "{kernel:?}, {place} of {n}");
                }
            }
            assert!(!kernel.rises(&[1 << 31, 1]) && kernel.rises(&[1, 1 << 31, u32::MAX]));
        }
    }

    #[test]
    fn every_kernel_adds_one() {
        for kernel in Kernel::available() {
            for n in 0..100 {
                let values: Vec<u32> = (0..n).map(mixed).map(|value| value << 8).collect();
                let mut sums = values.clone();
                assert_eq!(kernel.add_one(&mut sums), values.iter().copied().max().unwrap_or(0));
                assert!(values.iter().zip(&sums).all(|(value, sum)| value + 1 == *sum));
            }
            let mut most = [u32::MAX, 1];
            assert_eq!((kernel.add_one(&mut most), most), (u32::MAX, [0, 2]));
        }
    }

    #[test]
    fn equal_blocks_share_everything_and_disjoint_ones_nothing() {
        for kernel in Kernel::available() {
            let mut shared = Shared::new();
            let all: Vec<u32> = (0..256).map(|k| u32::MAX - 255 + k).collect();
            kernel.intersect(&all, &all, &mut shared);
            let places: Vec<u8> = (0..=255).collect();
            assert_eq!((shared.first(), shared.second()), (&places[..], &places[..]));
            kernel.intersect(&all, &(0..256).collect::<Vec<_>>(), &mut shared);
            assert_eq!(shared.first(), []);
            kernel.intersect(&all, &[], &mut shared);
            kernel.intersect(&[], &all, &mut shared);
            assert_eq!(shared.second(), []);
        }
    }

    #[test]
    fn blocks_that_do_not_rise_are_no_danger() {
        for kernel in Kernel::available() {
            let mut shared = Shared::new();
            for (a, b) in [([7; 256], [7; 256]), ([u32::MAX; 256], [0; 256]), ([0; 256], [u32::MAX; 256])] {
                kernel.intersect(&a, &b, &mut shared);
                assert!(shared.first().len() <= 256);
            }
            for seed in 0..2000 {
                let [n, m] =
                    [seed, seed + 5000].map(|seed| mixed(seed) as usize % [257, 20][seed as usize % 2]);
                let values =
                    |n, seed| (0..n as u32).map(|k| mixed(seed + k) >> (seed % 24)).collect::<Vec<_>>();
                kernel.intersect(&values(n, seed), &values(m, seed * 7), &mut shared);
                let within = |places: &[u8], n| places.iter().all(|place| usize::from(*place) < n);
                assert!(within(shared.first(), n) && within(shared.second(), m), "{kernel:?}, {seed}");
            }
        }
    }
}
