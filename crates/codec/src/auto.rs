//! The cheapest of several forms, block by block.
//!
//! ```text
//! [id] the block as the codec of that id writes it
//! ```
//!
//! All forms take document ids and the id before them. The lengths are exact, so no other form would be
//! shorter; among equals it is the one that is decoded faster, which is the earlier in [`FORMS`].

use crate::delta::Step;
use crate::kernel::Gaps;
use crate::{Codec, DecodeError, Kernel, bitmap, bp256, pfor, raw, streamvbyte};

/// The forms, in the order of their speed of decoding by vector instructions: nothing to do, bits at fixed places,
/// bytes whose places depend on those before, bits one by one, and bits that are patched. (One value at a time,
/// the third would be the last.) The order decides what is written, so it is the same for every kernel.
const FORMS: [Codec; 5] =
    [Codec::Raw, Codec::Bp256Delta, Codec::StreamVByteDelta, Codec::Bitmap, Codec::Pfor256Delta];

/// The most bytes of `n` values: a raw block.
pub(crate) fn max_len(n: usize) -> usize {
    if n == 0 { 0 } else { 1 + raw::max_len(n) }
}

/// Appends `values`, of which there are 1 to 256.
pub(crate) fn encode(kernel: Kernel, values: &[u32], prev: u32, out: &mut Vec<u8>) {
    let form = choose(kernel, values, prev);
    out.push(form.id());
    form.encode_with(kernel, values, prev, out);
}

/// The form of the shortest block.
fn choose(kernel: Kernel, values: &[u32], prev: u32) -> Codec {
    let mut rooms = [Gaps::new(), Gaps::new()];
    let [gaps, less_one] = rooms.each_mut();
    let gaps = kernel.gaps(values, prev, Step::Zero as u32, gaps);
    let less_one = kernel.gaps(values, prev, Step::One as u32, less_one);
    let len = |form: &Codec| match form {
        Codec::Bp256Delta => bp256::block_len(less_one),
        Codec::StreamVByteDelta => streamvbyte::block_len(gaps),
        Codec::Bitmap => bitmap::block_len(values, prev),
        Codec::Pfor256Delta => pfor::block_len(kernel, less_one),
        _ => raw::max_len(values.len()),
    };
    FORMS.into_iter().min_by_key(len).unwrap_or(Codec::Raw)
}

/// Reads `out.len()` values, 1 to 256; returns the bytes consumed.
pub(crate) fn decode(kernel: Kernel, bytes: &[u8], prev: u32, out: &mut [u32]) -> Result<usize, DecodeError> {
    let (form, block) = split(bytes)?;
    Ok(1 + form.decode_with(kernel, block, prev, out)?)
}

/// Bytes of the block of `n` > 0 values at the front of `bytes`.
pub(crate) fn encoded_len(kernel: Kernel, bytes: &[u8], n: usize) -> Result<usize, DecodeError> {
    let (form, block) = split(bytes)?;
    Ok(1 + form.encoded_len_with(kernel, block, n)?)
}

/// The form and what follows. The id of no form is `Invalid`.
pub(crate) fn split(bytes: &[u8]) -> Result<(Codec, &[u8]), DecodeError> {
    let (id, block) = bytes.split_first().ok_or(DecodeError::NotEnough)?;
    let form = FORMS.into_iter().find(|form| form.id() == *id).ok_or(DecodeError::Invalid)?;
    Ok((form, block))
}
