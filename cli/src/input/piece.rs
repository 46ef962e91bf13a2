//! What goes from the reading half to the parsing half.

use super::options::Column;
use super::report::PieceReport;
use super::without_mark;
use std::sync::Arc;

/// Raw input on its way to [`super::parse`]. Where pieces begin and end depends on the input's bytes alone.
#[derive(Debug)]
pub struct Piece {
    pub(super) body: Body,
    /// What reading has noticed since the last piece: parsing goes on from it.
    pub(super) report: PieceReport,
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LineFormat {
    Json,
    /// With the columns that the file itself suggests; the user's own come first.
    Tsv(Arc<[Column]>),
}

/// A plain file in memory.
#[derive(Debug)]
pub(super) struct TextFile {
    pub id: String,
    pub title: String,
    pub bytes: Vec<u8>,
}
