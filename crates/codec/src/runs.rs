//! Runs of neighbouring values: copied to one array, and intersected in pairs.

use crate::{BLOCK, Kernel};

/// Values that are read and written behind the end of a run, at most: runs are copied by whole vectors.
pub const RUN_SLACK: usize = 16;

/// Neighbouring values, and what is added to each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// Place of the first value.
    pub start: u16,
    /// Number of values, at least 1.
    pub len: u16,
    /// Added to each mod 2^32.
    pub add: u32,
}

/// Copies runs of a block, one behind the other, to the front of `out`, and returns how many values that are.
/// The values of `out` behind them may be written over.
///
/// # Panics
/// If a run reaches beyond the block, or if `out` is shorter than the runs and [`RUN_SLACK`].
pub fn copy_runs(values: &[u32; BLOCK + RUN_SLACK], runs: &[Run], out: &mut [u32]) -> usize {
    Kernel::active().copy_runs(values, runs, out)
}

/// A run of one block and one of another, to be compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunPair {
    /// Place and number of the values of the first block; there is at least one.
    pub first: u16,
    /// See [`RunPair::first`].
    pub first_len: u16,
    /// The run of the second block, with what is added to its values before they are compared.
    pub second: Run,
    /// How many values the two share.
    pub shared: u16,
}

/// Writes the values that the runs of each pair share to the front of `out`, pair by pair, and returns how
/// many these are. `out` has space for all of them and [`RUN_SLACK`] more, which may be overwritten. The runs
/// rise; if they do not, any of their values may be returned.
///
/// # Panics
/// If a run is empty or reaches beyond its block, or if `out` is shorter than [`RUN_SLACK`].
pub fn share_runs(
    first: &[u32; BLOCK + RUN_SLACK],
    second: &[u32; BLOCK + RUN_SLACK],
    pairs: &mut [RunPair],
    out: &mut [u32],
) -> usize {
    Kernel::active().share_runs(first, second, pairs, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_copies_runs() {
        let values: [u32; BLOCK + RUN_SLACK] = std::array::from_fn(|k| (k as u32).wrapping_mul(0x9e37_79b9));
        for kernel in Kernel::available() {
            for seed in 0..2000u16 {
                let runs: Vec<Run> = (0..seed % 40)
                    .map(|k| {
                        let start = k.wrapping_mul(37).wrapping_add(seed) % 256;
                        let len = 1 + k.wrapping_mul(seed) % [2, 20, 256][usize::from(seed % 3)];
                        Run { start, len: len.min(256 - start), add: u32::from(seed) << 20 }
                    })
                    .collect();
                let each = runs.iter().flat_map(|run| {
                    let (start, len) = (usize::from(run.start), usize::from(run.len));
                    values[start..start + len].iter().map(|value| value.wrapping_add(run.add))
                });
                let expect: Vec<u32> = each.collect();
                let mut out = vec![0; expect.len() + RUN_SLACK];
                assert_eq!(kernel.copy_runs(&values, &runs, &mut out), expect.len());
                assert_eq!(out[..expect.len()], expect, "{kernel:?}, {seed}");
            }
        }
    }

    /// Values that rise by 1 to `gap`.
    fn rising(seed: u32, gap: u32) -> [u32; BLOCK + RUN_SLACK] {
        let mut last = 1000 + seed;
        std::array::from_fn(|k| {
            let mixed = (k as u32 ^ seed.wrapping_mul(77)).wrapping_mul(0x9e37_79b9);
            last = last.wrapping_add(1 + (mixed ^ mixed >> 15).wrapping_mul(0x85eb_ca6b) % gap);
            last
        })
    }

    #[test]
    fn every_kernel_finds_what_runs_share() {
        for kernel in Kernel::available() {
            for seed in 0..3000u32 {
                let gap = [1, 2, 5, 30][seed as usize % 4];
                let (first, second) =
                    (rising(seed, gap), rising(seed * 3, [2, 1, 9, 4][seed as usize / 4 % 4]));
                let most = [3, 8, 20, 70, 256][seed as usize % 5];
                let (mut pairs, mut at, mut expect, mut shared) =
                    (Vec::new(), 0, Vec::<u32>::new(), Vec::new());
                while at < BLOCK && pairs.len() < 40 {
                    let mixed = (seed ^ at as u32).wrapping_mul(0x85eb_ca6b) as usize >> 3;
                    let first_len = (1 + mixed % most).min(BLOCK - at);
                    let start = mixed / 300 % BLOCK;
                    let len = (1 + mixed / 7 % (most * 2)).min(BLOCK - start);
                    // The second run begins close to where the first one does.
                    let add = first[at].wrapping_sub(second[start]).wrapping_sub(mixed as u32 % 11);
                    let run = Run { start: start as u16, len: len as u16, add };
                    pairs.push(RunPair {
                        first: at as u16,
                        first_len: first_len as u16,
                        second: run,
                        shared: 9,
                    });
                    let others: Vec<u32> =
                        second[start..start + len].iter().map(|v| v.wrapping_add(add)).collect();
                    let before = expect.len();
                    expect.extend(first[at..at + first_len].iter().filter(|value| others.contains(value)));
                    shared.push((expect.len() - before) as u16);
                    at += first_len;
                }
                let mut out = [0; BLOCK + RUN_SLACK];
                let n = kernel.share_runs(&first, &second, &mut pairs, &mut out);
                assert_eq!(out[..n], expect, "{kernel:?}, {seed}");
                assert!(pairs.iter().map(|pair| pair.shared).eq(shared), "{kernel:?}, {seed}");
            }
        }
    }

    #[test]
    fn runs_that_do_not_rise_are_no_danger() {
        for kernel in Kernel::available() {
            for (first, second) in [(7, 7), (u32::MAX, 0), (0, u32::MAX)] {
                let run = Run { start: 0, len: 256, add: 0 };
                let pair = RunPair { first: 0, first_len: 256, second: run, shared: 0 };
                let mut out = [0; BLOCK + RUN_SLACK];
                let n = kernel.share_runs(&[first; _], &[second; _], &mut [pair; 5], &mut out);
                assert!(n <= BLOCK, "{kernel:?}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "")]
    fn a_run_beyond_the_block_is_a_mistake_of_the_caller() {
        copy_runs(&[0; _], &[Run { start: 250, len: 7, add: 0 }], &mut [0; 100]);
    }
}
