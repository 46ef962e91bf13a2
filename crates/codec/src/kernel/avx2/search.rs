//! Intersection of sorted blocks by look-up of each value of the shorter block in the longer one.
//!
//! 1. Find the group of eight values of the longer block that may contain the value, by a binary search in
//!    the last values of the groups, which are in registers.
//! 2. Compare it with the eight values of that group.
//! 3. Compress the positions of the matches in both blocks.
//!
//! No branch depends on whether a value is found.

use super::compress::set_bits;
use super::memory::{LANES, load_all, store_all};
use crate::block::{BLOCK, Intersection, Positions};
use crate::{kernel::scalar, kernel::x86::overlapping_range};
use core::{arch::x86_64::*, hint::black_box};

/// Number of groups of eight values of a block.
const BLOCK_GROUPS: usize = BLOCK / LANES;

/// Implements [`crate::Kernel::intersect`].
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub(crate) fn intersect(first: &[u32], second: &[u32], shared: &mut Intersection) {
    if first.len().max(second.len()) < LANES {
        return scalar::search::intersect(first, second, shared);
    }
    let ([firsts, seconds], count) = shared.parts();
    *count = if first.len() <= second.len() {
        look_up(first, second, firsts, seconds)
    } else {
        look_up(second, first, seconds, firsts)
    };
}

/// Writes the positions of the shared values in both blocks, at most one for each value of `few`. Returns
/// their number. `many` has at least eight values.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn look_up(few: &[u32], many: &[u32], in_few: &mut Positions, in_many: &mut Positions) -> usize {
    let range = overlapping_range::<LANES>(few, many);
    let groups = GroupEnds::new(many);
    let mut found = 0;
    for k in range.step_by(LANES) {
        let mut padded = [0; LANES];
        let (values, valid) = match few[k..].first_chunk() {
            Some(values) => (values, u8::MAX),
            None => {
                let rest = &few[k..];
                padded[..rest.len()].copy_from_slice(rest);
                (&padded, (1 << rest.len()) - 1)
            }
        };
        let starts = groups.find_group_starts(load_all(values));
        let one_up = position_in_groups(values, many, starts);
        let matches = !equal_lanes(one_up, _mm256_setzero_si256()) as u8 & valid;
        // The minimum bounds the positions if the values of `many` are not increasing.
        let positions = _mm256_add_epi32(starts, _mm256_sub_epi32(one_up, _mm256_set1_epi32(1)));
        let positions = lowest_bytes(_mm256_min_epu32(positions, _mm256_set1_epi32(many.len() as i32 - 1)));
        // At most `k` positions have been written.
        let (set, k) = (set_bits(matches), _mm_set1_epi8(k as i8));
        store_8_bytes(in_few[found..].first_chunk_mut().expect("space for a vector"), _mm_add_epi8(set, k));
        store_8_bytes(
            in_many[found..].first_chunk_mut().expect("space for a vector"),
            _mm_shuffle_epi8(positions, set),
        );
        found += matches.count_ones() as usize;
    }
    found
}

/// For each of eight values, 1 plus its position in its group of eight values of `many`; 0 if the group does
/// not contain it. Equal values in a group give a larger number.
#[inline]
#[target_feature(enable = "avx2")]
fn position_in_groups(values: &[u32; LANES], many: &[u32], starts: __m256i) -> __m256i {
    let mut start = [0; LANES];
    store_all(&mut start, starts);
    // `black_box`: otherwise the compiler extracts each start from its vector, with more instructions.
    let start = black_box(&start);
    let equal = |k: usize| {
        // SAFETY: A start is at most `many.len() - 8`.
        let group = unsafe { _mm256_loadu_si256(many.as_ptr().wrapping_add(start[k] as usize).cast()) };
        _mm256_cmpeq_epi32(group, _mm256_set1_epi32(values[k] as i32))
    };
    // Four bytes for each of four values: the first half of its lanes, and in the other half of the vector
    // the second.
    let four = |k: usize| {
        let low = _mm256_packs_epi32(equal(k), equal(k + 1));
        let lanes = _mm256_packs_epi16(low, _mm256_packs_epi32(equal(k + 2), equal(k + 3)));
        let numbers = _mm256_set_m128i(_mm_set1_epi32(0x0807_0605), _mm_set1_epi32(0x0403_0201));
        _mm256_and_si256(lanes, numbers)
    };
    let (low, high) = (four(0), four(4));
    let halves = _mm256_or_si256(
        _mm256_permute2x128_si256::<0x20>(low, high),
        _mm256_permute2x128_si256::<0x31>(low, high),
    );
    // At most one of the four bytes of a value is not zero: their sum is its number.
    _mm256_madd_epi16(_mm256_maddubs_epi16(halves, _mm256_set1_epi8(1)), _mm256_set1_epi16(1))
}

/// The lowest byte of each 32-bit lane, in the first eight bytes of the result.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn lowest_bytes(values: __m256i) -> __m128i {
    let four = _mm256_setr_epi8(
        0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 4, 8, 12, -1, -1, -1,
        -1, -1, -1, -1, -1,
    );
    let fours = _mm256_shuffle_epi8(values, four);
    _mm_or_si128(_mm256_castsi256_si128(fours), _mm256_extracti128_si256::<1>(fours))
}

/// The last value of each group of eight values of a block, for a binary search. Their highest bits are
/// flipped, as AVX2 compares signed numbers.
struct GroupEnds {
    /// The last value of the 16th group, in every lane.
    half: __m256i,
    /// The last values of the groups 8 and 24; of 4, 12 and so on; of 2, 6 and so on.
    steps: [__m256i; 3],
    /// The last values of the groups 1, 3 and so on.
    single: [__m256i; 2],
    /// The start of the last eight values, in every lane.
    last: __m256i,
}

impl GroupEnds {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new(values: &[u32]) -> GroupEnds {
        // Groups after the last whole one are never searched: their end is the largest number.
        let mut ends = [i32::MAX as u32; BLOCK_GROUPS];
        for (end, group) in ends.iter_mut().zip(values.as_chunks::<LANES>().0) {
            *end = group[LANES - 1] ^ (1 << 31);
        }
        let [a, b, c, d] = [0, 8, 16, 24].map(|k| load_all(ends[k..].first_chunk().expect("eight ends")));
        let second = [odd_lanes(a, b), odd_lanes(c, d)];
        let fourth = odd_lanes(second[0], second[1]);
        let eighth = odd_lanes(fourth, fourth);
        GroupEnds {
            half: _mm256_shuffle_epi32::<0b01_01_01_01>(_mm256_permute4x64_epi64::<0>(eighth)),
            steps: [even_lanes(eighth, eighth), even_lanes(fourth, fourth), even_lanes(second[0], second[1])],
            single: [even_lanes(a, b), even_lanes(c, d)],
            last: _mm256_set1_epi32((values.len() - LANES) as i32),
        }
    }

    /// For each of `values` the start of the only group that may contain it.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn find_group_starts(&self, values: __m256i) -> __m256i {
        let values = _mm256_xor_si256(values, _mm256_set1_epi32(i32::MIN));
        // The number of ends less than a value, one bit more in each step; a comparison gives -1 or 0.
        let mut at = _mm256_sub_epi32(_mm256_setzero_si256(), _mm256_cmpgt_epi32(values, self.half));
        for ends in self.steps {
            let more = _mm256_cmpgt_epi32(values, _mm256_permutevar8x32_epi32(ends, at));
            at = _mm256_sub_epi32(_mm256_add_epi32(at, at), more);
        }
        let [low, high] = self.single.map(|ends| _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(ends, at)));
        // Bit 3 chooses the vector: a blend looks at the highest bit.
        let upper = _mm256_castsi256_ps(_mm256_slli_epi32::<28>(at));
        let ends = _mm256_castps_si256(_mm256_blendv_ps(low, high, upper));
        at = _mm256_sub_epi32(_mm256_add_epi32(at, at), _mm256_cmpgt_epi32(values, ends));
        _mm256_min_epu32(_mm256_slli_epi32::<3>(at), self.last)
    }
}

/// The even lanes of two vectors.
#[inline]
#[target_feature(enable = "avx2")]
fn even_lanes(a: __m256i, b: __m256i) -> __m256i {
    let lanes = _mm256_shuffle_ps::<0b10_00_10_00>(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b));
    _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_castps_si256(lanes))
}

/// The odd lanes of two vectors.
#[inline]
#[target_feature(enable = "avx2")]
fn odd_lanes(a: __m256i, b: __m256i) -> __m256i {
    let lanes = _mm256_shuffle_ps::<0b11_01_11_01>(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b));
    _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_castps_si256(lanes))
}

#[inline]
pub(super) fn store_8_bytes(out: &mut [u8; LANES], bytes: __m128i) {
    // SAFETY: The array has eight bytes.
    unsafe { _mm_storel_epi64(out.as_mut_ptr().cast(), bytes) }
}

/// A mask of the lanes that are equal.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn equal_lanes(a: __m256i, b: __m256i) -> u32 {
    lane_bits(_mm256_cmpeq_epi32(a, b))
}

/// A mask of the lanes whose highest bit is set.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn lane_bits(lanes: __m256i) -> u32 {
    _mm256_movemask_ps(_mm256_castsi256_ps(lanes)) as u32
}
