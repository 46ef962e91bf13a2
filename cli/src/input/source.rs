//! Reads the inputs and yields chunks.
//!
//! One file is open at a time. A file of lines yields chunks of its own; text files are collected into a
//! batch of about the size of a chunk.

use super::chunk::{ChunkBody, InputChunk, LineFormat, TextFile, TsvLayout};
use super::columnar::{RowFormat, RowInput, RowLimits, RowSource};
use super::json_layout::{self, JsonLayout};
use super::line_chunker::{ChunkSizes, LineChunker};
use super::line_file::{LineFile, too_long_message};
use super::members::InputMembers;
use super::open::{Compression, OpenInput};
use super::options::{InputFormat, InputOptions};
use super::report::{ChunkReport, ProblemKind};
use super::text::{self, TextContent};
use super::walk::{self, InputEntry, InputList, InputLocation, ListedFile, SkippedEntries};
use super::{file_kind, name::display_name, parse, text_pieces::TextPieces};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tierdex::StopSignal;

/// Memory for decoded rows, unless it is limited by that of the writer, and the least, in bytes.
const DECODED_BYTES_DEFAULT: usize = 128 << 20;
const DECODED_BYTES_MIN: usize = 4 << 20;

/// The inputs as a sequence of chunks.
pub struct InputSource {
    entries: std::vec::IntoIter<InputEntry>,
    skipped: SkippedEntries,
    folders: Vec<PathBuf>,
    unreadable: Vec<PathBuf>,
    /// The arguments, and the directory that is not read.
    inputs: Vec<PathBuf>,
    output: Option<PathBuf>,
    format: Option<InputFormat>,
    /// Whether the user has given the columns of TSV files.
    has_columns: bool,
    members: Arc<InputMembers>,
    options: InputOptions,
    sizes: ChunkSizes,
    total: Option<u64>,
    consumed: Arc<AtomicU64>,
    /// The open file of lines.
    current: Option<LineFile>,
    /// Maximum bytes of a document of a text file, which is split then.
    split: Option<usize>,
    /// The open text file that is read in pieces.
    pieces: Option<TextPieces>,
    batch: TextFileBatch,
    /// The open file of rows.
    rows: Option<RowSource>,
    /// Memory for decoded rows, in bytes.
    decoded_bytes_max: usize,
    /// Problems since the last chunk.
    report: ChunkReport,
    /// Whether reports list all problems.
    list_all: bool,
    stop: StopSignal,
}

impl InputSource {
    /// Lists the inputs and validates the options. The error message is one line and says what to change.
    pub fn open(inputs: &[PathBuf], options: &InputOptions) -> Result<InputSource, String> {
        InputSource::open_with_sizes(inputs, options, ChunkSizes::default())
    }

    pub(super) fn open_with_sizes(
        inputs: &[PathBuf],
        options: &InputOptions,
        sizes: ChunkSizes,
    ) -> Result<InputSource, String> {
        options.check()?;
        if let Some(csv) = inputs.iter().find(|input| options.format.is_none() && is_csv(input)) {
            return Err(format!(
                "{}: CSV is not supported; convert it to TSV or JSON lines, or give --format tsv for tab-separated \
                 columns, --format text for one document",
                display_name(csv)
            ));
        }
        let InputList { entries, skipped, folders, unreadable } =
            walk::expand_inputs(inputs, options.output.as_deref())?;
        Ok(InputSource {
            total: sum_file_sizes(&entries),
            entries: entries.into_iter(),
            skipped,
            folders,
            unreadable,
            inputs: inputs.to_vec(),
            output: options.output.clone(),
            format: options.format,
            has_columns: options.columns.is_some(),
            members: Arc::new(options.members.clone()),
            options: options.clone(),
            sizes,
            consumed: Arc::default(),
            current: None,
            split: options.split,
            pieces: None,
            batch: TextFileBatch::default(),
            rows: None,
            decoded_bytes_max: DECODED_BYTES_DEFAULT,
            report: ChunkReport { list_all: options.list_all, ..ChunkReport::default() },
            list_all: options.list_all,
            stop: StopSignal::default(),
        })
    }

    /// The arguments that are folders.
    pub fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// Files and folders in folders that cannot be read.
    pub fn unreadable(&self) -> &[PathBuf] {
        &self.unreadable
    }

    /// Lists the inputs again, before the first chunk.
    pub fn list_again(&mut self) -> Result<(), String> {
        let list = walk::expand_inputs(&self.inputs, self.output.as_deref())?;
        self.total = sum_file_sizes(&list.entries);
        (self.entries, self.skipped) = (list.entries.into_iter(), list.skipped);
        (self.folders, self.unreadable) = (list.folders, list.unreadable);
        Ok(())
    }

    /// Calls `select` with each file that was found in a folder: its path, size in bytes, and time of the
    /// last change in nanoseconds. Files for which it is `None` are not read; the reports of the others name
    /// the documents that were read from them by the number that `select` returns.
    pub fn select_files(&mut self, mut select: impl FnMut(&Path, u64, i64) -> Option<u32>) {
        let mut entries: Vec<InputEntry> = std::mem::take(&mut self.entries).collect();
        entries.retain_mut(|entry| match entry {
            InputEntry::File(ListedFile {
                location: InputLocation::Path(path),
                size: Some(size),
                modified: Some(modified),
                number,
                ..
            }) => {
                *number = select(path, *size, *modified);
                number.is_some()
            }
            _ => true,
        });
        self.total = sum_file_sizes(&entries);
        self.entries = entries.into_iter();
    }

    /// Size of all inputs on disk, in bytes; `None` if one of them is a stream.
    pub fn total_bytes(&self) -> Option<u64> {
        self.total
    }

    /// Directory entries that were skipped.
    pub fn skipped_entries(&self) -> SkippedEntries {
        self.skipped
    }

    /// Makes reads fail once `stop` is raised.
    pub fn stop_on(&mut self, stop: StopSignal) {
        self.stop = stop;
    }

    /// Skips lines and files of more than `bytes_max` bytes, without holding one in memory.
    pub fn limit_documents(&mut self, bytes_max: usize) {
        self.sizes.document_bytes_max = self.sizes.document_bytes_max.min(bytes_max);
    }

    /// Limits the memory of the decoded rows of a Parquet or Arrow file, for each thread.
    pub fn limit_decoding(&mut self, bytes_max: usize) {
        self.decoded_bytes_max = bytes_max.max(DECODED_BYTES_MIN);
    }

    /// A counter of how many of the [`InputSource::total_bytes`] have been processed.
    pub fn progress(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.consumed)
    }

    /// The next chunk; `None` after the last. The error message is one line and names the file.
    #[allow(clippy::should_implement_trait, reason = "an iterator would go on after an error")]
    pub fn next(&mut self) -> Result<Option<InputChunk>, String> {
        loop {
            if let Some(chunk) = self.next_lines()? {
                return Ok(Some(chunk));
            }
            if let Some(chunk) = self.next_piece()? {
                return Ok(Some(chunk));
            }
            if let Some(chunk) = self.next_rows() {
                return Ok(Some(chunk));
            }
            match self.entries.next() {
                Some(InputEntry::File(file)) => self.open_file(file)?,
                Some(InputEntry::Problem(problem)) => {
                    // Not a problem of the file before.
                    self.report.file = None;
                    self.report.problem(problem.kind, || problem);
                }
                None => return Ok(self.take_batch()),
            }
            if self.batch.cost >= self.sizes.chunk_bytes
                || (self.has_open_file() && !self.batch.files.is_empty())
            {
                return Ok(self.take_batch());
            }
        }
    }

    fn has_open_file(&self) -> bool {
        self.current.is_some() || self.pieces.is_some() || self.rows.is_some()
    }

    fn new_report(&self) -> ChunkReport {
        ChunkReport { list_all: self.list_all, ..ChunkReport::default() }
    }

    fn take_report(&mut self) -> ChunkReport {
        let empty = self.new_report();
        std::mem::replace(&mut self.report, empty)
    }

    /// The next chunk of the open file of lines, which is closed at its end.
    fn next_lines(&mut self) -> Result<Option<InputChunk>, String> {
        let Some(mut file) = self.current.take() else { return Ok(None) };
        self.report.file = file.number;
        match file.next(&mut self.report) {
            Ok(Some(lines)) => {
                self.current = Some(file);
                let report = self.take_report();
                return Ok(Some(InputChunk { body: ChunkBody::Lines(lines), report }));
            }
            Ok(None) => {}
            Err(error) => self.report_or_fail(
                file.named,
                &file.name,
                ProblemKind::CutShort,
                file.compression.explain_error(&error),
            )?,
        }
        self.consumed.fetch_max(file.done_at, Ordering::Relaxed);
        Ok(None)
    }

    /// The next piece of the open text file, which is closed at its end.
    fn next_piece(&mut self) -> Result<Option<InputChunk>, String> {
        let Some(mut file) = self.pieces.take() else { return Ok(None) };
        self.report.file = file.number;
        match file.next() {
            Ok(Some(piece)) => {
                self.pieces = Some(file);
                let report = self.take_report();
                return Ok(Some(InputChunk { body: ChunkBody::Files(vec![piece]), report }));
            }
            Ok(None) if file.replaced => {
                self.report.file_problem(&file.name, ProblemKind::Replaced, parse::replaced_bytes_message());
            }
            Ok(None) => {}
            Err(error) => self.report_or_fail(
                file.named,
                &file.name,
                ProblemKind::CutShort,
                file.compression.explain_error(&error),
            )?,
        }
        self.consumed.fetch_max(file.done_at, Ordering::Relaxed);
        Ok(None)
    }

    /// The next rows of the open file of rows, which is closed at its end.
    fn next_rows(&mut self) -> Option<InputChunk> {
        let mut source = self.rows.take()?;
        self.report.file = source.file.number;
        let (mut ranges, mut bytes) = (Vec::new(), 0);
        while bytes < self.sizes.chunk_bytes as u64 {
            let Some(range) = source.next(&mut self.report) else { break };
            bytes = range.bytes.saturating_add(bytes);
            ranges.push(range);
        }
        if ranges.is_empty() {
            self.consumed.fetch_max(source.done_at, Ordering::Relaxed);
            return None;
        }
        self.rows = Some(source);
        Some(InputChunk { body: ChunkBody::Rows(ranges), report: self.take_report() })
    }

    /// Opens a file of rows, or reports its problem.
    fn open_rows(
        &mut self,
        file: &ListedFile,
        name: String,
        format: RowFormat,
        opened: OpenInput,
        done_at: u64,
    ) -> Result<(), String> {
        let path = match &file.location {
            InputLocation::StandardInput => None,
            InputLocation::Path(path) => Some(path.clone()),
        };
        let size = file.size.filter(|_| opened.compression == Compression::Plain);
        let (reader, number) = (opened.reader, file.number);
        let input = RowInput { format, path, size, reader, name: name.clone(), number, done_at };
        let limits = RowLimits {
            decoded_bytes_max: self.decoded_bytes_max,
            document_bytes_max: self.sizes.document_bytes_max,
            range_bytes: self.sizes.chunk_bytes,
        };
        match RowSource::open(input, &self.options, limits, &self.stop) {
            Ok(source) => self.rows = Some(source),
            Err(message) => {
                self.consumed.fetch_max(done_at, Ordering::Relaxed);
                return self.report_or_fail(file.named, &name, ProblemKind::Unreadable, message);
            }
        }
        Ok(())
    }

    /// The collected text files and the report; `None` if both are empty.
    fn take_batch(&mut self) -> Option<InputChunk> {
        let files = std::mem::take(&mut self.batch).files;
        let report = ChunkReport { file: None, ..self.take_report() };
        let empty = files.is_empty() && report == self.new_report();
        (!empty).then_some(InputChunk { body: ChunkBody::Files(files), report })
    }

    /// Opens a file. A file of lines becomes `current`; a text file is read into the batch.
    fn open_file(&mut self, file: ListedFile) -> Result<(), String> {
        let name = file.name();
        self.report.file = file.number;
        let done_at = self.consumed.load(Ordering::Relaxed).saturating_add(file.size.unwrap_or(0));
        let opened = match OpenInput::open(&file, &self.consumed, &self.stop) {
            Ok(opened) => opened,
            Err(error) => {
                self.consumed.fetch_max(done_at, Ordering::Relaxed);
                return self.report_or_fail(
                    file.named,
                    &name,
                    ProblemKind::Unreadable,
                    Compression::Plain.explain_error(&error),
                );
            }
        };
        let (head, opened) = opened.peek(file_kind::INSPECTED_BYTES);
        let path = if matches!(file.location, InputLocation::StandardInput) { "FILE" } else { &name };
        if let Some(message) = file_kind::advise_conversion(&head, path, opened.compression) {
            self.report.file_problem(&name, binary_problem_kind(&file), message);
            self.consumed.fetch_max(done_at, Ordering::Relaxed);
            return Ok(());
        }
        if let Some(format) = RowFormat::detect(&head, self.known_format(&file, &name)) {
            return self.open_rows(&file, name, format, opened, done_at);
        }
        let (layout, opened) = self.json_layout(&file, &name, opened);
        let is_converted =
            opened.compression != Compression::Plain || matches!(file.location, InputLocation::StandardInput);
        if let Some(advice) = layout.conversion_advice((!is_converted).then_some(&*name)) {
            self.consumed.fetch_max(done_at, Ordering::Relaxed);
            return self.report_or_fail(file.named, &name, ProblemKind::NotLines, advice);
        }
        let format = match self.known_format(&file, &name) {
            Some(format) => format,
            None if layout == JsonLayout::Lines => InputFormat::JsonLines,
            None => InputFormat::Text,
        };
        match format {
            InputFormat::Text | InputFormat::Parquet | InputFormat::Arrow => {
                self.read_text_file(&file, name, opened, done_at)?;
                if self.pieces.is_none() {
                    self.consumed.fetch_max(done_at, Ordering::Relaxed);
                }
            }
            InputFormat::JsonLines => {
                self.current = Some(self.line_file(&file, name, opened, LineFormat::Json, done_at))
            }
            InputFormat::Tsv => {
                // The columns are inferred from the first line that is not blank.
                let format = LineFormat::Tsv(TsvLayout::default());
                self.current = Some(self.line_file(&file, name, opened, format, done_at));
            }
        }
        Ok(())
    }

    /// The layout of a file that is or may be JSON lines. Files in folders without a known extension are
    /// text files and are not inspected.
    fn json_layout(&self, file: &ListedFile, name: &str, opened: OpenInput) -> (JsonLayout, OpenInput) {
        match self.known_format(file, name) {
            Some(InputFormat::Text | InputFormat::Tsv | InputFormat::Parquet | InputFormat::Arrow) => {
                (JsonLayout::Other, opened)
            }
            None if !file.named => (JsonLayout::Other, opened),
            Some(InputFormat::JsonLines) | None => {
                let (head, opened) = opened.peek(json_layout::INSPECTED_BYTES);
                (JsonLayout::detect(&head), opened)
            }
        }
    }

    /// The format given by the user or by the file extension. A stream without a known extension is JSON
    /// lines.
    fn known_format(&self, file: &ListedFile, name: &str) -> Option<InputFormat> {
        let by_name = match file.location {
            InputLocation::StandardInput => None,
            InputLocation::Path(_) => InputFormat::from_file_name(name),
        };
        self.format.or(by_name).or(file.size.is_none().then_some(InputFormat::JsonLines))
    }

    fn line_file(
        &self,
        file: &ListedFile,
        name: String,
        opened: OpenInput,
        format: LineFormat,
        done_at: u64,
    ) -> LineFile {
        let chunker = LineChunker::new(opened.reader, self.sizes);
        let (name, compression, named) = (name.into(), opened.compression, file.named);
        let (has_columns, members) = (self.has_columns, Arc::clone(&self.members));
        LineFile {
            name,
            compression,
            named,
            number: file.number,
            format,
            has_columns,
            members,
            chunker,
            done_at,
        }
    }

    /// Reads a text file into the batch, or reports its problem. A large file that is split is read in
    /// pieces.
    fn read_text_file(
        &mut self,
        file: &ListedFile,
        name: String,
        opened: OpenInput,
        done_at: u64,
    ) -> Result<(), String> {
        let OpenInput { compression, mut reader } = opened;
        let part_bytes_max = self.split.filter(|&part| part <= self.sizes.document_bytes_max);
        let bytes_max = match part_bytes_max {
            Some(_) => TextPieces::BYTES.min(self.sizes.document_bytes_max),
            None => self.sizes.document_bytes_max,
        };
        let read = text::read_text(&mut reader, file.size, bytes_max);
        let read = match read {
            Ok(read) => read,
            Err(error) => {
                return self.report_or_fail(
                    file.named,
                    &name,
                    ProblemKind::Unreadable,
                    compression.explain_error(&error),
                );
            }
        };
        match read {
            TextContent::Text(bytes) => {
                let (title, number) = (file.title(), file.number);
                self.batch.push_file(TextFile { id: name, title, bytes, first_part: None, number })
            }
            TextContent::TooLong(bytes) if let Some(part_bytes_max) = part_bytes_max => {
                let (title, number) = (file.title(), file.number);
                let text = TextFile { id: name, title, bytes, first_part: None, number };
                let pieces = TextPieces::new(text, reader, part_bytes_max, compression, file.named, done_at);
                self.pieces = Some(pieces);
            }
            TextContent::Binary => {
                let advice = if file.named { "; for JSON lines or TSV give --format" } else { "" };
                let message = format!("binary file{advice}");
                self.report.file_problem(&name, binary_problem_kind(file), message);
            }
            TextContent::TooLong(_) => {
                let message = too_long_message("the file", self.sizes.document_bytes_max);
                self.report.file_problem(&name, ProblemKind::TooLarge, message);
            }
        }
        Ok(())
    }

    /// Reports a problem of a file in a folder. For a file argument, or once the stop flag is raised,
    /// returns an error.
    fn report_or_fail(
        &mut self,
        named: bool,
        name: &str,
        kind: ProblemKind,
        message: String,
    ) -> Result<(), String> {
        if named || self.stop.check().is_err() {
            return Err(format!("{name}: {message}"));
        }
        self.report.file_problem(name, kind, message);
        Ok(())
    }
}

fn binary_problem_kind(file: &ListedFile) -> ProblemKind {
    if file.named { ProblemKind::Binary } else { ProblemKind::BinaryInFolder }
}

fn is_csv(input: &Path) -> bool {
    InputFormat::file_extension(&display_name(input))
        .is_some_and(|extension| extension.eq_ignore_ascii_case("csv"))
        && !input.is_dir()
}

fn sum_file_sizes(entries: &[InputEntry]) -> Option<u64> {
    entries.iter().try_fold(0u64, |total, entry| match entry {
        InputEntry::File(file) => file.size.map(|size| total.saturating_add(size)),
        InputEntry::Problem(_) => Some(total),
    })
}

/// Text files of the next chunk.
#[derive(Default)]
struct TextFileBatch {
    files: Vec<TextFile>,
    /// Approximate memory in bytes. It includes a constant per file, which bounds the number of empty files.
    cost: usize,
}

impl TextFileBatch {
    fn push_file(&mut self, file: TextFile) {
        self.cost += size_of::<TextFile>() + file.id.len() + file.title.len() + file.bytes.len();
        self.files.push(file);
    }
}
