//! `StreamVByte`, the variant of 1 to 4 bytes per value: control bytes with the lengths, then the data.
//!
//! ```text
//! control bytes, ceil(n/4) | data, 1 to 4 bytes per value
//! ```
//!
//! A control byte holds the codes of four values, two bits each, the first in the lowest bits. A code is the
//! length in bytes less 1. Unused codes of the last control byte are zero. The data of a value are its low
//! bytes, little-endian:
//!
//! ```text
//! 0                                         00 | 00
//! 0x01, 0x0102, 0x010203, 0x01020304        e4 | 01 02 01 03 02 01 04 03 02 01
//! 1024, 12, 10, 2^30, 3                     c1 00 | 00 04 0c 0a 00 00 00 40 03
//! ```
//!
//! Longer encodings of small values (`01 | 00 00` for 0) are accepted, but never written.
//! Source: Lemire, Kurz, Rupp, "Stream `VByte`: Faster Byte-Oriented Integer Compression".

use crate::{DecodeError, Kernel, Result};

/// Maximum bytes of a value, without its code.
const VALUE_BYTES_MAX: usize = 4;

/// The number of control bytes of `n` values.
fn controls_len(n: usize) -> usize {
    n.div_ceil(4)
}

/// Maximum bytes of a block of `n` values.
pub(crate) fn max_len(n: usize) -> usize {
    controls_len(n) + VALUE_BYTES_MAX * n
}

/// Appends the block of 1 to 256 `values`.
pub(crate) fn encode(kernel: Kernel, values: &[u32], out: &mut Vec<u8>) {
    let (start, controls) = (out.len(), controls_len(values.len()));
    out.resize(start + max_len(values.len()), 0);
    let (controls, data) = out[start..].split_at_mut(controls);
    let len = controls.len() + kernel.streamvbyte_encode(values, controls, data);
    out.truncate(start + len);
}

/// Decodes `out.len()` values, or their prefix sums if `after` is the value before the first. Returns the
/// bytes of the block.
pub(crate) fn decode(kernel: Kernel, bytes: &[u8], after: Option<u32>, out: &mut [u32]) -> Result<usize> {
    let len = encoded_len(kernel, bytes, out.len())?;
    let (controls, data) = bytes[..len].split_at(controls_len(out.len()));
    kernel.streamvbyte_decode(controls, data, after, out);
    Ok(len)
}

/// The length of the block of `n` > 0 values at the front of `bytes`. An unused code other than zero is
/// `Invalid`.
pub(crate) fn encoded_len(kernel: Kernel, bytes: &[u8], n: usize) -> Result<usize> {
    let controls = bytes.get(..controls_len(n)).ok_or(DecodeError::Truncated)?;
    if controls.get(n / 4).is_some_and(|last| last >> (2 * (n % 4)) != 0) {
        return Err(DecodeError::Invalid);
    }
    let len = controls.len() + kernel.streamvbyte_data_len(controls, n);
    if bytes.len() < len { Err(DecodeError::Truncated) } else { Ok(len) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unused_codes_other_than_zero_are_invalid() {
        for n in 1..4 {
            let bytes = |code: u8| [&[code << (2 * n)][..], &[0; 16]].concat();
            assert_eq!(decode(Kernel::SCALAR, &bytes(0), None, &mut vec![0; n]), Ok(1 + n));
            for code in 1..4 {
                assert_eq!(
                    decode(Kernel::SCALAR, &bytes(code), None, &mut vec![0; n]),
                    Err(DecodeError::Invalid)
                );
                assert_eq!(encoded_len(Kernel::SCALAR, &bytes(code), n), Err(DecodeError::Invalid));
            }
        }
    }

    #[test]
    fn longer_encodings_of_small_values_are_accepted() {
        let mut out = [9; 2];
        assert_eq!(decode(Kernel::SCALAR, &[0x0d, 5, 0, 7, 0, 0, 0], None, &mut out), Ok(7));
        assert_eq!(out, [5, 7]);
    }
}
