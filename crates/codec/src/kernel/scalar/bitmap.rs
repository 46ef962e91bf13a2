//! Set bits to values. Bit `i mod 8` of byte `i div 8` stands for `prev + 1 + i`, mod 2^32.

/// [`crate::Kernel::ones`].
#[inline(always)]
pub(in crate::kernel) fn ones(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    let whole: u32 = words.iter().map(|word| u64::from_le_bytes(*word).count_ones()).sum();
    let last: u32 = rest.iter().map(|byte| byte.count_ones()).sum();
    (whole + last) as usize
}

/// [`crate::Kernel::bitmap_read`].
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
