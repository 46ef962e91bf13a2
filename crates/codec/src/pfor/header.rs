//! The header of a block: its form, its width, and so its length.

use super::cost::{PATCHED_HEAD_BYTES, bitmap_len};
use crate::bitpack::{WIDTH_MAX, packed_len};
use crate::kernel::table::{Bitmap, PforLoops, StoredBitmap};
use crate::{DecodeError, Result, block::BLOCK};

/// The decoded header of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PforHeader {
    pub(super) form: PforForm,
    /// Width of the low parts in bits; in a constant block, of the value.
    pub(super) width: u32,
}

/// The form of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PforForm {
    /// No exceptions.
    Plain,
    /// One high part of `high_width` bits for each exception. Their positions are stored as a bitmap or a
    /// sparse bitmap.
    Patched { high_width: u32, positions: StoredBitmap },
    /// All values are equal and not zero.
    Constant,
}

impl PforHeader {
    /// Tags of the forms, in the two high bits of the first byte.
    pub(super) const FORM_SPARSE: u8 = 0x40;
    pub(super) const FORM_BITMAP: u8 = 0x80;
    pub(super) const FORM_CONSTANT: u8 = 0xc0;

    /// Reads the header of a block of `n` > 0 values, and the positions of the exceptions, if it has some,
    /// to `bitmap`. The bitmap is not part of the header: copies of it would cost as much as its use.
    #[inline(always)]
    pub(super) fn read<L: PforLoops>(
        loops: L,
        bytes: &[u8],
        n: usize,
        bitmap: &mut Bitmap,
    ) -> Result<PforHeader> {
        let first = *bytes.first().ok_or(DecodeError::Truncated)?;
        let width = u32::from(first & 0x3f);
        if width > WIDTH_MAX {
            return Err(DecodeError::Invalid);
        }
        let form = match first & 0xc0 {
            PforHeader::FORM_SPARSE | PforHeader::FORM_BITMAP => {
                read_patched(loops, bytes, n, width, bitmap)?
            }
            PforHeader::FORM_CONSTANT => PforForm::Constant,
            _ => PforForm::Plain,
        };
        Ok(PforHeader { form, width })
    }

    /// Bytes before the first packed array.
    #[inline]
    pub(super) fn len(&self) -> usize {
        match self.form {
            PforForm::Plain | PforForm::Constant => 1,
            PforForm::Patched { positions, .. } => PATCHED_HEAD_BYTES + positions.len,
        }
    }

    /// Bytes of the whole block of `n` values, header included.
    #[inline]
    pub(super) fn block_len(&self, n: usize) -> usize {
        let body = match self.form {
            PforForm::Plain => packed_len(n, self.width),
            PforForm::Patched { high_width, positions } => {
                packed_len(positions.count, high_width) + packed_len(n, self.width)
            }
            PforForm::Constant => constant_len(self.width),
        };
        self.len() + body
    }
}

/// Maximum width in bits of values whose sum in a block, with 1 added to each, is at most 2^31.
const NARROW_BITS: u32 = 31 - BLOCK.ilog2();

/// Whether all values of a block that can be decoded have at most [`NARROW_BITS`] bits.
#[inline]
pub(crate) fn has_narrow_values(bytes: &[u8]) -> bool {
    let Some(first) = bytes.first() else { return false };
    let high_width = match first & 0xc0 {
        PforHeader::FORM_SPARSE | PforHeader::FORM_BITMAP => {
            bytes.get(1).map_or(u32::MAX, |width| u32::from(*width))
        }
        _ => 0,
    };
    u32::from(first & 0x3f).saturating_add(high_width) <= NARROW_BITS
}

/// Bytes of a constant value of `width` bits.
pub(super) fn constant_len(width: u32) -> usize {
    width.div_ceil(8) as usize
}

/// Reads the exceptions and checks that there is at least one, that none is after the last value, and that
/// low and high part have at most 32 bits together.
#[inline(always)]
fn read_patched<L: PforLoops>(
    loops: L,
    bytes: &[u8],
    n: usize,
    width: u32,
    bitmap: &mut Bitmap,
) -> Result<PforForm> {
    let (head, rest) = bytes.split_first_chunk::<PATCHED_HEAD_BYTES>().ok_or(DecodeError::Truncated)?;
    let high_width = u32::from(head[1]);
    if high_width == 0 || width + high_width > WIDTH_MAX {
        return Err(DecodeError::Invalid);
    }
    let sparse = head[0] & 0xc0 == PforHeader::FORM_SPARSE;
    let positions = loops.read_exception_bitmap(rest, bitmap_len(n), sparse, bitmap);
    let positions = positions.ok_or(DecodeError::Truncated)?;
    if positions.count == 0 || n < BLOCK && has_bits_beyond(bitmap, n) {
        return Err(DecodeError::Invalid);
    }
    Ok(PforForm::Patched { high_width, positions })
}

/// Whether a bit is set after those of the `n` < 256 values.
fn has_bits_beyond(bitmap: &Bitmap, n: usize) -> bool {
    bitmap[n / 8] >> (n % 8) != 0 || bitmap[n / 8 + 1..].iter().any(|byte| *byte != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;

    /// Checks the width of the high parts and the number of exceptions of a block of `n` values.
    #[track_caller]
    fn check_patched(bytes: &[u8], n: usize, expect: Result<(u32, usize)>) {
        let patched = |header: PforHeader| match header.form {
            PforForm::Patched { high_width, positions } => (high_width, positions.count),
            form => panic!("{form:?}"),
        };
        let read = PforHeader::read(Kernel::SCALAR, bytes, n, &mut [0; _]).map(patched);
        assert_eq!(read, expect, "{bytes:02x?}");
    }

    #[test]
    fn widths_beyond_32_bits_are_invalid() {
        for form in [0x00, PforHeader::FORM_SPARSE, PforHeader::FORM_BITMAP, PforHeader::FORM_CONSTANT] {
            check_patched(&[form | 33, 1, 1, 1], 8, Err(DecodeError::Invalid));
            check_patched(&[form | 63, 1, 1, 1], 8, Err(DecodeError::Invalid));
        }
        for form in [PforHeader::FORM_SPARSE, PforHeader::FORM_BITMAP] {
            check_patched(&[form | 20, 13, 1, 1], 8, Err(DecodeError::Invalid));
            check_patched(&[form | 20, 12, 1, 1], 8, Ok((12, 1)));
        }
    }

    #[test]
    fn bitmaps_are_neither_empty_nor_longer_than_the_block() {
        check_patched(&[PforHeader::FORM_BITMAP, 1, 0, 0], 9, Err(DecodeError::Invalid));
        check_patched(&[PforHeader::FORM_BITMAP, 0, 1, 0], 9, Err(DecodeError::Invalid));
        check_patched(&[PforHeader::FORM_BITMAP, 1, 0, 2], 9, Err(DecodeError::Invalid));
        check_patched(&[PforHeader::FORM_BITMAP, 1, 3, 1], 9, Ok((1, 3)));
        check_patched(&[PforHeader::FORM_BITMAP, 1, 3], 9, Err(DecodeError::Truncated));
    }

    #[test]
    fn sparse_bitmaps_are_neither_empty_nor_longer_than_the_block() {
        check_patched(&[PforHeader::FORM_SPARSE, 1, 0], 9, Err(DecodeError::Invalid));
        check_patched(&[PforHeader::FORM_SPARSE, 1, 1, 0], 9, Err(DecodeError::Invalid));
        check_patched(&[PforHeader::FORM_SPARSE, 1, 2, 2], 9, Err(DecodeError::Invalid));
        check_patched(&[PforHeader::FORM_SPARSE, 1, 4, 1], 9, Err(DecodeError::Invalid));
        check_patched(&[PforHeader::FORM_SPARSE, 1, 3, 3, 1], 9, Ok((1, 3)));
        check_patched(&[PforHeader::FORM_SPARSE, 1, 2, 1], 9, Ok((1, 1)));
        check_patched(&[PforHeader::FORM_SPARSE, 1, 3, 3], 9, Err(DecodeError::Truncated));
    }
}
