//! Pieces of changes, whose documents threads analyse without the GIL, and the rules for ids and sizes.

use crate::deletes::Deletes;
use crate::errors::{limit_error, usage_error};
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PyString, PyTuple};
use pyo3::{exceptions::PyOverflowError, intern, prelude::*};
use std::fmt::Arguments;
use tierdex::{DocumentRef, check_id, limits::ID_BYTES_MAX};
use tierdex_python_writer::{ChangeCount, Changes};

/// Size of the piece that a thread analyses at once, in bytes of text.
pub const PIECE_BYTES: usize = 256 << 10;

/// Documents, one after the other in one string, and deletes between them. They are copies: neither Python
/// nor Arrow libraries change or release their memory while a thread analyses them.
#[derive(Default)]
pub struct Piece {
    /// The id of each document, its values, and what it has beside its members.
    text: String,
    /// The member of each value, and the end of the value in the string.
    values: Vec<(usize, usize)>,
    documents: Vec<DocumentEnds>,
    /// The deletes, each with the number of documents before it.
    pub deletes: Deletes,
}

/// The ends of the parts of a document.
#[derive(Clone, Copy, Default)]
struct DocumentEnds {
    /// End of the id in the string.
    id: usize,
    /// End of the values in their list.
    values: usize,
    /// End of the document in the string.
    text: usize,
}

impl Changes for Piece {
    fn append(&mut self, other: Piece) {
        if self.count() == ChangeCount::default() {
            *self = other;
            return;
        }
        self.deletes.append(other.deletes, self.documents());
        let (text, values) = (self.text.len(), self.values.len());
        self.text.push_str(&other.text);
        self.values.extend(other.values.into_iter().map(|(member, end)| (member, text + end)));
        self.documents.extend(other.documents.into_iter().map(|ends| DocumentEnds {
            id: text + ends.id,
            values: values + ends.values,
            text: text + ends.text,
        }));
    }

    fn count(&self) -> ChangeCount {
        ChangeCount { documents: self.documents(), deletes: self.deletes.count() }
    }

    fn is_full(&self) -> bool {
        self.text.len() + self.deletes.ids_bytes() >= PIECE_BYTES
    }
}

impl Piece {
    /// Number of documents.
    pub fn documents(&self) -> u64 {
        self.documents.len() as u64
    }

    /// Appends the delete with this number of a call, by its id.
    pub fn append_delete(&mut self, id: &Bound<'_, PyAny>, number: usize) -> PyResult<()> {
        let documents = self.documents();
        self.deletes.append_id(documents, |text| {
            let (start, of) = (text.len(), format_args!("delete {number}"));
            append_id(text, id, of)?;
            check_id_size(id.py(), text.len() - start, of)
        })
    }

    /// Calls `add` with each document.
    pub fn for_each_document<E>(
        &self,
        add: &mut dyn FnMut(DocumentRef<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut last, mut values) = (DocumentEnds::default(), Vec::new());
        for ends in &self.documents {
            let mut start = ends.id;
            values.clear();
            values.extend(self.values[last.values..ends.values].iter().map(|&(member, end)| {
                let from = std::mem::replace(&mut start, end);
                (member, &self.text[from..end])
            }));
            let id = &self.text[last.text..ends.id];
            add(DocumentRef { id, values: &values, columns: &[], others: &self.text[start..ends.text] })?;
            last = *ends;
        }
        Ok(())
    }

    /// Appends a document of a valid id and of values with the numbers of their members.
    pub fn append_strings<'s>(&mut self, id: &str, values: impl Iterator<Item = (usize, &'s str)>) {
        self.text.push_str(id);
        let id = self.text.len();
        for (member, value) in values {
            self.text.push_str(value);
            self.values.push((member, self.text.len()));
        }
        self.finish_document(id);
    }

    fn finish_document(&mut self, id: usize) {
        self.documents.push(DocumentEnds { id, values: self.values.len(), text: self.text.len() });
    }

    fn last_ends(&self) -> DocumentEnds {
        self.documents.last().copied().unwrap_or_default()
    }
}

/// A document of Python that is appended to a piece, part by part. Unless it is finished, the piece is at the
/// end as it was before.
pub struct NewDocument<'p> {
    piece: &'p mut Piece,
    /// The number of the document, for messages.
    number: u64,
    /// End of the id.
    id: usize,
    /// Number of the values in which U+FFFD was put.
    replaced: u64,
}

impl NewDocument<'_> {
    /// Begins a document with its id.
    pub fn begin<'p>(piece: &'p mut Piece, id: &Bound<'_, PyAny>, number: u64) -> PyResult<NewDocument<'p>> {
        let mut new = NewDocument { piece, number, id: 0, replaced: 0 };
        append_id(&mut new.piece.text, id, format_args!("document {number}"))?;
        new.id = new.piece.text.len();
        Ok(new)
    }

    /// Appends the value of a member: a string, none, or a list of them. An empty string is no value.
    pub fn append_member(&mut self, member: usize, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        if !is_list(value) {
            return self.append_value(member, name, value);
        }
        value.try_iter()?.try_for_each(|value| self.append_value(member, name, &value?))
    }

    /// Ends the document with what it has beside its members; returns the number of its values in which
    /// U+FFFD was put.
    pub fn finish(
        mut self,
        py: Python<'_>,
        others: Option<&Bound<'_, PyString>>,
        bytes_max: usize,
    ) -> PyResult<u64> {
        if let Some(others) = others {
            self.append_str(others)?;
        }
        let start = self.piece.last_ends().text;
        let text = self.piece.text.len() - self.id;
        check_sizes(py, self.id - start, text, bytes_max, self.number)?;
        self.piece.finish_document(self.id);
        Ok(self.replaced)
    }

    fn append_value(&mut self, member: usize, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let Ok(text) = value.cast::<PyString>() else {
            return if is_missing(value)? { Ok(()) } else { Err(self.type_error(name, value, "str")?) };
        };
        let start = self.piece.text.len();
        self.append_str(text)?;
        let end = self.piece.text.len();
        if end > start {
            self.piece.values.push((member, end));
        }
        Ok(())
    }

    fn append_str(&mut self, text: &Bound<'_, PyString>) -> PyResult<()> {
        match text.to_str() {
            Ok(text) => self.piece.text.push_str(text),
            Err(_) => {
                self.piece.text.push_str(&without_surrogates(text)?);
                self.replaced += 1;
            }
        }
        Ok(())
    }

    /// The error of a value that has another type than `needed`.
    pub fn type_error(&self, name: &str, value: &Bound<'_, PyAny>, needed: &str) -> PyResult<PyErr> {
        let (kind, number) = (value.get_type().name()?, self.number);
        let message = format!("{name:?} of document {number} is a {kind}, not a {needed}");
        Ok(usage_error(value.py(), message))
    }
}

impl Drop for NewDocument<'_> {
    fn drop(&mut self) {
        let ends = self.piece.last_ends();
        self.piece.text.truncate(ends.text);
        self.piece.values.truncate(ends.values);
    }
}

/// Whether a value is a list of values.
pub fn is_list(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>()
}

/// Appends the id of a document or of a delete.
fn append_id(text: &mut String, id: &Bound<'_, PyAny>, of: Arguments<'_>) -> PyResult<()> {
    let start = text.len();
    if let Ok(id) = id.cast::<PyString>() {
        let error = |_| usage_error(id.py(), format!("the id of {of} has a lone surrogate"));
        text.push_str(id.to_str().map_err(error)?);
    } else if is_integer(id)? {
        text.push_str(&decimal_digits(id, of)?);
    } else {
        let (value, kind) = (id.repr()?, id.get_type().name()?);
        let message = format!("the id of {of} is {value}, a {kind}; ids are str or int");
        return Err(usage_error(id.py(), message));
    }
    check_id(&text[start..]).map_err(|what| usage_error(id.py(), format!("{of}: {what}")))
}

fn check_id_size(py: Python<'_>, bytes: usize, of: Arguments<'_>) -> PyResult<()> {
    if bytes > ID_BYTES_MAX {
        return Err(limit_error(
            py,
            format!("the id of {of} has {bytes} bytes; the limit is {ID_BYTES_MAX}"),
        ));
    }
    Ok(())
}

/// Rejects ids that are too long, and documents for which the writer has no memory.
pub fn check_sizes(py: Python<'_>, id: usize, text: usize, bytes_max: usize, number: u64) -> PyResult<()> {
    check_id_size(py, id, format_args!("document {number}"))?;
    if text > bytes_max {
        return Err(limit_error(
            py,
            format!(
                "document {number} has {text} bytes; the writer's memory is enough for {bytes_max}: split the \
                 document or raise the memory"
            ),
        ));
    }
    Ok(())
}

/// Whether a value is an integer: `int`, or a type with `__index__` such as those of NumPy, but not `bool`.
fn is_integer(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let is_bool = value.is_instance_of::<PyBool>();
    Ok(!is_bool && (value.is_instance_of::<PyInt>() || value.hasattr(intern!(value.py(), "__index__"))?))
}

/// The decimal digits of an integer.
fn decimal_digits(id: &Bound<'_, PyAny>, of: Arguments<'_>) -> PyResult<String> {
    let py = id.py();
    match id.extract::<i64>() {
        Ok(small) => return Ok(small.to_string()),
        Err(error) if !error.is_instance_of::<PyOverflowError>(py) => return Err(error),
        Err(_) => (),
    }
    let large = py.import("operator")?.call_method1("index", (id,))?;
    // Python converts no integer of more than some thousand digits.
    let digits = py.get_type::<PyInt>().call_method1("__repr__", (large,));
    let too_long = |_| limit_error(py, format!("the id of {of} is an int of too many digits"));
    Ok(digits.map_err(too_long)?.str()?.to_string())
}

/// Whether a value means that there is none: `None`, `NaN`, `pandas.NA`.
pub fn is_missing(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    if value.is_none() {
        return Ok(true);
    }
    if let Ok(number) = value.cast::<PyFloat>() {
        return Ok(number.value().is_nan());
    }
    Ok(value.get_type().name()? == "NAType")
}

/// The text with U+FFFD in place of each lone surrogate.
fn without_surrogates(text: &Bound<'_, PyString>) -> PyResult<String> {
    let bytes: Vec<u8> = text.call_method1("encode", ("utf-16-le", "surrogatepass"))?.extract()?;
    let units: Vec<u16> = bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
    Ok(String::from_utf16_lossy(&units))
}
