//! An open file of rows, as far as it is shared by the threads that read ranges of its rows.

use super::column_plan::RowPlan;
use super::ipc_rows::IpcBatch;
use super::parquet_rows::ParquetRows;
use super::row_format::RowFormat;
use arrow_array::RecordBatch;
use std::{ops::Range, sync::Arc};
use tierdex::StopSignal;

/// A file of rows and what is read of it.
#[derive(Debug)]
pub(in crate::input) struct RowFile {
    /// Display name of the file.
    pub name: Arc<str>,
    pub format: RowFormat,
    /// Number of the file, if its documents are recorded.
    pub number: Option<u32>,
    /// The columns that are read.
    pub(super) plan: RowPlan,
    /// Paths of columns that are not indexed.
    pub(super) unindexed: Vec<String>,
    /// Keys of the folders that are members, and their values.
    pub(super) keys: Vec<(usize, String)>,
    /// Those that are stored, in JSON.
    pub(super) other_keys: Vec<(String, String)>,
    pub(super) document_bytes_max: usize,
    /// Maximum bytes of the values of a range.
    pub(super) text_bytes_max: u64,
    /// The rows of a Parquet file.
    pub(super) parquet: Option<ParquetRows>,
    pub(super) stop: StopSignal,
}

/// Rows of a file that are read together.
#[derive(Debug)]
pub(in crate::input) struct RowRange {
    pub(super) file: Arc<RowFile>,
    pub(super) content: RangeContent,
    /// Number of the row group or record batch, from 1.
    pub(super) part: u64,
    /// Number of the first row in the file, from 1.
    pub(super) first_row: u64,
    pub(super) rows: u64,
    /// Bytes of its columns, at least 1, as far as they are known.
    pub bytes: u64,
}

/// Where the rows are.
#[derive(Debug)]
pub(super) enum RangeContent {
    /// In a row group, from 0.
    Group(Range<u64>),
    /// In a record batch.
    Batch(IpcBatch),
    /// In a record batch that was decoded, as it is large.
    Rows(RecordBatch),
}

impl RowRange {
    /// The place of rows in a message. `next` is the first row of them.
    pub(super) fn place(&self, next: u64) -> String {
        place(self.file.format, self.part, next, self.first_row + self.rows)
    }
}

/// The place of rows before `end` in a message, which begins with the format.
pub(super) fn place(format: RowFormat, part: u64, first_row: u64, end: u64) -> String {
    use crate::size::show_number;
    let (name, part) = (format.part_name(), show_number(part));
    match end.saturating_sub(first_row) {
        0 => format!("{name} {part}"),
        1 => format!("{name} {part}, row {}", show_number(first_row)),
        _ => format!("{name} {part}, rows {} to {}", show_number(first_row), show_number(end - 1)),
    }
}
