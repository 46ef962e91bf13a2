//! Packing and unpacking of the horizontal layout, one stream of bits.

use super::memory::{LANES, load, load_all, load_bytes, load_half, store_all};
use crate::{kernel::scalar, kernel::x86::UnpackShuffle};
use core::{arch::x86_64::*, mem::MaybeUninit};

/// Maximum width in bits of the values that [`pack_stream`] packs.
pub(super) const STREAM_WIDTH_MAX: u32 = 16;

/// Packs values of at most [`STREAM_WIDTH_MAX`] bits, eight at a time: pairs of values in 32 bits, pairs of
/// these in 64, and those of both halves in 128.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn pack_stream(values: &[u32], width: u32, packed: &mut [MaybeUninit<u8>]) {
    // The last words, which would end after `packed`. `before` is the offset of the first of them.
    let (mut last, mut before) = ([0; 32], None);
    let mask = _mm256_set1_epi32((1 << width) - 1);
    let (pair, four) = (_mm_cvtsi32_si128(32 - width as i32), _mm_cvtsi32_si128(2 * width as i32));
    for (k, values) in values.chunks(LANES).enumerate() {
        let values = _mm256_and_si256(load(values), mask);
        let pairs = _mm256_or_si256(values, _mm256_srl_epi64(values, pair));
        let pairs = _mm256_and_si256(pairs, _mm256_set1_epi64x(0xffff_ffff));
        let fours = _mm256_or_si256(pairs, _mm256_sll_epi64(_mm256_unpackhi_epi64(pairs, pairs), four));
        let low = _mm_cvtsi128_si64(_mm256_castsi256_si128(fours)) as u64;
        let high = _mm_cvtsi128_si64(_mm256_extracti128_si256::<1>(fours)) as u64;
        let word = u128::from(low) | u128::from(high) << (4 * width);
        let start = k * width as usize;
        // The next word overwrites the bytes that the values of this one do not fill.
        if let Some(packed) = packed.get_mut(start..start + 16) {
            packed.write_copy_of_slice(&word.to_le_bytes());
        } else {
            let start = start - *before.get_or_insert(start);
            last[start..start + 16].copy_from_slice(&word.to_le_bytes());
        }
    }
    if let Some(before) = before {
        let rest = &mut packed[before..];
        rest.write_copy_of_slice(&last[..rest.len()]);
    }
}

/// Unpacks values of one bit stream, in which eight values always take whole bytes. Four values of up to 25
/// bits are within 16 bytes, and each is within four of these bytes, which a shuffle moves to its lane.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn unpack_stream(bytes: &[u8], width: u32, out: &mut [u32]) {
    let mut done = 0;
    if let Some(row) = SHUFFLES.get(width as usize) {
        let (shuffle, shifts) = (load_bytes(&row.bytes), load_all(&row.shifts));
        let mask = _mm256_set1_epi32((1 << width) - 1);
        let width = width as usize;
        for (group, out) in out.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
            let bytes = &bytes[group * width..];
            let (Some(first), Some(second)) = (bytes.first_chunk(), bytes.get(width / 2..width / 2 + 16))
            else {
                break;
            };
            let second = second.first_chunk().expect("16 bytes");
            let both = _mm256_set_m128i(load_half(second), load_half(first));
            let values = _mm256_srlv_epi32(_mm256_shuffle_epi8(both, shuffle), shifts);
            store_all(out, _mm256_and_si256(values, mask));
            done += LANES;
        }
    }
    scalar::bits::unpack_horizontal(&bytes[done / 8 * width as usize..], width, &mut out[done..]);
}

/// The shuffles for each width. The first four lanes are shuffled from 16 bytes, the others from another 16.
static SHUFFLES: [UnpackShuffle<32, LANES>; 26] = UnpackShuffle::of_widths(LANES / 2);
