//! Chunks of raw input: the output of [`InputSource`](super::InputSource), the input of
//! [`parse`](super::parse()).

use super::columnar::RowRange;
use super::{byte_order_mark, options::TsvColumn, report::ChunkReport};
use std::sync::Arc;

/// Raw input. The boundaries of chunks depend on the bytes of the input only.
#[derive(Debug)]
pub struct InputChunk {
    pub(super) body: ChunkBody,
    /// Problems of reading since the last chunk. Parsing continues this report.
    pub(super) report: ChunkReport,
}

/// The data of a chunk: lines, text files, or rows of a table.
#[derive(Debug)]
pub(super) enum ChunkBody {
    /// Whole lines of one file.
    Lines(Lines),
    /// Whole text files.
    Files(Vec<TextFile>),
    /// Ranges of rows of a Parquet or Arrow file.
    Rows(Vec<RowRange>),
}

/// Whole lines of one file.
#[derive(Debug)]
pub(super) struct Lines {
    /// Display name of the file.
    pub file: Arc<str>,
    /// Number of the file, if its documents are recorded.
    pub number: Option<u32>,
    pub format: LineFormat,
    /// Number of the first line, from 1.
    pub first_line: u64,
    pub bytes: Vec<u8>,
}

impl Lines {
    /// The bytes without a byte order mark.
    pub fn content(&self) -> &[u8] {
        if self.first_line == 1 { byte_order_mark::strip_byte_order_mark(&self.bytes) } else { &self.bytes }
    }
}

/// Format of the lines of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LineFormat {
    Json,
    /// Columns given by the user take precedence over those inferred from the first line.
    Tsv(TsvLayout),
}

/// What is inferred from the first line of a TSV file that is not blank.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct TsvLayout {
    /// The columns; empty before the first line.
    pub columns: Arc<[TsvColumn]>,
    /// Whether cells may be in quotes.
    pub quoted: bool,
}

/// A text file in memory.
#[derive(Debug)]
pub(super) struct TextFile {
    pub id: String,
    pub title: String,
    pub bytes: Vec<u8>,
    /// Number of the first part, if this is a piece of a file that is split.
    pub first_part: Option<u64>,
    /// Number of the file, if its documents are recorded.
    pub number: Option<u32>,
}
