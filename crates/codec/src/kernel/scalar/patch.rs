//! Putting the high parts of exceptions back.

/// Ors `highs[j] << width` into the place of the `j`-th set bit of `bitmap`.
///
/// Bit `i mod 8` of byte `i div 8` stands for `out[i]`. The caller has checked that the bitmap has
/// `ceil(out.len() / 8)` bytes, no bit beyond `out` and as many bits as there are `highs`, and `width < 32`.
pub(crate) fn patch_bitmap(bitmap: &[u8], highs: &[u32], width: u32, out: &mut [u32]) {
    let mut highs = highs.iter();
    // 64 places at a time: the loop's end is mispredicted once a word instead of once a byte.
    for (places, bytes) in out.chunks_mut(64).zip(bitmap.chunks(8)) {
        let mut bits = word(bytes);
        while bits != 0
            && let Some(high) = highs.next()
        {
            places[bits.trailing_zeros() as usize] |= high << width;
            bits &= bits - 1;
        }
    }
}

/// Up to 8 bytes as a little-endian number.
pub(super) fn word(bytes: &[u8]) -> u64 {
    let mut padded = [0; 8];
    padded[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(padded)
}
