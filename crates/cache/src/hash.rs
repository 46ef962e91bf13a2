//! The hash function of the page table and of the ghost table of S3-FIFO.

/// The finalizer of SplitMix64: each bit of the result depends on all bits of `number`.
pub(crate) fn mix_bits(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
