//! Blocks of 64-bit values: comparison and decoding of their offsets.

use super::unpack::unpack;
use crate::block::BLOCK;
use crate::kernel::table::{OffsetRange, PackedOffsets};

/// Implements [`crate::Kernel::offsets_within`].
pub(crate) fn offsets_within(offsets: &PackedOffsets, range: OffsetRange) -> [u64; 4] {
    let (mut low, mut high, mut bits) = ([0; BLOCK], [0; BLOCK], [0; 4]);
    unpack(&offsets.low, &mut low[..offsets.len]);
    unpack(&offsets.high, &mut high[..offsets.len]);
    let words = low.as_chunks::<64>().0.iter().zip(high.as_chunks::<64>().0);
    for (word, (low, high)) in bits.iter_mut().zip(words) {
        for k in 0..64 {
            let within = offset_of(low[k], high[k]).wrapping_sub(range.first) <= range.span;
            *word |= u64::from(within) << k;
        }
    }
    bits
}

/// Implements [`crate::Kernel::decode_offsets`].
pub(crate) fn decode_offsets(offsets: &PackedOffsets, smallest: u64, out: &mut [u64]) {
    let (mut low, mut high) = ([0; BLOCK], [0; BLOCK]);
    unpack(&offsets.low, &mut low[..offsets.len]);
    unpack(&offsets.high, &mut high[..offsets.len]);
    add_offsets(&low, &high, smallest, out);
}

/// The sums of `smallest` and the offsets, mod 2^64.
#[inline(always)]
pub(crate) fn add_offsets(low: &[u32], high: &[u32], smallest: u64, out: &mut [u64]) {
    for ((out, low), high) in out.iter_mut().zip(low).zip(high) {
        *out = smallest.wrapping_add(offset_of(*low, *high));
    }
}

/// An offset of its low and its high bits.
#[inline(always)]
fn offset_of(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}
