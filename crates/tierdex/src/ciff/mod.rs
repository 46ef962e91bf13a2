//! Exchange of indexes in the Common Index File Format (Lin et al., Supporting Interoperability Between
//! Open-Source Search Engines with the Common Index File Format, SIGIR 2020).
//!
//! A file is a sequence of protobuf messages, each after its length: a header, the posting list of each term,
//! and a record of each document. [`import`] and [`export`] stream the lists: their memory grows with the
//! number of documents and terms, not with postings. docs/format/ciff.md says how files that differ from this
//! engine's rules are read.
//!
//! ```
//! use std::io::Cursor;
//! use tierdex::{ciff, Index, IndexWriter, Merge, Schema, WriterOptions};
//! # let temporary = tempfile::tempdir().unwrap();
//! # let (first, second) = (temporary.path().join("first"), temporary.path().join("second"));
//!
//! let mut writer = IndexWriter::create(&first, Schema::default(), WriterOptions::default())?;
//! writer.add("d1", "", "solid state disk")?;
//! writer.add("d2", "", "hard disk")?;
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

use crate::schema::{Field, Schema, Source};

pub use export::export;
pub use import::import;

/// The term that makes up for tokens that no list of an imported file has, so that the lengths of documents
/// are the sums of their frequencies. No analysis returns it, and it is not exported.
const MISSING_TOKENS: &str = "\0";

/// Numbers of an import or export.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct CiffReport {
    /// Documents.
    pub documents: u64,
    /// Posting lists.
    pub lists: u64,
    /// Postings.
    pub postings: u64,
    /// Documents and posting lists of the whole collection, from the header: more than those above if the
    /// file has a part of it.
    pub collection: (u64, u64),
    /// Import: tokens of document lengths that are in no list.
    pub missing_tokens: u64,
    /// Import: documents whose length in the file is less than the sum of their frequencies, which then is
    /// their length. Many of them are a sign of quantised impacts in place of frequencies.
    pub raised_lengths: u64,
    /// Import: lists whose document frequency differs from their number of postings, which is used.
    pub other_frequencies: u64,
    /// Import: terms longer than [`TERM_BYTES_MAX`](crate::limits::TERM_BYTES_MAX), whose lists are skipped.
    pub long_terms: u64,
    /// Import: terms that a query for them does not find, as the analysis of the index changes them: by
    /// lower case, at blanks, as stop words, by stemming.
    pub changed_terms: u64,
    /// The first of these terms, in order of their bytes.
    pub first_changed_term: Option<String>,
    /// The description in the header.
    pub description: String,
}

/// A schema that [`import`] accepts: one field, `text`, without positions and stored documents.
pub fn schema() -> Schema {
    Schema { fields: vec![Field::new("text", Source::TitleAndText)], stored: false }
}
