//! What goes from the reading half to the parsing half, and what comes back.

use super::options::Column;
use super::without_mark;
use std::fmt;
use std::sync::Arc;

/// Raw input on its way to [`super::parse`]. Where pieces begin and end depends on the input's bytes alone.
#[derive(Debug)]
pub struct Piece {
    pub(super) body: Body,
    pub(super) notes: Notes,
}

/// What a piece holds.
#[derive(Debug)]
pub(super) enum Body {
    /// Whole lines of one file.
    Lines(Lines),
    /// Whole plain files.
    Files(Vec<TextFile>),
}

/// Whole lines of one file.
#[derive(Debug)]
pub(super) struct Lines {
    /// The file as the user knows it.
    pub file: Arc<str>,
    pub format: LineFormat,
    /// Number of the first line, from 1.
    pub first: u64,
    pub bytes: Vec<u8>,
}

impl Lines {
    /// The bytes, without the mark that a file may begin with.
    pub fn content(&self) -> &[u8] {
        if self.first == 1 { without_mark(&self.bytes) } else { &self.bytes }
    }
}

/// How a line becomes a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineFormat {
    Json,
    /// With the columns that the file itself suggests; the user's own come first.
    Tsv(&'static [Column]),
}

/// A plain file in memory.
#[derive(Debug)]
pub(super) struct TextFile {
    pub id: String,
    pub title: String,
    pub bytes: Vec<u8>,
}

/// What reading has noticed since the last piece.
#[derive(Debug, Default)]
pub(super) struct Notes {
    pub problems: Vec<Problem>,
    pub skipped_binary: u64,
}

impl Notes {
    pub fn is_empty(&self) -> bool {
        self.problems.is_empty() && self.skipped_binary == 0
    }
}

/// Something in the input that gave no document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file or folder as reached from the argument.
    pub file: String,
    /// The line, from 1, where there is one to name.
    pub line: Option<u64>,
    /// What is wrong.
    pub message: String,
}

impl Problem {
    pub(super) fn of_file(file: impl Into<String>, message: impl Into<String>) -> Problem {
        Problem { file: file.into(), line: None, message: message.into() }
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

/// What became of a piece.
#[derive(Debug, Default)]
pub struct PieceReport {
    /// Documents that were added.
    pub documents: u64,
    /// Uncompressed bytes of the piece.
    pub bytes: u64,
    /// What gave no document, and why, in the order of the input.
    pub problems: Vec<Problem>,
    /// Problems beyond the first [`PieceReport::PROBLEMS_MAX`], which are only counted: input in a wrong
    /// format must not fill memory with complaints.
    pub problems_unlisted: u64,
    /// Binary files in folders that were passed over.
    pub skipped_binary: u64,
}

impl PieceReport {
    /// Problems of one piece that are listed.
    pub const PROBLEMS_MAX: usize = 1000;

    pub(super) fn problem(&mut self, problem: impl FnOnce() -> Problem) {
        if self.problems.len() < PieceReport::PROBLEMS_MAX {
            self.problems.push(problem());
        } else {
            self.problems_unlisted += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_shown_with_their_place() {
        let mut problem = Problem::of_file("a/b.tsv", "no");
        assert_eq!(problem.to_string(), "a/b.tsv: no");
        problem.line = Some(7);
        assert_eq!(problem.to_string(), "a/b.tsv:7: no");
    }

    #[test]
    fn problems_beyond_the_limit_are_counted() {
        let mut report = PieceReport::default();
        for _ in 0..PieceReport::PROBLEMS_MAX + 3 {
            report.problem(|| Problem::of_file("a", "b"));
        }
        assert_eq!((report.problems.len(), report.problems_unlisted), (PieceReport::PROBLEMS_MAX, 3));
    }
}
