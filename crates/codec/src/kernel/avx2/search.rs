//! Intersection of sorted blocks: eight values are compared with eight, all pairs at once.

use super::super::scalar;
use super::memory::{LANES, load};
use crate::block::{BLOCK, Intersection};
use core::arch::x86_64::*;

/// [`crate::Kernel::intersect`].
#[target_feature(enable = "avx2,bmi1,popcnt")]
pub(in crate::kernel) fn intersect(first: &[u32], second: &[u32], shared: &mut Intersection) {
    let ([firsts, seconds], count) = shared.parts();
    let (mut i, mut j, mut found) = (0, 0, 0);
    while i < first.len() && j < second.len() {
        let ((a, n), (b, m)) = (up_to_lanes(&first[i..]), up_to_lanes(&second[j..]));
        let (last, other) = (a[n - 1], b[m - 1]);
        if other < a[0] {
            j += LANES;
            continue;
        }
        if last < b[0] {
            i += LANES;
            continue;
        }
        let vector = load(&b);
        let mut in_first = any_equal(load(&a), vector) & ((1 << n) - 1);
        // If the values are not increasing, one may be found more than once: BLOCK bounds the number of
        // positions.
        found = found.min(BLOCK);
        while in_first != 0 {
            let position = in_first.trailing_zeros() as usize;
            let equal = equal_lanes(vector, _mm256_set1_epi32(a[position] as i32));
            firsts[found] = (i + position) as u8;
            seconds[found] = (j + equal.trailing_zeros() as usize % LANES) as u8;
            found += 1;
            in_first &= in_first - 1;
        }
        i += if last <= other { LANES } else { 0 };
        j += if other <= last { LANES } else { 0 };
    }
    *count = found.min(BLOCK);
}

/// The first eight values and their number; fewer values are padded with the last one.
#[inline]
fn up_to_lanes(values: &[u32]) -> ([u32; LANES], usize) {
    match values.first_chunk() {
        Some(whole) => (*whole, LANES),
        None => {
            let mut padded = [values[values.len() - 1]; LANES];
            padded[..values.len()].copy_from_slice(values);
            (padded, values.len())
        }
    }
}

/// A mask of the values that are among eight others, which are rotated by one lane seven times.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn any_equal(values: __m256i, others: __m256i) -> u32 {
    let next = _mm256_setr_epi32(1, 2, 3, 4, 5, 6, 7, 0);
    let (mut equal, mut rotated) = (_mm256_cmpeq_epi32(values, others), others);
    for _ in 1..LANES {
        rotated = _mm256_permutevar8x32_epi32(rotated, next);
        equal = _mm256_or_si256(equal, _mm256_cmpeq_epi32(values, rotated));
    }
    _mm256_movemask_ps(_mm256_castsi256_ps(equal)) as u32
}

/// A mask of the lanes that are equal.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn equal_lanes(a: __m256i, b: __m256i) -> u32 {
    _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(a, b))) as u32
}

/// [`crate::Kernel::is_increasing`]: the portable loop, vectorised by the compiler.
#[target_feature(enable = "avx2")]
pub(in crate::kernel) fn is_increasing(values: &[u32]) -> bool {
    scalar::search::is_increasing(values)
}

/// [`crate::Kernel::add_one`]: the portable loop, vectorised by the compiler.
#[target_feature(enable = "avx2")]
pub(in crate::kernel) fn add_one(values: &mut [u32]) -> u32 {
    scalar::search::add_one(values)
}
