//! Bit packing in both layouts.

use super::super::scalar;
use super::exceptions::{BYTES, Highs, NONE, Size, WORDS};
use super::memory::{LANES, load, load_bytes, load_half, store};
use super::sums::Sums;
use crate::BLOCK;
use crate::bitpack::Layout;
use crate::kernel::Packed;
use core::arch::x86_64::*;

/// [`crate::Kernel::pack`].
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(in crate::kernel) fn pack(values: &[u32], width: u32, layout: Layout, packed: &mut [u8]) {
    match layout {
        // SAFETY: The CPU has the instructions of this function, and the table holds functions of the same.
        Layout::Vertical if values.len() == BLOCK => unsafe { PACK_VERTICAL[width as usize](values, packed) },
        _ => scalar::bits::pack_horizontal(values, width, packed),
    }
}

/// Packs 256 values at one width.
type Pack = unsafe fn(&[u32], &mut [u8]);

static PACK_VERTICAL: [Pack; 33] = by_width!(pack_vertical);

#[target_feature(enable = "avx2")]
fn pack_vertical<const W: usize>(values: &[u32], packed: &mut [u8]) {
    scalar::bits::pack_column::<W, LANES>(values, packed);
}

/// [`crate::Kernel::unpack`].
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(in crate::kernel) fn unpack(packed: &Packed, out: &mut [u32]) {
    match (Highs::size(packed.patch), packed.after.is_some()) {
        (NONE, false) => unpack_as::<NONE, false>(packed, &[], out),
        (NONE, true) => unpack_as::<NONE, true>(packed, &[], out),
        (BYTES, false) => unpack_as::<BYTES, false>(packed, &[], out),
        (BYTES, true) => unpack_as::<BYTES, true>(packed, &[], out),
        (_, false) => unpack_as::<WORDS, false>(packed, &Highs::words(packed.patch), out),
        (_, true) => unpack_as::<WORDS, true>(packed, &Highs::words(packed.patch), out),
    }
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn unpack_as<const SIZE: Size, const SUM: bool>(packed: &Packed, words: &[u32], out: &mut [u32]) {
    let finish = Finish {
        highs: Highs::new(packed.patch, packed.width, words),
        sums: Sums::after(packed.after.unwrap_or(0)),
    };
    let (bytes, width) = (packed.bytes, packed.width);
    match (packed.layout, <&mut [u32; BLOCK]>::try_from(&mut *out)) {
        (Layout::Vertical, Ok(block)) => vertical::<SIZE, SUM>(bytes, width, finish, block),
        _ => {
            unpack_stream(bytes, width, out);
            finish_all::<SIZE, SUM>(finish, out);
        }
    }
}

/// A row of eight lanes at a time. A value lies in the words of its first and of its last bit, which are mostly the
/// same: then what the second shift brings is above the value's bits.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn vertical<const SIZE: Size, const SUM: bool>(
    bytes: &[u8],
    width: u32,
    mut finish: Finish,
    out: &mut [u32; BLOCK],
) {
    // No bits, no rows: zeros are then read from here.
    let rows = if width == 0 { NO_BITS.as_ptr() } else { bytes.as_ptr() };
    let last = width.saturating_sub(1) as usize;
    let step = _mm256_set1_epi32(width as i32);
    let mask = low_bits(width);
    let width = width as usize;
    // The row of a bit starts at the byte of that number, less the bit's place in its word.
    let words = |bit: usize| {
        let row = rows.wrapping_add(bit & !31);
        // SAFETY: The bit is below 32 * width, so its row is within the 32 * width bytes that the caller has
        // checked; if the width is zero, so is the bit, and there are 32 zeros.
        unsafe { _mm256_loadu_si256(row.cast()) }
    };
    let in_word = _mm256_set1_epi32(31);
    let mut shift = _mm256_setzero_si256();
    for (row, out) in out.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
        let bit = row * width;
        let low = _mm256_srlv_epi32(words(bit), shift);
        // 32 less the shift. Zero, where nothing is wanted from the next word, shifts everything out.
        let back = _mm256_sub_epi32(_mm256_set1_epi32(32), shift);
        let high = _mm256_sllv_epi32(words(bit + last), back);
        let values = _mm256_and_si256(_mm256_or_si256(low, high), mask);
        shift = _mm256_and_si256(_mm256_add_epi32(shift, step), in_word);
        store(out, finish.apply::<SIZE, SUM>(values, row));
    }
}

static NO_BITS: [u8; 32] = [0; 32];

/// Exceptions and sums of values that are unpacked already.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn finish_all<const SIZE: Size, const SUM: bool>(mut finish: Finish, out: &mut [u32]) {
    if SIZE == NONE && !SUM {
        return;
    }
    let (groups, rest) = out.as_chunks_mut::<LANES>();
    for (group, out) in groups.iter_mut().enumerate() {
        store(out, finish.apply::<SIZE, SUM>(load(out), group));
    }
    if !rest.is_empty() {
        let mut last = [0; LANES];
        last[..rest.len()].copy_from_slice(rest);
        let values = finish.apply::<SIZE, SUM>(load(&last), groups.len());
        store(&mut last, values);
        rest.copy_from_slice(&last[..rest.len()]);
    }
}

/// Values of one stream of bits: eight are always whole bytes. Four of up to 25 bits lie within 16 bytes, each
/// within four of these, which a shuffle brings to its lane.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn unpack_stream(bytes: &[u8], width: u32, out: &mut [u32]) {
    let mut done = 0;
    if let Some(places) = PLACES.get(width as usize) {
        let (shuffle, shifts) = (load_bytes(&places.bytes), load(&places.shifts));
        let (mask, width) = (low_bits(width), width as usize);
        for (group, out) in out.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
            let bytes = &bytes[group * width..];
            let (Some(first), Some(second)) = (bytes.first_chunk(), bytes.get(width / 2..width / 2 + 16))
            else {
                break;
            };
            let second = second.first_chunk().expect("16 bytes");
            let both = _mm256_set_m128i(load_half(second), load_half(first));
            let values = _mm256_srlv_epi32(_mm256_shuffle_epi8(both, shuffle), shifts);
            store(out, _mm256_and_si256(values, mask));
            done += LANES;
        }
    }
    scalar::bits::unpack_horizontal(&bytes[done / 8 * width as usize..], width, &mut out[done..]);
}

/// Where eight values of one width lie in two times 16 bytes.
struct Places {
    bytes: [u8; 32],
    shifts: [u32; LANES],
}

static PLACES: [Places; 26] = {
    let mut all = [const { Places { bytes: [0; 32], shifts: [0; LANES] } }; 26];
    let mut k = 0;
    while k < 26 * LANES {
        let (width, lane) = (k / LANES, k % LANES);
        // The second half of the lanes starts at the byte of the fifth value.
        let start = if lane < 4 { 0 } else { 4 * width / 8 };
        let bit = width * lane - 8 * start;
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

impl Finish<'_> {
    /// `group` is one of 32, and each is asked for once, in order.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    fn apply<const SIZE: Size, const SUM: bool>(&mut self, mut values: __m256i, group: usize) -> __m256i {
        if SIZE != NONE {
            values = _mm256_or_si256(values, self.highs.next::<SIZE>(group));
        }
        if SUM {
            values = self.sums.next(_mm256_add_epi32(values, _mm256_set1_epi32(1)));
        }
        values
    }
}

/// The `width` lowest bits of every lane.
#[inline]
#[target_feature(enable = "avx2")]
fn low_bits(width: u32) -> __m256i {
    _mm256_set1_epi32(((1u64 << width) - 1) as u32 as i32)
}
