//! A file of lines that is being read: pieces of whole lines with their format.

use super::lines::{Cut, Cutter};
use super::open::Packing;
use super::options::Column;
use super::piece::{LineFormat, Lines};
use super::report::{PieceReport, Problem, ProblemKind};
use super::tsv;
use crate::size;
use memchr::memchr_iter;
use std::io;
use std::sync::Arc;
use tierdex::limits::DOCUMENT_BYTES_MAX;

/// An open file of lines.
pub(super) struct LineFile {
    pub name: Arc<str>,
    pub packing: Packing,
    /// Whether the user named it, rather than a folder around it.
    pub named: bool,
    pub format: LineFormat,
    pub cutter: Cutter,
    /// What the count of consumed bytes must reach with this file's end.
    pub done_at: u64,
}

impl LineFile {
    /// The next lines; `None` at the end.
    pub fn next(&mut self, report: &mut PieceReport) -> io::Result<Option<Lines>> {
        let Some(Cut { first, bytes, too_long }) = self.cutter.next()? else { return Ok(None) };
        for line in too_long {
            report.problem(ProblemKind::TooLarge, || self.too_long(line));
        }
        let mut lines = Lines { file: Arc::clone(&self.name), format: self.format.clone(), first, bytes };
        if matches!(&self.format, LineFormat::Tsv(columns) if columns.is_empty()) {
            self.format = LineFormat::Tsv(self.first_line(&mut lines, report));
            lines.format = self.format.clone();
        }
        Ok(Some(lines))
    }

    /// The columns that the first line tells, which is taken away if it is a header.
    fn first_line(&self, lines: &mut Lines, report: &mut PieceReport) -> Arc<[Column]> {
        let content = lines.content();
        let Some(found) = tsv::first_line(content) else { return Arc::default() };
        if let Some(end) = found.header_end {
            let end = lines.bytes.len() - content.len() + end;
            lines.first += memchr_iter(b'\n', &lines.bytes[..end]).count() as u64;
            lines.bytes.drain(..end);
            report.header_lines += 1;
        }
        found.columns.into()
    }

    fn too_long(&self, line: u64) -> Problem {
        let (kind, message) = (ProblemKind::TooLarge, too_long("the line", self.cutter.document_max()));
        Problem { file: self.name.to_string(), line: Some(line), kind, message }
    }
}

/// Says that a line or a file is passed over.
pub(super) fn too_long(what: &str, bytes_max: usize) -> String {
    let advice = if bytes_max < DOCUMENT_BYTES_MAX { "; more --memory allows more" } else { "" };
    let bytes_max = size::group(bytes_max as u64);
    format!("{what} is longer than a document may be ({bytes_max} bytes{advice})")
}
