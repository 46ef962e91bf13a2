//! Documents from Python: mappings, and the rules for the names of their members.
//!
//! - An id is a `str` or an `int`, not empty and without control characters and line separators.
//! - Title and text are `str`; one that is `None`, `NaN` or `pandas.NA` is empty, and so is a missing title.
//! - There may be no text if a document has a title and nothing else: otherwise its member has another name,
//!   and the document is rejected.
//! - Lone surrogates and bytes that are not UTF-8 become U+FFFD in title and text, and are counted.
//! - Other members are ignored, and their names noted.

use crate::errors::usage_error;
use crate::pieces::{Piece, is_missing};
use pyo3::types::{PyDict, PyString};
use pyo3::{intern, prelude::*};
use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// Maximum number of distinct names of ignored members that a writer remembers, to warn once for each.
const IGNORED_NAMES_MAX: usize = 100;
/// Maximum number of names in a message.
const SHOWN_NAMES_MAX: usize = 10;

/// Reads documents whose members id, title and text have these names.
pub struct DocumentReader {
    /// Names of the members that hold id, title and text.
    pub names: [String; 3],
    keys: [Py<PyString>; 3],
    /// Maximum length of title and text together, in bytes.
    pub bytes_max: usize,
}

/// The values of the members of one document.
pub struct DocumentMembers<'py> {
    id: Bound<'py, PyAny>,
    title: Option<Bound<'py, PyAny>>,
    text: Option<Bound<'py, PyAny>>,
    /// Names of the members that are not indexed.
    pub ignored: Vec<String>,
}

/// Names of members that a writer has ignored so far, so that it warns once for each.
#[derive(Default)]
pub struct IgnoredNames(Mutex<HashSet<String>>);

impl IgnoredNames {
    /// Adds names; returns those that were not known yet.
    pub fn insert_new(&self, names: Vec<String>) -> Vec<String> {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = |name: &String| noted.len() < IGNORED_NAMES_MAX && noted.insert(name.clone());
        names.into_iter().filter(is_new).collect()
    }
}

impl DocumentReader {
    /// A reader of documents with these members (id, title, text), of at most `bytes_max` bytes of title and
    /// text.
    pub fn new(py: Python<'_>, names: [&str; 3], bytes_max: usize) -> DocumentReader {
        let keys = names.map(|name| PyString::new(py, name).unbind());
        DocumentReader { names: names.map(str::to_string), keys, bytes_max }
    }

    /// The members of a document; `number` is its number in the input, for messages. Calls methods of the
    /// document, which may do anything.
    pub fn read_members<'py>(
        &self,
        document: &Bound<'py, PyAny>,
        number: u64,
    ) -> PyResult<DocumentMembers<'py>> {
        let py = document.py();
        let keys = self.keys.each_ref().map(|key| key.bind(py));
        let mut ignored = Vec::new();
        let [id, title, text] = if let Ok(members) = document.cast::<PyDict>() {
            let [id, title, text] = keys.map(|key| members.get_item(key));
            let values = [id?, title?, text?];
            if members.len() > values.iter().flatten().count() {
                ignored = self.other_names(members.keys().as_any())?;
            }
            values
        } else if document.hasattr(intern!(py, "keys"))? {
            ignored = self.other_names(&document.call_method0(intern!(py, "keys"))?)?;
            let [id, title, text] = keys.map(|key| match document.contains(key)? {
                true => document.get_item(key).map(Some),
                false => Ok(None),
            });
            [id?, title?, text?]
        } else {
            let kind = document.get_type().name()?;
            return Err(usage_error(py, format!("document {number} is a {kind}, not a dict")));
        };
        let Some(id) = id else {
            return Err(usage_error(py, format!("document {number} has no member {:?}", self.names[0])));
        };
        if text.is_none() {
            let has_title = title.as_ref().map(|title| is_missing(title)).transpose()? == Some(false);
            self.check_no_text(has_title, &ignored)
                .map_err(|what| usage_error(py, format!("document {number} {what}")))?;
        }
        Ok(DocumentMembers { id, title, text, ignored })
    }

    /// Appends a document to a piece; returns the number of its texts in which U+FFFD was put. After an
    /// error the piece is as it was before.
    pub fn append_document(
        &self,
        members: &DocumentMembers<'_>,
        number: u64,
        piece: &mut Piece,
    ) -> PyResult<u64> {
        let texts = [(&self.names[1], &members.title), (&self.names[2], &members.text)];
        piece.append_document(&members.id, texts, number, self.bytes_max)
    }

    /// The names in `keys` that this reader does not read.
    fn other_names(&self, keys: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
        let mut others = Vec::new();
        for key in keys.try_iter()? {
            let key = key?;
            let name = match key.cast::<PyString>() {
                Ok(key) => key.to_string_lossy().into_owned(),
                Err(_) => key.repr()?.to_string_lossy().into_owned(),
            };
            if !self.names.contains(&name) {
                others.push(name);
            }
        }
        Ok(others)
    }

    /// Whether a document or table without text has a title and no other member; otherwise what is wrong.
    pub fn check_no_text(&self, has_title: bool, others: &[String]) -> Result<(), String> {
        let text = &self.names[2];
        if let Some(first) = others.first() {
            return Err(format!(
                "has no {text:?}, but {}: if one of them is the text, name it, as in add_many(..., text={first:?})",
                quoted_names(others)
            ));
        }
        if !has_title {
            return Err(format!("has neither {text:?} nor {:?}", self.names[1]));
        }
        Ok(())
    }
}

/// Names for a message: quoted, and no more than a few.
pub fn quoted_names(names: &[String]) -> String {
    let mut shown: Vec<_> = names.iter().take(SHOWN_NAMES_MAX).map(|name| format!("{name:?}")).collect();
    if names.len() > SHOWN_NAMES_MAX {
        shown.push(format!("and {} more", names.len() - SHOWN_NAMES_MAX));
    }
    shown.join(", ")
}
