//! Variable byte: LEB128 as in Masked `VByte`, protocol buffers and Lucene's `VInt`.
//!
//! A value is split into groups of 7 bits, the lowest first, one per byte. The high bit is the continuation
//! bit: it is clear in the last byte of a value. The fifth byte holds 4 bits. A value of w bits takes max(1,
//! ceil(w / 7)) bytes:
//!
//! ```text
//! 127 -> 7f     128 -> 80 01     16384 -> 80 80 01     2^32-1 -> ff ff ff ff 0f
//! ```
//!
//! Longer encodings of small values (`80 00` for 0) are accepted, but never written.
//! Source: Plaisance, Kurz, Lemire, "Vectorized `VByte` Decoding", section 1.

use crate::{Kernel, Result};

/// Maximum bytes of an encoded value.
const VALUE_BYTES_MAX: usize = 5;

/// Maximum bytes of a block of `n` values.
pub(crate) fn max_len(n: usize) -> usize {
    VALUE_BYTES_MAX * n
}

/// Appends `values`, 1 to 5 bytes each.
pub(crate) fn encode(kernel: Kernel, values: &[u32], out: &mut Vec<u8>) {
    kernel.vbyte_encode(values, out);
}

/// Decodes `out.len()` values, or their prefix sums if `after` is the value before the first. Returns the
/// bytes of the block. A value of more than 5 bytes or 32 bits is `Invalid`.
pub(crate) fn decode(kernel: Kernel, bytes: &[u8], after: Option<u32>, out: &mut [u32]) -> Result<usize> {
    kernel.vbyte_decode(bytes, after, out)
}

/// The length of a block of `n` values, which ends with the `n`-th byte whose continuation bit is clear.
pub(crate) fn encoded_len(kernel: Kernel, bytes: &[u8], n: usize) -> Result<usize> {
    kernel.vbyte_skip(bytes, n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DecodeError;

    #[test]
    fn a_fifth_byte_with_more_than_four_bits_is_invalid() {
        for fifth in 0x10..=0xff {
            // Once with enough bytes for the fast path, once at the end of the input.
            for bytes in [&[0xff, 0xff, 0xff, 0xff, fifth, 0, 0, 0, 0][..], &[0xff, 0xff, 0xff, 0xff, fifth]]
            {
                let decoded = decode(Kernel::SCALAR, bytes, None, &mut [0]);
                assert_eq!(decoded, Err(DecodeError::Invalid), "{fifth:#x}");
            }
        }
    }

    #[test]
    fn a_value_without_a_last_byte_is_truncated() {
        for len in 0..=4 {
            let decoded = decode(Kernel::SCALAR, &[0x80; 4][..len], None, &mut [0]);
            assert_eq!(decoded, Err(DecodeError::Truncated));
        }
    }

    #[test]
    fn encoded_len_counts_last_bytes() {
        let bytes: Vec<u8> = (0..40).flat_map(|_| [0x80, 0x01, 0x05]).collect();
        for n in 0..=80 {
            assert_eq!(encoded_len(Kernel::SCALAR, &bytes, n), Ok(n / 2 * 3 + n % 2 * 2), "{n}");
        }
        assert_eq!(encoded_len(Kernel::SCALAR, &bytes, 81), Err(DecodeError::Truncated));
    }
}
