//! The reading half: arguments in, pieces out.
//!
//! One file is open at a time. Files of lines give pieces of their own; plain files are gathered into a batch
//! until it is about as large as a piece.

use super::line_file::{LineFile, too_long};
use super::lines::{Cutter, Sizes};
use super::name::display_name;
use super::open::{Opened, Packing};
use super::options::{Format, InputOptions};
use super::piece::{Body, LineFormat, Piece, TextFile};
use super::report::{PieceReport, ProblemKind};
use super::shape::{self, Shape};
use super::text::{self, PlainFile};
use super::walk::{self, Entry, InputFile, PassedOver, Place};
use std::path::{Path, PathBuf};
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
        if let Some(csv) = inputs.iter().find(|input| options.format.is_none() && is_csv(input)) {
            return Err(format!(
                "{}: CSV is not read; convert it to TSV or JSON lines, or name a format: --format tsv for columns \
                 that tabs separate, --format text for one document",
                display_name(csv)
            ));
        }
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
                self.pass_over(file.named, &file.name, ProblemKind::CutShort, file.packing.explain(&error))?
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
                return self.pass_over(
                    file.named,
                    &name,
                    ProblemKind::Unreadable,
                    Packing::Plain.explain(&error),
                );
            }
        };
        let (shape, opened) = self.shape(&file, &name, opened);
        let packed = opened.packing != Packing::Plain || matches!(file.place, Place::StandardInput);
        if let Some(advice) = shape.advice((!packed).then_some(&*name)) {
            self.consumed.fetch_max(done_at, Ordering::Relaxed);
            return self.pass_over(file.named, &name, ProblemKind::NotLines, advice);
        }
        let format = match self.told_format(&file, &name) {
            Some(format) => format,
            None if shape == Shape::JsonLines => Format::JsonLines,
            None => Format::Text,
        };
        match format {
            Format::Text => {
                self.gather(&file, name, opened)?;
                self.consumed.fetch_max(done_at, Ordering::Relaxed);
            }
            Format::JsonLines => {
                self.current = Some(self.lines(&file, name, opened, LineFormat::Json, done_at))
            }
            Format::Tsv => {
                // Until a line that is not blank tells the columns, none are needed.
                let format = LineFormat::Tsv(Arc::default());
                self.current = Some(self.lines(&file, name, opened, format, done_at));
            }
        }
        Ok(())
    }

    /// The form of what is or may be JSON lines. The files of a folder are texts unless their names say
    /// otherwise.
    fn shape(&self, file: &InputFile, name: &str, opened: Opened) -> (Shape, Opened) {
        match self.told_format(file, name) {
            Some(Format::Text | Format::Tsv) => (Shape::Other, opened),
            None if !file.named => (Shape::Other, opened),
            Some(Format::JsonLines) | None => {
                let (head, opened) = opened.peek(shape::HEAD_BYTES);
                (Shape::of(&head), opened)
            }
        }
    }

    /// The format that the user or the name of a file tells. A stream without a telling name is JSON lines.
    fn told_format(&self, file: &InputFile, name: &str) -> Option<Format> {
        let by_name = match file.place {
            Place::StandardInput => None,
            Place::Path(_) => Format::of_name(name),
        };
        self.format.or(by_name).or(file.size.is_none().then_some(Format::JsonLines))
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
                return self.pass_over(file.named, &name, ProblemKind::Unreadable, packing.explain(&error));
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

    /// Notes a problem of a file; one of a file that the user named, or a stop, ends the run instead.
    fn pass_over(
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

fn is_csv(input: &Path) -> bool {
    Format::ending(&display_name(input)).is_some_and(|ending| ending.eq_ignore_ascii_case("csv"))
        && !input.is_dir()
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
