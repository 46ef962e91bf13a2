//! Masked VByte as its paper has it, beside the scalar decoder that the paper compares it with.
//!
//! Differences are not less one. The vectorized decoder is in `masked_vbyte_sse`; the last values of a block,
//! and damaged bytes, are left to the scalar one. Source: Plaisance, Kurz, Lemire: Vectorized VByte Decoding,
//! sections 1 and 2.

#[cfg(target_arch = "x86_64")]
use super::masked_vbyte_sse as sse;
use crate::codecs::{contender::Contender, contender::ContenderInfo, list_group::ValueKind};

/// Masked VByte over differences of document ids; without `simd` the scalar decoder.
pub(super) struct MaskedVbyte {
    #[cfg(target_arch = "x86_64")]
    simd: Option<pulp::x86::V2>,
}

/// Number of values of a block: as many as the buffer of the paper has.
const BLOCK_VALUES: usize = 4096;

impl MaskedVbyte {
    /// The scalar decoder, and the vectorized one if the processor has SSE4.1.
    pub(super) fn all() -> Vec<MaskedVbyte> {
        #[cfg(target_arch = "x86_64")]
        let all = {
            let simd = pulp::x86::V2::try_new();
            let vector = simd.map(|simd| MaskedVbyte { simd: Some(simd) });
            [MaskedVbyte { simd: None }].into_iter().chain(vector).collect()
        };
        #[cfg(not(target_arch = "x86_64"))]
        let all = vec![MaskedVbyte {}];
        all
    }
}

impl Contender for MaskedVbyte {
    type Word = u8;

    fn info(&self) -> ContenderInfo {
        #[cfg(target_arch = "x86_64")]
        let kernel = if self.simd.is_some() { "sse4.1" } else { "scalar" };
        #[cfg(not(target_arch = "x86_64"))]
        let kernel = "scalar";
        ContenderInfo { codec: "masked-vbyte".to_string(), kernel, kind: Some(ValueKind::Ids) }
    }

    fn block(&self) -> usize {
        BLOCK_VALUES
    }

    fn encode(&self, values: &[u32], mut prev: u32, out: &mut Vec<u8>) {
        for &value in values {
            let mut rest = value.wrapping_sub(prev);
            while rest >= 0x80 {
                out.push(rest as u8 | 0x80);
                rest >>= 7;
            }
            out.push(rest as u8);
            prev = value;
        }
    }

    #[inline]
    fn decode(&self, bytes: &[u8], prev: u32, out: &mut [u32]) -> Option<usize> {
        #[cfg(target_arch = "x86_64")]
        if let Some(simd) = self.simd {
            let (at, values) = sse::decode(simd, bytes, prev, out);
            let last = values.checked_sub(1).map_or(prev, |last| out[last]);
            return Some(at + decode_scalar(&bytes[at..], last, &mut out[values..])?);
        }
        decode_scalar(bytes, prev, out)
    }
}

/// Decodes value by value (algorithm 1). `None` if the bytes end early, or a value has more than 32 bits.
fn decode_scalar(bytes: &[u8], mut prev: u32, out: &mut [u32]) -> Option<usize> {
    let mut at = 0;
    for value in out {
        let (mut difference, mut shift) = (0, 0);
        loop {
            let byte = *bytes.get(at)?;
            at += 1;
            difference |= u32::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                if shift == 28 && byte > 0x0F {
                    return None;
                }
                break;
            }
            shift += 7;
            if shift > 28 {
                return None;
            }
        }
        prev = prev.wrapping_add(difference);
        *value = prev;
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    /// Increasing values whose differences have the given numbers of bits in turn.
    fn list(random: &mut Random, widths: &[u32], count: usize) -> Vec<u32> {
        let mut value = u32::MAX;
        let next = |at: usize| {
            let difference = (random.bits() >> (64 - widths[at % widths.len()])) as u32;
            value = value.wrapping_add(difference);
            value
        };
        (0..count).map(next).collect()
    }

    #[test]
    fn lists_of_all_lengths_and_widths_are_decoded() {
        let mut random = Random::new(1);
        let widths: [&[u32]; 9] =
            [&[1], &[7], &[8, 7], &[14], &[14, 3, 21], &[21, 7], &[28], &[32, 4, 15], &[32]];
        for codec in MaskedVbyte::all() {
            for (widths, count) in widths.iter().flat_map(|widths| (1..300).map(move |count| (widths, count)))
            {
                let values = list(&mut random, widths, count);
                let mut bytes = Vec::new();
                codec.encode(&values, u32::MAX, &mut bytes);
                let encoded = bytes.len();
                // Exactly the bytes of the list, and with bytes of others behind it.
                for more in [0, 1, 15, 200] {
                    bytes.resize(encoded + more, 0xFF);
                    let mut back = vec![0; count];
                    let consumed = codec.decode(&bytes, u32::MAX, &mut back);
                    assert_eq!((consumed, &back), (Some(encoded), &values), "{widths:?} {:?}", codec.info());
                }
            }
        }
    }

    #[test]
    fn vbyte_of_the_paper() {
        let codec = &MaskedVbyte::all()[0];
        for (value, expected) in
            [(1, &[1][..]), (128, &[0x80, 1]), (512, &[0x80, 4]), (16384, &[0x80, 0x80, 1])]
        {
            let mut bytes = Vec::new();
            codec.encode(&[value], 0, &mut bytes);
            assert_eq!(bytes, expected);
        }
    }

    #[test]
    fn short_and_damaged_inputs_are_rejected_without_a_panic() {
        let mut random = Random::new(2);
        for codec in MaskedVbyte::all() {
            let values = list(&mut random, &[7, 20, 30], 200);
            let mut bytes = Vec::new();
            codec.encode(&values, 5, &mut bytes);
            for len in 0..bytes.len() {
                assert_eq!(codec.decode(&bytes[..len], 5, &mut [0; 200]), None);
            }
            assert_eq!(codec.decode(&[0xFF; 300], 5, &mut [0; 100]), None);
            for _ in 0..500 {
                let wild: Vec<u8> = (0..random.below(200)).map(|_| random.bits() as u8).collect();
                // Any result is fine, as long as it is one.
                let _ = codec.decode(&wild, 0, &mut [0; 150]);
            }
        }
    }
}
