//! Decoding of PFor blocks.
//!
//! A block that the encoder cannot have written is damaged. It is rejected where memory safety requires it
//! or the check costs next to nothing. Not checked: the padding of packed bits, and whether high parts and
//! the bytes of sparse bitmaps are nonzero.

use super::header::{PforForm, PforHeader};
use crate::bitpack::{Layout, WIDTH_MAX, packed_len};
use crate::kernel::table::{Packed, Patch, PforLoops};
use crate::{DecodeError, Result};

/// Decodes `out.len()` values, 1 to 256, or their prefix sums if `after` is the value before the first.
/// Returns the bytes of the block. Always inlined, so that a kernel compiles it for its instructions: most of
/// the time between two blocks is latency, to which calls and copies of the header would add.
#[inline(always)]
pub(crate) fn decode<L: PforLoops>(
    loops: L,
    bytes: &[u8],
    layout: Layout,
    after: Option<u32>,
    out: &mut [u32],
) -> Result<usize> {
    let mut bitmap = [0; _];
    let header = PforHeader::read(loops, bytes, out.len(), &mut bitmap)?;
    let len = header.block_len(out.len());
    // From here on every array of the body has the length that the header gives it.
    let body = bytes.get(header.len()..len).ok_or(DecodeError::Truncated)?;
    let width = header.width;
    match &header.form {
        PforForm::Plain => loops.unpack(&Packed { bytes: body, width, layout, patch: None, after }, out),
        PforForm::Patched { high_width, positions } => {
            let lows = &body[packed_len(positions.count, *high_width)..];
            // Including the bytes after the high parts, so that kernels can load whole vectors.
            let patch = Patch { bitmap: &bitmap, highs: &bytes[header.len()..], width: *high_width };
            loops.unpack(&Packed { bytes: lows, width, layout, patch: Some(patch), after }, out);
        }
        PforForm::Constant => fill_constant(read_constant(body, width)?, after, out),
    }
    Ok(len)
}

/// Sets all values to `value`, or to its prefix sums.
fn fill_constant(value: u32, after: Option<u32>, out: &mut [u32]) {
    let Some(mut last) = after else { return out.fill(value) };
    for out in out {
        last = last.wrapping_add(value).wrapping_add(1);
        *out = last;
    }
}

/// The value of a constant block, which must have exactly the stated width.
fn read_constant(body: &[u8], width: u32) -> Result<u32> {
    let mut word = [0; 4];
    word[..body.len()].copy_from_slice(body);
    let value = u32::from_le_bytes(word);
    if value == 0 || WIDTH_MAX - value.leading_zeros() != width {
        return Err(DecodeError::Invalid);
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kernel;

    fn decode(bytes: &[u8], out: &mut [u32]) -> Result<usize> {
        Kernel::SCALAR.pfor_decode(bytes, Layout::Vertical, None, out)
    }

    /// A block of 16 values: 5 << 1 at position 2, 9 << 1 at position 14, otherwise 0.
    const FORM_SPARSE: [u8; 8] = [0x41, 4, 0x03, 0x04, 0x40, 0x95, 0x00, 0x00];

    #[test]
    fn sparse_blocks_are_read() {
        let mut out = [9; 16];
        assert_eq!(decode(&FORM_SPARSE, &mut out), Ok(FORM_SPARSE.len()));
        assert_eq!(out, [0, 0, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 18, 0]);
    }

    #[test]
    fn bitmap_blocks_are_read() {
        // Eight ones, but 1 | 3 << 1 at positions 0 and 7.
        let mut out = [0; 8];
        assert_eq!(decode(&[0x81, 2, 0x81, 0x0f, 0xff], &mut out), Ok(5));
        assert_eq!(out, [7, 1, 1, 1, 1, 1, 1, 7]);
    }

    #[test]
    fn constants_have_their_exact_width() {
        assert_eq!(decode(&[0xc0 | 10, 0xe8, 0x03], &mut [0; 8]), Ok(3));
        for bytes in [[0xc0 | 11, 0xe8, 0x03], [0xc0 | 9, 0xe8, 0x03], [0xc0 | 10, 0, 0], [0xc0, 0, 0]] {
            assert_eq!(decode(&bytes, &mut [0; 8]), Err(DecodeError::Invalid), "{bytes:02x?}");
        }
    }
}
