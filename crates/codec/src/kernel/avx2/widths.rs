//! For each bit width, the number of values that are wider.

use super::super::scalar;
use crate::kernel::table::WidthCounts;
use crate::pfor::cost;

/// [`crate::Kernel::count_wider`].
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(in crate::kernel) fn count_wider(values: &[u32]) -> WidthCounts {
    scalar::widths::count_wider(values)
}

/// [`crate::Kernel::shortest_patched`].
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(in crate::kernel) fn shortest_patched(n: usize, counts: &WidthCounts) -> (u32, usize) {
    cost::shortest_patched(n, counts)
}
