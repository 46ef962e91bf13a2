//! Intersects runs of values by comparing eight values with 16, all pairs at once. Most runs are no longer.

use super::memory::{LANES, first_lanes};
use crate::block::{RUN_SLACK, RunPair};
use crate::{kernel::scalar, kernel::table::RunBlock};
use core::arch::x86_64::*;

/// Number of values of the first run that are compared at once.
const FIRST_RUN_VALUES: usize = 8;

/// Implements [`crate::Kernel::intersect_runs`].
#[target_feature(enable = "avx512f,avx512vl,bmi2,popcnt")]
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
        let before = n;
        // The second run is read from `next` on for the next values of the first.
        let (mut i, mut j, mut next, mut close) = (0, 0, 0, 0);
        loop {
            let (len, others) = ((firsts.len() - i).min(FIRST_RUN_VALUES), (seconds.len() - j).min(LANES));
            // SAFETY: A run ends within the 256 values of its block, which are followed by a slack of 16.
            let a = unsafe { _mm256_loadu_si256(first.as_ptr().wrapping_add(from + i).cast()) };
            // SAFETY: As above.
            let b = unsafe { _mm512_loadu_si512(second.as_ptr().wrapping_add(start + j).cast()) };
            // Lanes after the end of the run get a value that is not close to the first run.
            let absent = _mm512_sub_epi32(
                _mm512_broadcastd_epi32(_mm256_castsi256_si128(a)),
                _mm512_set1_epi32(margin as i32 + 1),
            );
            let add = _mm512_set1_epi32(pair.second.add as i32);
            close |= any_within(margin, a, _mm512_mask_add_epi32(absent, first_lanes(others), b, add));
            let (ends, others_end) = (i + len == firsts.len(), j + others == seconds.len());
            // Most runs are no longer than one vector.
            let advance = (ends && others_end) || {
                let (last, other) = (firsts[i + len - 1], seconds[j + others - 1]);
                let other = other.wrapping_add(pair.second.add);
                next = if other.wrapping_add(margin) <= last { j + LANES } else { next };
                last.wrapping_add(margin) <= other || others_end
            };
            j += LANES;
            if advance {
                let found = close & first_lanes(len) as u8;
                let out: &mut [u32; FIRST_RUN_VALUES] = out[n..].first_chunk_mut().expect("a vector fits");
                let values = _mm256_maskz_compress_epi32(found, a);
                // SAFETY: The array has eight values.
                unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), values) };
                n = (n + found.count_ones() as usize).min(capacity);
                (i, j, close) = (i + FIRST_RUN_VALUES, next, 0);
            }
            if i >= firsts.len() || j >= seconds.len() {
                break;
            }
        }
        pair.shared = (n - before) as u16;
    }
    n
}

/// A mask of the lanes of `values` that differ by at most `margin` from any lane of `others`. The eight
/// values are copied to both halves of a vector, and `others` is rotated by one lane seven times, so that all
/// pairs are compared.
#[inline]
#[target_feature(enable = "avx512f")]
fn any_within(margin: u32, values: __m256i, others: __m512i) -> u8 {
    let values = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(values), values);
    let values = _mm512_add_epi32(values, _mm512_set1_epi32(margin as i32));
    // The differences plus `margin`, so that only small ones are at most twice the margin.
    let difference = |others| _mm512_sub_epi32(values, others);
    let pair = |a, b| _mm512_min_epu32(difference(a), difference(b));
    let first_four = _mm512_min_epu32(
        pair(others, _mm512_alignr_epi32::<1>(others, others)),
        pair(_mm512_alignr_epi32::<2>(others, others), _mm512_alignr_epi32::<3>(others, others)),
    );
    let last_four = _mm512_min_epu32(
        pair(_mm512_alignr_epi32::<4>(others, others), _mm512_alignr_epi32::<5>(others, others)),
        pair(_mm512_alignr_epi32::<6>(others, others), _mm512_alignr_epi32::<7>(others, others)),
    );
    let smallest = _mm512_min_epu32(first_four, last_four);
    let close = _mm512_cmple_epu32_mask(smallest, _mm512_set1_epi32((2 * margin) as i32));
    (close | close >> 8) as u8
}
