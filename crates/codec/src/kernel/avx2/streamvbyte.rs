//! `StreamVByte`: eight values, two control bytes, at a time.

use super::super::scalar;
use super::memory::{LANES, load_half, store_all};
use super::sums::PrefixSums;
use core::arch::x86_64::*;

/// [`crate::Kernel::streamvbyte_data_len`].
#[target_feature(enable = "popcnt")]
pub(in crate::kernel) fn streamvbyte_data_len(controls: &[u8], n: usize) -> usize {
    scalar::streamvbyte::streamvbyte_data_len(controls, n)
}

decode_or_sum! {
    /// [`crate::Kernel::streamvbyte_decode`].
    "avx2,bmi1,bmi2,lzcnt,popcnt",
    fn streamvbyte_decode(controls, data) -> ()
}

/// Shuffles four values out of 16 bytes at a time. The last values, which may have fewer bytes after them,
/// are read one by one.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn decode<const SUM: bool>(controls: &[u8], mut data: &[u8], mut prev: u32, out: &mut [u32]) {
    let mut sums = PrefixSums::after(prev);
    let mut done = 0;
    for (pair, out) in controls.as_chunks::<2>().0.iter().zip(out.as_chunks_mut::<LANES>().0) {
        let [first, second] = pair.map(|control| &QUADS[usize::from(control)]);
        let next = usize::from(first.len);
        let (Some(low), Some(high)) = (data.first_chunk(), data.get(next..next + 16)) else { break };
        let high = high.first_chunk().expect("16 bytes");
        let bytes = _mm256_set_m128i(load_half(high), load_half(low));
        let shuffle = _mm256_set_m128i(load_half(&second.shuffle), load_half(&first.shuffle));
        let mut values = _mm256_shuffle_epi8(bytes, shuffle);
        if SUM {
            values = sums.next(values);
        }
        store_all(out, values);
        data = &data[next + usize::from(second.len)..];
        done += LANES;
    }
    if SUM && done > 0 {
        prev = out[done - 1];
    }
    scalar::streamvbyte::streamvbyte_decode(
        &controls[done / 4..],
        data,
        SUM.then_some(prev),
        &mut out[done..],
    );
}

/// The decoding of one control byte.
struct Quad {
    /// The source of each of 16 bytes, 0x80 for a zero byte.
    shuffle: [u8; 16],
    /// Bytes of the four values.
    len: u8,
}

static QUADS: [Quad; 256] = {
    let mut quads = [const { Quad { shuffle: [0x80; 16], len: 0 } }; 256];
    let mut k = 0;
    while k < 256 * 4 {
        let (control, value) = (k / 4, k % 4);
        let quad = &mut quads[control];
        let mut byte = 0;
        while byte <= control >> (2 * value) & 3 {
            quad.shuffle[4 * value + byte] = quad.len;
            quad.len += 1;
            byte += 1;
        }
        k += 1;
    }
    quads
};
