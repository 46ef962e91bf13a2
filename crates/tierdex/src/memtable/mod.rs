//! You have analysed documents; this room gives sorted runs of postings in memory.
//!
//! 1. A [`FieldTable`] interns each token's term and keeps the number of the term, token after token.
//! 2. [`FieldTable::seal`] sorts the terms and, by one counting sort, groups the tokens by term; it writes a
//!    [`Run`]: all terms in order, each with its postings as variable-length bytes.
//! 3. Runs of adjacent documents are later read side by side by [`run::RunCursor`] and joined term by term.
//!
//! The room knows neither files nor codecs. What a run holds depends only on its documents, never on threads.

mod interner;
pub mod run;
mod table;

pub use run::{Run, RunCursor};
pub use table::FieldTable;

#[cfg(test)]
mod tests;
