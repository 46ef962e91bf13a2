//! Vectors of 512 bits: the type, and loads and stores within the bounds of slices.

use core::{arch::asm, arch::x86_64::*};
// The names by which code for any vector width calls the operations.
pub(super) use core::arch::x86_64::{
    __m512i as Vector, _mm512_add_epi32 as add, _mm512_or_si512 as or, _mm512_set1_epi32 as broadcast,
    _mm512_sll_epi32 as shift_left,
};

/// Number of 32-bit values of a vector.
pub(super) const LANES: usize = 16;

/// Returns the vector, but hides its value from the compiler. If the compiler knows a permutation or a
/// factor, it may replace one instruction by two or three.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn hide_from_optimizer(mut vector: Vector) -> Vector {
    // SAFETY: There is no instruction.
    unsafe { asm!("/* {} */", inout(zmm_reg) vector, options(pure, nomem, nostack, preserves_flags)) };
    vector
}

/// Returns the mask, but hides its value from the compiler.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn opaque_mask(mut mask: u64) -> u64 {
    // SAFETY: There is no instruction.
    unsafe { asm!("/* {} */", inout(kreg) mask, options(pure, nomem, nostack, preserves_flags)) };
    mask
}

/// Loads the first 64 bytes, padded with zeros.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,bmi2")]
pub(super) fn load_bytes(bytes: &[u8]) -> __m512i {
    if bytes.len() >= 64 {
        // SAFETY: There are 64 bytes.
        return unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) };
    }
    let valid = _bzhi_u64(u64::MAX, bytes.len() as u32);
    // SAFETY: The mask selects bytes within the slice; others are not accessed.
    unsafe { _mm512_maskz_loadu_epi8(valid, bytes.as_ptr().cast()) }
}

/// As [`load`], without a mask where 16 values are left. For loops that read memory in order: some
/// processors prefetch only after loads without a mask.
#[inline]
#[target_feature(enable = "avx512f,bmi2")]
pub(super) fn load_unmasked(values: &[u32]) -> __m512i {
    match values.first_chunk::<LANES>() {
        // SAFETY: There are 16 values.
        Some(values) => unsafe { _mm512_loadu_si512(values.as_ptr().cast()) },
        None => load(values),
    }
}

/// Loads the first 16 values, padded with zeros.
#[inline]
#[target_feature(enable = "avx512f,bmi2")]
pub(super) fn load(values: &[u32]) -> __m512i {
    let valid = first_lanes(values.len());
    // SAFETY: The mask selects values within the slice; others are not accessed.
    unsafe { _mm512_maskz_loadu_epi32(valid, values.as_ptr().cast()) }
}

/// Stores the first of 16 values, as many as `out` has.
#[inline]
#[target_feature(enable = "avx512f,bmi2")]
pub(super) fn store(out: &mut [u32], values: __m512i) {
    let valid = first_lanes(out.len());
    // SAFETY: The mask selects values within the slice; others are not accessed.
    unsafe { _mm512_mask_storeu_epi32(out.as_mut_ptr().cast(), valid, values) }
}

/// Stores 16 values.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn store_all(out: &mut [u32; LANES], values: __m512i) {
    // SAFETY: The array has 16 values.
    unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), values) }
}

/// Stores the first `out.len()` of 64 bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,bmi2")]
pub(super) fn store_bytes(out: &mut [u8], bytes: __m512i) {
    let valid = _bzhi_u64(u64::MAX, out.len().min(64) as u32);
    // SAFETY: The mask selects bytes within the slice; others are not accessed.
    unsafe { _mm512_mask_storeu_epi8(out.as_mut_ptr().cast(), valid, bytes) }
}

/// A mask of the first `n` lanes, of all if `n` is 16 or more.
#[inline]
#[target_feature(enable = "bmi2")]
pub(super) fn first_lanes(n: usize) -> __mmask16 {
    _bzhi_u32(u32::MAX, n.min(LANES) as u32) as __mmask16
}

/// A constant vector, as bytes.
pub(super) struct ConstantBytes(pub(super) [u8; 64]);

/// The bytes 0, 1, 2 and so on.
pub(super) static COUNTING_BYTES: ConstantBytes = ConstantBytes::counting(1);

impl ConstantBytes {
    /// The bytes 0, 1, 2 and so on, each of them `times` times.
    pub(super) const fn counting(times: usize) -> ConstantBytes {
        let mut bytes = [0; 64];
        let mut k = 0;
        while k < bytes.len() {
            bytes[k] = (k / times) as u8;
            k += 1;
        }
        ConstantBytes(bytes)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn vector(&self) -> __m512i {
        // SAFETY: There are 64 bytes.
        unsafe { _mm512_loadu_si512(self.0.as_ptr().cast()) }
    }
}
