//! Blocks to values.
//!
//! Beyond what safety needs, a block is refused if the encoder cannot have written it and noticing costs next
//! to nothing, since such a block is damaged. (The padding of packed bits is not looked at: see [`bitpack`].)

use super::header::{Form, Header, bitmap_len};
use crate::bitpack::{self, Layout, WIDTH_MAX, packed_len};
use crate::{BLOCK, DecodeError, kernel, vbyte};

/// Reads `out.len()` values, 1 to 256; returns the bytes consumed.
pub(crate) fn decode(bytes: &[u8], layout: Layout, out: &mut [u32]) -> Result<usize, DecodeError> {
    let header = Header::read(bytes, out.len())?;
    let len = header.block_len(out.len());
    // From here on every array of the body has the length that the header gives it.
    let body = bytes.get(header.len()..len).ok_or(DecodeError::NotEnough)?;
    let width = header.width;
    match header.form {
        Form::Plain => bitpack::unpack(body, width, layout, out),
        Form::List { count, high_bytes } => read_list(body, width, layout, count, high_bytes, out)?,
        Form::Bitmap { count, high_width } => read_bitmap(body, width, layout, count, high_width, out)?,
        Form::Constant => out.fill(read_constant(body, width)?),
    }
    Ok(len)
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

/// Low parts, high parts as `VByte`, positions.
fn read_list(
    body: &[u8],
    width: u32,
    layout: Layout,
    count: usize,
    high_bytes: usize,
    out: &mut [u32],
) -> Result<(), DecodeError> {
    let (lows, rest) = body.split_at(packed_len(out.len(), width));
    let (coded, positions) = rest.split_at(high_bytes);
    let mut buffer = [0; BLOCK];
    let highs = &mut buffer[..count];
    // The bytes are all there, so high parts that want more than theirs are damaged.
    if vbyte::decode(coded, highs) != Ok(high_bytes) {
        return Err(DecodeError::Invalid);
    }
    check_positions(positions, out.len())?;
    check_highs(highs, width)?;
    bitpack::unpack(lows, width, layout, out);
    for (position, high) in positions.iter().zip(highs) {
        out[usize::from(*position)] |= *high << width;
    }
    Ok(())
}

/// Bitmap, high parts at their own width, low parts.
fn read_bitmap(
    body: &[u8],
    width: u32,
    layout: Layout,
    count: usize,
    high_width: u32,
    out: &mut [u32],
) -> Result<(), DecodeError> {
    let (bitmap, rest) = body.split_at(bitmap_len(out.len()));
    let (packed, lows) = rest.split_at(packed_len(count, high_width));
    let mut buffer = [0; BLOCK];
    let highs = &mut buffer[..count];
    bitpack::unpack_horizontal(packed, high_width, highs);
    check_highs(highs, width)?;
    bitpack::unpack(lows, width, layout, out);
    kernel::patch_bitmap(bitmap, highs, width, out);
    Ok(())
}

/// Positions rise, and stay below `n`.
fn check_positions(positions: &[u8], n: usize) -> Result<(), DecodeError> {
    let rising = positions.is_sorted_by(|a, b| a < b);
    let inside = positions.last().is_none_or(|last| usize::from(*last) < n);
    if rising && inside { Ok(()) } else { Err(DecodeError::Invalid) }
}

/// High parts are not zero, else there would be no exception, and fit above `width` low bits.
fn check_highs(highs: &[u32], width: u32) -> Result<(), DecodeError> {
    let limit = 1u64 << (WIDTH_MAX - width);
    let good = highs.iter().fold(true, |good, high| good & (*high != 0) & (u64::from(*high) < limit));
    if good { Ok(()) } else { Err(DecodeError::Invalid) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(bytes: &[u8], out: &mut [u32]) -> Result<usize, DecodeError> {
        super::decode(bytes, Layout::Vertical, out)
    }

    /// Eight zeros, but 5 << 1 at place 2 and 300 << 1 at place 6.
    const LIST: [u8; 9] = [0x41, 2, 3, 0, 0x05, 0xac, 0x02, 2, 6];
    const LIST_VALUES: [u32; 8] = [0, 0, 10, 0, 0, 0, 600, 0];

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
            (0, 0x40 | 32, "no room above 32 bits"),
            (1, 1, "one exception too few for the bytes"),
            (2, 2, "one byte too few for the exceptions"),
            (4, 0x00, "high part zero"),
            (4, 0x85, "high parts run into the positions"),
            (5, 0x2c, "high parts end before their bytes do"),
            (7, 6, "position twice"),
            (7, 7, "positions fall"),
            (8, 8, "position outside"),
        ];
        for (place, byte, why) in damages {
            assert_eq!(with(&LIST, *place, *byte), Err(DecodeError::Invalid), "{why}");
        }
    }

    #[test]
    fn high_parts_must_fit() {
        // Width 30 leaves two bits.
        let block = |high| [&[0x40 | 30, 1, 1][..], &[0; 4], &[high, 0]].concat();
        assert_eq!(decode(&block(3), &mut [0]), Ok(9));
        assert_eq!(decode(&block(4), &mut [0]), Err(DecodeError::Invalid));
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
