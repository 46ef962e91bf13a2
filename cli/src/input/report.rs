//! Report on the input: documents, bytes and problems.

use super::unindexed::Unindexed;
use std::fmt;
use std::ops::{AddAssign, Index};

/// Kind of a problem. Problems are counted by kind, and the first ones of each kind are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProblemKind {
    /// A line that is not a JSON object.
    Json,
    /// An object without text, and with other members than id and title.
    NoText,
    /// A member of a wrong type.
    Member,
    /// An id with control characters or line separators.
    Id,
    /// A line with too few columns.
    Columns,
    /// A line that is not UTF-8.
    Encoding,
    /// A document, a line or an id above the limits of the index.
    TooLarge,
    /// A file or folder that cannot be read.
    Unreadable,
    /// A JSON file in another layout than one object per line.
    NotLines,
    /// A file of lines that can be read only in part. The lines before the error are indexed.
    CutShort,
    /// Rows of a Parquet or Arrow file that cannot be decoded.
    Rows,
    /// A file argument that is not text.
    Binary,
    /// A file in a folder that is not text.
    BinaryInFolder,
    /// A text file with invalid UTF-8. It is indexed, with U+FFFD in place of invalid bytes.
    Replaced,
}

impl ProblemKind {
    /// Kinds of malformed lines.
    pub const MALFORMED: [ProblemKind; 6] = [
        ProblemKind::Json,
        ProblemKind::NoText,
        ProblemKind::Member,
        ProblemKind::Id,
        ProblemKind::Columns,
        ProblemKind::Encoding,
    ];

    /// All kinds, in the order of their declaration.
    pub const ALL: [ProblemKind; ProblemKind::COUNT] = [
        ProblemKind::Json,
        ProblemKind::NoText,
        ProblemKind::Member,
        ProblemKind::Id,
        ProblemKind::Columns,
        ProblemKind::Encoding,
        ProblemKind::TooLarge,
        ProblemKind::Unreadable,
        ProblemKind::NotLines,
        ProblemKind::CutShort,
        ProblemKind::Rows,
        ProblemKind::Binary,
        ProblemKind::BinaryInFolder,
        ProblemKind::Replaced,
    ];

    /// The name in JSON output.
    pub fn name(self) -> &'static str {
        match self {
            ProblemKind::Json => "json",
            ProblemKind::NoText => "no-text",
            ProblemKind::Member => "member",
            ProblemKind::Id => "id",
            ProblemKind::Columns => "columns",
            ProblemKind::Encoding => "encoding",
            ProblemKind::TooLarge => "too-large",
            ProblemKind::Unreadable => "unreadable",
            ProblemKind::NotLines => "not-lines",
            ProblemKind::CutShort => "cut-short",
            ProblemKind::Rows => "rows",
            ProblemKind::Binary | ProblemKind::BinaryInFolder => "binary",
            ProblemKind::Replaced => "replaced",
        }
    }

    const COUNT: usize = ProblemKind::Replaced as usize + 1;

    /// Whether the problem ends a run with `--on-error fail`: something that should be in the index is not.
    pub fn is_loss(self) -> bool {
        !matches!(self, ProblemKind::Replaced | ProblemKind::BinaryInFolder)
    }
}

/// Number of problems by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProblemCounts([u64; ProblemKind::COUNT]);

impl ProblemCounts {
    /// Increments the count of a kind and returns it.
    pub fn increment(&mut self, kind: ProblemKind) -> u64 {
        self.0[kind as usize] += 1;
        self.0[kind as usize]
    }
}

impl Index<ProblemKind> for ProblemCounts {
    type Output = u64;

    fn index(&self, kind: ProblemKind) -> &u64 {
        &self.0[kind as usize]
    }
}

impl AddAssign for ProblemCounts {
    fn add_assign(&mut self, other: ProblemCounts) {
        self.0.iter_mut().zip(other.0).for_each(|(count, more)| *count += more);
    }
}

/// A part of the input that is skipped or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Path of the file or folder, as reached from the argument.
    pub file: String,
    /// Line number from 1, if the problem is in a line.
    pub line: Option<u64>,
    /// Kind of the problem.
    pub kind: ProblemKind,
    /// Message, one line.
    pub message: String,
}

impl Problem {
    pub(super) fn of_file(file: impl Into<String>, kind: ProblemKind, message: impl Into<String>) -> Problem {
        Problem { file: file.into(), line: None, kind, message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.message),
            None => write!(f, "{}: {}", self.file, self.message),
        }
    }
}

/// The problem of a line, without its position.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LineProblem {
    pub kind: ProblemKind,
    pub message: String,
}

/// What parsing one chunk has found: counts and problems. The reports of all chunks are summed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ChunkReport {
    /// Documents that were added.
    pub documents: u64,
    /// Uncompressed bytes of the chunk.
    pub bytes: u64,
    /// Header lines of TSV files.
    pub header_lines: u64,
    /// Documents whose id contains white space, which separates columns in TREC runs.
    pub separated_ids: u64,
    /// Members and columns that are not indexed.
    pub unindexed: Unindexed,
    /// Number of problems by kind.
    pub counts: ProblemCounts,
    /// The first problems of each kind in input order, at least one more than are printed for all chunks
    /// together. The number is limited, so that input in a wrong format does not fill the memory with
    /// messages.
    pub problems: Vec<Problem>,
    /// Whether all problems are in the list, up to [`ChunkReport::ALL_MAX`] of a kind.
    pub list_all: bool,
    /// Number of the file that is read, if its documents are recorded.
    pub file: Option<u32>,
    /// What was read from each of these files.
    pub recorded: Vec<RecordedFile>,
}

/// The documents that were read from a file, or from a part of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RecordedFile {
    /// Number of the file.
    pub number: u32,
    /// The ids of the documents, one after the other, and the offset at which each ends.
    pub ids: String,
    pub id_ends: Vec<usize>,
    /// Whether the file may have documents that were not indexed: one has a problem, the file cannot be read
    /// as a whole, or it is not text.
    pub is_loss: bool,
}

impl ChunkReport {
    /// Maximum number of problems of one kind that are printed.
    pub const LISTED_MAX: u64 = 3;

    /// Maximum number of problems of one kind in the list of a chunk, if all are listed.
    pub const ALL_MAX: u64 = 100_000;

    /// Counts a document that was added.
    pub(super) fn add_document(&mut self, id: &str) {
        self.documents += 1;
        if let Some(file) = self.recorded_file() {
            file.ids.push_str(id);
            file.id_ends.push(file.ids.len());
        }
    }

    fn recorded_file(&mut self) -> Option<&mut RecordedFile> {
        let number = self.file?;
        if self.recorded.last().is_none_or(|last| last.number != number) {
            self.recorded.push(RecordedFile { number, ..RecordedFile::default() });
        }
        self.recorded.last_mut()
    }

    pub(super) fn problem(&mut self, kind: ProblemKind, problem: impl FnOnce() -> Problem) {
        let is_loss = kind != ProblemKind::Replaced;
        if let Some(file) = is_loss.then(|| self.recorded_file()).flatten() {
            file.is_loss = true;
        }
        let most = if self.list_all { ChunkReport::ALL_MAX } else { ChunkReport::LISTED_MAX + 1 };
        if self.counts.increment(kind) <= most {
            self.problems.push(problem());
        }
    }

    pub(super) fn file_problem(&mut self, file: &str, kind: ProblemKind, message: impl Into<String>) {
        self.problem(kind, || Problem::of_file(file, kind, message));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_printed_with_file_and_line() {
        let mut problem = Problem::of_file("a/b.tsv", ProblemKind::Columns, "no");
        assert_eq!(problem.to_string(), "a/b.tsv: no");
        problem.line = Some(7);
        assert_eq!(problem.to_string(), "a/b.tsv:7: no");
    }

    #[test]
    fn the_first_of_each_kind_are_listed_and_all_are_counted() {
        let mut report = ChunkReport::default();
        for _ in 0..100 {
            report.file_problem("a", ProblemKind::Json, "b");
            report.file_problem("a", ProblemKind::Binary, "b");
        }
        assert_eq!(report.problems.len() as u64, 2 * (ChunkReport::LISTED_MAX + 1));
        let mut counts = report.counts;
        counts += report.counts;
        assert_eq!((counts[ProblemKind::Json], counts[ProblemKind::Unreadable]), (200, 0));
    }
}
