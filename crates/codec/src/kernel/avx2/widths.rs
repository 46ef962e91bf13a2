//! The bit widths of values: how many are wider than each.

use super::super::scalar;
use crate::kernel::Wider;
use crate::pfor::plan;

/// [`crate::Kernel::wider`].
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(in crate::kernel) fn wider(values: &[u32]) -> Wider {
    scalar::widths::wider(values)
}

/// [`crate::Kernel::shortest_patched`].
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(in crate::kernel) fn shortest_patched(n: usize, wider: &Wider) -> (u32, usize) {
    plan::shortest_patched(n, wider)
}
