//! Sorted blocks, by the portable loops, of which the compiler makes vector instructions.

use super::super::scalar;

/// [`crate::Kernel::rises`].
#[target_feature(enable = "avx2")]
pub(in crate::kernel) fn rises(values: &[u32]) -> bool {
    scalar::search::rises(values)
}

/// [`crate::Kernel::add_one`].
#[target_feature(enable = "avx2")]
pub(in crate::kernel) fn add_one(values: &mut [u32]) -> u32 {
    scalar::search::add_one(values)
}
