//! Documents from Python: dicts and Arrow record batches to pieces of text that threads analyse without the
//! GIL.
//!
//! An id is a `str` or an `int`. Title and text are `str`; one that is missing, `None`, `NaN` or `pandas.NA`
//! is empty. In title and text a lone surrogate becomes U+FFFD.

use crate::errors::{limit, usage};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, LargeStringArray, RecordBatch};
use arrow_cast::cast;
use arrow_schema::DataType;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString};
use std::ops::Range;
use tierdex::limits::ID_BYTES_MAX;

/// Bytes of text that a thread takes at a time.
pub const PIECE_BYTES: usize = 256 << 10;

/// Documents of one piece, in order.
pub enum Piece {
    /// Documents that were copied from Python objects.
    Copied(CopiedPiece),
    /// Rows of Arrow columns, which are not copied.
    Columns(Box<ColumnsPiece>),
}

/// Documents, one after the other in one string.
#[derive(Default)]
pub struct CopiedPiece {
    text: String,
    /// The ends of id, title and text of each document.
    ends: Vec<[usize; 3]>,
}

/// Rows of three columns; a column that is missing and a value that is null are empty.
pub struct ColumnsPiece {
    columns: [Option<LargeStringArray>; 3],
    rows: Range<usize>,
}

/// Reads documents: names of their members, and the size of the largest one.
pub struct DocumentReader {
    names: [Py<PyString>; 3],
    bytes_max: usize,
}

impl Piece {
    /// Number of documents.
    pub fn documents(&self) -> usize {
        match self {
            Piece::Copied(piece) => piece.ends.len(),
            Piece::Columns(piece) => piece.rows.len(),
        }
    }

    /// Calls `body` with id, title and text of each document.
    pub fn each<E>(&self, mut body: impl FnMut(&str, &str, &str) -> Result<(), E>) -> Result<(), E> {
        match self {
            Piece::Copied(CopiedPiece { text, ends }) => {
                let mut start = 0;
                ends.iter().copied().try_for_each(|[id, title, end]| {
                    let from = std::mem::replace(&mut start, end);
                    body(&text[from..id], &text[id..title], &text[title..end])
                })
            }
            Piece::Columns(piece) => piece.rows.clone().try_for_each(|row| {
                let [id, title, text] = piece.columns.each_ref().map(|column| value(column.as_ref(), row));
                body(id, title, text)
            }),
        }
    }
}

impl CopiedPiece {
    /// Whether the piece should be passed on.
    pub fn is_full(&self) -> bool {
        self.text.len() >= PIECE_BYTES
    }

    /// Number of documents.
    pub fn documents(&self) -> u64 {
        self.ends.len() as u64
    }

    /// Whether it has no documents.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Appends the members of a document without keeping it; returns the ends.
    fn append(
        &mut self,
        names: [&Bound<'_, PyString>; 3],
        members: [Option<Bound<'_, PyAny>>; 3],
        number: u64,
    ) -> PyResult<[usize; 3]> {
        let [id, title, text] = members;
        let id_end = match id {
            Some(id) => self.append_id(&id, number)?,
            None => {
                return Err(usage(
                    names[0].py(),
                    format!("document {number} has no member {}", names[0].repr()?),
                ));
            }
        };
        let title_end = self.append_text(title, names[1], number)?;
        Ok([id_end, title_end, self.append_text(text, names[2], number)?])
    }

    fn append_id(&mut self, id: &Bound<'_, PyAny>, number: u64) -> PyResult<usize> {
        if let Ok(id) = id.cast::<PyString>() {
            let id = id
                .to_str()
                .map_err(|_| usage(id.py(), format!("the id of document {number} has a lone surrogate")))?;
            self.text.push_str(id);
        } else if is_integer(id)? {
            self.text.push_str(&id.str()?.to_string_lossy());
        } else {
            let (value, kind) = (id.repr()?, id.get_type().name()?);
            let message = format!("the id of document {number} is {value}, a {kind}; ids are str or int");
            return Err(usage(id.py(), message));
        }
        Ok(self.text.len())
    }

    fn append_text(
        &mut self,
        text: Option<Bound<'_, PyAny>>,
        name: &Bound<'_, PyString>,
        number: u64,
    ) -> PyResult<usize> {
        let Some(text) = text else { return Ok(self.text.len()) };
        if let Ok(text) = text.cast::<PyString>() {
            match text.to_str() {
                Ok(text) => self.text.push_str(text),
                Err(_) => self.text.push_str(&without_surrogates(text)?),
            }
        } else if !is_missing(&text)? {
            let (name, kind) = (name.to_string_lossy(), text.get_type().name()?);
            return Err(usage(text.py(), format!("{name:?} of document {number} is a {kind}, not a str")));
        }
        Ok(self.text.len())
    }
}

impl DocumentReader {
    /// A reader of documents with these members (id, title, text), of at most `bytes_max` bytes of title and
    /// text.
    pub fn new(py: Python<'_>, names: [&str; 3], bytes_max: usize) -> DocumentReader {
        DocumentReader { names: names.map(|name| PyString::new(py, name).unbind()), bytes_max }
    }

    /// Appends a document to a piece. `number` is its number in the input, for messages. After an error the
    /// piece is as it was before.
    pub fn read(&self, document: &Bound<'_, PyAny>, number: u64, piece: &mut CopiedPiece) -> PyResult<()> {
        let py = document.py();
        let names = self.names.each_ref().map(|name| name.bind(py));
        let [id, title, text] = if let Ok(members) = document.cast::<PyDict>() {
            names.map(|name| members.get_item(name))
        } else if document.hasattr(intern!(py, "keys"))? {
            names.map(|name| match document.contains(name)? {
                true => document.get_item(name).map(Some),
                false => Ok(None),
            })
        } else {
            let kind = document.get_type().name()?;
            return Err(usage(py, format!("document {number} is a {kind}, not a dict")));
        };
        let members = [id?, title?, text?];
        let start = piece.text.len();
        let ends = piece.append(names, members, number).and_then(|ends| {
            check_sizes(py, (ends[0] - start, ends[2] - ends[0]), self.bytes_max, number)?;
            Ok(ends)
        });
        match ends {
            Ok(ends) => piece.ends.push(ends),
            Err(_) => piece.text.truncate(start),
        }
        ends.map(drop)
    }

    /// The rows of a record batch in pieces. `number` is the number of the first row in the input.
    pub fn rows(&self, py: Python<'_>, batch: &RecordBatch, number: u64) -> PyResult<Vec<Piece>> {
        let names = self.names.each_ref().map(|name| name.bind(py).to_string_lossy().into_owned());
        let column = |at: usize| match batch.column_by_name(&names[at]) {
            Some(column) => strings(py, column, &names[at], at == 0),
            None => Ok(None),
        };
        let columns = [column(0)?, column(1)?, column(2)?];
        let Some(ids) = &columns[0] else {
            return Err(usage(py, format!("the table has no column {:?} of ids", names[0])));
        };
        let (mut pieces, mut start, mut bytes) = (Vec::new(), 0, 0);
        for row in 0..batch.num_rows() {
            let number = number + row as u64;
            if ids.is_null(row) {
                return Err(usage(py, format!("document {number} has no id")));
            }
            let [id, title, text] = columns.each_ref().map(|column| value(column.as_ref(), row).len());
            check_sizes(py, (id, title + text), self.bytes_max, number)?;
            bytes += id + title + text;
            if bytes >= PIECE_BYTES || row + 1 == batch.num_rows() {
                let piece = ColumnsPiece { columns: columns.clone(), rows: start..row + 1 };
                pieces.push(Piece::Columns(Box::new(piece)));
                (start, bytes) = (row + 1, 0);
            }
        }
        Ok(pieces)
    }
}

/// A column as strings; `None` for a column of nulls. Ids may be integers.
fn strings(py: Python<'_>, column: &ArrayRef, name: &str, is_id: bool) -> PyResult<Option<LargeStringArray>> {
    let kind = match column.data_type() {
        DataType::Dictionary(_, value) => value.as_ref(),
        other => other,
    };
    let is_string = matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    if !is_id && *kind == DataType::Null {
        return Ok(None);
    }
    if !(is_string || is_id && kind.is_integer()) {
        let needed = if is_id { "strings or integers" } else { "strings" };
        return Err(usage(py, format!("column {name:?} has values of type {kind}, not {needed}")));
    }
    let strings = cast(column, &DataType::LargeUtf8).map_err(|error| usage(py, error.to_string()))?;
    Ok(Some(strings.as_string::<i64>().clone()))
}

fn value(column: Option<&LargeStringArray>, row: usize) -> &str {
    column.filter(|column| column.is_valid(row)).map_or("", |column| column.value(row))
}

fn check_sizes(py: Python<'_>, (id, text): (usize, usize), bytes_max: usize, number: u64) -> PyResult<()> {
    if id > ID_BYTES_MAX {
        let message = format!("the id of document {number} has {id} bytes; the limit is {ID_BYTES_MAX}");
        return Err(limit(py, message));
    }
    if text > bytes_max {
        return Err(limit(
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

/// Whether a value means that there is none: `None`, `NaN`, `pandas.NA`.
fn is_missing(value: &Bound<'_, PyAny>) -> PyResult<bool> {
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
