//! Parser of the query language. docs/query.md describes the language for users.
//!
//! ```text
//! list    = clause { [ "OR" ] clause }
//! clause  = unary { "AND" unary }
//! unary   = [ "+" | "-" | "!" | "NOT" | "#" ] primary
//! primary = [ field ":" ] ( word [ "~" [ edits ] ] | word "*" | phrase [ "~" slop ]
//!                         | "(" list ")" [ "~" minimum ] ) [ "^" boost ]
//!         | "*:*" [ "^" boost ]
//!         | column ":" ( range | value | "(" value { value } ")" | "*" ) [ "^" boost ]
//! range   = ( "[" | "{" ) value "TO" value ( "]" | "}" ) | ( ">" | ">=" | "<" | "<=" ) value
//! phrase  = '"' words '"'
//! ```
//!
//! A suffix follows its word, phrase or group without a space; `^` may precede `~`. A backslash escapes the
//! next character. `&&` and `||` between blanks are `AND` and `OR`, `!` is `-`. What is not an operator in
//! its full form is text, such as brackets without a pair; operators of other languages are faults in their
//! full form (docs/query.md, "What is text").
//!
//! Strict parsing rejects a query at its first fault. Lenient parsing accepts any text: it records each fault
//! and ignores the operator or clause that contains it.

mod column;
mod pairs;
mod parser;
mod problems;
mod suffix;
#[cfg(test)]
mod tests;
mod tokens;
mod tree;

pub use problems::Problems;
pub use tree::{ColumnRange, Fields, NameKind, Occur, SyntaxClause, SyntaxTree};

use crate::{Result, limits::QUERY_BYTES_MAX};

/// Parses a query. Faults and notes are reported to `problems`: if that is strict, the first fault is an
/// error.
pub fn parse(text: &str, fields: Fields<'_>, problems: &mut Problems) -> Result<SyntaxTree> {
    let text = cut_to_length(text, problems)?;
    if text.trim() == "*" {
        return Ok(SyntaxTree::All);
    }
    let tokens = tokens::tokenize(text, fields, problems)?;
    parser::parse(tokens, text.len(), problems)
}

/// The first characters of a query, of at most [`QUERY_BYTES_MAX`] bytes. A longer query is a fault.
pub(super) fn cut_to_length<'t>(text: &'t str, problems: &mut Problems) -> Result<&'t str> {
    if text.len() > QUERY_BYTES_MAX {
        problems.report_at(QUERY_BYTES_MAX, format!("longer than {QUERY_BYTES_MAX} bytes"))?;
    }
    Ok(&text[..text.floor_char_boundary(QUERY_BYTES_MAX)])
}
