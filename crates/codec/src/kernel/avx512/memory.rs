//! Vectors from slices and into them, never beyond their ends.

use core::arch::x86_64::*;

/// Values of a vector.
pub(super) const LANES: usize = 16;

/// The first 64 bytes, zeros in place of those that are not there.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,bmi2")]
pub(super) fn load_bytes(bytes: &[u8]) -> __m512i {
    if bytes.len() >= 64 {
        // SAFETY: There are 64 bytes.
        return unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) };
    }
    let there = _bzhi_u64(u64::MAX, bytes.len() as u32);
    // SAFETY: The mask names bytes of the slice only, and others are not accessed.
    unsafe { _mm512_maskz_loadu_epi8(there, bytes.as_ptr().cast()) }
}

/// The first 16 values, zeros in place of those that are not there.
#[inline]
#[target_feature(enable = "avx512f,bmi2")]
pub(super) fn load(values: &[u32]) -> __m512i {
    let there = first_lanes(values.len());
    // SAFETY: The mask names values of the slice only, and others are not accessed.
    unsafe { _mm512_maskz_loadu_epi32(there, values.as_ptr().cast()) }
}

/// Stores as many of 16 values as there is room for.
#[inline]
#[target_feature(enable = "avx512f,bmi2")]
pub(super) fn store(out: &mut [u32], values: __m512i) {
    let there = first_lanes(out.len());
    // SAFETY: The mask names places of the slice only, and others are not accessed.
    unsafe { _mm512_mask_storeu_epi32(out.as_mut_ptr().cast(), there, values) }
}

/// Stores 16 values.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn store_all(out: &mut [u32; LANES], values: __m512i) {
    // SAFETY: There is room for 16 values.
    unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), values) }
}

/// A mask of the first `n` lanes, of all if `n` is 16 or more.
#[inline]
#[target_feature(enable = "bmi2")]
pub(super) fn first_lanes(n: usize) -> __mmask16 {
    _bzhi_u32(u32::MAX, n.min(LANES) as u32) as __mmask16
}

/// The bytes of a constant vector.
pub(super) struct Constant(pub(super) [u8; 64]);

/// 0, 1, 2 and so on.
pub(super) static COUNTING: Constant = Constant::counting(1);

impl Constant {
    /// 0, 1, 2 and so on, each `times` times.
    pub(super) const fn counting(times: usize) -> Constant {
        let mut bytes = [0; 64];
        let mut k = 0;
        while k < bytes.len() {
            bytes[k] = (k / times) as u8;
            k += 1;
        }
        Constant(bytes)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn vector(&self) -> __m512i {
        // SAFETY: There are 64 bytes.
        unsafe { _mm512_loadu_si512(self.0.as_ptr().cast()) }
    }
}
