//! Comparison of all kernels on blocks of 64-bit values with a reader that takes one bit at a time, as
//! docs/format describes the bytes.

use tierdex_codec::{BLOCK, DecodeError, Kernel, WideBlock};

/// A value that no test expects, before and after the output of a decoder.
const OUTPUT_CANARY: u64 = 0x5eed_cafe_5eed_cafe;

/// Encodes values by every kernel; the bytes must be equal and decode to the values. Returns the block.
#[track_caller]
pub fn round_trip(values: &[u64]) -> (WideBlock, Vec<u8>) {
    let mut expect = Vec::new();
    let block = WideBlock::encode_with(Kernel::SCALAR, values, &mut expect);
    for kernel in Kernel::available() {
        let mut bytes = vec![0xee];
        assert_eq!(WideBlock::encode_with(kernel, values, &mut bytes), block, "{kernel:?}");
        assert!(bytes[0] == 0xee && bytes[1..] == expect, "{kernel:?}: {bytes:02x?} of {values:?}");
    }
    let widest = values.iter().map(|value| value - block.smallest).max().expect("values");
    assert_eq!(u32::from(block.width), u64::BITS - widest.leading_zeros());
    assert_eq!(decode(block, &expect).as_deref(), Ok(values), "{block:?}");
    (block, expect)
}

/// Decodes bytes by every kernel and by random access; all must agree. Returns the values.
#[track_caller]
pub fn decode(block: WideBlock, bytes: &[u8]) -> Result<Vec<u64>, DecodeError> {
    let view = block.view(bytes)?;
    assert!(block.width <= 64 && (1..=BLOCK).contains(&block.len) && bytes.len() == block.byte_len());
    let expect = values_by_definition(block, bytes);
    for kernel in Kernel::available() {
        let mut out = vec![OUTPUT_CANARY; block.len + 2];
        view.decode_with(kernel, &mut out[1..=block.len]);
        assert_eq!(out[1..=block.len], expect, "{kernel:?}: {block:?}");
        assert_eq!([out[0], out[block.len + 1]], [OUTPUT_CANARY; 2], "{kernel:?}: {block:?}");
    }
    let read: Vec<u64> = (0..block.len).map(|k| view.value(k)).collect();
    assert_eq!(read, expect, "{block:?}");
    Ok(expect)
}

/// Compares the values of a valid block with a range, by every kernel.
#[track_caller]
pub fn compare(block: WideBlock, bytes: &[u8], values: &[u64], low: u64, high: u64) {
    let mut expect = [0; 4];
    for (k, value) in values.iter().enumerate() {
        expect[k / 64] |= u64::from((low..=high).contains(value)) << (k % 64);
    }
    let view = block.view(bytes).expect("a valid block");
    for kernel in Kernel::available() {
        let found = view.between_with(kernel, low, high);
        assert_eq!(found, expect, "{kernel:?}: {low} to {high} in {block:?}");
    }
}

/// Ranges whose ends are near values of the block, or where sums wrap.
pub fn boundary_ranges(block: WideBlock, values: &[u64]) -> Vec<(u64, u64)> {
    let largest_offset = u64::MAX.checked_shr(64 - u32::from(block.width)).unwrap_or(0);
    let bases = [
        0,
        u64::MAX,
        block.smallest,
        block.smallest.wrapping_add(largest_offset),
        block.smallest.wrapping_add(1 << 32),
        values[values.len() / 2],
        values[values.len() - 1],
    ];
    let ends = bases.iter().flat_map(|base| [base.wrapping_sub(1), *base, base.wrapping_add(1)]);
    let ends: Vec<u64> = ends.collect();
    ends.iter().flat_map(|low| ends.iter().map(|high| (*low, *high))).collect()
}

fn values_by_definition(block: WideBlock, bytes: &[u8]) -> Vec<u64> {
    let low_width = usize::from(block.width).min(32);
    let high_width = usize::from(block.width) - low_width;
    let (low, high) = bytes.split_at((block.len * low_width).div_ceil(8));
    let value = |k: usize| {
        let (low, high) =
            (plane_value(low, low_width, block.len, k), plane_value(high, high_width, block.len, k));
        block.smallest.wrapping_add(low | high << 32)
    };
    (0..block.len).map(value).collect()
}

/// Value `k` of `n`, bit by bit.
fn plane_value(bytes: &[u8], width: usize, n: usize, k: usize) -> u64 {
    let bit_at = |bit: usize| {
        let (byte, bit) = if n == BLOCK {
            let in_lane = k / 8 * width + bit;
            (4 * (in_lane / 32 * 8 + k % 8) + in_lane % 32 / 8, in_lane % 8)
        } else {
            ((k * width + bit) / 8, (k * width + bit) % 8)
        };
        u64::from(bytes[byte] >> bit & 1)
    };
    (0..width).fold(0, |value, bit| value | bit_at(bit) << bit)
}
