//! JSON bodies as values, with bounds on their depth and their number. Members that are named twice or are
//! null are errors.

use super::error::parsing_error;
use crate::api_error::ApiError;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::cell::Cell;
use std::fmt;

/// Values inside one another, and values of a body, at most. A value takes about 100 bytes.
pub(super) const JSON_DEPTH_MAX: usize = 100;
const JSON_VALUES_MAX: usize = 16_384;

/// Parses a JSON value.
pub(super) fn parse_json(bytes: &[u8]) -> Result<Value, ApiError> {
    let mut parser = serde_json::Deserializer::from_slice(bytes);
    let left = Cell::new(JSON_VALUES_MAX);
    let parsed = BoundedValue { left: &left, depth: 0 }.deserialize(&mut parser);
    let parsed = parsed.and_then(|value| parser.end().map(|()| value));
    parsed.map_err(|error| parsing_error(format!("body: {error}")))
}

/// Reads a value and those inside it.
#[derive(Clone, Copy)]
struct BoundedValue<'c> {
    left: &'c Cell<usize>,
    depth: usize,
}

impl BoundedValue<'_> {
    fn inner<E: Error>(self) -> Result<Self, E> {
        if self.depth == JSON_DEPTH_MAX {
            return Err(E::custom(format!("more than {JSON_DEPTH_MAX} values inside one another")));
        }
        Ok(BoundedValue { depth: self.depth + 1, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for BoundedValue<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let left = self.left.get().checked_sub(1);
        let left = left.ok_or_else(|| D::Error::custom(format!("more than {JSON_VALUES_MAX} values")))?;
        self.left.set(left);
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for BoundedValue<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        // It would be taken for a member that is missing.
        Err(E::custom("null is not the value of any member"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inner = self.inner()?;
        let mut values = Vec::new();
        while let Some(value) = items.next_element_seed(inner)? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let inner = self.inner()?;
        let mut values = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value_seed(inner)?;
            if values.contains_key(&name) {
                return Err(A::Error::custom(format!("[{}] is named twice", name.escape_debug())));
            }
            values.insert(name, value);
        }
        Ok(Value::Object(values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_bounded_and_members_distinct() {
        let text = r#"{"a":[1,-2,0.5,"x",true],"b":{}}"#;
        assert_eq!(parse_json(text.as_bytes()).unwrap().to_string(), text);
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse_json(nested(JSON_DEPTH_MAX).as_bytes()).is_ok());
        let many = |count: usize| format!("[{}1]", "1,".repeat(count - 1));
        assert!(parse_json(many(JSON_VALUES_MAX - 1).as_bytes()).is_ok());
        for (text, message) in [
            (nested(JSON_DEPTH_MAX + 1), "inside one another"),
            (many(JSON_VALUES_MAX), "more than 16384 values"),
            (r#"{"query":null}"#.to_string(), "null is not"),
            (r#"{"a":1,"a":1}"#.to_string(), "[a] is named twice"),
            ("{} {}".to_string(), "trailing characters"),
            (String::new(), "EOF"),
        ] {
            let error = parse_json(text.as_bytes()).unwrap_err();
            assert!(error.message.contains(message), "{}", error.message);
        }
    }
}
