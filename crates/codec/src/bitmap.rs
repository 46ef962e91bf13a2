//! Dense document ids as a bitmap: from the byte of `prev + 1` to the byte of the last id.
//!
//! ```text
//! bitmap    [m u16] m bytes; bit i mod 8 of byte i div 8 is the id first + i, and n bits are set
//! raw       [0 u16] n values, four bytes each
//! ```
//!
//! `first` is the largest multiple of eight up to `prev + 1`, so that an id has the same bit of a byte in
//! every bitmap: bitmaps are combined a vector at a time without shifts. Numbers are little-endian. The last
//! id is the highest set bit, so the last byte is not zero. The encoder writes a bitmap if it is shorter
//! than four bytes per value, so `m` is below `4 n`, and no block is longer than its raw values and the two
//! bytes of the header. Examples with `prev` = -1:
//!
//! ```text
//! 0, 1, 2, 5       01 00 | 27
//! 1, 9, 12         02 00 | 02 12
//! 3, 70000         00 00 | 03 00 00 00 70 11 01 00
//! ```
//!
//! Source: Culpepper, Moffat, "Efficient set intersection for inverted indexing", for mixing bitmaps and
//! other forms.

use crate::{BLOCK, DecodeError, Intersection, Kernel, Result, raw};

/// Bytes of a block before the bits or the values: their number of bytes, or 0 for values.
const HEAD_BYTES: usize = 2;

/// Maximum bytes of a block of `n` values: the bytes of a block in raw form.
pub(crate) fn max_len(n: usize) -> usize {
    if n == 0 { 0 } else { HEAD_BYTES + raw::max_len(n) }
}

/// The form of a block, which its header tells.
#[derive(Clone, Copy)]
enum BitmapForm {
    Bitmap { len: usize },
    Raw,
}

impl BitmapForm {
    /// The shorter form for `values`, which are not empty; raw if both are equally long.
    fn choose(values: &[u32], prev: u32) -> BitmapForm {
        let len = bit_span(values, prev).div_ceil(8);
        if len < raw::max_len(values.len()) as u64 {
            BitmapForm::Bitmap { len: len as usize }
        } else {
            BitmapForm::Raw
        }
    }

    /// Reads the header of a block of `n` > 0 values.
    fn read(bytes: &[u8], n: usize) -> Result<BitmapForm> {
        match u16::from_le_bytes(*bytes.first_chunk().ok_or(DecodeError::Truncated)?) {
            0 => Ok(BitmapForm::Raw),
            len if usize::from(len) < raw::max_len(n) => Ok(BitmapForm::Bitmap { len: usize::from(len) }),
            _ => Err(DecodeError::Invalid),
        }
    }

    /// Bytes of the whole block of `n` values, header included.
    fn block_len(self, n: usize) -> usize {
        match self {
            BitmapForm::Bitmap { len } => HEAD_BYTES + len,
            BitmapForm::Raw => HEAD_BYTES + raw::max_len(n),
        }
    }
}

/// Appends 1 to 256 `values`. Any values are accepted; a bitmap is written only for increasing values, which
/// may wrap past the largest 32-bit number once.
pub(crate) fn encode(values: &[u32], prev: u32, out: &mut Vec<u8>) {
    match BitmapForm::choose(values, prev) {
        BitmapForm::Bitmap { len } => {
            out.extend_from_slice(&(len as u16).to_le_bytes());
            write_bits(values, prev, len, out);
        }
        BitmapForm::Raw => {
            out.extend_from_slice(&[0; HEAD_BYTES]);
            raw::encode(values, out);
        }
    }
}

/// Decodes `out.len()` values, 1 to 256. Returns the bytes of the block. A bitmap of another number of
/// values, or with a zero byte at its end, is `Invalid`.
pub(crate) fn decode(kernel: Kernel, bytes: &[u8], prev: u32, out: &mut [u32]) -> Result<usize> {
    let form = BitmapForm::read(bytes, out.len())?;
    let len = form.block_len(out.len());
    let body = bytes.get(HEAD_BYTES..len).ok_or(DecodeError::Truncated)?;
    match form {
        BitmapForm::Bitmap { .. } => {
            check_bits(kernel, body, prev, out.len())?;
            read_bits(kernel, body, prev, out);
        }
        BitmapForm::Raw => _ = raw::decode(body, out)?,
    }
    Ok(len)
}

/// Checks that `n` bits are set, one of them in the last byte, and none for an id up to `prev`.
pub(crate) fn check_bits(kernel: Kernel, bits: &[u8], prev: u32, n: usize) -> Result<()> {
    let before = bits.first().map_or(0, |byte| byte & !(u8::MAX << (prev.wrapping_add(1) % 8)));
    let good = kernel.count_ones(bits) == n && bits.last() != Some(&0) && before == 0;
    if good { Ok(()) } else { Err(DecodeError::Invalid) }
}

/// Decodes `out.len()` values from bits that [`check_bits`] has accepted.
pub(crate) fn read_bits(kernel: Kernel, bits: &[u8], prev: u32, out: &mut [u32]) {
    kernel.read_bitmap(bits, first_bit_value(prev).wrapping_sub(1), out);
}

/// The value of the first bit of a bitmap whose values follow `prev`.
fn first_bit_value(prev: u32) -> u32 {
    prev.wrapping_add(1) & !7
}

/// The length of the block of `n` > 0 values at the front of `bytes`.
pub(crate) fn encoded_len(bytes: &[u8], n: usize) -> Result<usize> {
    let len = BitmapForm::read(bytes, n)?.block_len(n);
    if bytes.len() < len { Err(DecodeError::Truncated) } else { Ok(len) }
}

/// A block that is a bitmap, which can be searched and scored without decoding.
///
/// ```
/// use tierdex_codec::{Codec, Intersection};
///
/// let mut bytes = Vec::new();
/// Codec::Bitmap.encode(&[9, 10, 11, 13, 16], 8, &mut bytes);
/// let block = Codec::Bitmap.bitmap(&bytes, 8, 5)?.expect("dense");
/// assert_eq!((block.first(), block.bits(), block.last()), (8, &[0b0010_1110, 1][..], 16));
///
/// let mut shared = Intersection::new();
/// block.find(&[2, 9, 12, 13, 77], &mut shared);
/// assert_eq!((shared.first(), shared.second()), (&[1, 3][..], &[0, 3][..]));
/// # Ok::<(), tierdex_codec::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct BitmapView<'a> {
    first: u32,
    bits: &'a [u8],
}

impl<'a> BitmapView<'a> {
    /// The bits of the block of `n` > 0 values at the front of `bytes`; `None` if the block is raw, or if
    /// its values wrap past the largest 32-bit number.
    pub(crate) fn new(
        kernel: Kernel,
        bytes: &'a [u8],
        prev: u32,
        n: usize,
    ) -> Result<Option<BitmapView<'a>>> {
        let form = BitmapForm::read(bytes, n)?;
        let body = bytes.get(HEAD_BYTES..form.block_len(n)).ok_or(DecodeError::Truncated)?;
        match form {
            BitmapForm::Bitmap { .. } => BitmapView::of(kernel, body, prev, n),
            BitmapForm::Raw => Ok(None),
        }
    }

    /// A view of the bits of `n` > 0 values after `prev`; `None` if the values wrap.
    pub(crate) fn of(kernel: Kernel, bits: &'a [u8], prev: u32, n: usize) -> Result<Option<BitmapView<'a>>> {
        check_bits(kernel, bits, prev, n)?;
        Ok(BitmapView::from_checked_bits(prev, bits))
    }

    /// The bits of the [`BLOCK`] consecutive values after `prev`; `None` if the values wrap.
    pub fn of_run(prev: u32) -> Option<BitmapView<'static>> {
        /// The bitmap of 256 consecutive values, for each position of the first value in its byte.
        static RUN_BITMAPS: [[u8; BLOCK / 8 + 1]; 8] = run_bitmaps();
        let position = prev.wrapping_add(1) as usize % 8;
        let bits = if position == 0 { &RUN_BITMAPS[0][..BLOCK / 8] } else { &RUN_BITMAPS[position][..] };
        BitmapView::from_checked_bits(prev, bits)
    }

    /// A view of checked bits of values after `prev`, the last byte not zero; `None` if the values wrap.
    fn from_checked_bits(prev: u32, bits: &'a [u8]) -> Option<BitmapView<'a>> {
        let view = BitmapView { first: first_bit_value(prev), bits };
        (view.end() <= 1 << 32).then_some(view)
    }

    /// The value of the first bit, a multiple of eight.
    pub fn first(&self) -> u32 {
        self.first
    }

    /// The bits, lowest of each byte first.
    pub fn bits(&self) -> &'a [u8] {
        self.bits
    }

    /// The last value.
    pub fn last(&self) -> u32 {
        (self.end() - 1) as u32
    }

    /// The last value plus 1; more than 2^32 if the values wrap.
    fn end(&self) -> u64 {
        let unused = self.bits.last().map_or(0, |byte| byte.leading_zeros());
        u64::from(self.first) + 8 * self.bits.len() as u64 - u64::from(unused)
    }

    /// Finds which of the strictly increasing `values` are in the block, and their positions in `values` and
    /// in the block. If the values are not increasing, the positions are unspecified.
    ///
    /// # Panics
    /// If there are more than 256 values.
    pub fn find(&self, values: &[u32], shared: &mut Intersection) {
        Kernel::active().find_in_bitmap(self.bits, self.first, values, shared);
    }
}

/// Bitmaps of [`BLOCK`] consecutive values that start at bit 0 to 7 of their first byte.
const fn run_bitmaps() -> [[u8; BLOCK / 8 + 1]; 8] {
    let mut runs = [[u8::MAX; _]; 8];
    let mut position = 0;
    while position < 8 {
        runs[position][0] <<= position;
        runs[position][BLOCK / 8] = !(u8::MAX << position);
        position += 1;
    }
    runs
}

/// The number of bits of the bitmap of `values` after `prev`, up to and including the last value.
///
/// It is the sum of the gaps, so that values that wrap are counted too.
pub(crate) fn bit_span(values: &[u32], prev: u32) -> u64 {
    let mut before = prev;
    let gap = |value: &u32| {
        let gap = value.wrapping_sub(before).wrapping_sub(1);
        before = *value;
        u64::from(gap) + 1
    };
    u64::from(prev.wrapping_add(1) % 8) + values.iter().map(gap).sum::<u64>()
}

/// Appends the bits of `values` as `len` bytes, enough for [`bit_span`] bits.
pub(crate) fn write_bits(values: &[u32], prev: u32, len: usize, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + len, 0);
    let (bits, first) = (&mut out[start..], first_bit_value(prev));
    for value in values {
        let position = value.wrapping_sub(first) as usize;
        bits[position / 8] |= 1 << (position % 8);
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
                assert_eq!(bytes.len(), len);
                assert_eq!(bytes[..2] == [0, 0], last == bits, "{n}");
            }
        }
    }

    #[test]
    fn malformed_bitmaps_are_invalid() {
        let decode = |bytes: &[u8], n: usize| decode(Kernel::SCALAR, bytes, 7, &mut vec![0; n]);
        assert_eq!(decode(&[2, 0, 0x03, 0x04], 3), Ok(4));
        assert_eq!(decode(&[2, 0, 0x03, 0x04], 2), Err(DecodeError::Invalid), "a bit too many");
        assert_eq!(decode(&[2, 0, 0x03, 0x04], 4), Err(DecodeError::Invalid), "a bit too few");
        assert_eq!(decode(&[2, 0, 0x07, 0x00], 3), Err(DecodeError::Invalid), "a zero byte at the end");
        assert_eq!(decode(&[12, 0], 3), Err(DecodeError::Invalid), "as long as raw");
        assert_eq!(decode(&[11, 0], 3), Err(DecodeError::Truncated));
        let after = |prev: u32| super::decode(Kernel::SCALAR, &[1, 0, 0x0c], prev, &mut [0; 2]);
        assert_eq!(after(9), Ok(3));
        assert_eq!(after(10), Err(DecodeError::Invalid), "a bit of the value before");
    }

    #[test]
    fn every_kernel_finds_values_in_bits() {
        let block: Vec<u32> = (0..256).map(|k| 1000 + 3 * k + k % 2).collect();
        let mut bytes = Vec::new();
        encode(&block, 990, &mut bytes);
        let view = BitmapView::new(Kernel::SCALAR, &bytes, 990, 256).unwrap().unwrap();
        assert_eq!((view.first(), view.last()), (984, 1766));
        for start in (0..2000).step_by(7) {
            for (step, n) in [(1, 256), (4, 200), (50, 17), (3, 0)] {
                let values: Vec<u32> = (0..n).map(|k| start + step * k).collect();
                for kernel in Kernel::available() {
                    let mut shared = Intersection::new();
                    kernel.find_in_bitmap(view.bits(), view.first(), &values, &mut shared);
                    let found = shared.first().iter().map(|position| values[usize::from(*position)]);
                    let same = shared.second().iter().map(|position| block[usize::from(*position)]);
                    let expect: Vec<u32> = values.iter().copied().filter(|v| block.contains(v)).collect();
                    assert_eq!(
                        (found.collect::<Vec<_>>(), same.collect::<Vec<_>>()),
                        (expect.clone(), expect)
                    );
                }
            }
        }
    }

    #[test]
    fn runs_are_the_bitmaps_of_neighbours() {
        for prev in (0..20).chain([u32::MAX, 1_000_003]) {
            let block: Vec<u32> = (1..=BLOCK as u32).map(|k| prev.wrapping_add(k)).collect();
            let mut bytes = Vec::new();
            encode(&block, prev, &mut bytes);
            let view = BitmapView::new(Kernel::SCALAR, &bytes, prev, BLOCK).unwrap().unwrap();
            let run = BitmapView::of_run(prev).unwrap();
            assert_eq!((run.first(), run.bits(), run.last()), (view.first(), view.bits(), block[BLOCK - 1]));
        }
        let most = u32::MAX - BLOCK as u32;
        assert_eq!(BitmapView::of_run(most).map(|run| run.last()), Some(u32::MAX));
        assert!(BitmapView::of_run(most + 1).is_none());
    }

    #[test]
    fn a_block_of_values_has_no_bits_to_view() {
        let mut bytes = Vec::new();
        encode(&[3, 70000], u32::MAX, &mut bytes);
        assert!(BitmapView::new(Kernel::SCALAR, &bytes, u32::MAX, 2).unwrap().is_none());
        let view = |bytes, prev, n| BitmapView::new(Kernel::SCALAR, bytes, prev, n);
        assert_eq!(view(&[2, 0, 0x03, 0x04], u32::MAX, 2).unwrap_err(), DecodeError::Invalid);
        assert_eq!(view(&[2, 0, 7, 0], u32::MAX, 3).unwrap_err(), DecodeError::Invalid);
        assert!(view(&[2, 0, 0x80, 1], u32::MAX - 1, 2).unwrap().is_none(), "wraps");
        assert_eq!(view(&[1, 0, 0x80], u32::MAX - 1, 1).unwrap().map(|view| view.last()), Some(u32::MAX));
        assert_eq!(view(&[2, 0, 0x03], u32::MAX, 2).unwrap_err(), DecodeError::Truncated);
    }

    #[test]
    fn falling_values_are_raw_and_wrapping_ones_a_bitmap() {
        let first_length_byte = |values: &[u32], prev| {
            let mut bytes = Vec::new();
            encode(values, prev, &mut bytes);
            bytes[0]
        };
        assert_eq!(first_length_byte(&[9, 8], 0), 0);
        assert_eq!(first_length_byte(&[9, 9], 0), 0);
        assert_eq!(first_length_byte(&[u32::MAX, 2], u32::MAX - 1), 2);
    }
}
