//! In-memory index of a batch of documents. Input: documents and analyzers. Output: sorted runs of postings.
//!
//! 1. A [`FieldTable`] maps the term of each token to an id, and appends the id to the list of all tokens.
//! 2. [`FieldTable::take_run`] sorts the terms, groups the tokens by term with one counting sort, and writes
//!    a [`SortedRun`]: all terms in order, each with its postings as variable-length integers.
//! 3. When a segment is written, the runs of its batches are merged term by term, by [`run::RunCursor`].
//!
//! This module does not depend on files or codecs. A run depends only on its documents, not on threads.

mod interner;
pub mod run;
mod table;

pub use interner::Interner;
pub use run::{MARK_BYTES, RunCursor, SortedRun};
pub use table::FieldTable;

#[cfg(test)]
mod tests;
