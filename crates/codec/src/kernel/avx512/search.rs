//! Intersection of sorted blocks by look-up of each value of the shorter block in the longer one.
//!
//! 1. Compare the value with the last values of the groups of eight of the longer block: one group may
//!    contain it.
//! 2. Compare it with the eight values of that group.
//! 3. Compress the positions of the matches in both blocks.
//!
//! No branch depends on whether a value is found.

use super::memory::{COUNTING_BYTES, LANES, first_lanes, load, load_bytes};
use crate::block::{BLOCK, Intersection, Positions};
use crate::kernel::x86::overlapping_range;
use core::{arch::x86_64::*, hint::black_box};

/// Number of values that a value is compared with at once.
const GROUP_VALUES: usize = 8;

/// Bytes of a vector.
const VECTOR_BYTES: usize = 64;

/// Implements [`crate::Kernel::intersect`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,bmi2,popcnt")]
pub(crate) fn intersect(first: &[u32], second: &[u32], shared: &mut Intersection) {
    let ([firsts, seconds], count) = shared.parts();
    *count = if first.len() <= second.len() {
        look_up(first, second, firsts, seconds)
    } else {
        look_up(second, first, seconds, firsts)
    };
}

/// Writes the positions of the shared values in both blocks, at most one for each value of `few`. Returns
/// their number.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,bmi2,popcnt")]
fn look_up(few: &[u32], many: &[u32], in_few: &mut Positions, in_many: &mut Positions) -> usize {
    let Some(most) = many.last() else { return 0 };
    let mut padded = [*most; GROUP_VALUES];
    let many = match many.len() {
        GROUP_VALUES.. => many,
        n => {
            padded[..n].copy_from_slice(many);
            &padded
        }
    };
    let range = overlapping_range::<LANES>(few, many);
    let (passed, few) = (range.start, &few[range]);
    if few.len() <= LANES && many.len() >= LANES {
        return look_up_few(few, many, passed, in_few, in_many);
    }
    // For each value, the start of its group and a mask of the equal values in the group.
    let (mut starts, mut equal) = ([0; BLOCK], [0; BLOCK]);
    let groups = GroupEnds::new(many);
    let first_pair = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
    let parts = starts.as_chunks_mut().0.iter_mut().zip(equal.as_chunks_mut::<LANES>().0);
    for (values, (starts, equal)) in few.chunks(LANES).map(|few| load(few)).zip(parts) {
        store_16_bytes(starts, _mm512_cvtepi32_epi8(groups.find_group_starts(values)));
        // `black_box`: otherwise the compiler extracts each start from its vector, with more instructions.
        let pairs = black_box(&*starts).as_chunks().0.iter().zip(equal.as_chunks_mut().0);
        for (k, ([start, next], equal)) in pairs.enumerate() {
            // SAFETY: A start is at most `many.len() - 8`.
            let group = unsafe { _mm256_loadu_si256(many.as_ptr().wrapping_add(usize::from(*start)).cast()) };
            // SAFETY: As above.
            let next = unsafe { _mm256_loadu_si256(many.as_ptr().wrapping_add(usize::from(*next)).cast()) };
            let both = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(group), next);
            let pair = _mm512_add_epi32(first_pair, _mm512_set1_epi32(2 * k as i32));
            *equal = _mm512_cmpeq_epi32_mask(both, _mm512_permutexvar_epi32(pair, values)).to_le_bytes();
        }
    }
    let mut found = 0;
    // At most 192 positions are written before the last 64 of 256 values, so a whole vector fits after them.
    for k in (0..few.len()).step_by(VECTOR_BYTES) {
        let equal = load_bytes(&equal[k..]);
        let valid = _bzhi_u64(u64::MAX, (few.len() - k).min(VECTOR_BYTES) as u32);
        let matches = _mm512_mask_test_epi8_mask(valid, equal, equal);
        let positions = _mm512_add_epi8(COUNTING_BYTES.vector(), _mm512_set1_epi8((passed + k) as i8));
        store_64_bytes(&mut in_few[found..], _mm512_maskz_compress_epi8(matches, positions));
        let positions = _mm512_add_epi8(load_bytes(&starts[k..]), lowest_bits(equal));
        store_64_bytes(&mut in_many[found..], _mm512_maskz_compress_epi8(matches, positions));
        found += matches.count_ones() as usize;
    }
    found
}

/// [`look_up`] for at most 16 values, the first at position `passed`, in at least 16: each is compared with
/// the 16 values of a group, without arrays of partial results.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi2")]
fn look_up_few(
    few: &[u32],
    many: &[u32],
    passed: usize,
    in_few: &mut Positions,
    in_many: &mut Positions,
) -> usize {
    let mut starts = [0; LANES];
    let before =
        _mm512_slli_epi32::<4>(GroupMaxima::new(every_16th(many, LANES - 1)).count_smaller_ends(load(few)));
    let last = _mm512_set1_epi32((many.len() - LANES) as i32);
    store_16_bytes(&mut starts, _mm512_cvtepi32_epi8(_mm512_min_epu32(before, last)));
    let mut found = 0;
    for (k, (value, start)) in few.iter().zip(black_box(&starts)).enumerate() {
        // SAFETY: A start is at most `many.len() - 16`.
        let group = unsafe { _mm512_loadu_si512(many.as_ptr().wrapping_add(usize::from(*start)).cast()) };
        let equal = _mm512_cmpeq_epi32_mask(group, _mm512_set1_epi32(*value as i32));
        in_few[found] = (passed + k) as u8;
        in_many[found] = start.wrapping_add(equal.trailing_zeros() as u8);
        found += usize::from(equal != 0);
    }
    found
}

/// The largest values of up to 16 groups of values, for a binary search.
struct GroupMaxima {
    /// The maxima, padded with `u32::MAX`; the same rotated by one and by three lanes; and the eighth in
    /// every lane.
    rotated: [__m512i; 4],
}

impl GroupMaxima {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(ends: __m512i) -> GroupMaxima {
        let eighth = _mm512_permutexvar_epi32(_mm512_set1_epi32(7), ends);
        let [second, fourth] = [_mm512_alignr_epi32::<1>(ends, ends), _mm512_alignr_epi32::<3>(ends, ends)];
        GroupMaxima { rotated: [ends, second, fourth, eighth] }
    }

    /// For each of `values` the number of maxima, of the first 15, that are less.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn count_smaller_ends(&self, values: __m512i) -> __m512i {
        let [first, second, fourth, eighth] = self.rotated;
        // Adds 8, 4, 2 and 1.
        let more = |at, ends, n| {
            _mm512_mask_add_epi32(at, greater_than_end(at, ends, values), at, _mm512_set1_epi32(n))
        };
        let at = _mm512_maskz_set1_epi32(_mm512_cmplt_epu32_mask(eighth, values), 8);
        more(more(more(at, fourth, 4), second, 2), first, 1)
    }
}

/// A mask of the values that are greater than the lane `at` of `ends`.
#[inline]
#[target_feature(enable = "avx512f")]
fn greater_than_end(at: __m512i, ends: __m512i, values: __m512i) -> __mmask16 {
    _mm512_cmplt_epu32_mask(_mm512_permutexvar_epi32(at, ends), values)
}

/// The last value of each group of eight values of a block, which has at least eight values.
struct GroupEnds {
    /// The last values of the second group, the fourth and so on, padded with `u32::MAX`.
    ends: GroupMaxima,
    /// The last values of the first group, the third and so on, padded with `u32::MAX`.
    middles: __m512i,
    /// The start of the last eight values, in every lane.
    last: __m512i,
}

impl GroupEnds {
    #[inline]
    #[target_feature(enable = "avx512f,bmi2")]
    fn new(values: &[u32]) -> GroupEnds {
        let ends = GroupMaxima::new(every_16th(&values[GROUP_VALUES..], GROUP_VALUES - 1));
        let last = _mm512_set1_epi32((values.len() - GROUP_VALUES) as i32);
        GroupEnds { ends, middles: every_16th(values, GROUP_VALUES - 1), last }
    }

    /// For each of `values` the start of the only group that may contain it.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn find_group_starts(&self, values: __m512i) -> __m512i {
        let at = self.ends.count_smaller_ends(values);
        let (start, group) = (_mm512_slli_epi32::<4>(at), _mm512_set1_epi32(GROUP_VALUES as i32));
        let start = _mm512_mask_add_epi32(start, greater_than_end(at, self.middles, values), start, group);
        _mm512_min_epu32(start, self.last)
    }
}

/// Every 16th value, starting at index `first` < 16, padded with `u32::MAX`.
#[inline]
#[target_feature(enable = "avx512f,bmi2")]
fn every_16th(values: &[u32], first: usize) -> __m512i {
    let positions = _mm512_setr_epi32(0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240);
    let values = values.get(first..).unwrap_or(&[]);
    let (valid, none) = (first_lanes(values.len().div_ceil(LANES)), _mm512_set1_epi32(-1));
    // SAFETY: The mask selects positions within the slice; others are not accessed.
    unsafe { _mm512_mask_i32gather_epi32::<4>(none, valid, positions, values.as_ptr().cast()) }
}

/// The position of the lowest set bit of each byte; 8 if there is none.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn lowest_bits(bytes: __m512i) -> __m512i {
    let low = _mm512_broadcast_i32x4(_mm_setr_epi8(8, 0, 1, 0, 2, 0, 1, 0, 3, 0, 1, 0, 2, 0, 1, 0));
    let high = _mm512_broadcast_i32x4(_mm_setr_epi8(8, 4, 5, 4, 6, 4, 5, 4, 7, 4, 5, 4, 6, 4, 5, 4));
    let half = _mm512_set1_epi8(15);
    let upper = _mm512_and_si512(_mm512_srli_epi16::<4>(bytes), half);
    let low = _mm512_shuffle_epi8(low, _mm512_and_si512(bytes, half));
    _mm512_min_epu8(low, _mm512_shuffle_epi8(high, upper))
}

/// Writes the positions of the set lanes; lane 0 has position `first`.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512vbmi2")]
pub(super) fn write_lane_positions(out: &mut [u8], lanes: u16, first: usize) {
    let positions = _mm_add_epi8(_mm512_castsi512_si128(COUNTING_BYTES.vector()), _mm_set1_epi8(first as i8));
    store_16_bytes(
        out.first_chunk_mut().expect("space for a vector"),
        _mm_maskz_compress_epi8(lanes, positions),
    );
}

/// Writes the positions of the set bits of a word; bit 0 has position `first`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2")]
pub(super) fn write_bit_positions(out: &mut [u8], bits: u64, first: usize) {
    let positions = _mm512_add_epi8(COUNTING_BYTES.vector(), _mm512_set1_epi8(first as i8));
    store_64_bytes(out, _mm512_maskz_compress_epi8(bits, positions));
}

#[inline]
fn store_16_bytes(out: &mut [u8; LANES], bytes: __m128i) {
    // SAFETY: The array has 16 bytes.
    unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), bytes) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store_64_bytes(out: &mut [u8], bytes: __m512i) {
    let out: &mut [u8; VECTOR_BYTES] = out.first_chunk_mut().expect("space for a vector");
    // SAFETY: The array has 64 bytes.
    unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), bytes) }
}
