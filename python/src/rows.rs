//! Arrow arrays of rows to pieces.

use crate::pieces::{PIECE_BYTES, Piece, check_sizes};
use crate::{columns::Strings, documents::DocumentReader, errors::usage_error};
use arrow_array::{Array, StructArray};
use arrow_buffer::NullBuffer;
use pyo3::prelude::*;
use std::ops::Range;
use tierdex::check_id;

/// Beginning of the names that pandas gives to an index without a name.
const PANDAS_INDEX_PREFIX: &str = "__index_level_";

/// An array of rows, up to the first row that is not a valid document.
pub struct ReadRows {
    columns: [Option<Strings>; 3],
    /// The rows of each piece, in order.
    pub pieces: Vec<Range<usize>>,
    /// Titles and texts of the pieces in which U+FFFD was put.
    pub replaced: u64,
    /// The error of the row behind the last piece.
    pub error: Option<PyErr>,
}

impl ReadRows {
    /// Copies rows into a piece, which does not depend on the memory of the Arrow array.
    pub fn copy_piece(&self, rows: Range<usize>) -> Piece {
        let mut piece = Piece::default();
        rows.for_each(|row| piece.append_strings(document_strings(&self.columns, row)));
        piece
    }
}

impl DocumentReader {
    /// The rows of an array in pieces. `number` is the number of the first row in the input.
    ///
    /// # Errors
    /// Columns that are missing, damaged or of other types. Then no row is added.
    pub fn read_rows(&self, py: Python<'_>, rows: &StructArray, number: u64) -> PyResult<ReadRows> {
        let column = |at: usize| match rows.column_by_name(&self.names[at]) {
            Some(column) => py
                .detach(|| Strings::read(column, at == 0))
                .map_err(|what| usage_error(py, format!("column {:?} {what}", self.names[at]))),
            None => Ok(None),
        };
        let columns = [column(0)?, column(1)?, column(2)?];
        if columns[0].is_none() {
            return Err(usage_error(py, format!("the table has no column {:?} of ids", self.names[0])));
        }
        let [_, has_title, has_text] = self.names.each_ref().map(|name| rows.column_by_name(name).is_some());
        if !has_text {
            let checked = self.check_no_text(has_title, &self.other_columns(rows));
            checked.map_err(|what| usage_error(py, format!("the table {what}")))?;
        }
        let nulls = rows.nulls();
        let checks = RowChecks { reader: self, columns, nulls, needs_title: !has_text, number };
        Ok(checks.cut_into_pieces(py, rows.len()))
    }

    /// The names of the columns that this reader does not read.
    pub fn other_columns(&self, rows: &StructArray) -> Vec<String> {
        let names = rows.fields().iter().map(|field| field.name());
        names
            .filter(|name| !self.names.contains(name) && !name.starts_with(PANDAS_INDEX_PREFIX))
            .cloned()
            .collect()
    }
}

/// Checks the rows of an array whose columns have been checked.
struct RowChecks<'r> {
    reader: &'r DocumentReader,
    columns: [Option<Strings>; 3],
    /// Marks the rows that are null as a whole.
    nulls: Option<&'r NullBuffer>,
    /// Whether there is no text column, so that each row must have a title.
    needs_title: bool,
    /// The number of the first row in the input.
    number: u64,
}

impl RowChecks<'_> {
    /// Cuts the rows into pieces, up to the first one that is not a valid document.
    fn cut_into_pieces(self, py: Python<'_>, rows: usize) -> ReadRows {
        let (mut pieces, mut start, mut bytes) = (Vec::new(), 0, 0);
        let (mut error, mut end, mut replaced) = (None, rows, 0);
        for row in 0..rows {
            match self.check_row(py, row) {
                Ok(size) => bytes += size,
                Err(found) => {
                    (error, end) = (Some(found), row);
                    break;
                }
            }
            let texts = self.columns[1..].iter().flatten();
            replaced += texts.filter(|column| column.is_replaced(row)).count() as u64;
            if bytes >= PIECE_BYTES {
                pieces.push(start..row + 1);
                (start, bytes) = (row + 1, 0);
            }
        }
        if start < end {
            pieces.push(start..end);
        }
        ReadRows { columns: self.columns, pieces, replaced, error }
    }

    /// Checks a row; returns the bytes of its id, title and text.
    fn check_row(&self, py: Python<'_>, row: usize) -> PyResult<usize> {
        let number = self.number + row as u64;
        let [id, title, text] = document_strings(&self.columns, row);
        let is_null = |at: usize| self.columns[at].as_ref().is_none_or(|column| column.is_null(row));
        if self.nulls.is_some_and(|nulls| nulls.is_null(row)) {
            return Err(usage_error(py, format!("document {number} is null")));
        }
        if is_null(0) {
            return Err(usage_error(py, format!("document {number} has no id")));
        }
        if self.columns[0].as_ref().is_some_and(|ids| ids.is_replaced(row)) {
            return Err(usage_error(py, format!("the id of document {number} is not UTF-8")));
        }
        check_id(id).map_err(|what| usage_error(py, format!("document {number}: {what}")))?;
        if self.needs_title {
            self.reader
                .check_no_text(!is_null(1), &[])
                .map_err(|what| usage_error(py, format!("document {number} {what}")))?;
        }
        let text = title.len() + text.len();
        check_sizes(py, id.len(), text, self.reader.bytes_max, number)?;
        Ok(id.len() + text)
    }
}

/// Id, title and text of a row; one is empty if there is no such column.
fn document_strings(columns: &[Option<Strings>; 3], row: usize) -> [&str; 3] {
    columns.each_ref().map(|column| column.as_ref().map_or("", |column| column.value(row)))
}
