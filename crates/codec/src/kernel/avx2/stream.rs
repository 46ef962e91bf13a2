//! Unpacking of the horizontal layout: one stream of bits.

use super::super::scalar;
use super::memory::{LANES, load_all, load_bytes, load_half, store_all};
use crate::kernel::x86::UnpackShuffle;
use core::arch::x86_64::*;

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

/// The first four lanes are shuffled from 16 bytes, the others from another 16.
static SHUFFLES: [UnpackShuffle<32, LANES>; 26] = UnpackShuffle::of_widths(LANES / 2);
