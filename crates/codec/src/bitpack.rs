//! Bit packing: each value of a block takes the same number of bits, 0 to 32. There are two layouts.
//!
//! - *Horizontal*, any number of values: value `k` occupies bits `k*w .. k*w+w` of one stream, least
//!   significant bit first, bytes in order. The unused high bits of the last byte are written as zero and
//!   ignored by readers: TurboPFor leaves them undefined.
//! - *Vertical*, 256 values: value `k` is the `k div 8`-th value of lane `k mod 8`. Each lane is a
//!   horizontal stream of 32 values, so `w` words of 32 bits; word `r` of lane `l` is at byte `4 * (8*r +
//!   l)`. A row of eight words is one 256-bit register.
//!
//! Both take `ceil(n*w / 8)` bytes: the length does not depend on the [`Layout`]. Source: Lemire, Boytsov,
//! "Decoding billions of integers per second through vectorization".

/// Maximum width of a value in bits.
pub(crate) const WIDTH_MAX: u32 = u32::BITS;

/// The order of the packed bits of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Horizontal for any number of values.
    Horizontal,
    /// Vertical for 256 values, horizontal for fewer.
    Vertical,
}

/// Bytes of `n` values at `width` bits, in either layout.
pub(crate) fn packed_len(n: usize, width: u32) -> usize {
    (n * width as usize).div_ceil(8)
}

/// The bit width of the widest value.
pub(crate) fn width_of_all(values: &[u32]) -> u32 {
    WIDTH_MAX - values.iter().fold(0, |all, value| all | value).leading_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BLOCK, Kernel, kernel::Packed};

    fn pack(values: &[u32], width: u32, layout: Layout, out: &mut Vec<u8>) {
        Kernel::SCALAR.pack(values, width, layout, out);
    }

    fn unpack(bytes: &[u8], width: u32, layout: Layout, out: &mut [u32]) {
        let packed = Packed { bytes, width, layout, patch: None, after: None };
        Kernel::SCALAR.unpack(&packed, out);
    }

    /// `n` different values of up to `width` bits; the first is the largest.
    fn test_values(n: usize, width: u32) -> Vec<u32> {
        let low = low_bits(width);
        (0..n as u32)
            .map(|k| k.wrapping_mul(0x9e37_79b9).rotate_left(k) ^ u32::MAX)
            .map(|v| v & low)
            .collect()
    }

    fn low_bits(width: u32) -> u32 {
        u32::MAX.checked_shr(WIDTH_MAX - width).unwrap_or(0)
    }

    /// Packs one bit at a time, as the layouts are defined: each lane is a stream of every `lanes`-th value.
    fn pack_by_definition(values: &[u32], width: u32, lanes: usize) -> Vec<u8> {
        let mut bytes = vec![0; packed_len(values.len(), width)];
        for (k, value) in values.iter().enumerate() {
            for bit in 0..width as usize {
                let in_lane = k / lanes * width as usize + bit;
                let byte = if lanes == 1 {
                    in_lane / 8
                } else {
                    4 * (in_lane / 32 * lanes + k % lanes) + in_lane % 32 / 8
                };
                bytes[byte] |= ((value >> bit & 1) as u8) << (in_lane % 8);
            }
        }
        bytes
    }

    #[test]
    fn horizontal_is_one_bit_stream_at_every_width_and_length() {
        for width in 0..=WIDTH_MAX {
            for n in 0..=BLOCK {
                let (values, mut packed, mut back) = (test_values(n, width), Vec::new(), vec![7; n]);
                pack(&values, width, Layout::Horizontal, &mut packed);
                assert_eq!(packed, pack_by_definition(&values, width, 1), "{n} at {width}");
                unpack(&packed, width, Layout::Horizontal, &mut back);
                assert_eq!(back, values, "{n} at {width}");
            }
        }
    }

    #[test]
    fn vertical_is_eight_bit_streams_at_every_width() {
        for width in 0..=WIDTH_MAX {
            let (values, mut packed, mut back) = (test_values(BLOCK, width), Vec::new(), [7; BLOCK]);
            pack(&values, width, Layout::Vertical, &mut packed);
            assert_eq!(packed, pack_by_definition(&values, width, 8), "{width}");
            unpack(&packed, width, Layout::Vertical, &mut back);
            assert_eq!(back[..], values, "{width}");
        }
    }

    #[test]
    fn packing_drops_the_high_bits() {
        for n in [1, 31, 32, 33, 255, 256] {
            for width in 0..=WIDTH_MAX {
                let (mut packed, mut back) = (Vec::new(), vec![7; n]);
                pack(&vec![u32::MAX; n], width, Layout::Vertical, &mut packed);
                unpack(&packed, width, Layout::Vertical, &mut back);
                assert_eq!(back, vec![low_bits(width); n], "{n} at {width}");
            }
        }
    }

    #[test]
    fn padding_bits_are_ignored() {
        let (mut packed, mut back) = (Vec::new(), [7; 4]);
        pack(&[1, 2, 3, 4], 3, Layout::Vertical, &mut packed);
        assert_eq!(packed, [0xd1, 0x08]);
        packed[1] |= 0xf0;
        unpack(&packed, 3, Layout::Vertical, &mut back);
        assert_eq!(back, [1, 2, 3, 4]);
    }

    #[test]
    fn width_of_all_is_the_width_of_the_widest_value() {
        assert_eq!(width_of_all(&[1, u32::MAX]), 32);
        assert_eq!(width_of_all(&[0, 5, 2]), 3);
        assert_eq!(width_of_all(&[0, 0]), 0);
    }

    #[test]
    fn the_example_of_the_vertical_layout_is_packed() {
        let mut packed = Vec::new();
        pack(&(0..256).collect::<Vec<_>>(), 8, Layout::Vertical, &mut packed);
        assert_eq!(packed[..12], [0x00, 0x08, 0x10, 0x18, 0x01, 0x09, 0x11, 0x19, 0x02, 0x0a, 0x12, 0x1a]);
    }
}
