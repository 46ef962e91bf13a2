//! Passes documents to the consumer callback: assigns ids, splits long texts, counts, and records rejected
//! documents.

use super::report::{ChunkReport, Problem, ProblemKind};
use super::split;
use std::{borrow::Cow, fmt::Write};
use tierdex::{Error, check_id};

/// Consumer callback: takes id, title and text of a document.
pub(super) type Add<'a> = &'a mut dyn FnMut(&str, &str, &str) -> tierdex::Result<()>;

/// A document of the input.
#[derive(Debug, Default)]
pub(super) struct InputDocument<'a> {
    /// `None` or blank: file and line number are the id.
    pub id: Option<Cow<'a, str>>,
    pub title: Cow<'a, str>,
    pub text: Cow<'a, str>,
    /// Number of the first part, if this is a piece of a document that is split.
    pub first_part: Option<u64>,
}

/// Position of a document in the input.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin<'a> {
    pub file: &'a str,
    pub line: Option<u64>,
}

impl Origin<'_> {
    /// A problem at this position.
    pub fn problem(self, kind: ProblemKind, message: String) -> Problem {
        Problem { file: self.file.to_string(), line: self.line, kind, message }
    }

    fn write_id(self, id: &mut String) {
        id.push_str(self.file);
        if let Some(line) = self.line {
            append_formatted(id, format_args!(":{line}"));
        }
    }
}

/// Passes documents to the callback and keeps the report.
pub(super) struct Sink<'a> {
    add: Add<'a>,
    split: Option<usize>,
    id: String,
    pub report: ChunkReport,
}

impl<'a> Sink<'a> {
    pub fn new(add: Add<'a>, split: Option<usize>, report: ChunkReport) -> Sink<'a> {
        Sink { add, split, id: String::new(), report }
    }

    /// Adds a document, split into parts if its text is longer than `split`.
    pub fn add_document(&mut self, document: &InputDocument<'_>, origin: Origin<'_>) -> tierdex::Result<()> {
        self.id.clear();
        match document.id.as_deref().filter(|id| !id.trim().is_empty()) {
            Some(id) => self.id.push_str(id),
            None => origin.write_id(&mut self.id),
        }
        if let Err(problem) = check_id(&self.id) {
            let kind = ProblemKind::Id;
            self.report.problem(kind, || origin.problem(kind, problem));
            return Ok(());
        }
        let separated = self.id.contains(|c: char| c.is_whitespace() || c.is_control());
        self.report.separated_ids += u64::from(separated);
        let is_piece = document.first_part.is_some();
        match self.split {
            Some(bytes_max) if is_piece || document.text.len() > bytes_max => {
                self.add_parts(document, bytes_max, origin)
            }
            _ => self.add(&document.title, &document.text, origin),
        }
    }

    fn add_parts(
        &mut self,
        document: &InputDocument<'_>,
        bytes_max: usize,
        origin: Origin<'_>,
    ) -> tierdex::Result<()> {
        let base_len = self.id.len();
        let mut title: &str = &document.title;
        if split::split_text(&document.text, bytes_max).next().is_none() && document.first_part.is_none() {
            return self.add(title, "", origin);
        }
        for (number, part) in
            (document.first_part.unwrap_or(0)..).zip(split::split_text(&document.text, bytes_max))
        {
            self.id.truncate(base_len);
            append_formatted(&mut self.id, format_args!("#{number}"));
            self.add(title, part, origin)?;
            title = "";
        }
        Ok(())
    }

    /// Adds a document under the current id. [`Error::TooLarge`] is a problem of this document, other errors
    /// are returned.
    fn add(&mut self, title: &str, text: &str, origin: Origin<'_>) -> tierdex::Result<()> {
        match (self.add)(&self.id, title, text) {
            Ok(()) => self.report.documents += 1,
            Err(Error::TooLarge(message)) => {
                let kind = ProblemKind::TooLarge;
                self.report.problem(kind, || origin.problem(kind, message));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

fn append_formatted(to: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = to.write_fmt(arguments);
}
