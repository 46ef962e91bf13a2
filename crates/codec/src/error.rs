//! Why bytes could not be decoded.

use std::fmt;

/// Why a block could not be decoded. Either way the bytes are not what the encoder wrote, or not all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DecodeError {
    /// The block goes on past the end of the bytes.
    NotEnough,
    /// The bytes are of a shape that no encoder writes.
    Invalid,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DecodeError::NotEnough => "the block goes on past the end of its bytes",
            DecodeError::Invalid => "the bytes are not a block of this codec",
        })
    }
}

impl std::error::Error for DecodeError {}
