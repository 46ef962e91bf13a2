//! Runs of values: eight are compared with 16 at once, whichever their order. Most runs are no longer.

use super::super::scalar;
use super::memory::{LANES, first_lanes};
use crate::kernel::RunBlock;
use crate::runs::{RUN_SLACK, RunPair};
use core::arch::x86_64::*;

/// Values of the first run that are compared at once.
const FIRSTS: usize = 8;

/// [`crate::Kernel::share_runs`].
#[target_feature(enable = "avx512f,avx512vl,bmi2,popcnt")]
pub(in crate::kernel) fn share_runs(
    first: &RunBlock,
    second: &RunBlock,
    pairs: &mut [RunPair],
    out: &mut [u32],
) -> usize {
    let capacity = out.len() - RUN_SLACK;
    let mut n = 0;
    for pair in pairs {
        let (firsts, seconds) = scalar::runs::runs(first, second, pair);
        let (from, start) = (usize::from(pair.first), usize::from(pair.second.start));
        let before = n;
        let (mut i, mut j, mut equal) = (0, 0, 0);
        loop {
            let (len, others) = ((firsts.len() - i).min(FIRSTS), (seconds.len() - j).min(LANES));
            // SAFETY: A run ends with the 256 values of its block or before, and there are 16 behind them.
            let a = unsafe { _mm256_loadu_si256(first.as_ptr().wrapping_add(from + i).cast()) };
            // SAFETY: As above.
            let b = unsafe { _mm512_loadu_si512(second.as_ptr().wrapping_add(start + j).cast()) };
            // In place of what is not of the run, a value that the first run does not have.
            let absent =
                _mm512_sub_epi32(_mm512_broadcastd_epi32(_mm256_castsi256_si128(a)), _mm512_set1_epi32(1));
            let add = _mm512_set1_epi32(pair.second.add as i32);
            equal |= any_equal(a, _mm512_mask_add_epi32(absent, first_lanes(others), b, add));
            let (ends, others_end) = (i + len == firsts.len(), j + others == seconds.len());
            // Most runs are no longer than that.
            let (turn, other_turn) = if ends && others_end {
                (true, true)
            } else {
                let (last, other) = (firsts[i + len - 1], seconds[j + others - 1]);
                let other = other.wrapping_add(pair.second.add);
                (last <= other || others_end, other <= last)
            };
            if turn {
                let found = equal & first_lanes(len) as u8;
                let out: &mut [u32; FIRSTS] = out[n..].first_chunk_mut().expect("a vector fits");
                let values = _mm256_maskz_compress_epi32(found, a);
                // SAFETY: The array has eight values.
                unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), values) };
                // If values do not rise, some may be found more than once: `out` bounds their number.
                n = (n + found.count_ones() as usize).min(capacity);
                (i, equal) = (i + FIRSTS, 0);
            }
            j += if other_turn { LANES } else { 0 };
            if i >= firsts.len() || j >= seconds.len() {
                break;
            }
        }
        pair.shared = (n - before) as u16;
    }
    n
}

/// Which of eight values are among 16 others. The eight are in both halves of a vector, and the others are
/// rotated by one lane seven times, so that each is compared with all.
#[inline]
#[target_feature(enable = "avx512f")]
fn any_equal(values: __m256i, others: __m512i) -> u8 {
    let values = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(values), values);
    // A lane is zero where one of the differences is.
    let differ = |others| _mm512_xor_si512(values, others);
    let pair = |a, b| _mm512_min_epu32(differ(a), differ(b));
    let near = _mm512_min_epu32(
        pair(others, _mm512_alignr_epi32::<1>(others, others)),
        pair(_mm512_alignr_epi32::<2>(others, others), _mm512_alignr_epi32::<3>(others, others)),
    );
    let far = _mm512_min_epu32(
        pair(_mm512_alignr_epi32::<4>(others, others), _mm512_alignr_epi32::<5>(others, others)),
        pair(_mm512_alignr_epi32::<6>(others, others), _mm512_alignr_epi32::<7>(others, others)),
    );
    let least = _mm512_min_epu32(near, far);
    let equal = _mm512_testn_epi32_mask(least, least);
    (equal | equal >> 8) as u8
}
