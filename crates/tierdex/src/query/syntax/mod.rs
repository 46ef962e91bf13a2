//! The query language, which `docs/query.md` describes for those who write queries.
//!
//! ```text
//! list    = clause { [ "OR" ] clause }
//! clause  = unary { "AND" unary }
//! unary   = [ "+" | "-" | "NOT" | "#" ] primary
//! primary = [ field ":" ] ( word [ "~" [ edits ] ] | word "*" | phrase [ "~" slop ]
//!                         | "(" list ")" [ "~" minimum ] ) [ "^" boost ]
//!         | "*:*" [ "^" boost ]
//! phrase  = '"' words '"'
//! ```
//!
//! A suffix follows its word, phrase or group without a space; `^` may come before `~`. A backslash makes the
//! next character ordinary. In words most of these characters are ordinary anyway:
//!
//! - `+`, `-` and `#` mean something in front of a word, a phrase or a group only: `c++` and `state-of` are
//!   words;
//! - `*` at the end of a word only: `5*3` is a word;
//! - `~` and `^` after the first character, where the word's end, a digit, a sign or a point follows:
//!   `a^b`, `~user` and `x~=y` are words, and `a^b^2` is the word `a^b`, which counts twice;
//! - `name:` in front of a word, a phrase or a group, when the index has a field of that name. If it has
//!   not, and what is in front looks like a name, it is a fault: `author:x`, but not `12:30`, `http://x`,
//!   `std::fs` or `note: this`.
//!
//! [`parse`] refuses a query at its first fault. [`parse_lenient`] never does: it notes the fault and goes
//! on without the operator, or the part, that has it. Where the first does not fail both give the same.

mod parser;
mod problems;
mod suffix;
#[cfg(test)]
mod tests;
mod tokens;

pub use problems::Problems;

use crate::error::{Error, Result};
use crate::limits::QUERY_BYTES_MAX;

/// A syntax tree. Words are as written, not yet analysed; each may name a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Syntax {
    /// A word.
    Word(Option<String>, String),
    /// Words that begin so.
    Prefix(Option<String>, String),
    /// Words that are at most so many edits away.
    Fuzzy(Option<String>, String, u8),
    /// A quoted phrase, and its slop.
    Phrase(Option<String>, String, u32),
    /// All documents.
    All,
    /// Clauses side by side, and how many of the alternatives among them must match.
    List(Vec<(Occur, Syntax)>, u32),
    /// A clause that counts so many times.
    Boost(Box<Syntax>, f64),
}

/// How a clause takes part in its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occur {
    /// Adds to the score of documents that match it.
    Should,
    /// Documents must match it.
    Must,
    /// Documents must match it, which adds nothing to their score.
    Filter,
    /// Documents must not match it.
    MustNot,
}

/// Says whether the index has a field of a name; if not, which fields it has.
pub type Fields<'a> = &'a dyn Fn(&str) -> std::result::Result<(), String>;

/// Reads a query.
pub fn parse(text: &str, fields: Fields<'_>) -> Result<Syntax> {
    read(text, fields, &mut Problems::strict())
}

/// Reads what can be read of any text, and notes in `problems` what cannot.
pub fn parse_lenient(text: &str, fields: Fields<'_>, problems: &mut Problems) -> Result<Syntax> {
    let mut end = QUERY_BYTES_MAX.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    if end < text.len() {
        problems.report(too_long())?;
    }
    read(&text[..end], fields, problems)
}

fn read(text: &str, fields: Fields<'_>, problems: &mut Problems) -> Result<Syntax> {
    check_length(text)?;
    let tokens = tokens::tokenize(text, fields, problems)?;
    parser::parse(tokens, text.len(), problems)
}

/// Refuses queries that are too long to be read.
pub(super) fn check_length(text: &str) -> Result<()> {
    if text.len() <= QUERY_BYTES_MAX { Ok(()) } else { Err(too_long()) }
}

fn too_long() -> Error {
    let message = format!("longer than {QUERY_BYTES_MAX} bytes");
    Error::Query { at: Some(QUERY_BYTES_MAX), message }
}

fn boosted(syntax: Syntax, boost: Option<f64>) -> Syntax {
    match boost {
        Some(boost) => Syntax::Boost(Box::new(syntax), boost),
        None => syntax,
    }
}
