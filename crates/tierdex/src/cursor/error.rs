//! The error for encoded blocks that cannot be decoded.

use crate::error::Error;
use tierdex_codec::{Codec, DecodeError};

/// The error for a block at offset `at` of `file` that `codec` cannot decode.
pub(super) fn decode_error(file: &str, at: u64, codec: Codec, error: DecodeError) -> Error {
    Error::corrupt(file, at, format!("block of codec {} cannot be decoded: {error}", codec.name()))
}
