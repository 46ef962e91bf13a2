//! The two layouts of packed values in TurboPFor.
//!
//! *Horizontal*: value k has the bits k w to k w + w - 1 of a stream, the lowest first. *Vertical*, of 256
//! values: value k is in lane k mod 8; each of the eight lanes is a horizontal stream of 32 values in words
//! of 32 bits, and word i of lane l is word 8 i + l of all.

/// Number of values of a vertical block, and of lanes that they are distributed over.
pub(super) const VERTICAL_VALUES: usize = 256;
const VERTICAL_LANES: usize = 8;
const VERTICAL_ROWS: usize = VERTICAL_VALUES / VERTICAL_LANES;

/// Bytes of `count` values of `width` bits.
pub(super) fn packed_bytes(count: usize, width: u32) -> usize {
    (count * width as usize).div_ceil(8)
}

/// The lowest `width` bits, up to all 32.
pub(super) fn low_mask(width: u32) -> u32 {
    ((1u64 << width) - 1) as u32
}

/// Appends the lowest `width` bits of values, in the vertical layout if there are 256 and `vertical` is set.
pub(super) fn pack(
    values: impl ExactSizeIterator<Item = u32>,
    width: u32,
    vertical: bool,
    out: &mut Vec<u8>,
) {
    let (count, start) = (values.len(), out.len());
    out.resize(start + packed_bytes(count, width), 0);
    let bytes = &mut out[start..];
    let vertical = vertical && count == VERTICAL_VALUES;
    for (number, value) in values.enumerate() {
        for bit in (0..width).filter(|bit| value >> bit & 1 == 1) {
            let (row, lane) = (number / VERTICAL_LANES, number % VERTICAL_LANES);
            let to = if vertical {
                let in_lane = row * width as usize + bit as usize;
                (in_lane / 32 * VERTICAL_LANES + lane) * 32 + in_lane % 32
            } else {
                number * width as usize + bit as usize
            };
            bytes[to / 8] |= 1 << (to % 8);
        }
    }
}

/// Unpacks `out.len()` values and returns the bytes consumed; `None` if there are too few.
#[inline]
pub(super) fn unpack(bytes: &[u8], width: u32, vertical: bool, out: &mut [u32]) -> Option<usize> {
    let len = packed_bytes(out.len(), width);
    let bytes = bytes.get(..len)?;
    match out.as_chunks_mut::<VERTICAL_LANES>() {
        (rows, []) if vertical && rows.len() == VERTICAL_ROWS => unpack_vertical(bytes, width, rows),
        _ => unpack_horizontal(bytes, width, out),
    }
    Some(len)
}

#[inline]
fn unpack_horizontal(bytes: &[u8], width: u32, out: &mut [u32]) {
    let mask = low_mask(width);
    let mut bit = 0;
    for value in out {
        let rest = &bytes[bit / 8..];
        let word = match rest.first_chunk() {
            Some(word) => u64::from_le_bytes(*word),
            None => last_word(rest),
        };
        *value = (word >> (bit % 8)) as u32 & mask;
        bit += width as usize;
    }
}

/// Up to eight bytes at the end of the input as a number; missing bytes are 0.
fn last_word(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

#[inline]
fn unpack_vertical(bytes: &[u8], width: u32, rows: &mut [[u32; VERTICAL_LANES]]) {
    let mask = low_mask(width);
    let words = bytes.as_chunks::<{ 4 * VERTICAL_LANES }>().0;
    let load = |at: usize| -> [u32; VERTICAL_LANES] {
        words.get(at).map_or([0; VERTICAL_LANES], |bytes| {
            let parts = bytes.as_chunks::<4>().0;
            std::array::from_fn(|lane| u32::from_le_bytes(parts[lane]))
        })
    };
    for (number, row) in rows.iter_mut().enumerate() {
        let bit = number as u32 * width;
        let (word, shift) = ((bit / 32) as usize, bit % 32);
        let low = load(word);
        if shift + width <= 32 {
            row.iter_mut().zip(low).for_each(|(value, low)| *value = low >> shift & mask);
        } else {
            let high = load(word + 1);
            for ((value, low), high) in row.iter_mut().zip(low).zip(high) {
                *value = (low >> shift | high << (32 - shift)) & mask;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    #[test]
    fn layouts_by_hand() {
        let mut bytes = Vec::new();
        pack([1, 2, 3, 4].into_iter(), 3, true, &mut bytes);
        assert_eq!(bytes, [0xD1, 0x08]);
        bytes.clear();
        pack((0..256usize).map(|value| value as u32), 8, true, &mut bytes);
        assert_eq!(bytes[..8], [0x00, 0x08, 0x10, 0x18, 0x01, 0x09, 0x11, 0x19]);
    }

    #[test]
    fn all_widths_and_counts_round_trip() {
        let mut random = Random::new(4);
        for width in 0..=32 {
            for count in (0..40).chain([127, 128, 255, 256]) {
                for vertical in [false, true] {
                    let values: Vec<_> = (0..count).map(|_| random.bits() as u32 & low_mask(width)).collect();
                    let mut bytes = Vec::new();
                    pack(values.iter().copied(), width, vertical, &mut bytes);
                    let mut back = vec![1; count];
                    assert_eq!(unpack(&bytes, width, vertical, &mut back), Some(bytes.len()));
                    assert_eq!(back, values, "{width} {count} {vertical}");
                    if let Some(short) = bytes.len().checked_sub(1) {
                        assert_eq!(unpack(&bytes[..short], width, vertical, &mut back), None);
                    }
                }
            }
        }
    }
}
