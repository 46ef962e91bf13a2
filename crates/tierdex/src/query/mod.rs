//! Queries: from text to a plan.
//!
//! 1. [`syntax`] reads the text into a syntax tree and says where it is wrong.
//! 2. `analyse` makes terms of its words by the field's own chain; [`tree`] brings the [`Query`] into normal
//!    form.
//! 3. `plan` looks its terms up in all segments (`expand` finds the terms of a prefix or a fuzzy word), and
//!    weighs them by the statistics of the whole index.
//! 4. `simplify` brings the plan into the form that is the least work to evaluate.
//!
//! The score of a document is the sum of the scores of the leaves of the normal form that match it and are
//! scored: a leaf scores as [`Query`] says, by BM25 where it says nothing. Scores are integers
//! ([`crate::rank::Scale`]).

mod analyse;
mod expand;
pub mod fuzzy;
mod marks;
pub(crate) mod plan;
mod simplify;
pub mod syntax;
pub mod tree;

pub(crate) use expand::starting_with;
pub use marks::Marks;
pub(crate) use plan::Plan;
pub use tree::Query;
