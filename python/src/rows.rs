//! Arrow record batches to pieces of rows.

use crate::columns::Strings;
use crate::documents::DocumentReader;
use crate::errors::usage;
use crate::pieces::{ColumnsPiece, PIECE_BYTES, Piece, check_id, check_sizes, value};
use arrow_array::RecordBatch;
use pyo3::prelude::*;
use std::ops::Range;

/// Beginning of the names that pandas gives to an index without a name.
const PANDAS_INDEX: &str = "__index_level_";

/// The pieces of a record batch, up to the first row that is no document.
pub struct BatchPieces {
    /// The pieces, in order.
    pub pieces: Vec<Piece>,
    /// Titles and texts of the pieces in which U+FFFD was put.
    pub replaced: u64,
    /// The error of the row behind the last piece.
    pub error: Option<PyErr>,
}

impl DocumentReader {
    /// The rows of a record batch in pieces. `number` is the number of the first row in the input.
    ///
    /// # Errors
    /// Columns that are missing, damaged or of other types. Then no row is added.
    pub fn rows(&self, py: Python<'_>, batch: &RecordBatch, number: u64) -> PyResult<BatchPieces> {
        let column = |at: usize| match batch.column_by_name(&self.names[at]) {
            Some(column) => py
                .detach(|| Strings::read(column, at == 0))
                .map_err(|what| usage(py, format!("column {:?} {what}", self.names[at]))),
            None => Ok(None),
        };
        let columns = [column(0)?, column(1)?, column(2)?];
        if columns[0].is_none() {
            return Err(usage(py, format!("the table has no column {:?} of ids", self.names[0])));
        }
        let [_, has_title, has_text] = self.names.each_ref().map(|name| batch.column_by_name(name).is_some());
        if !has_text {
            let checked = self.check_no_text(has_title, &self.other_columns(batch));
            checked.map_err(|what| usage(py, format!("the table {what}")))?;
        }
        let rows = CheckedRows { reader: self, columns, needs_title: !has_text, number };
        Ok(rows.cut(py, batch.num_rows()))
    }

    /// The names of the columns that this reader does not read.
    pub fn other_columns(&self, batch: &RecordBatch) -> Vec<String> {
        let schema = batch.schema();
        let names = schema.fields().iter().map(|field| field.name());
        names.filter(|name| !self.names.contains(name) && !name.starts_with(PANDAS_INDEX)).cloned().collect()
    }
}

/// The rows of a record batch, whose columns are checked.
struct CheckedRows<'r> {
    reader: &'r DocumentReader,
    columns: [Option<Strings>; 3],
    /// Whether there is no text.
    needs_title: bool,
    /// The number of the first row in the input.
    number: u64,
}

impl CheckedRows<'_> {
    /// Cuts the rows into pieces, up to the first one that is no document.
    fn cut(&self, py: Python<'_>, rows: usize) -> BatchPieces {
        let (mut pieces, mut start, mut bytes) = (Vec::new(), 0, 0);
        let (mut error, mut end) = (None, rows);
        for row in 0..rows {
            match self.check(py, row) {
                Ok(size) => bytes += size,
                Err(found) => {
                    (error, end) = (Some(found), row);
                    break;
                }
            }
            if bytes >= PIECE_BYTES {
                pieces.push(self.piece(start..row + 1));
                (start, bytes) = (row + 1, 0);
            }
        }
        if start < end {
            pieces.push(self.piece(start..end));
        }
        let replaced = self.columns[1..].iter().flatten().map(Strings::replaced);
        let replaced = replaced.map(|rows| rows.partition_point(|row| *row < end) as u64).sum();
        BatchPieces { pieces, replaced, error }
    }

    fn piece(&self, rows: Range<usize>) -> Piece {
        Piece::Columns(Box::new(ColumnsPiece { columns: self.columns.clone(), rows }))
    }

    /// Checks a row; returns its bytes.
    fn check(&self, py: Python<'_>, row: usize) -> PyResult<usize> {
        let number = self.number + row as u64;
        let [id, title, text] = self.columns.each_ref().map(|column| value(column.as_ref(), row));
        let is_null = |at: usize| self.columns[at].as_ref().is_none_or(|column| column.is_null(row));
        if is_null(0) {
            return Err(usage(py, format!("document {number} has no id")));
        }
        if self.columns[0].as_ref().is_some_and(|ids| ids.replaced().binary_search(&row).is_ok()) {
            return Err(usage(py, format!("the id of document {number} is not UTF-8")));
        }
        check_id(id).map_err(|what| usage(py, format!("document {number}: {what}")))?;
        if self.needs_title {
            self.reader
                .check_no_text(!is_null(1), &[])
                .map_err(|what| usage(py, format!("document {number} {what}")))?;
        }
        let text = title.len() + text.len();
        check_sizes(py, (id.len(), text), self.reader.bytes_max, number)?;
        Ok(id.len() + text)
    }
}
