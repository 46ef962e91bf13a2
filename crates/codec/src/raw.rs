//! Uncompressed values: four bytes each, little-endian. The papers' uncompressed baseline.

use crate::{DecodeError, Result, kernel};

/// The length of a block of `n` values.
pub(crate) fn max_len(n: usize) -> usize {
    4 * n
}

/// Appends `values`, 4 bytes each.
pub(crate) fn encode(values: &[u32], out: &mut Vec<u8>) {
    out.extend(values.iter().flat_map(|value| value.to_le_bytes()));
}

/// Decodes `out.len()` values. Returns the bytes of the block.
pub(crate) fn decode(bytes: &[u8], out: &mut [u32]) -> Result<usize> {
    let len = encoded_len(bytes, out.len())?;
    for (value, word) in out.iter_mut().zip(bytes[..len].as_chunks::<4>().0) {
        *value = u32::from_le_bytes(*word);
    }
    Ok(len)
}

/// The `n` values of a block that is `bytes`, in place. `None` if they are not `u32` of this machine: not
/// aligned, or not little-endian.
pub(crate) fn in_place(bytes: &[u8], n: usize) -> Option<&[u32]> {
    kernel::words(bytes).filter(|values| values.len() == n)
}

/// The length of the block of `n` values at the front of `bytes`.
pub(crate) fn encoded_len(bytes: &[u8], n: usize) -> Result<usize> {
    let len = max_len(n);
    if bytes.len() < len { Err(DecodeError::Truncated) } else { Ok(len) }
}
