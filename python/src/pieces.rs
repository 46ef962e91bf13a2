//! Pieces of documents, which threads analyse without the GIL, and the rules for ids and sizes.

use crate::errors::{limit_error, usage_error};
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PyString, PyTuple};
use pyo3::{exceptions::PyOverflowError, intern, prelude::*};
use tierdex::{check_id, limits::ID_BYTES_MAX};
use tierdex_python_writer::Documents;

/// Size of the piece that a thread analyses at once, in bytes of text.
pub const PIECE_BYTES: usize = 256 << 10;

/// Documents, one after the other in one string. They are copies: neither Python nor Arrow libraries change
/// or release their memory while a thread analyses them.
#[derive(Default)]
pub struct Piece {
    text: String,
    /// The end offsets of id, title and text of each document in the string.
    ends: Vec<[usize; 3]>,
}

impl Documents for Piece {
    fn append(&mut self, other: Piece) {
        if self.ends.is_empty() {
            *self = other;
            return;
        }
        let start = self.text.len();
        self.text.push_str(&other.text);
        self.ends.extend(other.ends.into_iter().map(|ends| ends.map(|end| start + end)));
    }

    fn documents(&self) -> u64 {
        self.ends.len() as u64
    }

    fn is_full(&self) -> bool {
        self.text.len() >= PIECE_BYTES
    }
}

impl Piece {
    /// Calls `body` with id, title and text of each document.
    pub fn for_each_document<E>(
        &self,
        mut body: impl FnMut(&str, &str, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut start = 0;
        self.ends.iter().copied().try_for_each(|[id, title, end]| {
            let from = std::mem::replace(&mut start, end);
            body(&self.text[from..id], &self.text[id..title], &self.text[title..end])
        })
    }

    /// Appends a document of valid parts: id, title and text.
    pub fn append_strings(&mut self, parts: [&str; 3]) {
        self.ends.push(parts.map(|part| {
            self.text.push_str(part);
            self.text.len()
        }));
    }

    /// Appends a document of an id and two texts with their names; returns the number of texts in which
    /// U+FFFD was put. After an error the piece is as it was before.
    pub fn append_document(
        &mut self,
        id: &Bound<'_, PyAny>,
        texts: [(&String, &Option<Bound<'_, PyAny>>); 2],
        number: u64,
        bytes_max: usize,
    ) -> PyResult<u64> {
        let start = self.text.len();
        let pushed = self.try_append_document(id, texts, number, bytes_max);
        if pushed.is_err() {
            self.text.truncate(start);
        }
        pushed
    }

    fn try_append_document(
        &mut self,
        id: &Bound<'_, PyAny>,
        texts: [(&String, &Option<Bound<'_, PyAny>>); 2],
        number: u64,
        bytes_max: usize,
    ) -> PyResult<u64> {
        let start = self.text.len();
        self.append_id(id, number)?;
        let (mut ends, mut replaced) = ([self.text.len(); 3], 0);
        for ((name, text), end) in texts.into_iter().zip(&mut ends[1..]) {
            if let Some(text) = text {
                replaced += u64::from(self.append_text(text, name, number)?);
            }
            *end = self.text.len();
        }
        check_sizes(id.py(), ends[0] - start, ends[2] - ends[0], bytes_max, number)?;
        self.ends.push(ends);
        Ok(replaced)
    }

    fn append_id(&mut self, id: &Bound<'_, PyAny>, number: u64) -> PyResult<()> {
        let start = self.text.len();
        if let Ok(id) = id.cast::<PyString>() {
            let id = id.to_str().map_err(|_| {
                usage_error(id.py(), format!("the id of document {number} has a lone surrogate"))
            })?;
            self.text.push_str(id);
        } else if is_integer(id)? {
            self.text.push_str(&decimal_digits(id, number)?);
        } else {
            let (value, kind) = (id.repr()?, id.get_type().name()?);
            let message = format!("the id of document {number} is {value}, a {kind}; ids are str or int");
            return Err(usage_error(id.py(), message));
        }
        check_id(&self.text[start..])
            .map_err(|what| usage_error(id.py(), format!("document {number}: {what}")))
    }

    /// Appends a title or text: a string, or a list of lines. Returns whether it has U+FFFD in place of lone
    /// surrogates.
    fn append_text(&mut self, text: &Bound<'_, PyAny>, name: &str, number: u64) -> PyResult<bool> {
        if let Ok(text) = text.cast::<PyString>() {
            return self.append_str(text);
        }
        let kind = |value: &Bound<'_, PyAny>| -> PyResult<PyErr> {
            let kind = value.get_type().name()?;
            Ok(usage_error(value.py(), format!("{name:?} of document {number} is a {kind}, not a str")))
        };
        let is_list = text.is_instance_of::<PyList>() || text.is_instance_of::<PyTuple>();
        if !is_list {
            return if is_missing(text)? { Ok(false) } else { Err(kind(text)?) };
        }
        let mut replaced = false;
        for (at, line) in text.try_iter()?.enumerate() {
            let line = line?;
            let Ok(line) = line.cast::<PyString>() else { return Err(kind(&line)?) };
            if at > 0 {
                self.text.push('\n');
            }
            replaced |= self.append_str(line)?;
        }
        Ok(replaced)
    }

    fn append_str(&mut self, text: &Bound<'_, PyString>) -> PyResult<bool> {
        let valid = text.to_str();
        match &valid {
            Ok(text) => self.text.push_str(text),
            Err(_) => self.text.push_str(&without_surrogates(text)?),
        }
        Ok(valid.is_err())
    }
}

/// Rejects ids that are too long, and documents for which the writer has no memory.
pub fn check_sizes(py: Python<'_>, id: usize, text: usize, bytes_max: usize, number: u64) -> PyResult<()> {
    if id > ID_BYTES_MAX {
        let message = format!("the id of document {number} has {id} bytes; the limit is {ID_BYTES_MAX}");
        return Err(limit_error(py, message));
    }
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
fn decimal_digits(id: &Bound<'_, PyAny>, number: u64) -> PyResult<String> {
    let py = id.py();
    match id.extract::<i64>() {
        Ok(small) => return Ok(small.to_string()),
        Err(error) if !error.is_instance_of::<PyOverflowError>(py) => return Err(error),
        Err(_) => (),
    }
    let large = py.import("operator")?.call_method1("index", (id,))?;
    // Python converts no integer of more than some thousand digits.
    let digits = py.get_type::<PyInt>().call_method1("__repr__", (large,));
    let too_long = |_| limit_error(py, format!("the id of document {number} is an int of too many digits"));
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
