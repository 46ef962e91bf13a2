//! Decoding errors.

use std::fmt;

/// A result of decoding.
pub type Result<T, E = DecodeError> = std::result::Result<T, E>;

/// Why a block could not be decoded: the bytes are damaged or incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DecodeError {
    /// The block is longer than the bytes.
    Truncated,
    /// No encoder writes these bytes.
    Invalid,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DecodeError::Truncated => "the block goes on past the end of its bytes",
            DecodeError::Invalid => "the bytes are not a block of this codec",
        })
    }
}

impl std::error::Error for DecodeError {}
