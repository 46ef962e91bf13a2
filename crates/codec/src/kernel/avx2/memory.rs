//! Vectors of 256 bits: the type, and loads and stores within the bounds of slices.

use core::{arch::asm, arch::x86_64::*};
// The names by which code for any vector width calls the operations.
pub(super) use core::arch::x86_64::{
    __m256i as Vector, _mm256_add_epi32 as add, _mm256_or_si256 as or, _mm256_set1_epi32 as broadcast,
    _mm256_sll_epi32 as shift_left,
};

/// Number of 32-bit values of a vector.
pub(super) const LANES: usize = 8;

/// Returns the vector, but hides its value from the compiler. If the compiler knows a permutation, it may
/// replace one instruction by two.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn hide_from_optimizer(mut vector: Vector) -> Vector {
    // SAFETY: There is no instruction.
    unsafe { asm!("/* {} */", inout(ymm_reg) vector, options(pure, nomem, nostack, preserves_flags)) };
    vector
}

/// Loads 16 bytes.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn load_half(bytes: &[u8; 16]) -> __m128i {
    // SAFETY: There are 16 bytes.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

/// Loads 32 bytes.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn load_bytes(bytes: &[u8; 32]) -> __m256i {
    // SAFETY: There are 32 bytes.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

/// Loads eight values.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn load_all(values: &[u32; LANES]) -> __m256i {
    // SAFETY: There are eight values.
    unsafe { _mm256_loadu_si256(values.as_ptr().cast()) }
}

/// Stores eight values.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn store_all(out: &mut [u32; LANES], values: __m256i) {
    // SAFETY: The array has eight values.
    unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), values) }
}

/// Loads the first eight values, padded with zeros.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn load(values: &[u32]) -> __m256i {
    match values.first_chunk() {
        Some(values) => load_all(values),
        None => {
            let mut padded = [0; LANES];
            padded[..values.len()].copy_from_slice(values);
            load_all(&padded)
        }
    }
}

/// Stores the first of eight values, as many as `out` has.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn store(out: &mut [u32], values: __m256i) {
    match out.first_chunk_mut() {
        Some(out) => store_all(out, values),
        None => {
            let mut all = [0; LANES];
            store_all(&mut all, values);
            out.copy_from_slice(&all[..out.len()]);
        }
    }
}

/// Stores four values.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn store_half(out: &mut [u32; 4], values: __m128i) {
    // SAFETY: The array has four values.
    unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), values) }
}

/// A mask of the first `n` <= 8 lanes.
#[inline]
pub(super) fn first_lanes(n: usize) -> u8 {
    ((1_u32 << n) - 1) as u8
}
