//! Passes documents to the consumer callback: assigns ids, splits long texts, counts, and records rejected
//! documents.

use super::report::{ChunkReport, Problem, ProblemKind};
use super::{members::InputMembers, options::InputOptions, split};
use std::{borrow::Cow, fmt::Write};
use tierdex::{DocumentRef, Error, check_id, schema::ColumnValue};

/// Consumer callback: takes a document.
pub(super) type Add<'a> = &'a mut dyn FnMut(DocumentRef<'_>) -> tierdex::Result<()>;

/// A document of the input.
#[derive(Debug, Default)]
pub(super) struct InputDocument<'a> {
    /// `None` or blank: file and line number are the id.
    pub id: Option<Cow<'a, str>>,
    /// Numbers of members with a value each.
    pub values: Vec<(usize, Cow<'a, str>)>,
    /// What the document has beside the members of the schema, as a JSON object; empty if there is nothing.
    pub others: String,
    /// Number of the first part, if this is a piece of a document that is split.
    pub first_part: Option<u64>,
}

/// Position of a document in the input.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin<'a> {
    pub file: &'a str,
    pub line: Option<u64>,
}

impl InputDocument<'_> {
    /// The values of a member, with a newline between two.
    pub fn joined(&self, member: usize) -> Cow<'_, str> {
        let mut values = self.values.iter().filter(|(number, _)| *number == member).map(|(_, value)| value);
        let first: &str = values.next().map_or("", |value| value);
        values.fold(Cow::Borrowed(first), |joined, value| joined + "\n" + &**value)
    }
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
    /// The member that is split, and the maximum bytes of a part.
    split: Option<(usize, usize)>,
    members: &'a InputMembers,
    id: String,
    /// The values of the columns of the current document.
    columns: Vec<(usize, ColumnValue)>,
    pub report: ChunkReport,
}

impl<'a> Sink<'a> {
    pub fn new(add: Add<'a>, options: &'a InputOptions, report: ChunkReport) -> Sink<'a> {
        let (split, members) = (options.split_member(), &options.members);
        Sink { add, split, members, id: String::new(), columns: Vec::new(), report }
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
        match self.members.column_values(&document.values) {
            Ok(columns) => self.columns = columns,
            Err(problem) => {
                let kind = ProblemKind::Member;
                self.report.problem(kind, || origin.problem(kind, problem));
                return Ok(());
            }
        }
        let separated = self.id.contains(|c: char| c.is_whitespace() || c.is_control());
        self.report.separated_ids += u64::from(separated);
        let texts = document.values.iter().filter(|(member, _)| *member < self.members.texts);
        let values: Vec<(usize, &str)> = texts.map(|(member, value)| (*member, value.as_ref())).collect();
        let Some((member, bytes_max)) = self.split else {
            return self.add(&values, &document.others, origin);
        };
        let text = document.joined(member);
        if document.first_part.is_none() && text.len() <= bytes_max {
            return self.add(&values, &document.others, origin);
        }
        self.add_parts(document, member, &text, bytes_max, origin)
    }

    /// Adds the parts of a text as documents, the first with the other members, all with the values of
    /// columns.
    fn add_parts(
        &mut self,
        document: &InputDocument<'_>,
        member: usize,
        text: &str,
        bytes_max: usize,
        origin: Origin<'_>,
    ) -> tierdex::Result<()> {
        let base_len = self.id.len();
        let texts = document.values.iter().filter(|(number, _)| *number < self.members.texts);
        let others = texts.filter(|(number, _)| *number != member);
        let mut values: Vec<(usize, &str)> =
            others.map(|(number, value)| (*number, value.as_ref())).collect();
        let mut unknown: &str = &document.others;
        if split::split_text(text, bytes_max).next().is_none() && document.first_part.is_none() {
            return self.add(&values, unknown, origin);
        }
        for (number, part) in (document.first_part.unwrap_or(0)..).zip(split::split_text(text, bytes_max)) {
            self.id.truncate(base_len);
            append_formatted(&mut self.id, format_args!("#{number}"));
            values.push((member, part));
            self.add(&values, unknown, origin)?;
            values.clear();
            unknown = "";
        }
        Ok(())
    }

    /// Adds a document under the current id. [`Error::TooLarge`] is a problem of this document, other errors
    /// are returned.
    fn add(&mut self, values: &[(usize, &str)], others: &str, origin: Origin<'_>) -> tierdex::Result<()> {
        match (self.add)(DocumentRef { id: &self.id, values, columns: &self.columns, others }) {
            Ok(()) => self.report.add_document(&self.id),
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
