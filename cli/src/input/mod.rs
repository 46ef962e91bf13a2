//! You have INPUT... arguments; here are documents (id, title, text).
//!
//! Two halves, so that reading and parsing can run on different threads:
//! 1. [`Source`] walks the arguments, opens one file at a time, decompresses, and cuts what it reads into
//!    [`Piece`]s at line ends. Where it cuts depends on the bytes alone, never on the timing of reads.
//! 2. [`parse`] turns a piece into documents. It needs nothing but the piece and the options.
//!
//! What a user can repair in the data (a malformed line, an unreadable file in a folder) is a [`Problem`] and
//! reading goes on; what makes the rest of the run doubtful (a missing argument, a damaged archive) is an
//! error.
//!
//! This module knows nothing of the index: documents leave through a callback.

mod gzip;
mod json;
mod line_file;
mod lines;
mod name;
mod open;
mod options;
mod parse;
mod piece;
mod report;
mod shape;
mod sink;
mod source;
mod split;
mod stream;
mod text;
mod tsv;
mod walk;

#[cfg(test)]
mod tests;

pub use open::{Opened, Packing};
pub use options::{Column, Format, InputOptions};
pub use parse::parse;
pub use report::{PieceReport, Problem, ProblemCounts, ProblemKind};
pub use source::Source;
pub use walk::PassedOver;

/// What some editors put before the first byte of UTF-8 text.
pub const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The bytes of a file's beginning without the mark.
fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes)
}
