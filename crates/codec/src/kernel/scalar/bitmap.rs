//! Set bits to values. Bit `i mod 8` of byte `i div 8` stands for `first + i`, mod 2^32.

use crate::BLOCK;
use crate::score::Saturation;
use crate::search::Shared;

/// [`crate::Kernel::ones`].
#[inline(always)]
pub(in crate::kernel) fn ones(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    let whole: u32 = words.iter().map(|word| u64::from_le_bytes(*word).count_ones()).sum();
    let last: u32 = rest.iter().map(|byte| byte.count_ones()).sum();
    (whole + last) as usize
}

/// [`crate::Kernel::bitmap_read`]: `first` is `prev + 1`.
#[inline(always)]
pub(in crate::kernel) fn bitmap_read(bits: &[u8], prev: u32, out: &mut [u32]) {
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

/// The first eight bytes as a number, zeros in place of those that are not there.
#[inline]
pub(in crate::kernel) fn word(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(word) => u64::from_le_bytes(*word),
        None => {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(padded)
        }
    }
}

/// [`crate::Kernel::collect_bits`].
pub(in crate::kernel) fn collect_bits(marks: &mut [u8], bits: &mut [u8]) {
    for (marks, bits) in marks.as_chunks_mut::<8>().0.iter_mut().zip(bits) {
        // Each product of a mark and a bit of the factor lands in a bit of its own; those of the highest byte
        // are wanted.
        *bits |= (u64::from_le_bytes(*marks).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8;
        *marks = [0; 8];
    }
}

/// [`crate::Kernel::bitmap_find`]. Values before the bits are found nowhere, as those behind them are.
pub(in crate::kernel) fn bitmap_find(bits: &[u8], first: u32, values: &[u32], shared: &mut Shared) {
    let (places, count) = shared.parts();
    let (mut found, mut words, mut before) = (0, 0, 0);
    for (k, value) in values.iter().enumerate() {
        let place = value.wrapping_sub(first) as usize;
        if place >= 8 * bits.len() {
            continue;
        }
        // Values of the words up to that of the place, of which those behind the last value's are new.
        while words < place / 64 {
            before += word(&bits[8 * words..]).count_ones() as usize;
            words += 1;
        }
        let word = word(&bits[8 * words.min(place / 64)..]);
        if word >> (place % 64) & 1 == 1 {
            let rank = before + (word & ((1 << (place % 64)) - 1)).count_ones() as usize;
            places[0][found] = k as u8;
            places[1][found] = rank.min(BLOCK - 1) as u8;
            found += 1;
        }
    }
    *count = found;
}

/// [`crate::Kernel::bitmap_score`].
pub(in crate::kernel) fn bitmap_score(
    of: &Saturation,
    bits: &[u8],
    first: u32,
    frequencies: &[u32],
    sums: &mut [u32],
) {
    let mut frequencies = frequencies.iter();
    for (k, (bytes, sums)) in bits.chunks(8).zip(sums.chunks_mut(64)).enumerate() {
        let mut bits = word(bytes);
        while bits != 0 {
            let place = bits.trailing_zeros();
            bits &= bits - 1;
            if let (Some(sum), Some(f)) = (sums.get_mut(place as usize), frequencies.next()) {
                *sum = sum.wrapping_add(of.score_of(first + 64 * k as u32 + place, *f));
            }
        }
    }
}

/// [`crate::Kernel::mark_positive`].
pub(in crate::kernel) fn mark_positive(sums: &[u32], bits: &mut [u8]) {
    for (sums, byte) in sums.chunks(8).zip(bits) {
        for (k, sum) in sums.iter().enumerate() {
            *byte |= u8::from(*sum > 0) << k;
        }
    }
}

/// [`crate::Kernel::keep_marked`].
pub(in crate::kernel) fn keep_marked(sums: &mut [u32], bits: &[u8]) {
    for (sums, byte) in sums.chunks_mut(8).zip(bits) {
        for (k, sum) in sums.iter_mut().enumerate() {
            *sum *= u32::from(byte >> k & 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Kernel;

    #[test]
    fn every_kernel_makes_bits_of_marks() {
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
