//! Reads the last part of a file, its tail, with numbers that locate the other parts.

use crate::error::{Error, Result};
use tierdex_io::SealedFile;

/// Reads the last `N` 64-bit integers of a file.
pub(super) fn read_tail<const N: usize>(file: &SealedFile) -> Result<[u64; N]> {
    let end = file.payload().end;
    let at = end.checked_sub(8 * N as u64).filter(|&at| at >= file.payload().start);
    let at = at.ok_or_else(|| Error::corrupt(file.name(), end, "too short for its tail"))?;
    let bytes = file.read(at, 8 * N)?;
    let mut numbers = [0; N];
    for (number, bytes) in numbers.iter_mut().zip(bytes.chunks_exact(8)) {
        *number = u64::from_le_bytes(*bytes.first_chunk().expect("eight bytes"));
    }
    Ok(numbers)
}
