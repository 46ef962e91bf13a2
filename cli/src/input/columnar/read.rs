//! Decodes a range of rows and passes its documents on.

use super::parquet_rows::{EachBatch, RangeError};
use super::row_document::RowReader;
use super::row_file::{RangeContent, RowRange};
use crate::input::report::{LineProblem, Problem, ProblemKind};
use crate::input::sink::{Origin, Sink};
use crate::size::show_count;
use arrow_array::RecordBatch;
use tierdex::Error;

/// Reads the documents of a range. Rows that cannot be decoded are a problem in the report.
pub(in crate::input) fn read_rows(range: &RowRange, sink: &mut Sink<'_>) -> tierdex::Result<()> {
    let file = &range.file;
    sink.report.file = file.number;
    for path in &file.unindexed {
        sink.report.unindexed.add(path, range.rows);
    }
    let mut next = range.first_row;
    let bytes_end = sink.report.bytes.saturating_add(file.text_bytes_max);
    let read = decode_batches(range, &mut |batch| {
        file.stop.check()?;
        let first = next;
        next += batch.num_rows() as u64;
        add_batch(range, batch, first, bytes_end, sink)
    });
    let read = match read {
        Err(RangeError::Consumer(Error::TooLarge(message))) => Err(RangeError::Data(message)),
        read => read,
    };
    match read {
        Ok(()) => Ok(()),
        Err(RangeError::Consumer(error)) => Err(error),
        Err(RangeError::Data(message)) => {
            let message = format!("{}: {message}", range.place(next));
            let kind = ProblemKind::Rows;
            sink.report.problem(kind, || Problem::of_file(&*file.name, kind, message));
            Ok(())
        }
    }
}

/// Values of rows can share bytes of a page in more ways than dictionaries, for which ranges are divided.
fn too_much_text(rows: u64) -> String {
    format!(
        "the text of these {} has many times the bytes of their pages; a larger --memory allows more, or write \
         smaller row groups or record batches",
        show_count(rows, "row", "rows")
    )
}

fn decode_batches(range: &RowRange, each: EachBatch<'_>) -> Result<(), RangeError> {
    match &range.content {
        RangeContent::Group(rows) => {
            let Some(parquet) = &range.file.parquet else { return Ok(()) };
            parquet.read_range(range.part as usize - 1, rows.clone(), each)
        }
        RangeContent::Batch(batch) => {
            let decoded = batch.decode().map_err(|error| RangeError::Data(batch.explain_error(error)))?;
            each(&decoded).map_err(RangeError::Consumer)
        }
        RangeContent::Rows(batch) => each(batch).map_err(RangeError::Consumer),
    }
}

/// Adds the documents of a batch, whose first row has this number, up to a number of bytes in the report.
fn add_batch(
    range: &RowRange,
    batch: &RecordBatch,
    first_row: u64,
    bytes_end: u64,
    sink: &mut Sink<'_>,
) -> tierdex::Result<()> {
    let file = &range.file;
    let reader = RowReader {
        plan: &file.plan,
        columns: batch.columns(),
        keys: &file.keys,
        other_keys: &file.other_keys,
        document_bytes_max: file.document_bytes_max,
    };
    for (number, row) in (first_row..).zip(0..batch.num_rows()) {
        if sink.report.bytes > bytes_end {
            return Err(Error::TooLarge(too_much_text(range.rows)));
        }
        let origin = Origin { file: &file.name, line: Some(number) };
        match reader.read_row(row) {
            Ok(document) => {
                // A row without values has a byte, as an empty line of a file has.
                let values = document.values.iter().map(|(_, value)| value.len());
                sink.report.bytes += (values.sum::<usize>() + document.others.len()) as u64 + 1;
                sink.add_document(&document, origin)?;
            }
            Err(LineProblem { kind, message }) => {
                sink.report.problem(kind, || origin.problem(kind, message));
            }
        }
    }
    Ok(())
}
