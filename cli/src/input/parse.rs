//! The parsing half: a piece in, documents out. Any thread can do it.

use super::json;
use super::options::InputOptions;
use super::piece::{Body, LineFormat, Lines, Piece, TextFile};
use super::report::{Fault, PieceReport, ProblemKind};
use super::sink::{Add, Document, Origin, Sink};
use super::tsv;
use super::without_mark;
use memchr::memchr_iter;
use std::borrow::Cow;

/// What to do about text in another encoding.
const CONVERT: &str = "convert the file, as by `iconv -f latin1 -t utf-8`";

/// Parses a piece and calls `add(id, title, text)` for each document, in the order of the input.
///
/// When `add` refuses a document ([`tierdex::Error::Limit`]) that is a problem of the report; any other error
/// ends the work and is returned.
pub fn parse(piece: Piece, options: &InputOptions, add: Add<'_>) -> tierdex::Result<PieceReport> {
    let mut sink = Sink::new(add, options.split, piece.report);
    match &piece.body {
        Body::Lines(lines) => parse_lines(lines, options, &mut sink)?,
        Body::Files(files) => parse_files(files, &mut sink)?,
    }
    Ok(sink.report)
}

fn parse_lines(lines: &Lines, options: &InputOptions, sink: &mut Sink<'_>) -> tierdex::Result<()> {
    sink.report.bytes += lines.bytes.len() as u64;
    let bytes = lines.content();
    let mut start = 0;
    let ends = memchr_iter(b'\n', bytes).chain(std::iter::once(bytes.len()));
    for (number, end) in (lines.first..).zip(ends) {
        // Behind the last newline nothing is left: a blank line.
        let line = &bytes[start..end];
        start = (end + 1).min(bytes.len());
        if !line.trim_ascii().is_empty() {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let origin = Origin { file: &lines.file, line: Some(number) };
            match parse_line(line, &lines.format, options) {
                Ok(document) => sink.document(&document, origin)?,
                Err(Fault { kind, message }) => {
                    sink.report.problem(kind, || origin.problem(kind, message));
                }
            }
        }
    }
    Ok(())
}

fn parse_line<'l>(
    line: &'l [u8],
    format: &LineFormat,
    options: &InputOptions,
) -> Result<Document<'l>, Fault> {
    let line = std::str::from_utf8(line).map_err(|error| Fault {
        kind: ProblemKind::Encoding,
        message: format!("not UTF-8: invalid byte {} of the line; {CONVERT}", error.valid_up_to() + 1),
    })?;
    match format {
        LineFormat::Json => json::document(line, options),
        LineFormat::Tsv(usual) => tsv::document(line, options.columns.as_deref().unwrap_or(usual)),
    }
}

fn parse_files(files: &[TextFile], sink: &mut Sink<'_>) -> tierdex::Result<()> {
    for file in files {
        sink.report.bytes += file.bytes.len() as u64;
        let document = Document {
            id: Some(Cow::Borrowed(&file.id)),
            title: Cow::Borrowed(&file.title),
            text: String::from_utf8_lossy(without_mark(&file.bytes)),
        };
        if matches!(document.text, Cow::Owned(_)) {
            let message = format!("bytes that are not UTF-8 are replaced; {CONVERT}");
            sink.report.file_problem(&file.id, ProblemKind::Replaced, message);
        }
        sink.document(&document, Origin { file: &file.id, line: None })?;
    }
    Ok(())
}
