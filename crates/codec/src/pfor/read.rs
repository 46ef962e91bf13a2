//! Blocks to values.
//!
//! Beyond what safety needs, a block is refused if the encoder cannot have written it and noticing costs next
//! to nothing, since such a block is damaged. (The padding of packed bits is not looked at: see [`bitpack`].)

use super::header::{Form, Header, bitmap_len};
use crate::bitpack::{Layout, WIDTH_MAX, packed_len};
use crate::kernel::{Exceptions, Packed};
use crate::{DecodeError, Kernel};

/// Reads `out.len()` values, 1 to 256, or their sums from `after` on; returns the bytes consumed.
pub(crate) fn decode(
    kernel: Kernel,
    bytes: &[u8],
    layout: Layout,
    after: Option<u32>,
    out: &mut [u32],
) -> Result<usize, DecodeError> {
    let header = Header::read(bytes, out.len())?;
    let len = header.block_len(out.len());
    // From here on every array of the body has the length that the header gives it.
    let body = bytes.get(header.len()..len).ok_or(DecodeError::NotEnough)?;
    let width = header.width;
    let mut found = Exceptions::new();
    let (bytes, exceptions) = match header.form {
        Form::Plain => (body, None),
        Form::Constant => {
            fill(read_constant(body, width)?, after, out);
            return Ok(len);
        }
        Form::List { count, high_width } => {
            let (positions, rest) = body.split_at(count);
            read_positions(positions, out.len(), &mut found)?;
            (read_highs(kernel, rest, width, high_width, &mut found)?, Some(&found))
        }
        Form::Bitmap { count, high_width } => {
            let (bitmap, rest) = body.split_at(bitmap_len(out.len()));
            found.bitmap[..bitmap.len()].copy_from_slice(bitmap);
            found.count = count;
            (read_highs(kernel, rest, width, high_width, &mut found)?, Some(&found))
        }
    };
    kernel.unpack(&Packed { bytes, width, layout, exceptions, after }, out);
    Ok(len)
}

/// All values are `value`.
fn fill(value: u32, after: Option<u32>, out: &mut [u32]) {
    let Some(mut last) = after else { return out.fill(value) };
    for out in out {
        last = last.wrapping_add(value).wrapping_add(1);
        *out = last;
    }
}

/// The value of a constant block: of the stated width to the bit.
fn read_constant(body: &[u8], width: u32) -> Result<u32, DecodeError> {
    let mut word = [0; 4];
    word[..body.len()].copy_from_slice(body);
    let value = u32::from_le_bytes(word);
    if value == 0 || WIDTH_MAX - value.leading_zeros() != width {
        return Err(DecodeError::Invalid);
    }
    Ok(value)
}

/// Positions rise, and stay below `n`.
fn read_positions(positions: &[u8], n: usize, found: &mut Exceptions) -> Result<(), DecodeError> {
    let rising = positions.is_sorted_by(|a, b| a < b);
    let inside = positions.last().is_none_or(|last| usize::from(*last) < n);
    if !rising || !inside {
        return Err(DecodeError::Invalid);
    }
    for position in positions {
        found.bitmap[usize::from(position / 8)] |= 1 << (position % 8);
    }
    found.count = positions.len();
    Ok(())
}

/// Reads high parts to where they belong, above `width` bits; returns the bytes behind them.
/// None is zero, else there would be no exception.
fn read_highs<'a>(
    kernel: Kernel,
    bytes: &'a [u8],
    width: u32,
    high_width: u32,
    found: &mut Exceptions,
) -> Result<&'a [u8], DecodeError> {
    let (bytes, rest) = bytes.split_at(packed_len(found.count, high_width));
    if kernel.highs(bytes, high_width, width, found) { Ok(rest) } else { Err(DecodeError::Invalid) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(bytes: &[u8], out: &mut [u32]) -> Result<usize, DecodeError> {
        super::decode(Kernel::SCALAR, bytes, Layout::Vertical, None, out)
    }

    /// Eight zeros, but 5 << 1 at place 2 and 9 << 1 at place 6.
    const LIST: [u8; 7] = [0x41, 4, 2, 2, 6, 0x95, 0x00];
    const LIST_VALUES: [u32; 8] = [0, 0, 10, 0, 0, 0, 18, 0];

    /// The result for a good block with one byte changed.
    fn with(block: &[u8], place: usize, byte: u8) -> Result<usize, DecodeError> {
        let mut bytes = block.to_vec();
        bytes[place] = byte;
        decode(&bytes, &mut [0; 8])
    }

    #[test]
    fn list_blocks_are_read() {
        let mut out = [9; 8];
        assert_eq!(decode(&LIST, &mut out), Ok(LIST.len()));
        assert_eq!(out, LIST_VALUES);
    }

    #[test]
    fn damaged_list_blocks_are_invalid() {
        let damages: &[(usize, u8, &str)] = &[
            (0, 0x40 | 29, "no room above 29 bits"),
            (1, 0, "high parts of no bits"),
            (2, 0, "no exception"),
            (2, 9, "more exceptions than values"),
            (4, 2, "position twice"),
            (3, 7, "positions fall"),
            (4, 8, "position outside"),
            (5, 0x90, "high part zero"),
        ];
        for (place, byte, why) in damages {
            assert_eq!(with(&LIST, *place, *byte), Err(DecodeError::Invalid), "{why}");
        }
    }

    #[test]
    fn damaged_bitmap_blocks_are_invalid() {
        // Eight ones, but 1 | 3 << 1 at places 0 and 7.
        let block = [0x81, 2, 0x81, 0x0f, 0xff];
        let mut out = [0; 8];
        assert_eq!(decode(&block, &mut out), Ok(5));
        assert_eq!(out, [7, 1, 1, 1, 1, 1, 1, 7]);
        assert_eq!(with(&block, 3, 0x03), Err(DecodeError::Invalid), "high part zero");
        assert_eq!(with(&block, 2, 0x00), Err(DecodeError::Invalid), "no exception");
    }

    #[test]
    fn constants_have_their_exact_width() {
        assert_eq!(decode(&[0xc0 | 10, 0xe8, 0x03], &mut [0; 8]), Ok(3));
        for bytes in [[0xc0 | 11, 0xe8, 0x03], [0xc0 | 9, 0xe8, 0x03], [0xc0 | 10, 0, 0], [0xc0, 0, 0]] {
            assert_eq!(decode(&bytes, &mut [0; 8]), Err(DecodeError::Invalid), "{bytes:02x?}");
        }
    }
}
