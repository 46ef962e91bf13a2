//! Differences, prefix sums, and blocks that are too short for a peer.

use tierdex::codec::{Codec, Kernel};
use tierdex_bench::codecs::ValueKind;

/// Kernel name of a peer that selects its instructions itself. Two peers are slower (`held back`) unless the
/// compiler may assume the instructions (`.cargo/config.toml`).
pub const OWN: &str =
    if cfg!(target_feature = "avx2") || !cfg!(target_arch = "x86_64") { "own" } else { "held back" };

/// The value before a block; 0 before the first id, because peers encode it as a difference from 0.
pub fn initial(prev: u32) -> u32 {
    if prev == u32::MAX { 0 } else { prev }
}

/// Differences of neighbours, the first from `prev`.
pub fn differences(values: &[u32], prev: u32, out: &mut Vec<u32>) {
    out.clear();
    out.extend(values.first().map(|first| first.wrapping_sub(prev)));
    out.extend(values.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])));
}

/// Sums of differences from `prev` on.
pub fn sums(differences: &[u32], prev: u32, out: &mut [u32]) {
    let mut sum = prev;
    for (value, difference) in out.iter_mut().zip(differences) {
        sum = sum.wrapping_add(*difference);
        *value = sum;
    }
}

/// Encodes a block that is too short for a peer.
pub fn encode_short(kind: ValueKind, values: &[u32], prev: u32, out: &mut Vec<u8>) {
    short(kind).encode_with(Kernel::SCALAR, values, prev, out);
}

/// Decodes a block that is too short for a peer.
pub fn decode_short(kind: ValueKind, bytes: &[u8], prev: u32, out: &mut [u32]) -> Option<usize> {
    short(kind).decode_with(Kernel::SCALAR, bytes, prev, out).ok()
}

fn short(kind: ValueKind) -> Codec {
    match kind {
        ValueKind::Ids => Codec::VByteDelta,
        ValueKind::Frequencies => Codec::VByte,
    }
}
