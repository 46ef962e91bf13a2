//! Parses a chunk into documents. Runs on any thread.

use super::chunk::{ChunkBody, InputChunk, LineFormat, Lines, TextFile};
use super::report::{ChunkReport, LineProblem, ProblemKind};
use super::sink::{Add, InputDocument, Origin, Sink};
use super::{byte_order_mark, columnar, json, options::InputOptions, tsv, unindexed::Unindexed};
use memchr::memchr_iter;
use std::borrow::Cow;

/// Advice for text in another encoding.
const ENCODING_ADVICE: &str = "convert the file, for example with `iconv -f latin1 -t utf-8`";

/// Parses a chunk and calls `add` for each document, in the order of the input.
///
/// A document that `add` rejects with [`tierdex::Error::TooLarge`] is a problem in the report. Any other
/// error ends parsing and is returned.
pub fn parse(chunk: InputChunk, options: &InputOptions, add: Add<'_>) -> tierdex::Result<ChunkReport> {
    let mut sink = Sink::new(add, options, chunk.report);
    match &chunk.body {
        ChunkBody::Lines(lines) => parse_lines(lines, options, &mut sink)?,
        ChunkBody::Files(files) => parse_files(files, options, &mut sink)?,
        ChunkBody::Rows(ranges) => {
            ranges.iter().try_for_each(|range| columnar::read_rows(range, &mut sink))?;
        }
    }
    Ok(sink.report)
}

fn parse_lines(lines: &Lines, options: &InputOptions, sink: &mut Sink<'_>) -> tierdex::Result<()> {
    sink.report.bytes += lines.bytes.len() as u64;
    sink.report.file = lines.number;
    let bytes = lines.content();
    let mut start = 0;
    let ends = memchr_iter(b'\n', bytes).chain(std::iter::once(bytes.len()));
    for (number, end) in (lines.first_line..).zip(ends) {
        // The line after the last newline is empty.
        let line = &bytes[start..end];
        start = (end + 1).min(bytes.len());
        if !line.trim_ascii().is_empty() {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let origin = Origin { file: &lines.file, line: Some(number) };
            match parse_line(line, &lines.format, options, &mut sink.report.unindexed) {
                Ok(document) => sink.add_document(&document, origin)?,
                Err(LineProblem { kind, message }) => {
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
    unindexed: &mut Unindexed,
) -> Result<InputDocument<'l>, LineProblem> {
    let line = std::str::from_utf8(line).map_err(|error| LineProblem {
        kind: ProblemKind::Encoding,
        message: format!(
            "not valid UTF-8 at byte {} of the line; {ENCODING_ADVICE}",
            error.valid_up_to() + 1
        ),
    })?;
    match format {
        LineFormat::Json => json::parse_json_line(line, options, unindexed),
        LineFormat::Tsv(inferred) => {
            let columns = options.columns.as_deref().unwrap_or(&inferred.columns);
            if inferred.quoted {
                tsv::parse_quoted_line(line, columns)
            } else {
                tsv::parse_tsv_line(line, columns)
            }
        }
    }
}

/// Message for a text file that is not UTF-8.
pub(super) fn replaced_bytes_message() -> String {
    format!("invalid UTF-8 was replaced by U+FFFD; {ENCODING_ADVICE}")
}

fn parse_files(files: &[TextFile], options: &InputOptions, sink: &mut Sink<'_>) -> tierdex::Result<()> {
    for file in files {
        sink.report.bytes += file.bytes.len() as u64;
        sink.report.file = file.number;
        let text = String::from_utf8_lossy(match file.first_part {
            Some(_) => &file.bytes,
            None => byte_order_mark::strip_byte_order_mark(&file.bytes),
        });
        if matches!(text, Cow::Owned(_)) {
            sink.report.file_problem(&file.id, ProblemKind::Replaced, replaced_bytes_message());
        }
        let origin = Origin { file: &file.id, line: None };
        if options.members.text.is_none() {
            let message =
                "a text file is indexed as the member `text`, which no field has; add it to one, as in \
                           --field body:text:from=text"
                    .to_string();
            sink.report.problem(ProblemKind::NoText, || origin.problem(ProblemKind::NoText, message));
            continue;
        }
        let title = options.members.title.map(|member| (member, Cow::Borrowed(&*file.title)));
        let text = options.members.text.map(|member| (member, text));
        let document = InputDocument {
            id: Some(Cow::Borrowed(&file.id)),
            values: title.into_iter().chain(text).collect(),
            first_part: file.first_part,
            ..InputDocument::default()
        };
        sink.add_document(&document, origin)?;
    }
    Ok(())
}
