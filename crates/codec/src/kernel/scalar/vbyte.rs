//! `VByte` (LEB128) loops.

use super::sums::prefix_sum;
use crate::error::{DecodeError, Result};

/// The continuation bits of 8 bytes.
const CONTINUATION_BITS: u64 = 0x8080_8080_8080_8080;

/// Number of values that are encoded to a buffer on the stack before they are appended.
const STAGED_VALUES: usize = 32;

/// Implements [`crate::Kernel::vbyte_encode`].
pub(crate) fn vbyte_encode(values: &[u32], out: &mut Vec<u8>) {
    for values in values.chunks(STAGED_VALUES) {
        // Each value is stored as 8 bytes, of which 1 to 5 are used; the last may need 3 bytes of slack.
        let mut stage = [0; 5 * STAGED_VALUES + 3];
        let len = encode_values(values, &mut stage);
        out.extend_from_slice(&stage[..len]);
    }
}

/// Writes the bytes of the values and returns their number. `out` has at least 5 bytes for each value, and 3
/// more, which may be overwritten.
#[inline(always)]
pub(crate) fn encode_values(values: &[u32], out: &mut [u8]) -> usize {
    let mut len = 0;
    for value in values {
        let (word, bytes) = encode_value(*value);
        out[len..len + 8].copy_from_slice(&word.to_le_bytes());
        len += bytes;
    }
    len
}

/// The bytes of a value in the low end of a word, and their number.
fn encode_value(value: u32) -> (u64, usize) {
    let v = u64::from(value);
    let groups =
        v & 0x7f | (v & 0x3f80) << 1 | (v & 0x1f_c000) << 2 | (v & 0xfe0_0000) << 3 | (v >> 28) << 32;
    let more_bytes = [7, 14, 21, 28].map(|bits| usize::from(value >> bits != 0)).iter().sum::<usize>();
    let more = CONTINUATION_BITS & ((1 << (8 * more_bytes)) - 1);
    (groups | more, 1 + more_bytes)
}

/// Implements [`crate::Kernel::vbyte_decode`].
pub(crate) fn vbyte_decode(bytes: &[u8], after: Option<u32>, out: &mut [u32]) -> Result<usize> {
    let used = read_values(bytes, out)?;
    if let Some(prev) = after {
        prefix_sum(out, prev, 0);
    }
    Ok(used)
}

/// Reads `out.len()` values; returns the bytes consumed.
fn read_values(bytes: &[u8], out: &mut [u32]) -> Result<usize> {
    let (mut used, mut done) = (0, 0);
    while done < out.len() {
        if let Some(run) = out[done..].first_chunk_mut::<8>()
            && let Some(word) = bytes[used..].first_chunk::<8>()
            && u64::from_le_bytes(*word) & CONTINUATION_BITS == 0
        {
            *run = word.map(u32::from);
            (used, done) = (used + 8, done + 8);
            continue;
        }
        let (value, len) = read_value(&bytes[used..])?;
        out[done] = value;
        (used, done) = (used + len, done + 1);
    }
    Ok(used)
}

/// The value at the front of `bytes` and its length.
#[inline(always)]
fn read_value(bytes: &[u8]) -> Result<(u32, usize)> {
    let Some(bytes) = bytes.first_chunk::<5>() else { return read_value_near_end(bytes) };
    let mut value = 0;
    for (k, byte) in bytes[..4].iter().enumerate() {
        value |= u32::from(byte & 0x7f) << (7 * k);
        if *byte < 0x80 {
            return Ok((value, k + 1));
        }
    }
    match bytes[4] {
        last @ 0..=0x0f => Ok((value | u32::from(last) << 28, 5)),
        _ => Err(DecodeError::Invalid),
    }
}

/// [`read_value`] for fewer than 5 bytes.
#[cold]
fn read_value_near_end(bytes: &[u8]) -> Result<(u32, usize)> {
    let mut value = 0;
    for (k, byte) in bytes.iter().enumerate() {
        value |= u32::from(byte & 0x7f) << (7 * k);
        if *byte < 0x80 {
            return Ok((value, k + 1));
        }
    }
    Err(DecodeError::Truncated)
}

/// Implements [`crate::Kernel::vbyte_skip`].
#[inline(always)]
pub(crate) fn vbyte_skip(bytes: &[u8], n: usize) -> Result<usize> {
    let (mut used, mut left) = (0, n);
    for word in bytes.as_chunks::<8>().0 {
        let ends = (!u64::from_le_bytes(*word) & CONTINUATION_BITS).count_ones() as usize;
        if ends >= left {
            break;
        }
        (used, left) = (used + 8, left - ends);
    }
    while left > 0 {
        let byte = bytes.get(used).ok_or(DecodeError::Truncated)?;
        left -= usize::from(*byte < 0x80);
        used += 1;
    }
    Ok(used)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seven_bits_take_a_byte() {
        for width in 1..=32 {
            let bytes = (width as usize).div_ceil(7);
            for value in [1 << (width - 1), u32::MAX >> (32 - width)] {
                assert_eq!(encode_value(value).1, bytes, "{value:#x}");
                let word = encode_value(value).0.to_le_bytes();
                assert_eq!(read_value(&word), Ok((value, bytes)), "{value:#x}");
                assert_eq!(read_value(&word[..bytes]), Ok((value, bytes)), "{value:#x}");
            }
        }
        assert_eq!(encode_value(0), (0, 1));
    }
}
