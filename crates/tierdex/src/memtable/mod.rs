//! In-memory index of a batch of documents. Input: documents and analyzers. Output: sorted runs of postings.
//!
//! 1. A [`FieldTable`] interns the term of each token and appends its term id to the list of tokens.
//! 2. [`FieldTable::seal`] sorts the terms, groups the tokens by term with one counting sort, and writes a
//!    [`SortedRun`]: all terms in order, each with its postings as variable-length integers.
//! 3. Runs of adjacent documents are merged term by term with [`run::RunCursor`] when a segment is written.
//!
//! This module does not depend on files or codecs. A run depends only on its documents, not on threads.

mod interner;
pub mod run;
mod table;

pub use run::{RunCursor, SortedRun};
pub use table::FieldTable;

#[cfg(test)]
mod tests;
