//! Bit unpacking in both layouts.

use super::exceptions::Highs;
use super::memory::{LANES, Vector, add, broadcast, load_bytes, or, store, store_all};
use super::sums::PrefixSums;
use crate::bitpack::Layout;
use crate::block::BLOCK;
use crate::kernel::size::{self, BYTES, HighSize, NONE, WORDS};
use crate::kernel::table::Packed;
use crate::kernel::x86::UnpackShuffle;
use core::arch::x86_64::*;

unpack_by_form!("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt");

/// Unpacks two rows of eight lanes at a time.
///
/// # Safety
/// There must be `32 * W` bytes.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
unsafe fn vertical<const W: usize, const SIZE: HighSize, const SUM: bool>(
    packed: &Packed,
    words: &[u32],
    out: &mut [u32; BLOCK],
) {
    let mut finish = Finish::new(packed, words);
    let word = |k: usize| {
        let word = packed.bytes.as_ptr().wrapping_add(32 * k);
        // SAFETY: There are W words of 32 bytes, and `k` is less than W.
        unsafe { _mm256_loadu_si256(word.cast()) }
    };
    // The values of the row in the low bits; the high bits are those of the next row and are masked off.
    let row = |k: usize| {
        let (first, shift) = (k * W / 32, k * W % 32);
        if W == 0 {
            _mm256_setzero_si256()
        } else if shift + W <= 32 {
            _mm256_srlv_epi32(word(first), _mm256_set1_epi32(shift as i32))
        } else {
            _mm256_shrdv_epi32(word(first), word(first + 1), _mm256_set1_epi32(shift as i32))
        }
    };
    let mask = low_bits(W as u32);
    unrolled!(16, pair, {
        let rows = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(row(2 * pair)), row(2 * pair + 1));
        let values = finish.apply::<SIZE, SUM>(_mm512_and_si512(rows, mask), pair);
        store_all(&mut out.as_chunks_mut::<LANES>().0[pair], values);
    });
}

/// Unpacks 16 values at a time; the last group may be shorter.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
fn horizontal<const SIZE: HighSize, const SUM: bool>(packed: &Packed, words: &[u32], out: &mut [u32]) {
    let mut finish = Finish::new(packed, words);
    let stream = BitStream::new(packed.bytes, packed.width);
    for (group, out) in out.chunks_mut(LANES).enumerate() {
        store(out, finish.apply::<SIZE, SUM>(stream.values(group), group));
    }
}

/// A bit stream, in which 16 values always take whole bytes.
struct BitStream<'a> {
    bytes: &'a [u8],
    /// Bytes of 16 values.
    stride: usize,
    /// For each lane the four bytes from the first byte of its value on.
    shuffle: __m512i,
    /// For each lane the bit of the first of these bytes at which its value starts.
    shifts: __m512i,
    mask: __m512i,
}

impl<'a> BitStream<'a> {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
    fn new(bytes: &'a [u8], width: u32) -> BitStream<'a> {
        let row = &SHUFFLES[width as usize];
        // SAFETY: There are 64 bytes.
        let shuffle = unsafe { _mm512_loadu_si512(row.bytes.as_ptr().cast()) };
        // SAFETY: There are 16 shifts.
        let shifts = unsafe { _mm512_loadu_si512(row.shifts.as_ptr().cast()) };
        BitStream { bytes, stride: 2 * width as usize, shuffle, shifts, mask: low_bits(width) }
    }

    /// The values from index `16 * group` on; lanes after the last value are unspecified.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
    fn values(&self, group: usize) -> __m512i {
        let bytes = load_bytes(&self.bytes[group * self.stride..]);
        let low = _mm512_permutexvar_epi8(self.shuffle, bytes);
        let next = _mm512_add_epi8(self.shuffle, _mm512_set1_epi8(4));
        let high = _mm512_permutexvar_epi8(next, bytes);
        _mm512_and_si512(_mm512_shrdv_epi32(low, high, self.shifts), self.mask)
    }
}

/// All 16 lanes are shuffled from the same bytes.
static SHUFFLES: [UnpackShuffle<64, LANES>; 33] = UnpackShuffle::of_widths(LANES);
