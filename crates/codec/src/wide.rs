//! Blocks of 1 to 256 values of 64 bits, for columns of numbers: offsets from the smallest value, bit-packed
//! at the width of the largest offset.
//!
//! ```text
//! low       the low min(width, 32) bits of all offsets
//! high      the other width - 32 bits of all offsets, if width > 32
//! ```
//!
//! Each plane is vertical if there are 256 values, otherwise horizontal ([`crate::bitpack`]). The smallest
//! value, the width and the number of values are not stored: the caller keeps them in a [`WideBlock`]. For
//! example 1000, 1003, 1001 with the smallest value 1000 and width 2 are `1c`. The bytes are the same on
//! every CPU. Values are read by random access, decoded, or compared with a range in packed form.
//! Source: Goldstein, Ramakrishnan, Shaft, "Compressing relations and indexes" (frame of reference).

use crate::bitpack::{Layout, WIDTH_MAX, packed_len};
use crate::kernel::{OffsetRange, Packed, PackedOffsets};
use crate::{BLOCK, DecodeError, Kernel, Result};

/// A block of 1 to [`BLOCK`] values of 64 bits: offsets from the smallest one, bit-packed at the width of the
/// largest offset.
///
/// ```
/// use tierdex_codec::WideBlock;
///
/// let mut bytes = Vec::new();
/// let block = WideBlock::encode(&[1000, 1003, 1001], &mut bytes);
/// let view = block.view(&bytes)?;
/// assert_eq!((view.value(1), view.between(1001, 2000)), (1003, [0b110, 0, 0, 0]));
/// # Ok::<(), tierdex_codec::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WideBlock {
    /// The smallest value.
    pub smallest: u64,
    /// Bits of the largest offset, at most 64. Equal values have width 0 and take no bytes.
    pub width: u8,
    /// Number of values, 1 to [`BLOCK`].
    pub len: usize,
}

impl WideBlock {
    /// Appends the [`WideBlock::byte_len`] bytes of the block of `values`.
    ///
    /// # Panics
    /// If there are no values or more than [`BLOCK`].
    pub fn encode(values: &[u64], out: &mut Vec<u8>) -> WideBlock {
        WideBlock::encode_with(Kernel::active(), values, out)
    }

    /// [`WideBlock::encode`] with a given kernel. The bytes are the same.
    ///
    /// # Panics
    /// As [`WideBlock::encode`].
    pub fn encode_with(kernel: Kernel, values: &[u64], out: &mut Vec<u8>) -> WideBlock {
        let len = values.len();
        assert!((1..=BLOCK).contains(&len), "a block has 1 to {BLOCK} values, not {len}");
        let smallest = values.iter().copied().fold(u64::MAX, u64::min);
        let (mut low, mut high, mut all) = ([0; BLOCK], [0; BLOCK], 0);
        for ((low, high), value) in low.iter_mut().zip(&mut high).zip(values) {
            let offset = value - smallest;
            (*low, *high) = (offset as u32, (offset >> WIDTH_MAX) as u32);
            all |= offset;
        }
        let block = WideBlock { smallest, width: (u64::BITS - all.leading_zeros()) as u8, len };
        let (low_width, high_width) = block.plane_widths();
        out.reserve(block.byte_len());
        kernel.pack(&low[..len], low_width, Layout::Vertical, out);
        kernel.pack(&high[..len], high_width, Layout::Vertical, out);
        block
    }

    /// Number of bytes of a block of this width and number of values.
    pub fn byte_len(&self) -> usize {
        // A block that is not valid may have any length.
        let len = self.len.min(BLOCK);
        let (low_width, high_width) = self.plane_widths();
        packed_len(len, low_width) + packed_len(len, high_width)
    }

    /// The values that `bytes` contain. Any bytes of the right length are valid; unused bits are ignored.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] if there are fewer than [`WideBlock::byte_len`] bytes;
    /// [`DecodeError::Invalid`] if there are more, if the width is above 64, or if there are no values or
    /// more than [`BLOCK`].
    #[inline]
    pub fn view<'b>(&self, bytes: &'b [u8]) -> Result<WideView<'b>> {
        if u32::from(self.width) > u64::BITS || self.len == 0 || self.len > BLOCK {
            return Err(DecodeError::Invalid);
        }
        let (low_width, high_width) = self.plane_widths();
        let low_len = packed_len(self.len, low_width);
        let (low, high) = bytes.split_at_checked(low_len).ok_or(DecodeError::Truncated)?;
        let high_len = packed_len(self.len, high_width);
        if high.len() != high_len {
            let short = high.len() < high_len;
            return Err(if short { DecodeError::Truncated } else { DecodeError::Invalid });
        }
        let plane =
            |bytes, width| Packed { bytes, width, layout: Layout::Vertical, patch: None, after: None };
        let offsets =
            PackedOffsets { low: plane(low, low_width), high: plane(high, high_width), len: self.len };
        Ok(WideView { smallest: self.smallest, offsets })
    }

    /// The widths in bits of the low and of the high plane.
    #[inline]
    fn plane_widths(&self) -> (u32, u32) {
        let width = u32::from(self.width);
        (width.min(WIDTH_MAX), width.saturating_sub(WIDTH_MAX))
    }
}

/// The values of a [`WideBlock`] in their bytes.
#[derive(Clone, Copy)]
pub struct WideView<'b> {
    smallest: u64,
    offsets: PackedOffsets<'b>,
}

impl WideView<'_> {
    /// Decodes all values. Sums of a damaged block wrap mod 2^64.
    ///
    /// # Panics
    /// If `out` does not have as many values as the block.
    pub fn decode(&self, out: &mut [u64]) {
        self.decode_with(Kernel::active(), out);
    }

    /// [`WideView::decode`] with a given kernel. The values are the same.
    ///
    /// # Panics
    /// As [`WideView::decode`].
    pub fn decode_with(&self, kernel: Kernel, out: &mut [u64]) {
        let len = self.offsets.len;
        assert_eq!(out.len(), len, "the block has {len} values, the output {}", out.len());
        kernel.decode_offsets(&self.offsets, self.smallest, out);
    }

    /// The value at an index.
    ///
    /// # Panics
    /// If the block has no such value.
    #[inline]
    pub fn value(&self, index: usize) -> u64 {
        let PackedOffsets { low, high, len } = &self.offsets;
        assert!(index < *len, "the block has {len} values, and none at {index}");
        let vertical = *len == BLOCK;
        let offset = if high.width == 0 {
            packed_value(low, vertical, index)
        } else {
            // The low plane has whole words, in the order of the values in both layouts.
            let words = low.bytes.as_chunks::<4>().0;
            packed_value(high, vertical, index) << WIDTH_MAX | u64::from(u32::from_le_bytes(words[index]))
        };
        self.smallest.wrapping_add(offset)
    }

    /// The values within `low..=high`: bit `i mod 64` of word `i div 64` is set if value `i` is. Each value
    /// is as [`WideView::decode`] has it, also where sums of a damaged block wrap.
    pub fn between(&self, low: u64, high: u64) -> [u64; 4] {
        self.between_with(Kernel::active(), low, high)
    }

    /// [`WideView::between`] with a given kernel. The bits are the same.
    pub fn between_with(&self, kernel: Kernel, low: u64, high: u64) -> [u64; 4] {
        let len = self.offsets.len;
        let within = match self.offset_condition(low, high) {
            OffsetCondition::Never => return [0; 4],
            OffsetCondition::Always => [u64::MAX; 4],
            OffsetCondition::Within(range) => kernel.offsets_within(&self.offsets, range),
            OffsetCondition::Outside(range) => {
                kernel.offsets_within(&self.offsets, range).map(|outside| !outside)
            }
        };
        first_bits(within, len)
    }

    /// The condition on offsets that is equivalent to `low..=high` on values. As values are sums mod 2^64,
    /// the offsets of a range of values are a range mod 2^64, or all but a range.
    fn offset_condition(&self, low: u64, high: u64) -> OffsetCondition {
        let width = self.offsets.low.width + self.offsets.high.width;
        let most = u64::MAX.checked_shr(u64::BITS - width).unwrap_or(0);
        let (first, last) = (low.wrapping_sub(self.smallest), high.wrapping_sub(self.smallest));
        if low > high {
            return OffsetCondition::Never;
        }
        if first > last {
            // Only the offsets from `last + 1` to `first - 1` are outside.
            let outside = OffsetRange::clipped(last.wrapping_add(1), first - 1, most);
            return outside.map_or(OffsetCondition::Always, OffsetCondition::Outside);
        }
        match OffsetRange::clipped(first, last, most) {
            None => OffsetCondition::Never,
            Some(OffsetRange { first: 0, span }) if span == most => OffsetCondition::Always,
            Some(range) => OffsetCondition::Within(range),
        }
    }
}

/// Which offsets are of values within a range.
enum OffsetCondition {
    Never,
    Always,
    Within(OffsetRange),
    Outside(OffsetRange),
}

/// The first `n` bits, with all others cleared.
#[inline]
fn first_bits(mut bits: [u64; 4], n: usize) -> [u64; 4] {
    for (k, word) in bits.iter_mut().enumerate() {
        let kept = n.saturating_sub(64 * k).min(64) as u32;
        *word &= u64::MAX.checked_shr(u64::BITS - kept).unwrap_or(0);
    }
    bits
}

/// The packed value at an index below the number of values.
#[inline]
fn packed_value(plane: &Packed, vertical: bool, index: usize) -> u64 {
    let width = plane.width as usize;
    let bits = if vertical {
        vertical_bits(plane.bytes, index % 8, index / 8 * width)
    } else {
        horizontal_bits(plane.bytes, index * width)
    };
    bits & ((1 << width) - 1)
}

/// The bits of a lane from one on: at least 32, or all that there are.
#[inline]
fn vertical_bits(bytes: &[u8], lane: usize, bit: usize) -> u64 {
    let words = bytes.as_chunks::<4>().0;
    let first = bit / 32 * 8 + lane;
    let word_at = |k: usize| words.get(k).map_or(0, |word| u64::from(u32::from_le_bytes(*word)));
    (word_at(first + 8) << 32 | word_at(first)) >> (bit % 32)
}

/// The bits from one on: at least 57, or all that there are.
#[inline]
fn horizontal_bits(bytes: &[u8], bit: usize) -> u64 {
    if bytes.len() < 8 {
        let mut padded = [0; 8];
        padded[..bytes.len()].copy_from_slice(bytes);
        return u64::from_le_bytes(padded) >> (bit % 64);
    }
    // The last eight bytes contain all bits that follow them.
    let start = (bit / 8).min(bytes.len() - 8);
    let word = bytes[start..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
    word.checked_shr((bit - 8 * start) as u32).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_is_encoded() {
        let mut bytes = vec![7];
        let block = WideBlock::encode(&[1000, 1003, 1001], &mut bytes);
        assert_eq!((block, &bytes[..]), (WideBlock { smallest: 1000, width: 2, len: 3 }, &[7, 0x1c][..]));
    }

    #[test]
    fn equal_values_take_no_bytes() {
        for value in [0, 1, u64::MAX] {
            let mut bytes = Vec::new();
            let block = WideBlock::encode(&[value; 200], &mut bytes);
            assert_eq!((block, bytes.len()), (WideBlock { smallest: value, width: 0, len: 200 }, 0));
            let view = block.view(&bytes).expect("a block");
            assert_eq!(view.value(199), value);
            assert_eq!(view.between(value, value), first_bits([u64::MAX; 4], 200));
            assert_eq!(
                view.between(0, value.wrapping_sub(1)),
                if value == 0 { first_bits([u64::MAX; 4], 200) } else { [0; 4] }
            );
        }
    }

    #[test]
    fn other_lengths_and_widths_are_rejected() {
        for (width, len) in [(0, 1), (1, 1), (7, 9), (32, 256), (33, 3), (64, 255), (64, 256)] {
            let block = WideBlock { smallest: 5, width, len };
            let bytes = vec![0xa5; block.byte_len() + 1];
            let error = |bytes| block.view(bytes).err();
            assert_eq!(error(&bytes), Some(DecodeError::Invalid));
            assert_eq!(error(&bytes[1..]), None);
            if width > 0 {
                assert_eq!(error(&bytes[2..]), Some(DecodeError::Truncated));
                assert_eq!(error(&[]), Some(DecodeError::Truncated));
            }
        }
        for (width, len) in [(65, 1), (255, 256), (3, 0), (3, 257), (0, usize::MAX), (255, usize::MAX)] {
            let block = WideBlock { smallest: 5, width, len };
            for bytes in [vec![], vec![0; block.byte_len()]] {
                assert_eq!(block.view(&bytes).err(), Some(DecodeError::Invalid), "{width}, {len}");
            }
        }
    }

    #[test]
    fn first_bits_are_kept() {
        assert_eq!(first_bits([u64::MAX; 4], 256), [u64::MAX; 4]);
        assert_eq!(first_bits([u64::MAX; 4], 65), [u64::MAX, 1, 0, 0]);
        assert_eq!(first_bits([u64::MAX; 4], 1), [1, 0, 0, 0]);
    }
}
