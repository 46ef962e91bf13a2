//! Documents from Python: mappings, and the rules for the names of their members.
//!
//! - An id is a `str` or an `int`, not empty and without control characters and line separators.
//! - A value is a `str`; `None`, `NaN` and `pandas.NA` are none. A list has several values.
//! - The name of a member may be a path with dots into mappings and lists of mappings. A member that has the
//!   whole name comes first.
//! - A document that has no member of any field is rejected: its members have other names. If the schema has
//!   the members title and text alone, there must be a text, unless a document has a title and nothing else.
//! - Lone surrogates and bytes that are not UTF-8 become U+FFFD in values, and are counted.
//! - Other members are stored as JSON if the schema says so; else they are ignored, and their names noted.

use crate::errors::{Failure, usage_error};
use crate::pieces::{NewDocument, Piece, is_list, is_missing};
use pyo3::types::{PyDict, PyString};
use pyo3::{intern, prelude::*};
use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use tierdex::schema::{Schema, Stored};

/// Maximum number of distinct names of ignored members that a writer remembers, to warn once for each.
const IGNORED_NAMES_MAX: usize = 100;
/// Maximum number of names in a message.
const SHOWN_NAMES_MAX: usize = 10;

/// Reads documents of a schema.
pub struct DocumentReader {
    /// The name of the id in documents.
    pub id: Name,
    /// The members of the schema, in its order.
    pub members: Vec<MemberName>,
    /// If the members of the schema are title and text: the numbers of these.
    title_and_text: Option<[usize; 2]>,
    /// Maximum length of the values of a document together, in bytes.
    pub bytes_max: usize,
    /// Makes JSON of what documents have beside their members, if the schema stores it.
    others: Option<Py<PyAny>>,
}

/// A name in documents.
pub struct Name {
    pub text: String,
    key: Py<PyString>,
}

/// The name of a member in documents.
pub struct MemberName {
    pub whole: Name,
    /// The parts of a name with dots; else empty.
    pub path: Vec<Name>,
    /// Whether a document that has the member is one of this schema.
    pub is_needed: bool,
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

impl Name {
    fn new(py: Python<'_>, text: &str) -> Name {
        Name { text: text.to_string(), key: PyString::new(py, text).unbind() }
    }
}

impl DocumentReader {
    /// A reader of documents whose id, and members `title` and `text`, have the given names.
    ///
    /// # Errors
    /// A name is given for a member that the schema does not have.
    pub fn new(
        py: Python<'_>,
        schema: &Schema,
        names: [&str; 3],
        bytes_max: usize,
    ) -> PyResult<DocumentReader> {
        let [id, title, text] = names;
        let renamed = [("title", title), ("text", text)];
        for (member, _) in renamed.iter().filter(|(member, name)| member != name) {
            schema.member_named(member).map_err(|error| Failure::from(error).into_exception(py))?;
        }
        let title_and_text = match (schema.members.len(), schema.member("title"), schema.member("text")) {
            (2, Some(title), Some(text)) => Some([title, text]),
            _ => None,
        };
        let is_needed = |number: usize, member: &String| match title_and_text {
            Some([_, text]) => number == text,
            None => schema.fields.iter().any(|field| field.members.contains(member)),
        };
        let name = |(number, member): (usize, &String)| {
            let renamed = renamed.iter().find(|(renamed, _)| renamed == member);
            let whole = renamed.map_or(member.as_str(), |(_, name)| name);
            let parts = whole.contains('.').then(|| whole.split('.').map(|part| Name::new(py, part)));
            MemberName {
                whole: Name::new(py, whole),
                path: parts.into_iter().flatten().collect(),
                is_needed: is_needed(number, member),
            }
        };
        let members: Vec<MemberName> = schema.members.iter().enumerate().map(name).collect();
        let others = match schema.stored {
            Stored::All => {
                let names = members.iter().map(|member| member.whole.text.as_str());
                let names: Vec<&str> = std::iter::once(id).chain(names).collect();
                Some(py.import("tierdex._others")?.getattr("Others")?.call1((names,))?.unbind())
            }
            _ => None,
        };
        Ok(DocumentReader { id: Name::new(py, id), members, title_and_text, bytes_max, others })
    }

    /// Appends a document to a piece, after `ignore` was called with the names of members that are ignored;
    /// `number` is its number in the input, for messages. Calls methods of the document, which may do
    /// anything. Returns the number of its values in which U+FFFD was put. After an error the piece is as it
    /// was before.
    pub fn append_document(
        &self,
        document: &Bound<'_, PyAny>,
        number: u64,
        piece: &mut Piece,
        ignore: impl FnOnce(Vec<String>) -> PyResult<()>,
    ) -> PyResult<u64> {
        let py = document.py();
        if !is_mapping(document)? {
            let kind = document.get_type().name()?;
            return Err(usage_error(py, format!("document {number} is a {kind}, not a dict")));
        }
        let Some(id) = look_up(document, &self.id)? else {
            return Err(usage_error(py, format!("document {number} has no member {:?}", self.id.text)));
        };
        let mut new = NewDocument::begin(piece, &id, number)?;
        let (mut is_sound, mut found) = (false, 1);
        for (at, member) in self.members.iter().enumerate() {
            let name = &member.whole.text;
            let has_member = match look_up(document, &member.whole)? {
                Some(value) => {
                    found += 1;
                    new.append_member(at, name, &value)?;
                    true
                }
                None => append_at_path(&mut new, document, &member.path, at, name)?,
            };
            is_sound |= has_member && member.is_needed;
        }
        let others = match document.cast::<PyDict>() {
            Ok(document) if document.len() <= found => Vec::new(),
            Ok(document) => self.other_names(document.keys().as_any())?,
            Err(_) => self.other_names(&document.call_method0(intern!(py, "keys"))?)?,
        };
        if !is_sound {
            let checked = match self.title_and_text {
                Some([title, _]) => {
                    let title = look_up(document, &self.members[title].whole)?;
                    let has_title = title.as_ref().map(is_missing).transpose()? == Some(false);
                    self.check_no_text(has_title, &others)
                }
                None => Err(self.no_member(&others)),
            };
            checked.map_err(|what| usage_error(py, format!("document {number} {what}")))?;
        }
        let others = match &self.others {
            // A member that is reached by a path may have others beside it.
            Some(make) if !others.is_empty() || self.members.iter().any(|member| !member.path.is_empty()) => {
                Some(make.bind(py).call1((document, number))?.cast_into::<PyString>()?)
            }
            Some(_) => None,
            None => {
                ignore(others)?;
                None
            }
        };
        new.finish(py, others.as_ref(), self.bytes_max)
    }

    /// The names in `keys` that this reader does not read.
    fn other_names(&self, keys: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
        let mut others = Vec::new();
        for key in keys.try_iter()? {
            let key = key?;
            let name = match key.cast::<PyString>() {
                Ok(key) => key.to_string_lossy(),
                Err(_) => key.repr()?.to_string_lossy().into_owned().into(),
            };
            if !self.reads(&name) {
                others.push(name.into_owned());
            }
        }
        Ok(others)
    }

    /// Whether this name of a document has the id, a member, or members inside of it.
    pub fn reads(&self, name: &str) -> bool {
        let is_root = |member: &MemberName| member.path.first().is_some_and(|root| root.text == name);
        name == self.id.text || self.members.iter().any(|member| member.whole.text == name || is_root(member))
    }

    /// The number of the title, if documents may have a title and nothing else.
    pub fn lone_title(&self) -> Option<usize> {
        self.title_and_text.map(|[title, _]| title)
    }

    /// What is wrong with a document or table without a member of any field.
    pub fn no_member(&self, others: &[String]) -> String {
        let needed = self.members.iter().filter(|member| member.is_needed);
        let needed: Vec<String> = needed.map(|member| member.whole.text.clone()).collect();
        let has = if others.is_empty() { String::new() } else { format!(", but {}", quoted_names(others)) };
        format!("has none of the indexed members {}{has}", quoted_names(&needed))
    }

    /// Whether a document or table without text has a title and no other member; otherwise what is wrong.
    pub fn check_no_text(&self, has_title: bool, others: &[String]) -> Result<(), String> {
        let Some([title, text]) = self.title_and_text else { return Ok(()) };
        let [title, text] = [title, text].map(|number| &self.members[number].whole.text);
        if let Some(first) = others.first() {
            return Err(format!(
                "has no {text:?}, but {}: if one of them is the text, name it, as in add_many(..., text={first:?})",
                quoted_names(others)
            ));
        }
        if !has_title {
            return Err(format!("has neither {text:?} nor {title:?}"));
        }
        Ok(())
    }
}

/// Appends the values at the end of a path into mappings and lists of mappings. Returns whether one of these
/// has the last name of the path.
fn append_at_path(
    new: &mut NewDocument<'_>,
    mapping: &Bound<'_, PyAny>,
    path: &[Name],
    member: usize,
    name: &str,
) -> PyResult<bool> {
    let Some((first, rest)) = path.split_first() else { return Ok(false) };
    let Some(value) = look_up(mapping, first)? else { return Ok(false) };
    if rest.is_empty() {
        new.append_member(member, name, &value)?;
        return Ok(true);
    }
    let mut append = |value: &Bound<'_, PyAny>| match is_mapping(value)? {
        true => append_at_path(new, value, rest, member, name),
        false if is_missing(value)? => Ok(false),
        false => Err(new.type_error(&first.text, value, "dict")?),
    };
    if !is_list(&value) {
        return append(&value);
    }
    let mut has_member = false;
    for value in value.try_iter()? {
        has_member |= append(&value?)?;
    }
    Ok(has_member)
}

fn is_mapping(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(value.is_instance_of::<PyDict>() || value.hasattr(intern!(value.py(), "keys"))?)
}

/// The value of a mapping with this name.
fn look_up<'py>(mapping: &Bound<'py, PyAny>, name: &Name) -> PyResult<Option<Bound<'py, PyAny>>> {
    let key = name.key.bind(mapping.py());
    match mapping.cast::<PyDict>() {
        Ok(dict) => dict.get_item(key),
        Err(_) if mapping.contains(key)? => mapping.get_item(key).map(Some),
        Err(_) => Ok(None),
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
