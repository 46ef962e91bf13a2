//! What became of the input: documents, bytes, and what was wrong with it.

use std::fmt;
use std::ops::{AddAssign, Index};

/// What is wrong with a line or a file. Decides how it is counted; the first of each kind are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProblemKind {
    /// A line that is not a JSON object.
    Json,
    /// An object without text.
    NoText,
    /// A member of a wrong type.
    Member,
    /// A line with too few columns.
    Columns,
    /// A line that is not UTF-8.
    Encoding,
    /// More than the index takes: a document, a line or an id.
    TooLarge,
    /// A file or folder that cannot be read.
    Unreadable,
    /// A file of JSON in another form than one object a line.
    NotLines,
    /// A file of lines that cannot be read further: the lines before are kept.
    CutShort,
    /// A file that is not text.
    Binary,
    /// A text that is not UTF-8: it is kept, with U+FFFD in the place of what cannot be read.
    Replaced,
}

impl ProblemKind {
    /// Lines that cannot be read as their format demands.
    pub const MALFORMED: [ProblemKind; 5] = [
        ProblemKind::Json,
        ProblemKind::NoText,
        ProblemKind::Member,
        ProblemKind::Columns,
        ProblemKind::Encoding,
    ];

    const COUNT: usize = ProblemKind::Replaced as usize + 1;

    /// Whether there is a document nevertheless.
    pub fn is_kept(self) -> bool {
        self == ProblemKind::Replaced
    }
}

/// Problems by their kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProblemCounts([u64; ProblemKind::COUNT]);

impl ProblemCounts {
    /// One more; returns how many there are now.
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

/// Something in the input that gave no document, or not a whole one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file or folder as reached from the argument.
    pub file: String,
    /// The line, from 1, where there is one to name.
    pub line: Option<u64>,
    /// What kind of problem it is.
    pub kind: ProblemKind,
    /// What is wrong.
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

/// Why a line gives no document.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub kind: ProblemKind,
    pub message: String,
}

/// What became of a piece.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PieceReport {
    /// Documents that were added.
    pub documents: u64,
    /// Uncompressed bytes of the piece.
    pub bytes: u64,
    /// Header lines of TSV files.
    pub header_lines: u64,
    /// Documents whose id holds white space or control characters, which separate columns in other programs.
    pub separated_ids: u64,
    /// How much was wrong.
    pub counts: ProblemCounts,
    /// The first problems of each kind, in the order of the input, at least one more than are shown of all
    /// pieces: input in a wrong format must not fill memory with complaints.
    pub problems: Vec<Problem>,
}

impl PieceReport {
    /// Problems of one kind that are shown.
    pub const LISTED_MAX: u64 = 3;

    pub(super) fn problem(&mut self, kind: ProblemKind, problem: impl FnOnce() -> Problem) {
        if self.counts.increment(kind) <= PieceReport::LISTED_MAX + 1 {
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
    fn problems_are_shown_with_their_place() {
        let mut problem = Problem::of_file("a/b.tsv", ProblemKind::Columns, "no");
        assert_eq!(problem.to_string(), "a/b.tsv: no");
        problem.line = Some(7);
        assert_eq!(problem.to_string(), "a/b.tsv:7: no");
    }

    #[test]
    fn the_first_of_each_kind_are_listed_and_all_are_counted() {
        let mut report = PieceReport::default();
        for _ in 0..100 {
            report.file_problem("a", ProblemKind::Json, "b");
            report.file_problem("a", ProblemKind::Binary, "b");
        }
        assert_eq!(report.problems.len() as u64, 2 * (PieceReport::LISTED_MAX + 1));
        let mut counts = report.counts;
        counts += report.counts;
        assert_eq!((counts[ProblemKind::Json], counts[ProblemKind::Unreadable]), (200, 0));
    }
}
