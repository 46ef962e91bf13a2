//! The length of a PFor block with exceptions, for each width. Kernels compile this loop for their
//! instructions.

use crate::kernel::table::WidthCounts;

/// Bytes of a block with exceptions before the positions of the exceptions.
pub(super) const PATCHED_HEAD_BYTES: usize = 2;

/// Bytes of the bitmap of the exceptions of `n` values.
pub(super) fn bitmap_len(n: usize) -> usize {
    n.div_ceil(8)
}

/// Bytes of the sparse bitmap of `n` values with exceptions in `groups` of the groups of eight values.
pub(super) fn sparse_len(n: usize, groups: u16) -> u16 {
    bitmap_len(n).div_ceil(8) as u16 + groups
}

/// The width and the length of the shortest block with exceptions; among equally short blocks the largest
/// width. If no value can be an exception, the length is greater than that of any block. The compiler turns
/// the loop over all widths into a few vector instructions of the calling kernel.
#[inline(always)]
pub(crate) fn shortest_patched_block(n: usize, counts: &WidthCounts) -> (u32, usize) {
    let packed_len = |n: u16, width: u16| (n * width).div_ceil(8);
    let (all, widest, bitmap) = (n as u16, counts.widest as u16, bitmap_len(n) as u16);
    // Length and width in one number: lengths have 11 bits and widths 5, which count downwards.
    let mut best = u16::MAX;
    for (width, (count, groups)) in (0..).zip(counts.values.iter().zip(&counts.groups)) {
        let positions = sparse_len(n, *groups).min(bitmap);
        let highs = packed_len(*count, widest.saturating_sub(width));
        let len = PATCHED_HEAD_BYTES as u16 + positions + highs + packed_len(all, width);
        let key = len << 5 | (31 - width);
        best = best.min(if width < widest { key } else { u16::MAX });
    }
    (u32::from(31 - best % 32), usize::from(best / 32))
}
