//! `str` arguments: one with a lone surrogate is a `tierdex.UsageError`.

use crate::errors::usage_error;
use pyo3::{prelude::*, types::PyString};
use std::ops::Deref;

/// A `str` argument that is valid Unicode.
pub struct Text(String);

impl Text {
    /// The default of an argument.
    pub fn new(text: &str) -> Text {
        Text(text.to_string())
    }

    /// Converts into the string without a copy.
    pub fn into_string(self) -> String {
        self.0
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'py> FromPyObject<'_, 'py> for Text {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Text> {
        let py = object.py();
        let Ok(text) = object.cast::<PyString>() else {
            return Err(usage_error(py, format!("a str was expected, not a {}", object.get_type().name()?)));
        };
        match text.to_str() {
            Ok(text) => Ok(Text(text.to_string())),
            Err(_) => Err(usage_error(py, format!("{} has a lone surrogate", text.repr()?))),
        }
    }
}
