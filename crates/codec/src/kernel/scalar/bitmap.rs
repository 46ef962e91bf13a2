//! Values as set bits. Bit `i mod 8` of byte `i div 8` stands for `prev + 1 + i`, mod 2^32.

use super::patch::word;

/// The place of the last of `values` in a bitmap that starts behind `prev`, counted from 1.
///
/// Wherever the values wrap around, that is the sum of the ways from each to the next.
pub(crate) fn bitmap_span(values: &[u32], prev: u32) -> u64 {
    let mut before = prev;
    let way = |value: &u32| {
        let gap = value.wrapping_sub(before).wrapping_sub(1);
        before = *value;
        u64::from(gap) + 1
    };
    values.iter().map(way).sum()
}

/// Sets the bit of each value in `bits`, which reach as far as [`bitmap_span`] says.
pub(crate) fn bitmap_write(values: &[u32], prev: u32, bits: &mut [u8]) {
    for value in values {
        let place = value.wrapping_sub(prev).wrapping_sub(1) as usize;
        bits[place / 8] |= 1 << (place % 8);
    }
}

/// Reads the values of the set bits, of which the caller has counted `out.len()`.
pub(crate) fn bitmap_read(bits: &[u8], prev: u32, out: &mut [u32]) {
    let mut out = out.iter_mut();
    let mut base = prev.wrapping_add(1);
    // 64 places at a time: the loop's end is mispredicted once a word instead of once a byte.
    for bytes in bits.chunks(8) {
        let mut bits = word(bytes);
        while bits != 0
            && let Some(value) = out.next()
        {
            *value = base.wrapping_add(bits.trailing_zeros());
            bits &= bits - 1;
        }
        base = base.wrapping_add(64);
    }
}
