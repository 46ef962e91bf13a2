//! An open file of lines: yields whole lines with their format, and infers the columns of TSV from the first
//! line.

use super::chunk::{LineFormat, Lines, TsvLayout};
use super::line_chunker::{LineChunk, LineChunker};
use super::report::{ChunkReport, Problem, ProblemKind};
use super::{members::InputMembers, open::Compression, tsv};
use crate::size;
use memchr::memchr_iter;
use std::{io, sync::Arc};
use tierdex::limits::DOCUMENT_BYTES_MAX;

/// An open file with a document in each line.
pub(super) struct LineFile {
    pub name: Arc<str>,
    pub compression: Compression,
    /// Whether the file is an argument itself, not found in a folder.
    pub named: bool,
    /// Number of the file, if its documents are recorded.
    pub number: Option<u32>,
    pub format: LineFormat,
    /// Whether the user has given the columns.
    pub has_columns: bool,
    pub members: Arc<InputMembers>,
    pub chunker: LineChunker,
    /// Value of the progress counter at the end of this file, in bytes.
    pub done_at: u64,
}

impl LineFile {
    /// The next lines; `None` at the end.
    pub fn next(&mut self, report: &mut ChunkReport) -> io::Result<Option<Lines>> {
        let Some(LineChunk { first_line, bytes, too_long }) = self.chunker.next()? else { return Ok(None) };
        for line in too_long {
            report.problem(ProblemKind::TooLarge, || self.too_long_line(line));
        }
        let (file, format, number) = (Arc::clone(&self.name), self.format.clone(), self.number);
        let mut lines = Lines { file, number, format, first_line, bytes };
        if matches!(&self.format, LineFormat::Tsv(layout) if layout.columns.is_empty()) {
            self.format = LineFormat::Tsv(self.infer_columns(&mut lines, report)?);
            lines.format = self.format.clone();
        }
        Ok(Some(lines))
    }

    /// Infers the columns from the first line, and removes the line if it is a header. A header without a
    /// text is an error, unless the user has given the columns.
    fn infer_columns(&self, lines: &mut Lines, report: &mut ChunkReport) -> io::Result<TsvLayout> {
        let content = lines.content();
        let Some(found) = tsv::inspect_first_line(content, &self.members) else {
            return Ok(TsvLayout::default());
        };
        if let Some(header) = found.without_text.filter(|_| !self.has_columns) {
            return Err(io::Error::other(header));
        }
        if !self.has_columns {
            found.ignored.iter().for_each(|name| report.unindexed.add(name, 1));
        }
        if let Some(end) = found.header_end {
            let end = lines.bytes.len() - content.len() + end;
            lines.first_line += memchr_iter(b'\n', &lines.bytes[..end]).count() as u64;
            lines.bytes.drain(..end);
            report.header_lines += 1;
        }
        Ok(TsvLayout { columns: found.columns.into(), quoted: found.quoted })
    }

    fn too_long_line(&self, line: u64) -> Problem {
        let (kind, message) =
            (ProblemKind::TooLarge, too_long_message("the line", self.chunker.document_bytes_max()));
        Problem { file: self.name.to_string(), line: Some(line), kind, message }
    }
}

/// Message for a line or a file that is skipped as too long.
pub(super) fn too_long_message(subject: &str, bytes_max: usize) -> String {
    let advice = if bytes_max < DOCUMENT_BYTES_MAX { " (a larger --memory allows more)" } else { "" };
    let bytes_max = size::show_number(bytes_max as u64);
    format!("{subject} is longer than the maximum of {bytes_max} bytes{advice}")
}
