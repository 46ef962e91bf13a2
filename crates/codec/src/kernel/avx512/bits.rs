//! Bit unpacking in both layouts.

use super::exceptions::Highs;
use super::memory::{LANES, load_bytes, store, store_all};
use super::sums::PrefixSums;
use crate::bitpack::Layout;
use crate::block::BLOCK;
use crate::kernel::size::{self, BYTES, HighSize, NONE, WORDS};
use crate::kernel::table::Packed;
use core::arch::x86_64::*;

/// [`crate::Kernel::unpack`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
pub(in crate::kernel) fn unpack(packed: &Packed, out: &mut [u32]) {
    match (size::of(packed.patch), packed.after.is_some()) {
        (NONE, false) => unpack_as::<NONE, false>(packed, out),
        (NONE, true) => unpack_as::<NONE, true>(packed, out),
        (BYTES, false) => unpack_as::<BYTES, false>(packed, out),
        (BYTES, true) => unpack_as::<BYTES, true>(packed, out),
        (_, false) => unpack_as::<WORDS, false>(packed, out),
        (_, true) => unpack_as::<WORDS, true>(packed, out),
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
fn unpack_as<const SIZE: HighSize, const SUM: bool>(packed: &Packed, out: &mut [u32]) {
    match (packed.layout, <&mut [u32; BLOCK]>::try_from(&mut *out)) {
        (Layout::Vertical, Ok(block)) => {
            let unpack = Vertical::<SIZE, SUM>::UNPACK[packed.width as usize];
            // SAFETY: The CPU has the instructions of this function, and those of the table need no more.
            // The caller has checked that there are 32 * width bytes.
            unsafe { unpack(packed, block) }
        }
        _ => horizontal::<SIZE, SUM>(packed, out),
    }
}

/// Unpacks 256 values from `32 * W` bytes; unsafe because it does not check that there are as many.
type Unpack = unsafe fn(&Packed, &mut [u32; BLOCK]);

/// One function per width, so that the words and shifts of each row are constants.
struct Vertical<const SIZE: HighSize, const SUM: bool>;

impl<const SIZE: HighSize, const SUM: bool> Vertical<SIZE, SUM> {
    const UNPACK: [Unpack; 33] = by_width!(vertical, SIZE, SUM);
}

/// Unpacks two rows of eight lanes at a time.
///
/// # Safety
/// There must be `32 * W` bytes.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
unsafe fn vertical<const W: usize, const SIZE: HighSize, const SUM: bool>(
    packed: &Packed,
    out: &mut [u32; BLOCK],
) {
    let mut finish = Finish::new(packed);
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
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
fn horizontal<const SIZE: HighSize, const SUM: bool>(packed: &Packed, out: &mut [u32]) {
    let mut finish = Finish::new(packed);
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
    #[target_feature(enable = "avx512f")]
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
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,bmi2")]
    fn values(&self, group: usize) -> __m512i {
        let bytes = load_bytes(&self.bytes[group * self.stride..]);
        let low = _mm512_permutexvar_epi8(self.shuffle, bytes);
        let next = _mm512_add_epi8(self.shuffle, _mm512_set1_epi8(4));
        let high = _mm512_permutexvar_epi8(next, bytes);
        _mm512_and_si512(_mm512_shrdv_epi32(low, high, self.shifts), self.mask)
    }
}

/// The shuffle of bytes to 16 lanes, and the shift of each lane, for one width.
struct UnpackShuffle {
    bytes: [u8; 64],
    shifts: [u32; LANES],
}

static SHUFFLES: [UnpackShuffle; 33] = {
    let mut all = [const { UnpackShuffle { bytes: [0; 64], shifts: [0; LANES] } }; 33];
    let mut k = 0;
    while k < 33 * LANES {
        let (width, lane) = (k / LANES, k % LANES);
        let bit = width * lane;
        all[width].shifts[lane] = bit as u32 % 8;
        let mut byte = 0;
        while byte < 4 {
            all[width].bytes[4 * lane + byte] = (bit / 8 + byte) as u8;
            byte += 1;
        }
        k += 1;
    }
    all
};

/// The steps after unpacking: exceptions and prefix sums.
struct Finish<'a> {
    highs: Highs<'a>,
    sums: PrefixSums,
}

impl<'a> Finish<'a> {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn new(packed: &Packed<'a>) -> Finish<'a> {
        let highs = Highs::new(packed.patch, packed.width);
        Finish { highs, sums: PrefixSums::after(packed.after.unwrap_or(0)) }
    }

    /// Called once for each of the up to 16 groups, in order.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
    fn apply<const SIZE: HighSize, const SUM: bool>(&mut self, mut values: __m512i, group: usize) -> __m512i {
        if SIZE != NONE {
            values = _mm512_or_si512(values, self.highs.next::<SIZE>(group));
        }
        if SUM {
            values = self.sums.next(_mm512_add_epi32(values, _mm512_set1_epi32(1)));
        }
        values
    }
}

/// The `width` lowest bits of every lane.
#[inline]
#[target_feature(enable = "avx512f")]
fn low_bits(width: u32) -> __m512i {
    _mm512_set1_epi32(((1u64 << width) - 1) as u32 as i32)
}
