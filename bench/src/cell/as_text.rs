//! Values of the engine in JSON, in the form in which flags write them.

use serde::{Deserialize, Deserializer, de::Error};
use std::{fmt::Display, str::FromStr};
use tierdex::io::Size;

/// Parses the text of a value.
pub(super) fn value<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    String::deserialize(from)?.parse().map_err(D::Error::custom)
}

/// Parses the text of a value, or null.
pub(super) fn option<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
}

/// Parses a size in bytes, such as `50M`, or null.
pub(super) fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    match option(from)? {
        None => Ok(None),
        Some(Size::Bytes(bytes)) => Ok(Some(bytes)),
        Some(size) => Err(D::Error::custom(format!("`{size}` is not a size in bytes, such as 50M"))),
    }
}
