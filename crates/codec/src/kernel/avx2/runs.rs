//! Loops over runs of values. Two runs are intersected by comparing eight values with eight, all pairs at
//! once.

use super::memory::{LANES, load_all};
use super::search::any_equal;
use crate::block::{RUN_SLACK, RunPair};
use crate::{kernel::scalar, kernel::table::RunBlock};
use core::arch::x86_64::*;

/// Implements [`crate::Kernel::intersect_runs`].
#[target_feature(enable = "avx2,bmi1,popcnt")]
pub(crate) fn intersect_runs(
    first: &RunBlock,
    second: &RunBlock,
    pairs: &mut [RunPair],
    out: &mut [u32],
) -> usize {
    let capacity = out.len() - RUN_SLACK;
    let mut n = 0;
    for pair in pairs {
        let (firsts, seconds) = scalar::runs::slices_of_pair(first, second, pair);
        let (from, start) = (usize::from(pair.first), usize::from(pair.second.start));
        let add = pair.second.add;
        let before = n;
        let (mut i, mut j) = (0, 0);
        while i < firsts.len() && j < seconds.len() {
            let (len, others) = ((firsts.len() - i).min(LANES), (seconds.len() - j).min(LANES));
            let (last, other) = (firsts[i + len - 1], seconds[j + others - 1].wrapping_add(add));
            let a = load_all(first[from + i..].first_chunk().expect("the slack of the block"));
            let b = load_all(second[start + j..].first_chunk().expect("the slack of the block"));
            let b = _mm256_add_epi32(b, _mm256_set1_epi32(add as i32));
            // Lanes after the end of the run get a value that is not in the first run.
            let absent = _mm256_set1_epi32(firsts[i].wrapping_sub(1) as i32);
            let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
            let there = _mm256_cmpgt_epi32(_mm256_set1_epi32(others as i32), lanes);
            let mut equal = any_equal(a, _mm256_blendv_epi8(absent, b, there)) & ((1 << len) - 1);
            while equal != 0 {
                out[n.min(capacity)] = firsts[i + equal.trailing_zeros() as usize];
                n += 1;
                equal &= equal - 1;
            }
            i += if last <= other { LANES } else { 0 };
            j += if other <= last { LANES } else { 0 };
        }
        n = n.min(capacity);
        pair.shared = (n - before) as u16;
    }
    n
}
