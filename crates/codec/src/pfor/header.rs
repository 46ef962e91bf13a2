//! What the first bytes of a block say: its form, its width, and so its length.

use crate::DecodeError;
use crate::bitpack::{WIDTH_MAX, packed_len};

/// Form and width of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) form: Form,
    /// Width of the low parts in bits; of the value, if it is constant.
    pub(super) width: u32,
}

/// How the exceptions are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// There are none.
    Plain,
    /// `count` high parts of `high_width` bits, and a byte each for their positions.
    List { count: usize, high_width: u32 },
    /// `count` high parts of `high_width` bits, and as many bits in a bitmap.
    Bitmap { count: usize, high_width: u32 },
    /// All values are one, which is not zero.
    Constant,
}

impl Header {
    /// Tags of the forms, in the two high bits of the first byte.
    const LIST: u8 = 0x40;
    const BITMAP: u8 = 0x80;
    const CONSTANT: u8 = 0xc0;

    /// Reads the header of a block of `n` > 0 values; for a bitmap block also counts the bitmap.
    pub(super) fn read(bytes: &[u8], n: usize) -> Result<Header, DecodeError> {
        let first = *bytes.first().ok_or(DecodeError::NotEnough)?;
        let width = u32::from(first & 0x3f);
        if width > WIDTH_MAX {
            return Err(DecodeError::Invalid);
        }
        let form = match first & 0xc0 {
            Header::LIST => read_list(bytes, n, width)?,
            Header::BITMAP => read_bitmap(bytes, n, width)?,
            Header::CONSTANT => Form::Constant,
            _ => Form::Plain,
        };
        Ok(Header { form, width })
    }

    /// Appends the 1 to 3 bytes before the first array of the block.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let width = self.width as u8;
        match self.form {
            Form::Plain => out.push(width),
            Form::List { count, high_width } => {
                out.extend_from_slice(&[Header::LIST | width, high_width as u8, count as u8]);
            }
            Form::Bitmap { high_width, .. } => {
                out.extend_from_slice(&[Header::BITMAP | width, high_width as u8])
            }
            Form::Constant => out.push(Header::CONSTANT | width),
        }
    }

    /// Bytes that [`Header::write`] appends.
    pub(super) fn len(&self) -> usize {
        match self.form {
            Form::Plain | Form::Constant => 1,
            Form::Bitmap { .. } => 2,
            Form::List { .. } => 3,
        }
    }

    /// Bytes of the whole block of `n` values, header included.
    pub(super) fn block_len(&self, n: usize) -> usize {
        let lows = packed_len(n, self.width);
        let body = match self.form {
            Form::Plain => lows,
            Form::List { count, high_width } => count + packed_len(count, high_width) + lows,
            Form::Bitmap { count, high_width } => bitmap_len(n) + packed_len(count, high_width) + lows,
            Form::Constant => constant_len(self.width),
        };
        self.len() + body
    }
}

/// Bytes of the bitmap of `n` values.
pub(super) fn bitmap_len(n: usize) -> usize {
    n.div_ceil(8)
}

/// Bytes of a constant value of `width` bits.
pub(super) fn constant_len(width: u32) -> usize {
    width.div_ceil(8) as usize
}

/// At least one exception, not more than values, and low and high part not above 32 bits together.
fn read_list(bytes: &[u8], n: usize, width: u32) -> Result<Form, DecodeError> {
    let [_, high_width, count] = *bytes.first_chunk::<3>().ok_or(DecodeError::NotEnough)?;
    let (count, high_width) = (usize::from(count), u32::from(high_width));
    if high_width == 0 || width + high_width > WIDTH_MAX || !(1..=n).contains(&count) {
        return Err(DecodeError::Invalid);
    }
    Ok(Form::List { count, high_width })
}

/// At least one exception, none beyond the last value, and low and high part not above 32 bits together.
fn read_bitmap(bytes: &[u8], n: usize, width: u32) -> Result<Form, DecodeError> {
    let high_width = u32::from(*bytes.get(1).ok_or(DecodeError::NotEnough)?);
    if high_width == 0 || width + high_width > WIDTH_MAX {
        return Err(DecodeError::Invalid);
    }
    let bitmap = bytes.get(2..2 + bitmap_len(n)).ok_or(DecodeError::NotEnough)?;
    if bitmap.get(n / 8).is_some_and(|last| last >> (n % 8) != 0) {
        return Err(DecodeError::Invalid);
    }
    match bitmap.iter().map(|byte| byte.count_ones() as usize).sum() {
        0 => Err(DecodeError::Invalid),
        count => Ok(Form::Bitmap { count, high_width }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], n: usize, expect: Result<Form, DecodeError>) {
        assert_eq!(Header::read(bytes, n).map(|header| header.form), expect, "{bytes:02x?}");
    }

    #[test]
    fn widths_beyond_32_bits_are_invalid() {
        for form in [0x00, Header::LIST, Header::BITMAP, Header::CONSTANT] {
            check(&[form | 33, 1, 1, 1], 8, Err(DecodeError::Invalid));
            check(&[form | 63, 1, 1, 1], 8, Err(DecodeError::Invalid));
        }
        check(&[Header::BITMAP | 20, 13, 1], 8, Err(DecodeError::Invalid));
        check(&[Header::BITMAP | 20, 12, 1], 8, Ok(Form::Bitmap { count: 1, high_width: 12 }));
        check(&[Header::LIST | 20, 13, 1], 8, Err(DecodeError::Invalid));
        check(&[Header::LIST | 20, 12, 1], 8, Ok(Form::List { count: 1, high_width: 12 }));
    }

    #[test]
    fn lists_are_neither_empty_nor_longer_than_the_block() {
        check(&[Header::LIST, 1, 0], 8, Err(DecodeError::Invalid));
        check(&[Header::LIST, 0, 1], 8, Err(DecodeError::Invalid));
        check(&[Header::LIST, 1, 9], 8, Err(DecodeError::Invalid));
        check(&[Header::LIST, 5, 8], 8, Ok(Form::List { count: 8, high_width: 5 }));
        check(&[Header::LIST, 5], 8, Err(DecodeError::NotEnough));
    }

    #[test]
    fn bitmaps_are_neither_empty_nor_longer_than_the_block() {
        check(&[Header::BITMAP, 1, 0, 0], 9, Err(DecodeError::Invalid));
        check(&[Header::BITMAP, 0, 1, 0], 9, Err(DecodeError::Invalid));
        check(&[Header::BITMAP, 1, 0, 2], 9, Err(DecodeError::Invalid));
        check(&[Header::BITMAP, 1, 3, 1], 9, Ok(Form::Bitmap { count: 3, high_width: 1 }));
        check(&[Header::BITMAP, 1, 3], 9, Err(DecodeError::NotEnough));
    }
}
