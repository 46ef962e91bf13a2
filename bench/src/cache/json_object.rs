//! Reads members of JSON objects.

use crate::{Error, Result};
use serde_json::Value;
use std::str::FromStr;

/// Typed access to the members of a JSON object.
pub(super) struct JsonObject<'a>(pub(super) &'a Value);

impl<'a> JsonObject<'a> {
    pub(super) fn number(&self, name: &str) -> Result<u64> {
        self.0[name].as_u64().ok_or_else(|| wrong(name))
    }

    pub(super) fn float(&self, name: &str) -> Result<f64> {
        self.0[name].as_f64().ok_or_else(|| wrong(name))
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool> {
        self.0[name].as_bool().ok_or_else(|| wrong(name))
    }

    pub(super) fn text(&self, name: &str) -> Result<&'a str> {
        self.0[name].as_str().ok_or_else(|| wrong(name))
    }

    pub(super) fn list(&self, name: &str) -> Result<&'a [Value]> {
        self.0[name].as_array().map(Vec::as_slice).ok_or_else(|| wrong(name))
    }

    pub(super) fn parse<T: FromStr>(&self, name: &str) -> Result<T> {
        self.text(name)?.parse().map_err(|_| wrong(name))
    }

    /// A member that may be null.
    pub(super) fn optional<T: FromStr>(&self, name: &str) -> Result<Option<T>> {
        if self.0[name].is_null() { Ok(None) } else { self.parse(name).map(Some) }
    }

    pub(super) fn texts(&self, list: &Value) -> Result<Vec<String>> {
        let texts = list.as_array().into_iter().flatten();
        texts.map(|text| text.as_str().map(str::to_string).ok_or_else(|| wrong("string"))).collect()
    }
}

/// The error of a missing or malformed member.
pub(super) fn wrong(name: &str) -> Error {
    Error::Usage(format!("`{name}` is missing or has the wrong type"))
}
