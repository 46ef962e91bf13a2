//! Bit packing and unpacking, one function per width.
//!
//! A *column* is 32 values of `W` bits: exactly `W` words. The vertical layout is 8 columns side by side;
//! the horizontal layout is one column after the other. Both share their code, with 8 lanes or 1.

use crate::{bitpack::Layout, block::BLOCK};
use core::mem::MaybeUninit;

/// Number of lanes of the vertical layout.
const VERTICAL_LANES: usize = 8;
/// Number of lanes of the horizontal layout.
const HORIZONTAL_LANES: usize = 1;

/// Number of values of a lane in the vertical layout.
const LANE_VALUES: usize = 32;

/// [`pack_column`] for one width and number of lanes.
type PackFunction = fn(&[u32], &mut [MaybeUninit<u8>]);
/// [`unpack_column`] for one width and number of lanes.
pub(super) type UnpackFunction = fn(&[u8], &mut [u32]);

/// Runs `$body` for each `$row` from 0 to 31.
///
/// One lane is unrolled, which makes every shift a constant and packs twice as fast. Eight lanes remain a
/// loop: a row becomes vector instructions with one shift for all lanes, which is as fast as the unrolled
/// form and takes a tenth of its time to compile.
macro_rules! for_each_row {
    ($lanes:expr, $row:ident, $body:expr) => {
        if $lanes == 1 {
            unrolled!(32, $row, $body)
        } else {
            for $row in 0..LANE_VALUES {
                $body;
            }
        }
    };
}

static PACK_VERTICAL: [PackFunction; 33] = by_width!(pack_column, VERTICAL_LANES);
static PACK_HORIZONTAL: [PackFunction; 33] = by_width!(pack_column, HORIZONTAL_LANES);
pub(super) static UNPACK_VERTICAL: [UnpackFunction; 33] = by_width!(unpack_column, VERTICAL_LANES);
static UNPACK_HORIZONTAL: [UnpackFunction; 33] = by_width!(unpack_column, HORIZONTAL_LANES);

/// Implements [`crate::Kernel::pack`].
pub(crate) fn pack(values: &[u32], width: u32, layout: Layout, packed: &mut [MaybeUninit<u8>]) {
    match layout {
        Layout::Vertical if values.len() == BLOCK => PACK_VERTICAL[width as usize](values, packed),
        _ => pack_horizontal(values, width, packed),
    }
}

/// Writes the low `width` bits of each value to `packed`, which has `ceil(n * width / 8)` bytes.
pub(crate) fn pack_horizontal(values: &[u32], width: u32, packed: &mut [MaybeUninit<u8>]) {
    let (columns, rest) = values.as_chunks::<LANE_VALUES>();
    let (head, tail) = packed.split_at_mut(columns.len() * 4 * width as usize);
    for (k, column) in columns.iter().enumerate() {
        PACK_HORIZONTAL[width as usize](column, &mut head[4 * k * width as usize..]);
    }
    pack_rest(rest, width, tail);
}

/// Reads `n` values of `width` bits from `packed`, which has `ceil(n * width / 8)` bytes.
pub(crate) fn unpack_horizontal(packed: &[u8], width: u32, out: &mut [u32]) {
    let (columns, rest) = out.as_chunks_mut::<LANE_VALUES>();
    let (head, tail) = packed.split_at(columns.len() * 4 * width as usize);
    for (k, column) in columns.iter_mut().enumerate() {
        UNPACK_HORIZONTAL[width as usize](&head[4 * k * width as usize..], column);
    }
    unpack_rest(tail, width, rest);
}

/// Packs `32 * L` values into the first `4 * W * L` bytes of `packed`.
#[inline(always)]
pub(crate) fn pack_column<const W: usize, const L: usize>(values: &[u32], packed: &mut [MaybeUninit<u8>]) {
    let values = values.as_chunks::<L>().0.first_chunk::<LANE_VALUES>().expect("the caller gives 32 rows");
    let words = packed.as_chunks_mut::<4>().0.as_chunks_mut::<L>().0;
    let words = words.first_chunk_mut::<W>().expect("the caller gives W words a lane");
    let mut open = [0; L];
    for_each_row!(L, row, pack_row(&values[row], row, &mut open, words));
}

/// Adds one row of values to the words that are being filled (`open`), and stores these when they are full.
#[inline(always)]
fn pack_row<const W: usize, const L: usize>(
    values: &[u32; L],
    row: usize,
    open: &mut [u32; L],
    words: &mut [[WordBytes; L]; W],
) {
    let (word, shift) = (row * W / 32, row * W % 32);
    // Loops and not `map`: the compiler does not always inline its closures into code for other instructions.
    let mut low = *values;
    for lane in 0..L {
        low[lane] &= low_bits(W);
        open[lane] |= low[lane] << shift;
    }
    if W > 0 && shift + W >= 32 {
        for lane in 0..L {
            words[word][lane] = word_bytes(open[lane]);
            open[lane] = if shift + W > 32 { low[lane] >> (32 - shift) } else { 0 };
        }
    }
}

/// Unpacks `32 * L` values from the first `4 * W * L` bytes of `packed`.
fn unpack_column<const W: usize, const L: usize>(packed: &[u8], out: &mut [u32]) {
    let words = packed.as_chunks::<4>().0.as_chunks::<L>().0;
    let words = words.first_chunk::<W>().expect("the caller gives W words a lane");
    let out = out.as_chunks_mut::<L>().0.first_chunk_mut::<LANE_VALUES>().expect("the caller gives 32 rows");
    for_each_row!(L, row, out[row] = unpack_row(words, row));
}

/// Unpacks one row of values, each from one or two words of its lane.
#[inline(always)]
fn unpack_row<const W: usize, const L: usize>(words: &[[[u8; 4]; L]; W], row: usize) -> [u32; L] {
    if W == 0 {
        return [0; L];
    }
    let (word, shift) = (row * W / 32, row * W % 32);
    std::array::from_fn(|lane| {
        let mut value = u32::from_le_bytes(words[word][lane]) >> shift;
        if shift + W > 32 {
            value |= u32::from_le_bytes(words[word + 1][lane]) << (32 - shift);
        }
        value & low_bits(W)
    })
}

/// Packs fewer than 32 values in the horizontal layout.
fn pack_rest(values: &[u32], width: u32, packed: &mut [MaybeUninit<u8>]) {
    let (mut open, mut filled) = (0u64, 0);
    let mut words = packed.chunks_mut(4);
    for value in values {
        open |= u64::from(value & low_bits(width as usize)) << filled;
        filled += width;
        if filled >= 32 {
            store_word(words.next(), open as u32);
            (open, filled) = (open >> 32, filled - 32);
        }
    }
    store_word(words.next(), open as u32);
}

/// The bytes of a word, possibly uninitialised.
type WordBytes = [MaybeUninit<u8>; 4];

fn word_bytes(word: u32) -> WordBytes {
    word.to_le_bytes().map(MaybeUninit::new)
}

/// Stores a word, or its first bytes if it is the last word of the stream.
fn store_word(out: Option<&mut [MaybeUninit<u8>]>, word: u32) {
    if let Some(out) = out {
        out.copy_from_slice(&word_bytes(word)[..out.len()]);
    }
}

/// Unpacks fewer than 32 values of the horizontal layout.
fn unpack_rest(packed: &[u8], width: u32, out: &mut [u32]) {
    let (mut open, mut filled) = (0u64, 0);
    let mut words = packed.chunks(4);
    for value in out {
        if filled < width {
            open |= u64::from(load_word_padded(words.next())) << filled;
            filled += 32;
        }
        *value = open as u32 & low_bits(width as usize);
        (open, filled) = (open >> width, filled - width);
    }
}

/// Loads a word; the last word of the stream may be shorter and is padded with zeros.
fn load_word_padded(bytes: Option<&[u8]>) -> u32 {
    let bytes = bytes.unwrap_or(&[]);
    match bytes.first_chunk::<4>() {
        Some(word) => u32::from_le_bytes(*word),
        None => bytes.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte)),
    }
}

/// The mask of the `width` lowest bits.
const fn low_bits(width: usize) -> u32 {
    ((1u64 << width) - 1) as u32
}
