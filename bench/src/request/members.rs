//! Parses the parameters of an experiment, which are members of a JSON object.

use crate::generate::{Collection, Flags};
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

/// The generated collection of these sizes.
///
/// # Errors
/// [`Error::Usage`] if there is none.
pub(super) fn collection_of(flags: &Flags) -> Result<Collection> {
    Collection::new(flags).map_err(|error| usage(&error))
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "kebab-case", deny_unknown_fields)]
    struct Parameters {
        one_number: u32,
        #[serde(default)]
        text: Option<String>,
    }

    fn parse(members: Value) -> Result<Parameters> {
        let Value::Object(members) = members else { panic!("not an object") };
        parse_members(members)
    }

    #[test]
    fn the_wrong_member_is_named_in_one_line() {
        let parsed = parse(json!({"text": "a", "one-number": 7})).unwrap();
        assert_eq!((parsed.one_number, parsed.text.as_deref()), (7, Some("a")));
        assert_eq!(parse(json!({"one-number": 7, "text": null})).unwrap().text, None);
        for (members, words) in [
            (json!({}), "missing field `one-number`"),
            (json!({"one-number": -1}), "`one-number`: invalid value"),
            (json!({"one-number": 1, "text": {}}), "`text`: invalid type"),
            (json!({"one-number": 1, "a\nb": 1}), "unknown field `a b`, expected `one-number` or `text`"),
        ] {
            let error = parse(members).unwrap_err();
            assert!(matches!(&error, Error::Usage(why) if why.contains(words)), "{error}");
        }
    }
}
