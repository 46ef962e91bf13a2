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

use crate::{BLOCK, DecodeError, Kernel, raw};

/// Bytes before the bits or the values.
const HEAD: usize = 2;

/// The most bytes of `n` values: a raw block.
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

/// Appends `values`, of which there are 1 to 256. Any values will do; only those that rise, if need be past the
/// largest of 32 bits, get a bitmap.
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
            check_bits(kernel, body, out.len())?;
            kernel.bitmap_read(body, prev, out);
        }
        Form::Raw => _ = raw::decode(body, out)?,
    }
    Ok(len)
}

/// As many bits are set as there are values, and one of them in the last byte.
fn check_bits(kernel: Kernel, bits: &[u8], n: usize) -> Result<(), DecodeError> {
    let good = kernel.ones(bits) == n && bits.last() != Some(&0);
    if good { Ok(()) } else { Err(DecodeError::Invalid) }
}

/// Bytes of the block of `n` > 0 values at the front of `bytes`.
pub(crate) fn encoded_len(bytes: &[u8], n: usize) -> Result<usize, DecodeError> {
    let len = Form::read(bytes, n)?.block_len(n);
    if bytes.len() < len { Err(DecodeError::NotEnough) } else { Ok(len) }
}

/// The bits of a block, to be asked and intersected without decoding it: what dense lists are stored so for.
///
/// ```
/// use tierdex_codec::Codec;
///
/// let block = |ids: &[u32]| {
///     let mut bytes = Vec::new();
///     Codec::Bitmap.encode(ids, u32::MAX, &mut bytes);
///     bytes
/// };
/// let (a, b) = (block(&[1, 2, 3, 5, 8]), block(&[2, 3, 4, 8, 9]));
/// let a = Codec::Bitmap.bitmap(&a, u32::MAX, 5)?.expect("dense");
/// let b = Codec::Bitmap.bitmap(&b, u32::MAX, 5)?.expect("dense");
///
/// let mut out = [0; 5];
/// assert_eq!((a.intersect(&b, &mut out), &out[..3]), (3, &[2, 3, 8][..]));
/// assert!(a.contains(5) && !b.contains(5));
/// # Ok::<(), tierdex_codec::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct BitmapView<'a> {
    /// The value of the first bit.
    first: u64,
    bits: &'a [u8],
    /// Number of values.
    n: usize,
}

/// Bytes of the longest bitmap, made whole words: it is shorter than four bytes a value.
const BITS_MAX: usize = 4 * BLOCK;

impl<'a> BitmapView<'a> {
    /// The bits of the block of `n` > 0 values at the front of `bytes`; None if it holds them in another form, or
    /// if they go on from 0 behind the largest of 32 bits.
    pub(crate) fn new(
        kernel: Kernel,
        bytes: &'a [u8],
        prev: u32,
        n: usize,
    ) -> Result<Option<BitmapView<'a>>, DecodeError> {
        let form = Form::read(bytes, n)?;
        let body = bytes.get(HEAD..form.block_len(n)).ok_or(DecodeError::NotEnough)?;
        let Form::Bitmap { .. } = form else { return Ok(None) };
        check_bits(kernel, body, n)?;
        let first = u64::from(prev.wrapping_add(1));
        let last =
            first + 8 * body.len() as u64 - 1 - body.last().map_or(0, |byte| byte.leading_zeros()) as u64;
        Ok((last <= u64::from(u32::MAX)).then_some(BitmapView { first, bits: body, n }))
    }

    /// Whether `value` is in the block.
    pub fn contains(&self, value: u32) -> bool {
        let place = u64::from(value).checked_sub(self.first);
        place.is_some_and(|place| self.word(place) & 1 != 0)
    }

    /// How many values are in both blocks.
    pub fn count_common(&self, other: &BitmapView) -> usize {
        self.common(other).1.map(|word| word.count_ones() as usize).sum()
    }

    /// Writes the values that are in both blocks to the front of `out` and returns their number.
    ///
    /// # Panics
    /// If `out` is shorter than the block with fewer values.
    pub fn intersect(&self, other: &BitmapView, out: &mut [u32]) -> usize {
        assert!(out.len() >= self.n.min(other.n), "room for every value of the smaller block");
        let mut words = [[0; 8]; BITS_MAX / 8];
        let (from, common) = self.common(other);
        let mut len = 0;
        for (bytes, word) in words.iter_mut().zip(common) {
            *bytes = word.to_le_bytes();
            len += 1;
        }
        let (kernel, bits) = (Kernel::active(), words[..len].as_flattened());
        let count = kernel.ones(bits);
        kernel.bitmap_read(bits, (from as u32).wrapping_sub(1), &mut out[..count]);
        count
    }

    /// The first value that both have a bit for, and the words of both from there on.
    fn common<'b>(&'b self, other: &'b BitmapView) -> (u64, impl Iterator<Item = u64> + 'b) {
        let from = self.first.max(other.first);
        let end = self.end().min(other.end()).max(from);
        let words = (from..end).step_by(64);
        (from, words.map(move |at| self.word(at - self.first) & other.word(at - other.first)))
    }

    /// The value behind that of the last bit.
    fn end(&self) -> u64 {
        self.first + 8 * self.bits.len() as u64
    }

    /// 64 bits from the `place`-th on, zeros where there are none.
    fn word(&self, place: u64) -> u64 {
        let start = usize::try_from(place / 8).unwrap_or(usize::MAX);
        let bits = self.bits.get(start..).unwrap_or(&[]);
        let mut padded = [0; 16];
        let len = bits.len().min(9);
        padded[..len].copy_from_slice(&bits[..len]);
        (u128::from_le_bytes(padded) >> (place % 8)) as u64
    }
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
    fn bitmaps_that_start_anywhere_have_what_is_in_both() {
        for start in (0..1500).step_by(7) {
            let a: Vec<u32> = (0..256).map(|k| 1000 + 3 * k).collect();
            let b: Vec<u32> = (0..200).map(|k| start + 4 * k).collect();
            let bytes = [(&a, 990), (&b, start.wrapping_sub(1))].map(|(values, prev)| {
                let mut bytes = Vec::new();
                encode(values, prev, &mut bytes);
                bytes
            });
            let a_bits = BitmapView::new(Kernel::SCALAR, &bytes[0], 990, 256).unwrap().unwrap();
            let b_bits =
                BitmapView::new(Kernel::SCALAR, &bytes[1], start.wrapping_sub(1), 200).unwrap().unwrap();
            let expect: Vec<u32> = a.iter().copied().filter(|value| b.contains(value)).collect();
            let mut out = [0; 200];
            let count = a_bits.intersect(&b_bits, &mut out);
            assert_eq!(out[..count], expect, "from {start} on");
            assert_eq!(b_bits.count_common(&a_bits), count);
            assert!((0..4000).all(|value| b_bits.contains(value) == b.contains(&value)));
        }
    }

    #[test]
    fn a_block_of_values_has_no_bits_to_view() {
        let mut bytes = Vec::new();
        encode(&[3, 70000], u32::MAX, &mut bytes);
        assert!(BitmapView::new(Kernel::SCALAR, &bytes, u32::MAX, 2).unwrap().is_none());
        assert_eq!(
            BitmapView::new(Kernel::SCALAR, &[2, 0, 0x03, 0x04], 0, 2).unwrap_err(),
            DecodeError::Invalid
        );
        assert_eq!(BitmapView::new(Kernel::SCALAR, &[2, 0, 7, 0], 0, 3).unwrap_err(), DecodeError::Invalid);
        assert!(BitmapView::new(Kernel::SCALAR, &[1, 0, 9], u32::MAX - 1, 2).unwrap().is_none(), "wraps");
        assert!(BitmapView::new(Kernel::SCALAR, &[1, 0, 1], u32::MAX - 1, 1).unwrap().is_some());
        assert_eq!(BitmapView::new(Kernel::SCALAR, &[2, 0, 0x03], 0, 2).unwrap_err(), DecodeError::NotEnough);
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
