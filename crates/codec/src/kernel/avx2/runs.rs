//! Loops over runs of values. Two runs are intersected by comparing eight values with eight, all pairs at
//! once.

use super::memory::{LANES, load_all};
use super::search::lane_bits;
use crate::block::{RUN_SLACK, RunPair};
use crate::{kernel::scalar, kernel::table::RunBlock};
use core::arch::x86_64::*;

/// Implements [`crate::Kernel::intersect_runs`].
#[target_feature(enable = "avx2,bmi1,popcnt")]
pub(crate) fn intersect_runs(
    first: &RunBlock,
    second: &RunBlock,
    margin: u32,
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
        // The second run is read from `next` on for the next values of the first.
        let (mut i, mut j, mut next, mut close) = (0, 0, 0, 0);
        while i < firsts.len() && j < seconds.len() {
            let (len, others) = ((firsts.len() - i).min(LANES), (seconds.len() - j).min(LANES));
            let (last, other) = (firsts[i + len - 1], seconds[j + others - 1].wrapping_add(add));
            let a = load_all(first[from + i..].first_chunk().expect("the slack of the block"));
            let b = load_all(second[start + j..].first_chunk().expect("the slack of the block"));
            let b = _mm256_add_epi32(b, _mm256_set1_epi32(add as i32));
            // Lanes after the end of the run get a value that is not close to the first run.
            let absent = _mm256_set1_epi32(firsts[i].wrapping_sub(margin + 1) as i32);
            let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
            let there = _mm256_cmpgt_epi32(_mm256_set1_epi32(others as i32), lanes);
            close |= any_within(margin, a, _mm256_blendv_epi8(absent, b, there)) & ((1 << len) - 1);
            next = if other.wrapping_add(margin) <= last { j + LANES } else { next };
            j += LANES;
            if last.wrapping_add(margin) <= other || j >= seconds.len() {
                while close != 0 {
                    out[n.min(capacity)] = firsts[i + close.trailing_zeros() as usize];
                    n += 1;
                    close &= close - 1;
                }
                (i, j) = (i + LANES, next);
            }
        }
        n = n.min(capacity);
        pair.shared = (n - before) as u16;
    }
    n
}

/// A mask of the lanes of `values` that differ by at most `margin` from any lane of `others`, which is
/// rotated by one lane seven times.
#[inline]
#[target_feature(enable = "avx2")]
fn any_within(margin: u32, values: __m256i, others: __m256i) -> u32 {
    let values = _mm256_add_epi32(values, _mm256_set1_epi32(margin as i32));
    let rotation = _mm256_setr_epi32(1, 2, 3, 4, 5, 6, 7, 0);
    let (mut smallest, mut rotated) = (_mm256_sub_epi32(values, others), others);
    for _ in 1..LANES {
        rotated = _mm256_permutevar8x32_epi32(rotated, rotation);
        smallest = _mm256_min_epu32(smallest, _mm256_sub_epi32(values, rotated));
    }
    let most = _mm256_set1_epi32((2 * margin) as i32);
    lane_bits(_mm256_cmpeq_epi32(smallest, _mm256_min_epu32(smallest, most)))
}
