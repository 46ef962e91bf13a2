//! `StreamVByte` loops: four values per control byte.

use super::sums::prefix_sum;

/// Number of values of a control byte.
const QUAD_VALUES: usize = 4;

/// Number of bytes that are loaded to decode four values, which is their maximum length.
const QUAD_BYTES_MAX: usize = 16;

/// For each code, the bits of a loaded word that belong to the value.
const CODE_MASKS: [u32; 4] = [0xff, 0xffff, 0x00ff_ffff, u32::MAX];

/// Implements [`crate::Kernel::streamvbyte_encode`].
pub(crate) fn streamvbyte_encode(values: &[u32], controls: &mut [u8], data: &mut [u8]) -> usize {
    let mut len = 0;
    for (quad, control) in values.chunks(QUAD_VALUES).zip(controls) {
        for (k, value) in quad.iter().enumerate() {
            // Always a whole word; the next value overwrites the unused bytes.
            data[len..len + 4].copy_from_slice(&value.to_le_bytes());
            let code = code_of_value(*value);
            *control |= (code << (2 * k)) as u8;
            len += 1 + code;
        }
    }
    len
}

/// The code of a value: its length in bytes less 1.
fn code_of_value(value: u32) -> usize {
    [8, 16, 24].map(|bits| usize::from(value >> bits != 0)).iter().sum()
}

/// Implements [`crate::Kernel::streamvbyte_data_len`].
#[inline(always)]
pub(crate) fn streamvbyte_data_len(controls: &[u8], n: usize) -> usize {
    // The high bit of a code counts twice.
    let codes = |word: u64| word.count_ones() + (word & 0xaaaa_aaaa_aaaa_aaaa).count_ones();
    let (words, rest) = controls.as_chunks::<8>();
    let whole: u32 = words.iter().map(|word| codes(u64::from_le_bytes(*word))).sum();
    let last: u32 = rest.iter().map(|control| codes(u64::from(*control))).sum();
    n + (whole + last) as usize
}

/// Implements [`crate::Kernel::streamvbyte_decode`].
pub(crate) fn streamvbyte_decode(controls: &[u8], mut data: &[u8], after: Option<u32>, out: &mut [u32]) {
    for (quad, control) in out.chunks_mut(QUAD_VALUES).zip(controls) {
        let used =
            match (<&mut [u32; QUAD_VALUES]>::try_from(&mut *quad), data.first_chunk::<QUAD_BYTES_MAX>()) {
                (Ok(quad), Some(window)) => read_quad(*control, window, quad),
                _ => read_near_end(*control, data, quad),
            };
        data = &data[used..];
    }
    if let Some(prev) = after {
        prefix_sum(out, prev, 0);
    }
}

/// Reads four values as masked words; returns the bytes consumed.
#[inline(always)]
fn read_quad(control: u8, window: &[u8; QUAD_BYTES_MAX], quad: &mut [u32; QUAD_VALUES]) -> usize {
    let mut used = 0;
    for (k, value) in quad.iter_mut().enumerate() {
        let code = usize::from(control >> (2 * k) & 3);
        let word = [window[used], window[used + 1], window[used + 2], window[used + 3]];
        *value = u32::from_le_bytes(word) & CODE_MASKS[code];
        used += 1 + code;
    }
    used
}

/// [`read_quad`] for fewer than four values, or where whole words would reach past the end of the data.
fn read_near_end(control: u8, data: &[u8], quad: &mut [u32]) -> usize {
    let mut used = 0;
    for (k, value) in quad.iter_mut().enumerate() {
        let len = 1 + usize::from(control >> (2 * k) & 3);
        let bytes = &data[used..used + len];
        *value = bytes.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
        used += len;
    }
    used
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_readers_agree_on_every_control_byte() {
        let window: [u8; QUAD_BYTES_MAX] = std::array::from_fn(|k| 0x80 + k as u8);
        for control in 0..=u8::MAX {
            let (mut quad, mut same) = ([0; QUAD_VALUES], [0; QUAD_VALUES]);
            let used = read_quad(control, &window, &mut quad);
            assert_eq!(used, streamvbyte_data_len(&[control], QUAD_VALUES));
            assert_eq!(used, read_near_end(control, &window[..used], &mut same));
            assert_eq!(quad, same, "{control:#x}");
        }
    }
}
