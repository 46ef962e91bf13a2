//! Numbers of bytes in JSON, as sizes: `50M`.

use crate::cell::as_text::optional;
use serde::{Deserializer, Serializer, de::Error};
use tierdex::io::Size;

/// Writes a number of bytes as a size.
pub(super) fn serialize<S: Serializer>(value: &Option<u64>, to: S) -> Result<S::Ok, S::Error> {
    optional::serialize(&value.map(Size::Bytes), to)
}

/// Parses a size in bytes, or null.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    match optional::deserialize(from)? {
        None => Ok(None),
        Some(Size::Bytes(bytes)) => Ok(Some(bytes)),
        Some(size) => Err(D::Error::custom(format!("`{size}` is not a size in bytes, such as 50M"))),
    }
}
