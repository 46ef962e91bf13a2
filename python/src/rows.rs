//! Arrow arrays of rows to pieces.

use crate::pieces::{PIECE_BYTES, Piece, check_sizes};
use crate::{columns::Strings, columns::Values, documents::DocumentReader, errors::usage_error};
use arrow_array::{Array, ArrayRef, StructArray, cast::AsArray};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use pyo3::prelude::*;
use std::ops::Range;
use tierdex::check_id;

/// Beginning of the names that pandas gives to an index without a name.
const PANDAS_INDEX_PREFIX: &str = "__index_level_";

/// An array of rows, up to the first row that is not a valid document.
pub struct ReadRows {
    columns: Columns,
    /// The rows of each piece, in order.
    pub pieces: Vec<Range<usize>>,
    /// Values of the pieces in which U+FFFD was put.
    pub replaced: u64,
    /// The error of the row behind the last piece.
    pub error: Option<PyErr>,
}

/// The checked columns of an array of rows.
struct Columns {
    ids: Strings,
    /// The column of each member; `None` if there is none.
    members: Vec<Option<Values>>,
}

impl Columns {
    /// The values of a row, with the numbers of their members.
    fn values(&self, row: usize) -> impl Iterator<Item = (usize, &str)> {
        let members = self.members.iter().enumerate();
        members
            .filter_map(|(member, column)| Some((member, column.as_ref()?)))
            .flat_map(move |(member, column)| column.of_row(row).map(move |value| (member, value)))
    }
}

impl ReadRows {
    /// Copies rows into a piece, which does not depend on the memory of the Arrow array.
    pub fn copy_piece(&self, rows: Range<usize>) -> Piece {
        let mut piece = Piece::default();
        rows.for_each(|row| piece.append_strings(self.columns.ids.value(row), self.columns.values(row)));
        piece
    }
}

impl DocumentReader {
    /// The rows of an array in pieces. `number` is the number of the first row in the input.
    ///
    /// # Errors
    /// Columns that are missing, damaged or of other types. Then no row is added.
    pub fn read_rows(&self, py: Python<'_>, rows: &StructArray, number: u64) -> PyResult<ReadRows> {
        let failed = |name: &str, what: String| usage_error(py, format!("column {name:?} {what}"));
        let ids = match rows.column_by_name(&self.id.text) {
            Some(column) => py.detach(|| Strings::read(column, true)),
            None => Ok(None),
        };
        let ids = ids
            .map_err(|what| failed(&self.id.text, what))?
            .ok_or_else(|| usage_error(py, format!("the table has no column {:?} of ids", self.id.text)))?;
        let (mut members, mut present) = (Vec::new(), Vec::new());
        for member in &self.members {
            let whole = rows.column_by_name(&member.whole.text).map(|column| (column.clone(), None));
            let path: Vec<&str> = member.path.iter().map(|part| part.text.as_str()).collect();
            let read = match whole {
                None => column_at_path(rows, &path),
                whole => Ok(whole),
            };
            let read = read.and_then(|column| {
                present.push(column.is_some());
                column.map_or(Ok(None), |(column, nulls)| py.detach(|| Values::read(&column, nulls)))
            });
            members.push(read.map_err(|what| failed(&member.whole.text, what))?);
        }
        let is_sound =
            self.members.iter().zip(&present).any(|(member, present)| member.is_needed && *present);
        let needed_title = self.lone_title().filter(|_| !is_sound);
        if !is_sound {
            let others = self.other_columns(rows);
            let checked = match needed_title {
                Some(title) => self.check_no_text(present[title], &others),
                None => Err(self.no_member(&others)),
            };
            checked.map_err(|what| usage_error(py, format!("the table {what}")))?;
        }
        let columns = Columns { ids, members };
        let checks = RowChecks { reader: self, columns, nulls: rows.nulls(), needed_title, number };
        Ok(checks.cut_into_pieces(py, rows.len()))
    }

    /// The names of the columns that this reader does not read.
    pub fn other_columns(&self, rows: &StructArray) -> Vec<String> {
        let names = rows.fields().iter().map(|field| field.name());
        names.filter(|name| !self.reads(name) && !name.starts_with(PANDAS_INDEX_PREFIX)).cloned().collect()
    }
}

/// The column at the end of a path into structs, and which of its rows are null in one of these.
fn column_at_path(
    rows: &StructArray,
    path: &[&str],
) -> Result<Option<(ArrayRef, Option<NullBuffer>)>, String> {
    let Some((last, structs)) = path.split_last() else { return Ok(None) };
    let (mut rows, mut nulls) = (rows, None);
    for name in structs {
        let Some(column) = rows.column_by_name(name) else { return Ok(None) };
        rows = match column.data_type() {
            DataType::Null => return Ok(None),
            kind => column
                .as_struct_opt()
                .ok_or_else(|| format!("has a part {name:?} of type {kind}, not a struct"))?,
        };
        nulls = NullBuffer::union(nulls.as_ref(), rows.nulls());
    }
    Ok(rows.column_by_name(last).map(|column| (column.clone(), nulls)))
}

/// Checks the rows of an array whose columns have been checked.
struct RowChecks<'r> {
    reader: &'r DocumentReader,
    columns: Columns,
    /// Marks the rows that are null as a whole.
    nulls: Option<&'r NullBuffer>,
    /// The number of the title if there is no text column, so that each row must have a title.
    needed_title: Option<usize>,
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
            let columns = self.columns.members.iter().flatten();
            replaced += columns.map(|column| column.replaced(row) as u64).sum::<u64>();
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

    /// Checks a row; returns the bytes of its id and values.
    fn check_row(&self, py: Python<'_>, row: usize) -> PyResult<usize> {
        let number = self.number + row as u64;
        let Columns { ids, members } = &self.columns;
        if self.nulls.is_some_and(|nulls| nulls.is_null(row)) {
            return Err(usage_error(py, format!("document {number} is null")));
        }
        if ids.is_null(row) {
            return Err(usage_error(py, format!("document {number} has no id")));
        }
        if ids.is_replaced(row) {
            return Err(usage_error(py, format!("the id of document {number} is not UTF-8")));
        }
        let id = ids.value(row);
        check_id(id).map_err(|what| usage_error(py, format!("document {number}: {what}")))?;
        if let Some(title) = self.needed_title {
            let has_title = members[title].as_ref().is_some_and(|column| !column.is_null(row));
            self.reader
                .check_no_text(has_title, &[])
                .map_err(|what| usage_error(py, format!("document {number} {what}")))?;
        }
        let text = self.columns.values(row).map(|(_, value)| value.len()).sum();
        check_sizes(py, id.len(), text, self.reader.bytes_max, number)?;
        Ok(id.len() + text)
    }
}
