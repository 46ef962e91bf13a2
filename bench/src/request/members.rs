//! Parses the parameters of an experiment, which are members of a JSON object.

use crate::{Error, Result};
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, DeserializeSeed, Error as _, IntoDeserializer, MapAccess};
use serde_json::{Map, Value, map::IntoIter};
use std::fmt::Display;

/// The parameters of an experiment by name.
pub type Members = Map<String, Value>;

/// Parses parameters. The error names the member that is wrong.
///
/// # Errors
/// [`Error::Usage`] if a member is unknown, missing or wrong.
pub(super) fn parse_members<T: DeserializeOwned>(members: Members) -> Result<T> {
    let members = MemberAccess { members: members.into_iter(), value: None };
    T::deserialize(MapAccessDeserializer::new(members)).map_err(|error| usage(&error))
}

/// A usage error with a text in one line.
pub(super) fn usage(why: &dyn Display) -> Error {
    // A space in place of each line break and each sequence of spaces.
    Error::Usage(why.to_string().split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Members that add their name to errors of their values.
struct MemberAccess {
    members: IntoIter,
    /// The member whose name was returned last.
    value: Option<(String, Value)>,
}

impl<'de> MapAccess<'de> for MemberAccess {
    type Error = serde_json::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> std::result::Result<Option<K::Value>, serde_json::Error> {
        let Some((name, value)) = self.members.next() else { return Ok(None) };
        self.value = Some((name.clone(), value));
        seed.deserialize(name.into_deserializer()).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> std::result::Result<V::Value, serde_json::Error> {
        let (name, value) = self.value.take().unwrap_or_default();
        let parsed = seed.deserialize(value);
        parsed.map_err(|error| serde_json::Error::custom(format!("`{name}`: {error}")))
    }
}
