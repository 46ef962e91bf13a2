//! Dense document ids as a bitmap over the ids from the one before the block to its last.
//!
//! ```text
//! bitmap    [m u16] m bytes; bit i mod 8 of byte i div 8 stands for prev + 1 + i, and n bits are set
//! raw       [0 u16] n values, four bytes each
//! ```
//!
//! Numbers are little-endian. The last document has the highest bit, so that the last byte is not zero. The
//! bitmap is taken where it is shorter than four bytes a value, so `m` is below `4 n`, and the block is never
//! longer than its values and the two bytes of its head. With -1 before them:
//!
//! ```text
//! 0, 1, 2, 5       01 00 | 27
//! 1, 9, 12         02 00 | 02 12
//! 3, 70000         00 00 | 03 00 00 00 70 11 01 00
//! ```
//!
//! The bits of two such blocks can be intersected without decoding either. Source: Culpepper, Moffat, "Efficient
//! set intersection for inverted indexing", for bitmaps among other forms.

use crate::{DecodeError, Kernel, raw};

/// Bytes before the bits or the values.
const HEAD: usize = 2;

/// Upper bound of the bytes of `n` values: a raw block.
pub(crate) fn max_len(n: usize) -> usize {
    if n == 0 { 0 } else { HEAD + raw::max_len(n) }
}

/// What the head says about the rest.
#[derive(Clone, Copy)]
enum Form {
    Bitmap { len: usize },
    Raw,
}

impl Form {
    /// The shorter form of `values`, of which there is at least one; among equals the raw one.
    fn choose(values: &[u32], prev: u32) -> Form {
        let len = span(values, prev).div_ceil(8);
        if len < raw::max_len(values.len()) as u64 { Form::Bitmap { len: len as usize } } else { Form::Raw }
    }

    /// Reads the head of a block of `n` > 0 values.
    fn read(bytes: &[u8], n: usize) -> Result<Form, DecodeError> {
        match u16::from_le_bytes(*bytes.first_chunk().ok_or(DecodeError::NotEnough)?) {
            0 => Ok(Form::Raw),
            len if usize::from(len) < raw::max_len(n) => Ok(Form::Bitmap { len: usize::from(len) }),
            _ => Err(DecodeError::Invalid),
        }
    }

    /// Bytes of the whole block of `n` values, head included.
    fn block_len(self, n: usize) -> usize {
        match self {
            Form::Bitmap { len } => HEAD + len,
            Form::Raw => HEAD + raw::max_len(n),
        }
    }
}

/// Bytes that [`encode`] appends for `values`, of which there is at least one.
pub(crate) fn block_len(values: &[u32], prev: u32) -> usize {
    Form::choose(values, prev).block_len(values.len())
}

/// Appends `values`, of which there are 1 to 256. Any values will do; only rising ones get a bitmap.
pub(crate) fn encode(values: &[u32], prev: u32, out: &mut Vec<u8>) {
    match Form::choose(values, prev) {
        Form::Bitmap { len } => {
            out.extend_from_slice(&(len as u16).to_le_bytes());
            let start = out.len();
            out.resize(start + len, 0);
            set(values, prev, &mut out[start..]);
        }
        Form::Raw => {
            out.extend_from_slice(&[0; HEAD]);
            raw::encode(values, out);
        }
    }
}

/// Reads `out.len()` values, 1 to 256; returns the bytes consumed.
/// A bitmap of another number of values, or with a zero byte at its end, is `Invalid`.
pub(crate) fn decode(kernel: Kernel, bytes: &[u8], prev: u32, out: &mut [u32]) -> Result<usize, DecodeError> {
    let form = Form::read(bytes, out.len())?;
    let len = form.block_len(out.len());
    let body = bytes.get(HEAD..len).ok_or(DecodeError::NotEnough)?;
    match form {
        Form::Bitmap { .. } => {
            if kernel.ones(body) != out.len() || body.last() == Some(&0) {
                return Err(DecodeError::Invalid);
            }
            kernel.bitmap_read(body, prev, out);
        }
        Form::Raw => _ = raw::decode(body, out)?,
    }
    Ok(len)
}

/// Bytes of the block of `n` > 0 values at the front of `bytes`.
pub(crate) fn encoded_len(bytes: &[u8], n: usize) -> Result<usize, DecodeError> {
    let len = Form::read(bytes, n)?.block_len(n);
    if bytes.len() < len { Err(DecodeError::NotEnough) } else { Ok(len) }
}

/// The place of the last of `values` in a bitmap that starts behind `prev`, counted from 1.
///
/// Wherever the values wrap around, that is the sum of the ways from each to the next.
fn span(values: &[u32], prev: u32) -> u64 {
    let mut before = prev;
    let way = |value: &u32| {
        let gap = value.wrapping_sub(before).wrapping_sub(1);
        before = *value;
        u64::from(gap) + 1
    };
    values.iter().map(way).sum()
}

/// Sets the bit of each value in `bits`, which reach as far as [`span`] says.
fn set(values: &[u32], prev: u32, bits: &mut [u8]) {
    for value in values {
        let place = value.wrapping_sub(prev).wrapping_sub(1) as usize;
        bits[place / 8] |= 1 << (place % 8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_bitmap_is_a_byte_shorter_than_raw() {
        for n in [1, 2, 100, 256] {
            let bits = 8 * (4 * n as u32 - 1);
            let mut values: Vec<u32> = (0..n as u32).collect();
            for (last, len) in [(bits - 1, 4 * n + 1), (bits, 4 * n + 2)] {
                values[n - 1] = last;
                let mut bytes = Vec::new();
                encode(&values, u32::MAX, &mut bytes);
                assert_eq!((bytes.len(), block_len(&values, u32::MAX)), (len, len));
                assert_eq!(bytes[..2] == [0, 0], last == bits, "{n}");
            }
        }
    }

    #[test]
    fn bitmaps_of_another_shape_are_invalid() {
        let decode = |bytes: &[u8], n: usize| decode(Kernel::SCALAR, bytes, 0, &mut vec![0; n]);
        assert_eq!(decode(&[2, 0, 0x03, 0x04], 3), Ok(4));
        assert_eq!(decode(&[2, 0, 0x03, 0x04], 2), Err(DecodeError::Invalid), "a bit too many");
        assert_eq!(decode(&[2, 0, 0x03, 0x04], 4), Err(DecodeError::Invalid), "a bit too few");
        assert_eq!(decode(&[2, 0, 0x07, 0x00], 3), Err(DecodeError::Invalid), "a zero byte at the end");
        assert_eq!(decode(&[12, 0], 3), Err(DecodeError::Invalid), "as long as raw");
        assert_eq!(decode(&[11, 0], 3), Err(DecodeError::NotEnough));
    }

    #[test]
    fn falling_values_are_raw_and_wrapping_ones_a_bitmap() {
        let first = |values: &[u32], prev| {
            let mut bytes = Vec::new();
            encode(values, prev, &mut bytes);
            bytes[0]
        };
        assert_eq!(first(&[9, 8], 0), 0);
        assert_eq!(first(&[9, 9], 0), 0);
        assert_eq!(first(&[u32::MAX, 2], u32::MAX - 1), 1);
    }
}
