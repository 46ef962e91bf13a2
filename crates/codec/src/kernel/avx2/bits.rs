//! Bit packing in both layouts.

use super::super::scalar;
use super::exceptions::Highs;
use super::memory::{LANES, load, load_bytes, load_half, store};
use super::sums::Sums;
use crate::BLOCK;
use crate::bitpack::Layout;
use crate::kernel::Packed;
use crate::kernel::size::{self, BYTES, NONE, Size, WORDS};
use core::arch::x86_64::*;
use core::mem::MaybeUninit;

/// [`crate::Kernel::pack`].
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(in crate::kernel) fn pack(values: &[u32], width: u32, layout: Layout, packed: &mut [MaybeUninit<u8>]) {
    match layout {
        // SAFETY: The CPU has the instructions of this function, and the table holds functions of the same.
        Layout::Vertical if values.len() == BLOCK => unsafe { PACK_VERTICAL[width as usize](values, packed) },
        _ => scalar::bits::pack_horizontal(values, width, packed),
    }
}

/// Packs 256 values at one width.
type Pack = unsafe fn(&[u32], &mut [MaybeUninit<u8>]);

static PACK_VERTICAL: [Pack; 33] = by_width!(pack_vertical);

#[target_feature(enable = "avx2")]
fn pack_vertical<const W: usize>(values: &[u32], packed: &mut [MaybeUninit<u8>]) {
    scalar::bits::pack_column::<W, LANES>(values, packed);
}

/// [`crate::Kernel::unpack`].
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(in crate::kernel) fn unpack(packed: &Packed, out: &mut [u32]) {
    match (size::of(packed.patch), packed.after.is_some()) {
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
    match (packed.layout, <&mut [u32; BLOCK]>::try_from(&mut *out)) {
        (Layout::Vertical, Ok(block)) => {
            let unpack = Vertical::<SIZE, SUM>::UNPACK[packed.width as usize];
            // SAFETY: The CPU has the instructions of this function, and those of the table need no more. The
            // caller has checked that there are 32 * width bytes.
            unsafe { unpack(packed, words, block) }
        }
        _ => {
            unpack_stream(packed.bytes, packed.width, out);
            finish_all::<SIZE, SUM>(Finish::new(packed, words), out);
        }
    }
}

/// Unpacks 256 values of `32 * W` bytes; unsafe if there are not so many.
type Unpack = unsafe fn(&Packed, &[u32], &mut [u32; BLOCK]);

/// One function a width: which words a row lies in, and where, are constants.
struct Vertical<const SIZE: Size, const SUM: bool>;

impl<const SIZE: Size, const SUM: bool> Vertical<SIZE, SUM> {
    const UNPACK: [Unpack; 33] = by_width!(vertical, SIZE, SUM);
}

/// A row of eight lanes at a time.
///
/// # Safety
/// There must be `32 * W` bytes.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn vertical<const W: usize, const SIZE: Size, const SUM: bool>(
    packed: &Packed,
    words: &[u32],
    out: &mut [u32; BLOCK],
) {
    let mut finish = Finish::new(packed, words);
    let word = |k: usize| {
        let word = packed.bytes.as_ptr().wrapping_add(32 * k);
        // SAFETY: There are W words of 32 bytes, and only those are asked for.
        unsafe { _mm256_loadu_si256(word.cast()) }
    };
    // The row's values, and above them, if they do not end with their word, whatever comes next in it.
    let row = |k: usize| {
        let (first, shift) = (k * W / 32, k * W % 32);
        if W == 0 {
            return _mm256_setzero_si256();
        }
        let low = _mm256_srlv_epi32(word(first), _mm256_set1_epi32(shift as i32));
        if shift + W <= 32 {
            return low;
        }
        _mm256_or_si256(low, _mm256_sllv_epi32(word(first + 1), _mm256_set1_epi32(32 - shift as i32)))
    };
    let mask = low_bits(W as u32);
    unrolled!(32, k, {
        let values = finish.apply::<SIZE, SUM>(_mm256_and_si256(row(k), mask), k);
        store(&mut out.as_chunks_mut::<LANES>().0[k], values);
    });
}

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
struct Row {
    bytes: [u8; 32],
    shifts: [u32; LANES],
}

static PLACES: [Row; 26] = {
    let mut all = [const { Row { bytes: [0; 32], shifts: [0; LANES] } }; 26];
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

impl<'a> Finish<'a> {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new(packed: &Packed<'a>, words: &'a [u32]) -> Finish<'a> {
        let highs = Highs::new(packed.patch, packed.width, words);
        Finish { highs, sums: Sums::after(packed.after.unwrap_or(0)) }
    }

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
