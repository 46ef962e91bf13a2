//! Runs of consecutive values of a block: copied to one array, and intersected in pairs.

use crate::block::{BLOCK, RUN_SLACK, RunPair, ValueRun};
use crate::kernel::Kernel;

/// Copies runs of a block, one after the other, to the front of `out`, and returns the number of values
/// copied. The values of `out` after them may be overwritten.
///
/// # Panics
/// If a run ends after the block, or if `out` is shorter than all runs together and [`RUN_SLACK`].
pub fn copy_runs(values: &[u32; BLOCK + RUN_SLACK], runs: &[ValueRun], out: &mut [u32]) -> usize {
    Kernel::active().copy_runs(values, runs, out)
}

/// Keeps the values of the first run of each pair that differ by at most `margin` from a value of the second:
/// writes them to the front of `out`, pair by pair, and returns their number. `out` has space for all of them
/// and [`RUN_SLACK`] more, which may be overwritten. The values of a run are strictly increasing, and differ
/// by less than 2^30 in a pair; if not, any of them may be kept.
///
/// # Panics
/// If a run is empty or ends after its block, if `margin` is more than [`MARGIN_MAX`](crate::MARGIN_MAX), or
/// if `out` is shorter than [`RUN_SLACK`].
pub fn intersect_runs(
    first: &[u32; BLOCK + RUN_SLACK],
    second: &[u32; BLOCK + RUN_SLACK],
    margin: u32,
    pairs: &mut [RunPair],
    out: &mut [u32],
) -> usize {
    Kernel::active().intersect_runs(first, second, margin, pairs, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_copies_runs() {
        let values: [u32; BLOCK + RUN_SLACK] = std::array::from_fn(|k| (k as u32).wrapping_mul(0x9e37_79b9));
        for kernel in Kernel::available() {
            for seed in 0..2000u16 {
                let runs: Vec<ValueRun> = (0..seed % 40)
                    .map(|k| {
                        let start = k.wrapping_mul(37).wrapping_add(seed) % 256;
                        let len = 1 + k.wrapping_mul(seed) % [2, 20, 256][usize::from(seed % 3)];
                        ValueRun { start, len: len.min(256 - start), add: u32::from(seed) << 20 }
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

    /// Increasing values with gaps of 1 to `gap`.
    fn increasing_values(seed: u32, gap: u32) -> [u32; BLOCK + RUN_SLACK] {
        let mut last = 1000 + seed;
        std::array::from_fn(|k| {
            let mixed = (k as u32 ^ seed.wrapping_mul(77)).wrapping_mul(0x9e37_79b9);
            last = last.wrapping_add(1 + (mixed ^ mixed >> 15).wrapping_mul(0x85eb_ca6b) % gap);
            last
        })
    }

    #[test]
    fn every_kernel_intersects_runs() {
        for kernel in Kernel::available() {
            for seed in 0..3000u32 {
                let gap = [1, 2, 5, 30][seed as usize % 4];
                let margin = [0, 1, 2, 9, 40, 2000][seed as usize / 16 % 6];
                let (first, second) = (
                    increasing_values(seed, gap),
                    increasing_values(seed * 3, [2, 1, 9, 4][seed as usize / 4 % 4]),
                );
                let most = [3, 8, 20, 70, 256][seed as usize % 5];
                let (mut pairs, mut at, mut expect, mut shared) =
                    (Vec::new(), 0, Vec::<u32>::new(), Vec::new());
                while at < BLOCK && pairs.len() < 40 {
                    let mixed = (seed ^ at as u32).wrapping_mul(0x85eb_ca6b) as usize >> 3;
                    let first_len = (1 + mixed % most).min(BLOCK - at);
                    let start = mixed / 300 % BLOCK;
                    let len = (1 + mixed / 7 % (most * 2)).min(BLOCK - start);
                    // The first values of the two runs are close to each other.
                    let add = first[at].wrapping_sub(second[start]).wrapping_sub(mixed as u32 % 11);
                    let run = ValueRun { start: start as u16, len: len as u16, add };
                    pairs.push(RunPair {
                        first: at as u16,
                        first_len: first_len as u16,
                        second: run,
                        shared: 9,
                    });
                    let others: Vec<u32> =
                        second[start..start + len].iter().map(|v| v.wrapping_add(add)).collect();
                    let before = expect.len();
                    let is_close = |value: &&u32| others.iter().any(|of| of.abs_diff(**value) <= margin);
                    expect.extend(first[at..at + first_len].iter().filter(is_close));
                    shared.push((expect.len() - before) as u16);
                    at += first_len;
                }
                let mut out = [0; BLOCK + RUN_SLACK];
                let n = kernel.intersect_runs(&first, &second, margin, &mut pairs, &mut out);
                assert_eq!(out[..n], expect, "{kernel:?}, {seed}");
                assert!(pairs.iter().map(|pair| pair.shared).eq(shared), "{kernel:?}, {seed}");
            }
        }
    }

    #[test]
    fn runs_that_are_not_increasing_stay_in_bounds() {
        for kernel in Kernel::available() {
            for (first, second, margin) in
                [(7, 7, 0), (u32::MAX, 0, 0), (0, u32::MAX, 1), (9, 3, 1 << 30), (u32::MAX, 0, 1 << 30)]
            {
                let run = ValueRun { start: 0, len: 256, add: 0 };
                let pair = RunPair { first: 0, first_len: 256, second: run, shared: 0 };
                let mut out = [0; BLOCK + RUN_SLACK];
                let pairs = &mut [pair; 5];
                let n = kernel.intersect_runs(&[first; _], &[second; _], margin, pairs, &mut out);
                assert!(n <= BLOCK, "{kernel:?}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "")]
    fn a_run_after_the_end_of_the_block_panics() {
        copy_runs(&[0; _], &[ValueRun { start: 250, len: 7, add: 0 }], &mut [0; 100]);
    }
}
