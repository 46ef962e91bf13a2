//! Opens a file of rows and divides it into ranges.

use super::column_plan::RowPlan;
use super::ipc_message::{FILE_MAGIC, MessageStream};
use super::ipc_rows::{IpcNext, IpcRows};
use super::parquet_rows::{GroupRanges, ParquetRows};
use super::partition::partition_keys;
use super::row_file::{RangeContent, RowFile, RowRange, place};
use super::row_format::RowFormat;
use super::row_limits::RowLimits;
use super::spool::spool;
use crate::input::options::InputOptions;
use crate::input::report::{ChunkReport, ProblemKind};
use arrow_schema::Fields;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::{collections::VecDeque, fs::File, sync::Arc};
use tierdex::StopSignal;

/// Maximum rows of a range of a record batch.
const BATCH_ROWS_MAX: u64 = 32 << 10;

/// Maximum number of ranges of a record batch, which are in memory together.
const BATCH_RANGES_MAX: u64 = 4096;

/// Maximum number of a row, however many rows the groups of a damaged footer have: sums stay below 2^64.
const ROW_NUMBER_MAX: u64 = 1 << 62;

/// An open file of rows, and what is read next.
pub(in crate::input) struct RowSource {
    pub file: Arc<RowFile>,
    /// Value of the progress counter at the end of this file, in bytes.
    pub done_at: u64,
    next: NextRows,
    limits: RowLimits,
    /// Number of the next row, from 1.
    next_row: u64,
    /// Number of the current row group or record batch, from 1.
    part: u64,
}

enum NextRows {
    /// The next row of the current group, the rows of the group, and how it is divided.
    Parquet {
        next: u64,
        rows: u64,
        ranges: GroupRanges,
    },
    Ipc {
        rows: IpcRows,
        ready: VecDeque<RowRange>,
        ended: bool,
    },
}

/// The bytes of a file of rows.
pub(in crate::input) struct RowInput {
    pub format: RowFormat,
    /// The path, if it is not standard input.
    pub path: Option<PathBuf>,
    /// Its size, if it is a file that is not compressed.
    pub size: Option<u64>,
    /// The bytes in order.
    pub reader: Box<dyn Read + Send>,
    /// Display name.
    pub name: String,
    pub number: Option<u32>,
    pub done_at: u64,
}

impl RowSource {
    /// Opens a file. The error has no name of the file.
    pub fn open(
        input: RowInput,
        options: &InputOptions,
        limits: RowLimits,
        stop: &StopSignal,
    ) -> Result<RowSource, String> {
        let (format, number, done_at) = (input.format, input.number, input.done_at);
        let (name, mut keys) = (input.name.clone(), KeyColumns::of(input.path.as_deref()));
        let mut opened = OpenedRows::open(input, limits)
            .map_err(|error| format!("cannot read the {} data: {error}", format.name()))?;
        let fields = opened.fields();
        let plan = RowPlan::of(&fields, options)?;
        keys.remove_columns(&fields);
        plan.check_named(options, &keys.names())?;
        let projected = opened.project(&plan, &fields)?;
        let (next, parquet) = match opened {
            OpenedRows::Parquet(parquet) => {
                let ranges = GroupRanges { rows: 1, row_bytes: 1 };
                (NextRows::Parquet { next: 0, rows: 0, ranges }, Some(parquet))
            }
            OpenedRows::Ipc(rows) => (NextRows::Ipc { rows, ready: VecDeque::new(), ended: false }, None),
        };
        let keys = keys.divide(options);
        let file = RowFile {
            name: name.into(),
            format,
            number,
            plan: RowPlan::of(&projected, options)?,
            unindexed: plan.unindexed,
            keys: keys.members,
            other_keys: keys.others,
            document_bytes_max: limits.document_bytes_max,
            text_bytes_max: 2 * limits.decoded_bytes_max as u64 + limits.document_bytes_max as u64,
            parquet,
            stop: stop.clone(),
        };
        Ok(RowSource { file: Arc::new(file), done_at, next, limits, next_row: 1, part: 0 })
    }

    /// The next range of rows; `None` at the end. What cannot be read is a problem in the report.
    pub fn next(&mut self, report: &mut ChunkReport) -> Option<RowRange> {
        match &mut self.next {
            NextRows::Parquet { .. } => self.next_group_range(report),
            NextRows::Ipc { .. } => self.next_batch_range(report),
        }
    }

    fn next_group_range(&mut self, report: &mut ChunkReport) -> Option<RowRange> {
        let parquet = self.file.parquet.as_ref()?;
        let NextRows::Parquet { next, rows, ranges } = &mut self.next else { return None };
        while *next >= *rows {
            let group = self.part as usize;
            if group == parquet.groups() {
                return None;
            }
            self.part += 1;
            (*next, *rows) = (0, parquet.group_rows(group));
            if *rows == 0 {
                continue;
            }
            match parquet.group_ranges(group, self.limits) {
                Ok(found) => *ranges = found,
                Err(error) => {
                    let end = self.next_row.saturating_add(*rows).min(ROW_NUMBER_MAX);
                    let place = place(self.file.format, self.part, self.next_row, end);
                    report.file_problem(&self.file.name, ProblemKind::Rows, format!("{place}: {error}"));
                    (self.next_row, *next) = (end, *rows);
                }
            }
        }
        let end = next.saturating_add(ranges.rows).min(*rows);
        let content = RangeContent::Group(*next..end);
        let rows = end - *next;
        *next = end;
        let bytes = ranges.row_bytes.saturating_mul(rows);
        Some(self.range_of(content, rows, bytes))
    }

    /// The next rows of the file.
    fn range_of(&mut self, content: RangeContent, rows: u64, bytes: u64) -> RowRange {
        let first_row = self.next_row;
        self.next_row = first_row.saturating_add(rows).min(ROW_NUMBER_MAX);
        RowRange {
            file: Arc::clone(&self.file),
            content,
            part: self.part,
            first_row,
            rows,
            // Limits the ranges of a chunk, also if a damaged footer says that they have no bytes.
            bytes: bytes.max(rows).max(1),
        }
    }

    fn next_batch_range(&mut self, report: &mut ChunkReport) -> Option<RowRange> {
        let name = Arc::clone(&self.file.name);
        loop {
            let NextRows::Ipc { rows, ready, ended } = &mut self.next else { return None };
            if let Some(range) = ready.pop_front() {
                return Some(range);
            }
            if *ended {
                return None;
            }
            match rows.next() {
                IpcNext::Batch(batch) => {
                    self.part += 1;
                    let bytes = batch.bytes.max(batch.repeated_bytes / self.limits.repeated_factor());
                    let is_large = bytes > 2 * self.limits.range_bytes as u64;
                    if !is_large && batch.rows <= BATCH_ROWS_MAX {
                        let rows = batch.rows;
                        return Some(self.range_of(RangeContent::Batch(batch), rows, bytes));
                    }
                    if let Err(error) = self.divide_batch(&batch) {
                        let error = batch.explain_error(error);
                        let end = self.next_row.saturating_add(batch.rows);
                        let place = place(self.file.format, self.part, self.next_row, end);
                        report.file_problem(&name, ProblemKind::Rows, format!("{place}: {error}"));
                        self.next_row = end;
                    }
                }
                IpcNext::Damaged(error) => {
                    self.part += 1;
                    let place = place(self.file.format, self.part, self.next_row, self.next_row);
                    report.file_problem(&name, ProblemKind::Rows, format!("{place}: {error}"));
                }
                IpcNext::DamagedDictionary(error) => {
                    report.file_problem(&name, ProblemKind::Rows, format!("a dictionary: {error}"));
                }
                IpcNext::Cut(error) => {
                    *ended = true;
                    let place = place(self.file.format, self.part + 1, self.next_row, self.next_row);
                    report.file_problem(&name, ProblemKind::CutShort, format!("{place}: {error}"));
                }
                IpcNext::End => *ended = true,
            }
        }
    }

    /// Decodes a large record batch, and divides it into ranges that share its memory.
    fn divide_batch(&mut self, batch: &super::ipc_rows::IpcBatch) -> Result<(), String> {
        let decoded = batch.decode()?;
        let bytes = batch.bytes.max(batch.repeated_bytes / self.limits.repeated_factor());
        let ranges = bytes.div_ceil(self.limits.range_bytes as u64).clamp(1, BATCH_RANGES_MAX);
        let range_rows = batch.rows.div_ceil(ranges).clamp(1, BATCH_ROWS_MAX);
        let mut next = 0;
        while next < batch.rows {
            let rows = range_rows.min(batch.rows - next);
            let slice = decoded.slice(next as usize, rows as usize);
            let range = self.range_of(RangeContent::Rows(slice), rows, bytes / ranges);
            next += rows;
            if let NextRows::Ipc { ready, .. } = &mut self.next {
                ready.push_back(range);
            }
        }
        Ok(())
    }
}

/// A file whose columns are known.
enum OpenedRows {
    Parquet(ParquetRows),
    Ipc(IpcRows),
}

impl OpenedRows {
    fn open(input: RowInput, limits: RowLimits) -> Result<OpenedRows, String> {
        let file = |path: &Path| File::open(path).map_err(|error| error.to_string());
        let (seekable, mut reader) = (input.path.as_deref().zip(input.size), input.reader);
        if input.format == RowFormat::Parquet {
            let (file, size) = match seekable {
                Some((path, size)) => (file(path)?, size),
                None => spool(&mut reader)?,
            };
            return ParquetRows::open(file, size, limits.decoded_bytes_max).map(OpenedRows::Parquet);
        }
        let bytes_max = 2 * limits.decoded_bytes_max as u64;
        let by_footer = match seekable {
            Some((path, size)) => IpcRows::of_file(file(path)?, size, bytes_max),
            None => None,
        };
        if let Some(rows) = by_footer {
            return Ok(OpenedRows::Ipc(rows));
        }
        if input.format == RowFormat::ArrowFile {
            reader = skip_magic(reader).map_err(|error| error.to_string())?;
        }
        IpcRows::of_stream(MessageStream { reader, bytes_max }).map(OpenedRows::Ipc)
    }

    fn fields(&self) -> Fields {
        match self {
            OpenedRows::Parquet(parquet) => parquet.fields.clone(),
            OpenedRows::Ipc(rows) => rows.schema.fields.clone(),
        }
    }

    /// Reads the columns of a plan only, and returns them.
    fn project(&mut self, plan: &RowPlan, fields: &Fields) -> Result<Fields, String> {
        match self {
            OpenedRows::Parquet(parquet) => parquet.project(plan.leaves(fields)),
            OpenedRows::Ipc(rows) => {
                let read = plan.columns.iter().enumerate().filter(|(_, column)| plan.reads(column));
                let columns: Vec<usize> = read.map(|(number, _)| number).collect();
                let projected = columns.iter().map(|number| Arc::clone(&fields[*number])).collect();
                rows.project(columns);
                Ok(projected)
            }
        }
    }
}

/// Skips the magic number of a file and its padding, of which writers have up to this many words.
fn skip_magic(mut reader: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
    const PADDING_WORDS_MAX: usize = 16;
    let mut word = [0; FILE_MAGIC.len() + 2];
    reader.read_exact(&mut word)?;
    for _ in 0..PADDING_WORDS_MAX {
        reader.read_exact(&mut word)?;
        if word != [0; FILE_MAGIC.len() + 2] {
            break;
        }
    }
    Ok(Box::new(Cursor::new(word).chain(reader)))
}

/// Keys of the folders of a file that are read: by the number of a member, and by name with a value in JSON.
#[derive(Default)]
struct DividedKeys {
    members: Vec<(usize, String)>,
    others: Vec<(String, String)>,
}

/// Keys of the folders of a file, as columns that have one value.
struct KeyColumns(Vec<(String, String)>);

impl KeyColumns {
    fn of(path: Option<&Path>) -> KeyColumns {
        KeyColumns(path.map(partition_keys).unwrap_or_default())
    }

    /// Removes keys that the file has as columns.
    fn remove_columns(&mut self, fields: &Fields) {
        self.0.retain(|(key, _)| fields.find(key).is_none());
    }

    fn names(&self) -> Vec<String> {
        self.0.iter().map(|(key, _)| key.clone()).collect()
    }

    /// Those that are members of the schema, and those that are stored, in JSON.
    fn divide(self, options: &InputOptions) -> DividedKeys {
        let DividedKeys { mut members, mut others } = DividedKeys::default();
        for (key, value) in self.0 {
            match options.members.of_path(&key) {
                Some(member) => members.push((member, value)),
                None if options.members.keeps_others => {
                    others.push((key, serde_json::Value::from(value).to_string()));
                }
                None => {}
            }
        }
        DividedKeys { members, others }
    }
}
