//! `StreamVByte`: 16 values, four control bytes, at a time.

use super::memory::{LANES, first_lanes, load_bytes, load_unmasked, store, store_all, store_bytes};
use super::sums::PrefixSums;
use core::arch::x86_64::*;

/// Implements [`crate::Kernel::streamvbyte_encode`]: the bytes of 16 values are compressed by a mask of those
/// that are stored.
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512vl,avx512vbmi2,bmi2,popcnt")]
pub(crate) fn streamvbyte_encode(values: &[u32], controls: &mut [u8], data: &mut [u8]) -> usize {
    let mut len = 0;
    for (values, controls) in values.chunks(LANES).zip(controls.chunks_mut(LANES / 4)) {
        let vector = load_unmasked(values);
        let zeros = _mm512_lzcnt_epi32(_mm512_or_si512(vector, _mm512_set1_epi32(1)));
        let unused = _mm512_and_si512(zeros, _mm512_set1_epi32(24));
        let stored = _mm512_movepi8_mask(_mm512_srlv_epi32(_mm512_set1_epi32(-1), unused));
        let stored = _bzhi_u64(stored, 4 * values.len() as u32);
        let bytes = _mm512_maskz_compress_epi8(stored, vector);
        let count = stored.count_ones() as usize;
        match data[len..].first_chunk_mut::<64>() {
            // SAFETY: There are 64 bytes.
            Some(out) => unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), bytes) },
            None => store_bytes(&mut data[len..len + count], bytes),
        }
        len += count;
        // Codes of two bits, with those of lanes without a value zero: four in a byte.
        let codes = _mm512_sub_epi32(_mm512_set1_epi32(3), _mm512_srli_epi32::<3>(unused));
        let codes = _mm_maskz_mov_epi8(first_lanes(values.len()), _mm512_cvtepi32_epi8(codes));
        let pairs = _mm_maddubs_epi16(codes, _mm_set1_epi16(0x0401));
        let fours = _mm_cvtepi32_epi8(_mm_madd_epi16(pairs, _mm_set1_epi32(0x0010_0001)));
        controls.copy_from_slice(&_mm_cvtsi128_si32(fours).to_le_bytes()[..controls.len()]);
    }
    len
}

decode_or_sum! {
    /// Implements [`crate::Kernel::streamvbyte_decode`].
    "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt",
    fn streamvbyte_decode(controls, data) -> ()
}

/// Expands the data bytes to four bytes per value, by a mask computed from the control bytes. Not inlined:
/// the registers that prefix sums need would be saved without them too.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
fn decode_values<const SUM: bool>(controls: &[u8], mut data: &[u8], prev: u32, out: &mut [u32]) {
    let masks = stored_byte_masks(controls);
    let mut sums = PrefixSums::after(prev);
    let (groups, rest) = out.as_chunks_mut::<LANES>();
    for (out, mask) in groups.iter_mut().zip(masks) {
        store_all(out, expand_values::<SUM>(mask, &mut data, &mut sums));
    }
    if !rest.is_empty() {
        // Unused codes are zero, as if each value had one byte: clear their mask bits.
        let mask = _bzhi_u64(masks[groups.len()], 4 * rest.len() as u32);
        store(rest, expand_values::<SUM>(mask, &mut data, &mut sums));
    }
}

/// Consumes 16 values from the front of `data`; returns the values or their prefix sums.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
fn expand_values<const SUM: bool>(mask: u64, data: &mut &[u8], sums: &mut PrefixSums) -> __m512i {
    let values = _mm512_maskz_expand_epi8(mask, load_bytes(data));
    *data = &data[mask.count_ones() as usize..];
    if SUM { sums.next(values) } else { values }
}

/// For each 16 values, a mask of those of their 64 bytes that are stored.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,bmi2")]
fn stored_byte_masks(controls: &[u8]) -> [u64; 16] {
    // A nibble holds the codes of two values. The mask of a value has 1, 3, 7 or 15 in a nibble.
    let nibbles = _mm_set_epi64x(0xfff7_f3f1_7f77_7371_u64 as i64, 0x3f37_3331_1f17_1311);
    let nibbles = _mm512_broadcast_i32x4(nibbles);
    let controls = load_bytes(controls);
    let low_nibble = _mm512_set1_epi8(0x0f);
    let low = _mm512_shuffle_epi8(nibbles, _mm512_and_si512(controls, low_nibble));
    let high = _mm512_shuffle_epi8(nibbles, _mm512_and_si512(_mm512_srli_epi16::<4>(controls), low_nibble));
    // Interleave within each quarter, then order the quarters.
    let (even, odd) = (_mm512_unpacklo_epi8(low, high), _mm512_unpackhi_epi8(low, high));
    let first = _mm512_permutex2var_epi64(even, _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11), odd);
    let second = _mm512_permutex2var_epi64(even, _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15), odd);
    let mut masks = [0; 16];
    let (low_half, high_half) = masks.split_at_mut(8);
    // SAFETY: The half has eight words.
    unsafe { _mm512_storeu_si512(low_half.as_mut_ptr().cast(), first) };
    // SAFETY: The half has eight words.
    unsafe { _mm512_storeu_si512(high_half.as_mut_ptr().cast(), second) };
    masks
}
