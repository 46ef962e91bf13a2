//! Set bits to values.

use super::super::scalar;

/// [`crate::Kernel::ones`].
#[target_feature(enable = "popcnt")]
pub(in crate::kernel) fn ones(bytes: &[u8]) -> usize {
    scalar::bitmap::ones(bytes)
}

/// [`crate::Kernel::bitmap_read`].
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(in crate::kernel) fn bitmap_read(bits: &[u8], prev: u32, out: &mut [u32]) {
    scalar::bitmap::bitmap_read(bits, prev, out);
}
