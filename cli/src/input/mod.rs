//! Reads documents (an id, and values of members) from the input arguments.
//!
//! Reading and parsing are separate, so that they can run on different threads:
//! 1. [`InputSource`] expands the arguments to files, opens one file at a time, decompresses it and cuts the
//!    bytes into [`InputChunk`](chunk::InputChunk)s at line ends. The cuts depend on the bytes only, not on
//!    the timing of reads.
//!    Files of rows (Parquet, Arrow) are divided into ranges of rows, which are decoded when they are parsed.
//! 2. [`parse`] parses a chunk into documents. Its inputs are the chunk and the options.
//!
//! A defect of the data that leaves the rest usable (a malformed line, an unreadable file in a folder) is a
//! [`Problem`], and reading goes on. A defect that makes the rest of the run doubtful (a missing argument, a
//! damaged compressed argument) is an error.
//!
//! This module does not depend on the index: documents are passed to a callback.

mod background_reader;
mod byte_order_mark;
mod chunk;
mod columnar;
mod file_kind;
mod gzip;
mod json;
mod json_layout;
mod line_chunker;
mod line_file;
mod members;
mod name;
mod open;
mod options;
mod parse;
mod report;
mod sink;
mod source;
mod split;
mod text;
mod text_pieces;
mod tsv;
mod unindexed;
mod walk;

#[cfg(test)]
mod tests;

pub use byte_order_mark::BYTE_ORDER_MARK;
pub use members::InputMembers;
pub use open::{Compression, OpenInput};
pub use options::{InputFormat, InputOptions, TsvColumn};
pub use parse::parse;
pub use report::{ChunkReport, Problem, ProblemCounts, ProblemKind, RecordedFile};
pub use source::InputSource;
pub use unindexed::Unindexed;
pub use walk::SkippedEntries;
