//! Exchange of indexes in the Common Index File Format (Lin et al., Supporting Interoperability Between
//! Open-Source Search Engines with the Common Index File Format, SIGIR 2020).
//!
//! A file is a sequence of protobuf messages, each after its length: a header, the posting list of each term,
//! and a record of each document. The memory of [`import`] and [`export`] grows with the number of documents
//! and terms, not with the number of postings. docs/format/ciff.md says how files are read that break the
//! rules of this engine.
//!
//! ```
//! use std::io::Cursor;
//! use tierdex::{ciff, Index, IndexWriter, Merge, Schema, WriterOptions};
//! # let temporary = tempfile::tempdir().unwrap();
//! # let (first, second) = (temporary.path().join("first"), temporary.path().join("second"));
//!
//! let mut writer = IndexWriter::create(&first, Schema::default(), WriterOptions::default())?;
//! writer.add("d1", [("text", "solid state disk")])?;
//! writer.add("d2", [("text", "hard disk")])?;
//! writer.commit(Merge::One)?;
//!
//! let mut file = Vec::new();
//! ciff::export(&Index::open(&first)?, "text", "two documents", &mut file)?;
//! let mut writer = IndexWriter::create(&second, ciff::schema(), WriterOptions::default())?;
//! let report = ciff::import(&mut writer, &mut Cursor::new(file), "disks.ciff")?;
//! writer.commit(Merge::One)?;
//! assert_eq!((report.documents, report.lists, report.postings), (2, 4, 5));
//! # Ok::<(), tierdex::Error>(())
//! ```

mod export;
mod import;
mod wire;

use crate::schema::{Schema, Stored};

pub use export::export;
pub use import::import;

/// A term that import adds to documents that are longer than the sum of their frequencies in the file, so
/// that the two are equal. No analysis returns this term, and it is not exported.
const MISSING_TOKENS: &str = "\0";

/// Numbers of what was imported or exported, and of differences between a file and the rules of this engine.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct CiffReport {
    /// Number of documents.
    pub documents: u64,
    /// Number of posting lists.
    pub lists: u64,
    /// Number of postings.
    pub postings: u64,
    /// Numbers of documents and of posting lists of the whole collection, according to the header: greater
    /// than those above if the file contains a part of a collection.
    pub collection: (u64, u64),
    /// Import: number of tokens, according to document lengths, that are in no list.
    pub missing_tokens: u64,
    /// Import: number of documents whose length was less than the sum of their frequencies, and was raised to
    /// that sum. Many of them are a sign of quantized impacts in place of frequencies.
    pub raised_lengths: u64,
    /// Import: number of lists whose stated document frequency is not their number of postings; the latter is
    /// used.
    pub other_frequencies: u64,
    /// Import: number of terms longer than [`TERM_BYTES_MAX`](crate::limits::TERM_BYTES_MAX), which were left
    /// out.
    pub long_terms: u64,
    /// Import: number of terms that no query finds, because analysis changes them: by lower case, at blanks,
    /// as stop words, or by stemming.
    pub changed_terms: u64,
    /// Import: the first of the `changed_terms` in byte order.
    pub first_changed_term: Option<String>,
    /// The description in the header.
    pub description: String,
}

/// A schema that [`import`] accepts: one field, `text`, without positions and stored documents.
pub fn schema() -> Schema {
    Schema { stored: Stored::Nothing, ..Schema::default() }
}
