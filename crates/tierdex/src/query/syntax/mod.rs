//! Parser of the query language. docs/query.md describes the language for users.
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
//! A suffix follows its word, phrase or group without a space; `^` may precede `~`. A backslash escapes the
//! next character. Operator characters are literal within words, except:
//!
//! - `+`, `-` and `#` are operators only before a word, a phrase or a group: `c++` and `state-of` are words;
//! - `*` is an operator only at the end of a word: `5*3` is a word;
//! - `~` and `^` are operators only after the first character, and if the end of the word, a digit, a sign
//!   or a point follows: `a^b`, `~user` and `x~=y` are words, and `a^b^2` is the word `a^b` with boost 2;
//! - `name:` is an operator before a word, a phrase or a group if the index has a field of that name.
//!   Otherwise it is a fault if it looks like a field: `author:x`, but not `12:30`, `http://x`, `std::fs` or
//!   `note: this`.
//!
//! [`parse`] rejects a query at its first fault. [`parse_lenient`] accepts any text: it records each fault
//! and ignores the operator or clause that contains it. Both return the same tree for a query without
//! faults.

mod parser;
mod problems;
mod suffix;
#[cfg(test)]
mod tests;
mod tokens;
mod tree;

pub use problems::Problems;
pub use tree::{Fields, Occur, SyntaxTree};

use crate::error::{Error, Result};
use crate::limits::QUERY_BYTES_MAX;

/// Parses a query.
pub fn parse(text: &str, fields: Fields<'_>) -> Result<SyntaxTree> {
    read(text, fields, &mut Problems::strict())
}

/// Parses any text; faults are recorded in `problems`.
pub fn parse_lenient(text: &str, fields: Fields<'_>, problems: &mut Problems) -> Result<SyntaxTree> {
    let mut end = QUERY_BYTES_MAX.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    if end < text.len() {
        problems.report(too_long())?;
    }
    read(&text[..end], fields, problems)
}

fn read(text: &str, fields: Fields<'_>, problems: &mut Problems) -> Result<SyntaxTree> {
    check_length(text)?;
    let tokens = tokens::tokenize(text, fields, problems)?;
    parser::parse(tokens, text.len(), problems)
}

/// Rejects queries that exceed [`QUERY_BYTES_MAX`].
pub(super) fn check_length(text: &str) -> Result<()> {
    if text.len() <= QUERY_BYTES_MAX { Ok(()) } else { Err(too_long()) }
}

fn too_long() -> Error {
    let message = format!("longer than {QUERY_BYTES_MAX} bytes");
    Error::Query { at: Some(QUERY_BYTES_MAX), message }
}
