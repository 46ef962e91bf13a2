//! Loops over bitmaps: decoding, look-up of values, scores, and bits that mark sums. Bit `i mod 8` of byte `i
//! div 8` is the value `first + i`, mod 2^32.

use crate::block::{BLOCK, Intersection};
use crate::saturation::Saturation;

/// Implements [`crate::Kernel::count_ones`].
#[inline(always)]
pub(crate) fn count_ones(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    let whole: u32 = words.iter().map(|word| u64::from_le_bytes(*word).count_ones()).sum();
    let last: u32 = rest.iter().map(|byte| byte.count_ones()).sum();
    (whole + last) as usize
}

/// Implements [`crate::Kernel::read_bitmap`]: `first` is `prev + 1`.
#[inline(always)]
pub(crate) fn read_bitmap(bits: &[u8], prev: u32, out: &mut [u32]) {
    let mut out = out.iter_mut();
    let mut base = prev.wrapping_add(1);
    // 64 bits at a time: the end of the loop is mispredicted once per word instead of once per byte.
    for bytes in bits.chunks(8) {
        let mut bits = load_word(bytes);
        while bits != 0
            && let Some(value) = out.next()
        {
            *value = base.wrapping_add(bits.trailing_zeros());
            bits &= bits - 1;
        }
        base = base.wrapping_add(64);
    }
}

/// The first eight bytes as a number, padded with zeros.
#[inline]
pub(crate) fn load_word(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(word) => u64::from_le_bytes(*word),
        None => {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(padded)
        }
    }
}

/// Implements [`crate::Kernel::collect_bits`].
pub(crate) fn collect_bits(marks: &mut [u8], bits: &mut [u8]) {
    for (marks, bits) in marks.as_chunks_mut::<8>().0.iter_mut().zip(bits) {
        // Each product of a mark and a bit of the factor is a separate bit; the highest byte has those of
        // the eight marks in order.
        *bits |= (u64::from_le_bytes(*marks).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8;
        *marks = [0; 8];
    }
}

/// Implements [`crate::Kernel::find_in_bitmap`]. Values before `first` wrap to positions after the last bit.
pub(crate) fn find_in_bitmap(bits: &[u8], first: u32, values: &[u32], shared: &mut Intersection) {
    let (positions, count) = shared.parts();
    let (mut found, mut words, mut before) = (0, 0, 0);
    for (k, value) in values.iter().enumerate() {
        let position = value.wrapping_sub(first) as usize;
        if position >= 8 * bits.len() {
            continue;
        }
        // Count the set bits of the words before that of the position.
        while words < position / 64 {
            before += load_word(&bits[8 * words..]).count_ones() as usize;
            words += 1;
        }
        let word = load_word(&bits[8 * words.min(position / 64)..]);
        if word >> (position % 64) & 1 == 1 {
            let rank = before + (word & ((1 << (position % 64)) - 1)).count_ones() as usize;
            positions[0][found] = k as u8;
            positions[1][found] = rank.min(BLOCK - 1) as u8;
            found += 1;
        }
    }
    *count = found;
}

/// Implements [`crate::Kernel::score_bitmap`].
pub(crate) fn score_bitmap(of: &Saturation, bits: &[u8], first: u32, frequencies: &[u32], sums: &mut [u32]) {
    let mut frequencies = frequencies.iter();
    for (k, (bytes, sums)) in bits.chunks(8).zip(sums.chunks_mut(64)).enumerate() {
        let mut bits = load_word(bytes);
        while bits != 0 {
            let position = bits.trailing_zeros();
            bits &= bits - 1;
            if let (Some(sum), Some(f)) = (sums.get_mut(position as usize), frequencies.next()) {
                *sum = sum.wrapping_add(of.score_of(first + 64 * k as u32 + position, *f));
            }
        }
    }
}

/// The masks of the single bits of a byte.
const BITS_OF_BYTE: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// Implements [`crate::Kernel::mark_positive`].
pub(crate) fn mark_positive(sums: &[u32], bits: &mut [u8]) {
    for (sums, byte) in sums.chunks(8).zip(bits) {
        *byte |=
            sums.iter().zip(BITS_OF_BYTE).map(|(sum, bit)| if *sum > 0 { bit as u8 } else { 0 }).sum::<u8>();
    }
}

/// Implements [`crate::Kernel::keep_marked`].
pub(crate) fn keep_marked(sums: &mut [u32], bits: &[u8]) {
    for (sums, byte) in sums.chunks_mut(8).zip(bits) {
        for (sum, bit) in sums.iter_mut().zip(BITS_OF_BYTE) {
            *sum = if u32::from(*byte) & bit == 0 { 0 } else { *sum };
        }
    }
}

/// Implements [`crate::Kernel::copy_marked`].
pub(crate) fn copy_marked(values: &[u32], bits: &[u8], out: &mut [u32]) -> usize {
    let mut copied = 0;
    for value in values {
        // Written in any case: a branch would be mispredicted.
        out[copied] = *value;
        let byte = bits.get(*value as usize / 8).copied().unwrap_or(0);
        copied += usize::from(byte >> (value % 8) & 1);
    }
    copied
}

#[cfg(test)]
mod tests {
    use crate::Kernel;

    #[test]
    fn every_kernel_collects_bits() {
        for len in 0..40 {
            let marked: Vec<u8> = (0..8 * len).map(|i| u8::from(i % 3 == 0 || i % 7 == 2)).collect();
            for kernel in Kernel::available() {
                let (mut marks, mut bits) = (marked.clone(), vec![0x10; len]);
                kernel.collect_bits(&mut marks, &mut bits);
                assert!(marks.iter().all(|mark| *mark == 0));
                for (i, mark) in marked.iter().enumerate() {
                    let bit = bits[i / 8] >> (i % 8) & 1;
                    assert_eq!(bit, *mark | u8::from(i % 8 == 4), "{kernel:?}, {i} of {len}");
                }
            }
        }
    }
}
