//! Unpacking of the horizontal layout: one stream of bits.

use super::super::scalar;
use super::memory::{LANES, load, load_bytes, load_half, store};
use core::arch::x86_64::*;

/// Unpacks values of one bit stream, in which eight values always take whole bytes. Four values of up to 25
/// bits are within 16 bytes, and each is within four of these bytes, which a shuffle moves to its lane.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn unpack_stream(bytes: &[u8], width: u32, out: &mut [u32]) {
    let mut done = 0;
    if let Some(row) = SHUFFLES.get(width as usize) {
        let (shuffle, shifts) = (load_bytes(&row.bytes), load(&row.shifts));
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

/// The shuffle of two times 16 bytes to eight lanes, and the shift of each lane, for one width.
struct UnpackShuffle {
    bytes: [u8; 32],
    shifts: [u32; LANES],
}

static SHUFFLES: [UnpackShuffle; 26] = {
    let mut all = [const { UnpackShuffle { bytes: [0; 32], shifts: [0; LANES] } }; 26];
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

/// The `width` lowest bits of every lane.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn low_bits(width: u32) -> __m256i {
    _mm256_set1_epi32(((1u64 << width) - 1) as u32 as i32)
}
