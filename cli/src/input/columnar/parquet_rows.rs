//! Rows of a Parquet file: row groups are divided into ranges of rows that are read independently, on any
//! thread.
//!
//! A range is read in batches. A batch has as many rows as fit into the memory by the sizes in the footer; if
//! its pages need more, the rest of the range is read in smaller ones.

use super::footer::read_footer;
use super::pages::{BatchBudget, CheckedPages};
use super::row_limits::RowLimits;
use super::text_views::with_views;
use crate::panic_hook::catch_panic;
use crate::size::show_number;
use arrow_array::RecordBatch;
use arrow_schema::Fields;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, RowGroups, RowSelection, RowSelector};
use parquet::arrow::{ProjectionMask, parquet_to_arrow_field_levels, parquet_to_arrow_schema};
use parquet::column::page::{PageIterator, PageReader};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use std::{fs::File, ops::Range, sync::Arc};

/// Maximum rows of a batch, and bytes of it by the sizes in the footer.
const BATCH_ROWS_MAX: usize = 1024;
const BATCH_BYTES: u64 = 1 << 20;

/// Maximum rows of a range.
const RANGE_ROWS_MAX: u64 = 32 << 10;

/// Ranges of row groups with lists are longer: pages of lists before the range must be decoded to find its
/// first row.
const LIST_RANGE_FACTOR: u64 = 8;

/// A Parquet file and the columns that are read.
#[derive(Debug)]
pub(super) struct ParquetRows {
    file: Arc<File>,
    size: u64,
    metadata: Arc<ParquetMetaData>,
    /// All columns.
    pub fields: Fields,
    /// Numbers of the leaves that are read.
    leaves: Vec<usize>,
    bytes_max: usize,
}

/// How a row group is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GroupRanges {
    /// Rows of a range.
    pub rows: u64,
    /// Bytes of a row on average.
    pub row_bytes: u64,
}

/// Reports a batch of rows.
pub(super) type EachBatch<'a> = &'a mut dyn FnMut(&RecordBatch) -> tierdex::Result<()>;

/// How a range of rows could not be read. Rows before were reported.
#[derive(Debug)]
pub(super) enum RangeError {
    /// The data of the file.
    Data(String),
    /// Of the consumer.
    Consumer(tierdex::Error),
}

fn failed(error: impl Into<String>) -> RangeError {
    RangeError::Data(error.into())
}

impl ParquetRows {
    /// Opens a file of `size` bytes. `bytes_max` limits the memory of its footer, and that of the pages of a
    /// batch of rows.
    pub fn open(file: File, size: u64, bytes_max: usize) -> Result<ParquetRows, String> {
        let metadata = read_footer(&file, size, bytes_max)?;
        let schema = catch_panic(|| parquet_to_arrow_schema(metadata.file_metadata().schema_descr(), None));
        let schema = schema.and_then(|schema| schema.map_err(|error| error.to_string()));
        let fields =
            with_views(&schema.map_err(|error| format!("its columns cannot be read: {error}"))?.fields);
        let leaves = (0..metadata.file_metadata().schema_descr().num_columns()).collect();
        Ok(ParquetRows {
            file: Arc::new(file),
            size,
            metadata: Arc::new(metadata),
            fields,
            leaves,
            bytes_max,
        })
    }

    /// Reads these leaves only, and returns their columns.
    pub fn project(&mut self, leaves: Vec<usize>) -> Result<Fields, String> {
        self.leaves = leaves;
        let schema = self.metadata.file_metadata().schema_descr();
        let mask = ProjectionMask::leaves(schema, self.leaves.iter().copied());
        let projected = catch_panic(|| {
            let levels = parquet_to_arrow_field_levels(schema, mask, Some(&self.fields))?;
            let rows = NoRows(&self.metadata);
            ParquetRecordBatchReader::try_new_with_row_groups(&levels, &rows, 1, None)
                .map(|reader| arrow_array::RecordBatchReader::schema(&reader).fields.clone())
        });
        let projected = projected.and_then(|projected| projected.map_err(|error| error.to_string()));
        projected.map_err(|error| format!("its columns cannot be read: {error}"))
    }

    pub fn groups(&self) -> usize {
        self.metadata.num_row_groups()
    }

    /// Number of rows of a group.
    pub fn group_rows(&self, group: usize) -> u64 {
        u64::try_from(self.metadata.row_group(group).num_rows()).unwrap_or(0)
    }

    /// How a group is divided, or why it cannot be read.
    pub fn group_ranges(&self, group: usize, limits: RowLimits) -> Result<GroupRanges, String> {
        let rows = self.group_rows(group);
        let Some(first) = self.leaves.iter().find(|leaf| !self.is_list(**leaf)).or(self.leaves.first())
        else {
            return Ok(GroupRanges { rows: RANGE_ROWS_MAX, row_bytes: 1 });
        };
        // A number of rows in a damaged footer would be a number of ranges.
        let values = self.count_values(group, *first);
        let values = values.map_err(|error| format!("{}: {error}", self.leaf_name(*first)))?;
        if values < rows {
            return Err(format!(
                "{} has {} values for {} rows",
                self.leaf_name(*first),
                show_number(values),
                show_number(rows)
            ));
        }
        let has_lists = self.leaves.iter().any(|leaf| self.is_list(*leaf));
        let factor = if has_lists { LIST_RANGE_FACTOR } else { 1 };
        let (bytes, repeated) =
            (self.unpacked_bytes(group), self.repeated_bytes(group) / limits.repeated_factor());
        let range_bytes = limits.range_bytes as u64;
        let ranges = bytes.div_ceil(range_bytes * factor).max(repeated.div_ceil(range_bytes)).max(1);
        Ok(GroupRanges {
            rows: rows.div_ceil(ranges).clamp(1, RANGE_ROWS_MAX * factor),
            row_bytes: bytes.max(repeated) / rows.max(1),
        })
    }

    /// The most bytes that texts in dictionaries have in all rows of a group, where each row repeats them.
    fn repeated_bytes(&self, group: usize) -> u64 {
        let of_leaf = |leaf: &usize| {
            let budget = Arc::new(BatchBudget::new(self.bytes_max, 1));
            let longest = self.pages(group, *leaf, &budget).map_or(0, CheckedPages::longest_in_dictionary);
            let column = self.metadata.row_group(group).columns().get(*leaf);
            let values = column.map_or(0, |column| u64::try_from(column.num_values()).unwrap_or(0));
            values.saturating_mul(longest)
        };
        self.leaves.iter().map(of_leaf).fold(0, u64::saturating_add)
    }

    /// Number of values in the pages of a column.
    fn count_values(&self, group: usize, leaf: usize) -> Result<u64, String> {
        let budget = Arc::new(BatchBudget::new(self.bytes_max, 1));
        let mut pages = self.pages(group, leaf, &budget).map_err(|error| shown(&error))?;
        let mut values = 0;
        while let Some(page) = pages.peek_next_page().map_err(|error| shown(&error))? {
            values += page.num_levels.filter(|_| !page.is_dict).unwrap_or(0) as u64;
            pages.skip_next_page().map_err(|error| shown(&error))?;
        }
        Ok(values)
    }

    fn is_list(&self, leaf: usize) -> bool {
        self.metadata.file_metadata().schema_descr().column(leaf).max_rep_level() > 0
    }

    fn leaf_name(&self, leaf: usize) -> String {
        let column = self.metadata.file_metadata().schema_descr().column(leaf);
        format!("column `{}`", column.path().string().escape_debug())
    }

    /// Bytes of the columns that are read, by the footer.
    fn unpacked_bytes(&self, group: usize) -> u64 {
        let columns = self.metadata.row_group(group).columns();
        let sizes = self.leaves.iter().filter_map(|leaf| columns.get(*leaf));
        sizes
            .map(|column| u64::try_from(column.uncompressed_size()).unwrap_or(0))
            .fold(0, u64::saturating_add)
    }

    /// Reads a range of rows of a group. An error of the data names the column.
    pub fn read_range(&self, group: usize, rows: Range<u64>, each: EachBatch<'_>) -> Result<(), RangeError> {
        let row_bytes = self.unpacked_bytes(group) / self.group_rows(group).max(1);
        let mut batch_rows = (BATCH_BYTES / row_bytes.max(1)).clamp(1, BATCH_ROWS_MAX as u64) as usize;
        let mut next = rows.start;
        loop {
            let budget = Arc::new(BatchBudget::new(self.bytes_max, batch_rows));
            let range = next..rows.end;
            let read = self.read_batches(group, &self.leaves, range.clone(), &budget, &mut |batch| {
                next += batch.num_rows() as u64;
                each(batch)
            });
            match read {
                Err(RangeError::Data(_)) if budget.is_exceeded() && batch_rows > 1 => {
                    batch_rows = (batch_rows / 8).max(1);
                }
                Err(RangeError::Data(error)) => {
                    return Err(failed(self.explain_error(group, next..rows.end, batch_rows, error)));
                }
                read => return read,
            }
        }
    }

    /// Names the column that cannot be read: each is read alone.
    fn explain_error(&self, group: usize, rows: Range<u64>, batch_rows: usize, error: String) -> String {
        for leaf in &self.leaves {
            let budget = Arc::new(BatchBudget::new(self.bytes_max, batch_rows));
            let read = self.read_batches(group, &[*leaf], rows.clone(), &budget, &mut |_| Ok(()));
            if let Err(RangeError::Data(error)) = read {
                return format!("{}: {error}", self.leaf_name(*leaf));
            }
        }
        error
    }

    fn read_batches(
        &self,
        group: usize,
        leaves: &[usize],
        rows: Range<u64>,
        budget: &Arc<BatchBudget>,
        each: EachBatch<'_>,
    ) -> Result<(), RangeError> {
        let has_lists = leaves.iter().any(|leaf| self.is_list(*leaf));
        let (mut skipped, selected) = match has_lists {
            // Pages of lists are decoded to skip rows: in batches, as the memory of each is limited.
            true => (rows.start, 0),
            false => (0, rows.start),
        };
        let mut reader = self.open_range(group, leaves, selected, skipped + rows.end - rows.start, budget)?;
        let mut left = rows.end - rows.start;
        while left > 0 {
            budget.reset();
            let batch = catch_panic(|| reader.next()).map_err(failed)?;
            let Some(batch) = batch else { return Err(failed("it has fewer rows than the footer says")) };
            let batch = batch.map_err(|error| failed(arrow_message(&error.to_string())))?;
            let first = skipped.min(batch.num_rows() as u64);
            skipped -= first;
            let count = (batch.num_rows() as u64 - first).min(left);
            if count > 0 {
                left -= count;
                each(&batch.slice(first as usize, count as usize)).map_err(RangeError::Consumer)?;
            }
        }
        Ok(())
    }

    fn open_range(
        &self,
        group: usize,
        leaves: &[usize],
        skipped: u64,
        count: u64,
        budget: &Arc<BatchBudget>,
    ) -> Result<ParquetRecordBatchReader, RangeError> {
        let schema = self.metadata.file_metadata().schema_descr();
        let mask = ProjectionMask::leaves(schema, leaves.iter().copied());
        let rows = GroupPages { rows: self, group, budget };
        let opened = catch_panic(|| {
            let levels = parquet_to_arrow_field_levels(schema, mask, Some(&self.fields))?;
            let selected = [RowSelector::skip(skipped as usize), RowSelector::select(count as usize)];
            let selection = Some(RowSelection::from(selected.to_vec()));
            ParquetRecordBatchReader::try_new_with_row_groups(&levels, &rows, budget.batch_rows, selection)
        });
        opened.map_err(failed)?.map_err(|error| failed(shown(&error)))
    }

    /// The pages of a column of a group.
    fn pages(&self, group: usize, leaf: usize, budget: &Arc<BatchBudget>) -> ParquetResult<CheckedPages> {
        let damaged = |message: &str| ParquetError::General(message.to_string());
        let group = self.metadata.row_group(group);
        let column = group.columns().get(leaf).ok_or_else(|| damaged("the footer has no such column"))?;
        if column.file_path().is_some() {
            return Err(damaged("it is in another file; index that file"));
        }
        let data = column.data_page_offset();
        let dictionary = column.dictionary_page_offset().filter(|&offset| offset > 0 && offset < data);
        let start = u64::try_from(dictionary.unwrap_or(data));
        let length = u64::try_from(column.compressed_size());
        let (Ok(start), Ok(length)) = (start, length) else {
            return Err(damaged("the footer has a negative offset or length"));
        };
        let end = start.checked_add(length).filter(|&end| end <= self.size);
        Ok(CheckedPages {
            file: Arc::clone(&self.file),
            column: column.column_descr_ptr(),
            codec: column.compression(),
            at: start,
            end: end.ok_or_else(|| damaged("it is beyond the end of the file"))?,
            values_left: u64::try_from(column.num_values()).unwrap_or(0),
            budget: Arc::clone(budget),
            next: None,
        })
    }
}

/// The message of an error without its kind.
fn shown(error: &ParquetError) -> String {
    match error {
        ParquetError::General(message) => message.clone(),
        error => error.to_string(),
    }
}

/// The message of a page, without the kinds that two libraries put before it.
fn arrow_message(message: &str) -> String {
    let message = message.strip_prefix("Parquet argument error: ").unwrap_or(message);
    message.strip_prefix("Parquet error: ").unwrap_or(message).replace('\n', " ")
}

/// The pages of a row group, for the decoder.
struct GroupPages<'p> {
    rows: &'p ParquetRows,
    group: usize,
    budget: &'p Arc<BatchBudget>,
}

impl RowGroups for GroupPages<'_> {
    fn num_rows(&self) -> usize {
        self.rows.group_rows(self.group) as usize
    }

    fn column_chunks(&self, leaf: usize) -> ParquetResult<Box<dyn PageIterator>> {
        Ok(Box::new(OneColumn(Some(self.rows.pages(self.group, leaf, self.budget)?))))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(std::iter::once(self.rows.metadata.row_group(self.group)))
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.rows.metadata
    }
}

/// The pages of one column of one row group.
struct OneColumn(Option<CheckedPages>);

impl Iterator for OneColumn {
    type Item = ParquetResult<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(Ok(Box::new(self.0.take()?)))
    }
}

impl PageIterator for OneColumn {}

/// A file without rows, for its columns.
struct NoRows<'m>(&'m ParquetMetaData);

impl RowGroups for NoRows<'_> {
    fn num_rows(&self) -> usize {
        0
    }

    fn column_chunks(&self, _leaf: usize) -> ParquetResult<Box<dyn PageIterator>> {
        Ok(Box::new(OneColumn(None)))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(std::iter::empty())
    }

    fn metadata(&self) -> &ParquetMetaData {
        self.0
    }
}
