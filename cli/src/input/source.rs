//! The reading half: arguments in, pieces out.
//!
//! One file is open at a time. Files of lines give pieces of their own; plain files are gathered into a batch
//! until it is about as large as a piece.

use super::lines::{Cut, Cutter, Sizes};
use super::open::{Opened, Packing};
use super::options::{Format, InputOptions};
use super::piece::{Body, LineFormat, Lines, Piece, TextFile};
use super::report::{PieceReport, Problem, ProblemKind};
use super::text::{self, PlainFile};
use super::tsv;
use super::walk::{self, Entry, InputFile, PassedOver, Place};
use crate::size;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tierdex::index::Stop;

/// The inputs as a sequence of pieces.
pub struct Source {
    entries: std::vec::IntoIter<Entry>,
    passed_over: PassedOver,
    format: Option<Format>,
    sizes: Sizes,
    total: Option<u64>,
    consumed: Arc<AtomicU64>,
    /// The file of lines that is being read.
    current: Option<LineFile>,
    batch: Batch,
    /// What was noticed since the last piece.
    report: PieceReport,
    stop: Stop,
}

impl Source {
    /// Lists the inputs and checks the options. The error is one line that says what to change.
    pub fn open(inputs: &[PathBuf], options: &InputOptions) -> Result<Source, String> {
        Source::with_sizes(inputs, options, Sizes::default())
    }

    pub(super) fn with_sizes(
        inputs: &[PathBuf],
        options: &InputOptions,
        sizes: Sizes,
    ) -> Result<Source, String> {
        options.check()?;
        let (entries, passed_over) = walk::expand(inputs, options.output.as_deref())?;
        Ok(Source {
            total: total(&entries),
            entries: entries.into_iter(),
            passed_over,
            format: options.format,
            sizes,
            consumed: Arc::default(),
            current: None,
            batch: Batch::default(),
            report: PieceReport::default(),
            stop: Stop::default(),
        })
    }

    /// Bytes of all inputs as they stand on disk; `None` when one of them is a stream.
    pub fn total_bytes(&self) -> Option<u64> {
        self.total
    }

    /// What is passed over in folders.
    pub fn passed_over(&self) -> PassedOver {
        self.passed_over
    }

    /// Makes reading end with an error when `stop` is raised.
    pub fn stop_on(&mut self, stop: Stop) {
        self.stop = stop;
    }

    /// Passes over lines and files of more than `bytes_max` bytes, and never holds one in memory.
    pub fn limit_documents(&mut self, bytes_max: usize) {
        self.sizes.document_max = self.sizes.document_max.min(bytes_max);
    }

    /// Counts the bytes of [`Source::total_bytes`] that are done with.
    pub fn progress(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.consumed)
    }

    /// The next piece; `None` after the last. The error is one line that names the file.
    #[allow(clippy::should_implement_trait, reason = "an iterator would go on after an error")]
    pub fn next(&mut self) -> Result<Option<Piece>, String> {
        loop {
            if let Some(piece) = self.next_lines()? {
                return Ok(Some(piece));
            }
            match self.entries.next() {
                Some(Entry::File(file)) => self.start(file)?,
                Some(Entry::Problem(problem)) => self.report.problem(problem.kind, || problem),
                None => return Ok(self.take_batch()),
            }
            if self.batch.cost >= self.sizes.piece || (self.current.is_some() && !self.batch.files.is_empty())
            {
                return Ok(self.take_batch());
            }
        }
    }

    /// The next piece of the current file of lines, which is closed at its end.
    fn next_lines(&mut self) -> Result<Option<Piece>, String> {
        let Some(mut file) = self.current.take() else { return Ok(None) };
        match file.next(&mut self.report) {
            Ok(Some(lines)) => {
                self.current = Some(file);
                let report = std::mem::take(&mut self.report);
                return Ok(Some(Piece { body: Body::Lines(lines), report }));
            }
            Ok(None) => {}
            Err(error) => {
                self.give_up(file.named, &file.name, ProblemKind::CutShort, file.packing, &error)?
            }
        }
        self.consumed.fetch_max(file.done_at, Ordering::Relaxed);
        Ok(None)
    }

    /// What was gathered of plain files, with what is to be noted; `None` when there is neither.
    fn take_batch(&mut self) -> Option<Piece> {
        let files = std::mem::take(&mut self.batch).files;
        let report = std::mem::take(&mut self.report);
        let empty = files.is_empty() && report == PieceReport::default();
        (!empty).then_some(Piece { body: Body::Files(files), report })
    }

    /// Opens a file: one of lines becomes current, a plain one is read into the batch.
    fn start(&mut self, file: InputFile) -> Result<(), String> {
        let name = file.name();
        let done_at = self.consumed.load(Ordering::Relaxed).saturating_add(file.size.unwrap_or(0));
        let opened = match Opened::open(&file, &self.consumed, &self.stop) {
            Ok(opened) => opened,
            Err(error) => {
                self.consumed.fetch_max(done_at, Ordering::Relaxed);
                return self.give_up(file.named, &name, ProblemKind::Unreadable, Packing::Plain, &error);
            }
        };
        match self.format.unwrap_or_else(|| usual_format(&file, &name)) {
            Format::Text => {
                self.gather(&file, name, opened)?;
                self.consumed.fetch_max(done_at, Ordering::Relaxed);
            }
            Format::JsonLines => {
                self.current = Some(self.lines(&file, name, opened, LineFormat::Json, done_at))
            }
            Format::Tsv => {
                // Until a line that is not blank tells the columns, none are needed.
                self.current = Some(self.lines(&file, name, opened, LineFormat::Tsv(&[]), done_at));
            }
        }
        Ok(())
    }

    fn lines(
        &self,
        file: &InputFile,
        name: String,
        opened: Opened,
        format: LineFormat,
        done_at: u64,
    ) -> LineFile {
        let cutter = Cutter::new(opened.reader, self.sizes);
        let (name, packing, named) = (name.into(), opened.packing, file.named);
        LineFile { name, packing, named, format, cutter, done_at }
    }

    /// Reads a plain file into the batch, or notes why not.
    fn gather(&mut self, file: &InputFile, name: String, opened: Opened) -> Result<(), String> {
        let packing = opened.packing;
        let read = text::read(opened.reader, file.size, self.sizes.document_max);
        let read = match read {
            Ok(read) => read,
            Err(error) => {
                return self.give_up(file.named, &name, ProblemKind::Unreadable, packing, &error);
            }
        };
        match read {
            PlainFile::Text(bytes) => self.batch.push(TextFile { id: name, title: file.title(), bytes }),
            PlainFile::Binary if !file.named => drop(self.report.counts.increment(ProblemKind::Binary)),
            PlainFile::Binary => {
                let message = "binary, not text; for lines of JSON or TSV name the format";
                self.report.file_problem(&name, ProblemKind::Binary, message);
            }
            PlainFile::TooLong => {
                let message = too_long("the file", self.sizes.document_max);
                self.report.file_problem(&name, ProblemKind::TooLarge, message);
            }
        }
        Ok(())
    }

    /// Notes that a file cannot be read further; one that the user named, or a stop, ends the run instead.
    fn give_up(
        &mut self,
        named: bool,
        name: &str,
        kind: ProblemKind,
        packing: Packing,
        error: &io::Error,
    ) -> Result<(), String> {
        let message = packing.explain(error);
        if named || self.stop.check().is_err() {
            return Err(format!("{name}: {message}"));
        }
        self.report.file_problem(name, kind, message);
        Ok(())
    }
}

/// The format of a file when the user forces none. A stream without a telling name is taken for JSON lines.
fn usual_format(file: &InputFile, name: &str) -> Format {
    let fallback = if file.size.is_none() { Format::JsonLines } else { Format::Text };
    match file.place {
        Place::StandardInput => fallback,
        Place::Path(_) => Format::of_name(name).unwrap_or(fallback),
    }
}

fn total(entries: &[Entry]) -> Option<u64> {
    entries.iter().try_fold(0u64, |total, entry| match entry {
        Entry::File(file) => file.size.map(|size| total.saturating_add(size)),
        Entry::Problem(_) => Some(total),
    })
}

/// Plain files that wait to become a piece.
#[derive(Default)]
struct Batch {
    files: Vec<TextFile>,
    /// Bytes of memory, about: many empty files must not grow a piece without end.
    cost: usize,
}

impl Batch {
    fn push(&mut self, file: TextFile) {
        self.cost += size_of::<TextFile>() + file.id.len() + file.title.len() + file.bytes.len();
        self.files.push(file);
    }
}

/// An open file of lines.
struct LineFile {
    name: Arc<str>,
    packing: Packing,
    /// Whether the user named it, rather than a folder around it.
    named: bool,
    format: LineFormat,
    cutter: Cutter,
    /// What the count of consumed bytes must reach with this file's end.
    done_at: u64,
}

impl LineFile {
    fn next(&mut self, report: &mut PieceReport) -> io::Result<Option<Lines>> {
        let Some(Cut { first, bytes, too_long }) = self.cutter.next()? else { return Ok(None) };
        for line in too_long {
            report.problem(ProblemKind::TooLarge, || self.too_long(line));
        }
        let mut lines = Lines { file: Arc::clone(&self.name), format: self.format, first, bytes };
        if self.format == LineFormat::Tsv(&[]) {
            self.format = LineFormat::Tsv(tsv::usual_columns(lines.content()));
            lines.format = self.format;
        }
        Ok(Some(lines))
    }

    fn too_long(&self, line: u64) -> Problem {
        let (kind, message) = (ProblemKind::TooLarge, too_long("the line", self.cutter.document_max()));
        Problem { file: self.name.to_string(), line: Some(line), kind, message }
    }
}

fn too_long(what: &str, bytes_max: usize) -> String {
    let bytes_max = size::group(bytes_max as u64);
    format!("{what} is longer than a document may be ({bytes_max} bytes; more memory allows more)")
}
