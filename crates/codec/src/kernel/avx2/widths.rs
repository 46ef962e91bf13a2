//! The bit widths of values: how many are wider than each.

use super::super::scalar;
use crate::kernel::Wider;

/// [`crate::Kernel::wider`].
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(in crate::kernel) fn wider(values: &[u32]) -> Wider {
    scalar::widths::wider(values)
}
