//! Bit packing at the width of the widest value: TurboPFor's `bitnpack256v32`, block by block.
//!
//! ```text
//! [b] the values at b bits: vertical if n = 256, otherwise horizontal
//! ```
//!
//! For example 1, 2, 3, 4 are `03 | d1 08`, and any number of zeros is `00`. This is the plain form of
//! [`crate::pfor`] alone: longer where a few values are wide, but without exceptions to decode.
//! Source: Lemire, Boytsov, "Decoding billions of integers per second through vectorization".

use crate::bitpack::{Layout, WIDTH_MAX, packed_len, width_of_all};
use crate::{DecodeError, Kernel, Result, kernel::Packed};

/// Appends the block of 1 to 256 `values`.
pub(crate) fn encode(kernel: Kernel, values: &[u32], out: &mut Vec<u8>) {
    let width = width_of_all(values);
    out.push(width as u8);
    kernel.pack(values, width, Layout::Vertical, out);
}

/// Decodes `out.len()` values, 1 to 256, or their prefix sums if `after` is the value before the first.
/// Returns the bytes of the block.
pub(crate) fn decode(kernel: Kernel, bytes: &[u8], after: Option<u32>, out: &mut [u32]) -> Result<usize> {
    let len = encoded_len(bytes, out.len())?;
    let (width, bytes) = (u32::from(bytes[0]), &bytes[1..len]);
    let packed = Packed { bytes, width, layout: Layout::Vertical, patch: None, after };
    kernel.unpack(&packed, out);
    Ok(len)
}

/// The length of the block of `n` > 0 values at the front of `bytes`. A width of over 32 bits is `Invalid`.
pub(crate) fn encoded_len(bytes: &[u8], n: usize) -> Result<usize> {
    let width = u32::from(*bytes.first().ok_or(DecodeError::Truncated)?);
    if width > WIDTH_MAX {
        return Err(DecodeError::Invalid);
    }
    let len = 1 + packed_len(n, width);
    if bytes.len() < len { Err(DecodeError::Truncated) } else { Ok(len) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(bytes: &[u8], out: &mut [u32]) -> Result<usize> {
        super::decode(Kernel::SCALAR, bytes, None, out)
    }

    #[test]
    fn widths_beyond_32_bits_are_invalid() {
        for width in 33..=u8::MAX {
            assert_eq!(decode(&[width; 2000], &mut [0; 9]), Err(DecodeError::Invalid));
        }
        assert_eq!(decode(&[32; 2000], &mut [0; 9]), Ok(37));
    }
}
