//! Bit packing in both layouts.

use super::exceptions::Highs;
use super::memory::{LANES, load_bytes, store, store_all};
use super::sums::Sums;
use crate::BLOCK;
use crate::bitpack::Layout;
use crate::kernel::Packed;
use crate::kernel::size::{self, BYTES, NONE, Size, WORDS};
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
fn unpack_as<const SIZE: Size, const SUM: bool>(packed: &Packed, out: &mut [u32]) {
    match (packed.layout, <&mut [u32; BLOCK]>::try_from(&mut *out)) {
        (Layout::Vertical, Ok(block)) => {
            let unpack = Vertical::<SIZE, SUM>::UNPACK[packed.width as usize];
            // SAFETY: The CPU has the instructions of this function, and those of the table need no more. The
            // caller has checked that there are 32 * width bytes.
            unsafe { unpack(packed, block) }
        }
        _ => horizontal::<SIZE, SUM>(packed, out),
    }
}

/// Unpacks 256 values of `32 * W` bytes; unsafe if there are not so many.
type Unpack = unsafe fn(&Packed, &mut [u32; BLOCK]);

/// One function a width: which words a row lies in, and where, are constants.
struct Vertical<const SIZE: Size, const SUM: bool>;

impl<const SIZE: Size, const SUM: bool> Vertical<SIZE, SUM> {
    const UNPACK: [Unpack; 33] = by_width!(vertical, SIZE, SUM);
}

/// Two rows of eight lanes at a time.
///
/// # Safety
/// There must be `32 * W` bytes.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
unsafe fn vertical<const W: usize, const SIZE: Size, const SUM: bool>(
    packed: &Packed,
    out: &mut [u32; BLOCK],
) {
    let mut finish = Finish::new(packed);
    let word = |k: usize| {
        let word = packed.bytes.as_ptr().wrapping_add(32 * k);
        // SAFETY: There are W words of 32 bytes, and only those are asked for.
        unsafe { _mm256_loadu_si256(word.cast()) }
    };
    // The row's values, and above them, if they do not end with their word, whatever comes next in it.
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

/// 16 values at a time, whatever their number.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
fn horizontal<const SIZE: Size, const SUM: bool>(packed: &Packed, out: &mut [u32]) {
    let mut finish = Finish::new(packed);
    let stream = Stream::new(packed.bytes, packed.width);
    for (group, out) in out.chunks_mut(LANES).enumerate() {
        store(out, finish.apply::<SIZE, SUM>(stream.values(group), group));
    }
}

/// One stream of bits, of which 16 values are always whole bytes.
struct Stream<'a> {
    bytes: &'a [u8],
    /// Bytes of 16 values.
    stride: usize,
    /// For each lane the four bytes that its value starts in.
    places: __m512i,
    /// The bit of the first of these bytes that it starts at.
    shifts: __m512i,
    mask: __m512i,
}

impl<'a> Stream<'a> {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(bytes: &'a [u8], width: u32) -> Stream<'a> {
        let places = &PLACES[width as usize];
        // SAFETY: There are 64 bytes.
        let places_of_width = unsafe { _mm512_loadu_si512(places.bytes.as_ptr().cast()) };
        // SAFETY: There are 16 shifts.
        let shifts = unsafe { _mm512_loadu_si512(places.shifts.as_ptr().cast()) };
        Stream { bytes, stride: 2 * width as usize, places: places_of_width, shifts, mask: low_bits(width) }
    }

    /// The values from the `16 * group`-th on; what is beyond the last is anything.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,bmi2")]
    fn values(&self, group: usize) -> __m512i {
        let bytes = load_bytes(&self.bytes[group * self.stride..]);
        let low = _mm512_permutexvar_epi8(self.places, bytes);
        let next = _mm512_add_epi8(self.places, _mm512_set1_epi8(4));
        let high = _mm512_permutexvar_epi8(next, bytes);
        _mm512_and_si512(_mm512_shrdv_epi32(low, high, self.shifts), self.mask)
    }
}

/// Where 16 values of one width lie in their bytes.
struct Row {
    bytes: [u8; 64],
    shifts: [u32; LANES],
}

static PLACES: [Row; 33] = {
    let mut all = [const { Row { bytes: [0; 64], shifts: [0; LANES] } }; 33];
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

/// What is done to values on their way out.
struct Finish<'a> {
    highs: Highs<'a>,
    sums: Sums,
}

impl<'a> Finish<'a> {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn new(packed: &Packed<'a>) -> Finish<'a> {
        let highs = Highs::new(packed.patch, packed.width);
        Finish { highs, sums: Sums::after(packed.after.unwrap_or(0)) }
    }

    /// `group` is one of 16, and each is asked for once, in order.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
    fn apply<const SIZE: Size, const SUM: bool>(&mut self, mut values: __m512i, group: usize) -> __m512i {
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
