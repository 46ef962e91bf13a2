//! Where documents leave: cut to size, named, counted, and their refusals noted.

use super::report::{PieceReport, Problem, ProblemKind};
use super::split;
use std::borrow::Cow;
use std::fmt::Write;
use tierdex::Error;

/// The caller's end: takes id, title and text of a document.
pub(super) type Add<'a> = &'a mut dyn FnMut(&str, &str, &str) -> tierdex::Result<()>;

/// A document as it stands in the input.
#[derive(Debug, Default)]
pub(super) struct Document<'a> {
    /// Without one, or with a blank one, the place in the input serves.
    pub id: Option<Cow<'a, str>>,
    pub title: Cow<'a, str>,
    pub text: Cow<'a, str>,
}

/// Where in the input a document stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin<'a> {
    pub file: &'a str,
    pub line: Option<u64>,
}

impl Origin<'_> {
    /// A problem at this place.
    pub fn problem(self, kind: ProblemKind, message: String) -> Problem {
        Problem { file: self.file.to_string(), line: self.line, kind, message }
    }

    fn write_id(self, id: &mut String) {
        id.push_str(self.file);
        if let Some(line) = self.line {
            append(id, format_args!(":{line}"));
        }
    }
}

/// Hands documents to the caller and keeps the report.
pub(super) struct Sink<'a> {
    add: Add<'a>,
    split: Option<usize>,
    id: String,
    pub report: PieceReport,
}

impl<'a> Sink<'a> {
    pub fn new(add: Add<'a>, split: Option<usize>, report: PieceReport) -> Sink<'a> {
        Sink { add, split, id: String::new(), report }
    }

    /// Adds a document, in parts if it is longer than the user wants.
    pub fn document(&mut self, document: &Document<'_>, origin: Origin<'_>) -> tierdex::Result<()> {
        self.id.clear();
        match document.id.as_deref().filter(|id| !id.trim().is_empty()) {
            Some(id) => self.id.push_str(id),
            None => origin.write_id(&mut self.id),
        }
        let separated = self.id.contains(|c: char| c.is_whitespace() || c.is_control());
        self.report.separated_ids += u64::from(separated);
        match self.split {
            Some(bytes_max) if document.text.len() > bytes_max => self.parts(document, bytes_max, origin),
            _ => self.add(&document.title, &document.text, origin),
        }
    }

    fn parts(
        &mut self,
        document: &Document<'_>,
        bytes_max: usize,
        origin: Origin<'_>,
    ) -> tierdex::Result<()> {
        let stem = self.id.len();
        let mut title: &str = &document.title;
        if split::parts(&document.text, bytes_max).next().is_none() {
            return self.add(title, "", origin);
        }
        for (number, part) in split::parts(&document.text, bytes_max).enumerate() {
            self.id.truncate(stem);
            append(&mut self.id, format_args!("#{number}"));
            self.add(title, part, origin)?;
            title = "";
        }
        Ok(())
    }

    /// Adds what bears the current id. A refusal of this document is a problem, anything else an error.
    fn add(&mut self, title: &str, text: &str, origin: Origin<'_>) -> tierdex::Result<()> {
        match (self.add)(&self.id, title, text) {
            Ok(()) => self.report.documents += 1,
            Err(Error::Limit(message)) => {
                let kind = ProblemKind::TooLarge;
                self.report.problem(kind, || origin.problem(kind, message));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

fn append(to: &mut String, what: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = to.write_fmt(what);
}
