//! Arrow record batches to pieces of rows.

use crate::columns::Strings;
use crate::documents::DocumentReader;
use crate::errors::usage;
use crate::pieces::{ColumnsPiece, PIECE_BYTES, Piece, check_id, check_sizes, value};
use arrow_array::RecordBatch;
use pyo3::prelude::*;
use std::ops::Range;

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
        let has = |at: usize| batch.column_by_name(&self.names[at]).is_some();
        if !has(2) {
            let checked = self.check_no_text(has(1), &self.other_columns(batch));
            checked.map_err(|what| usage(py, format!("the table {what}")))?;
        }
        Ok(self.cut(py, &columns, batch.num_rows(), number))
    }

    /// The names of the columns that this reader does not read.
    pub fn other_columns(&self, batch: &RecordBatch) -> Vec<String> {
        let schema = batch.schema();
        let names = schema.fields().iter().map(|field| field.name());
        names.filter(|name| !self.names.contains(name)).cloned().collect()
    }

    /// Cuts checked columns into pieces, up to the first row that is no document.
    fn cut(&self, py: Python<'_>, columns: &[Option<Strings>; 3], rows: usize, number: u64) -> BatchPieces {
        let (mut pieces, mut start, mut bytes) = (Vec::new(), 0, 0);
        let piece =
            |rows: Range<usize>| Piece::Columns(Box::new(ColumnsPiece { columns: columns.clone(), rows }));
        let mut error = None;
        let mut end = rows;
        for row in 0..rows {
            match self.check_row(py, columns, row, number + row as u64) {
                Ok(size) => bytes += size,
                Err(found) => {
                    (error, end) = (Some(found), row);
                    break;
                }
            }
            if bytes >= PIECE_BYTES {
                pieces.push(piece(start..row + 1));
                (start, bytes) = (row + 1, 0);
            }
        }
        if start < end {
            pieces.push(piece(start..end));
        }
        let replaced = columns[1..].iter().flatten().map(|column| column.replaced());
        let replaced = replaced.map(|rows| rows.partition_point(|row| *row < end) as u64).sum();
        BatchPieces { pieces, replaced, error }
    }

    /// Checks a row; returns its bytes.
    fn check_row(
        &self,
        py: Python<'_>,
        columns: &[Option<Strings>; 3],
        row: usize,
        number: u64,
    ) -> PyResult<usize> {
        let [id, title, text] = columns.each_ref().map(|column| value(column.as_ref(), row));
        let ids = columns[0].as_ref();
        if ids.is_none_or(|ids| ids.is_null(row)) {
            return Err(usage(py, format!("document {number} has no id")));
        }
        if ids.is_some_and(|ids| ids.replaced().binary_search(&row).is_ok()) {
            return Err(usage(py, format!("the id of document {number} is not UTF-8")));
        }
        check_id(id).map_err(|what| usage(py, format!("document {number}: {what}")))?;
        let text = title.len() + text.len();
        check_sizes(py, (id.len(), text), self.bytes_max, number)?;
        Ok(id.len() + text)
    }
}
