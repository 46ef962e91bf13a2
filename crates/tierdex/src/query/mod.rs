//! Queries. Input: query text. Output: a `QueryPlan`, its terms looked up and weighted.
//!
//! 1. [`syntax`] parses the text into a syntax tree and reports faults with their offsets.
//! 2. `analyse` converts its words to terms with the analysis chain of the field; [`tree`] normalizes the
//!    [`Query`].
//! 3. `plan` looks up the terms in all segments and weights them by global statistics; `expand` expands
//!    prefixes and fuzzy words.
//! 4. `simplify` rewrites the plan into an equivalent one that is cheaper to evaluate.
//!
//! The score of a document is the sum of the scores of the scored leaves of the normal form that match it.
//! Leaves score by BM25 unless [`Query`] states otherwise. Scores are integers
//! ([`crate::rank::ScoreScale`]).

mod analyse;
mod expand;
pub mod fuzzy;
mod lists;
mod marks;
pub(crate) mod plan;
mod simplify;
pub mod syntax;
pub mod tree;

pub use expand::TermStats;
pub(crate) use expand::{Prefix, starting_with, terms_after};
pub use lists::{FileRange, QueryList};
pub use marks::Marks;
pub use plan::QueryPlan;
pub use tree::Query;
