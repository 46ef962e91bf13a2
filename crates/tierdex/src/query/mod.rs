//! You have the text of a query; this room gives the operators that find and score its documents in a segment.
//!
//! 1. [`syntax`] reads the text into a syntax tree and says where it is wrong.
//! 2. [`tree`] analyses its words by the field's own chain and brings the [`tree::Query`] into normal form.
//! 3. [`plan`] looks its terms up in all segments and weighs them by the statistics of the whole index.
//! 4. [`ops`] run over a segment, a window of 4,096 documents at a time; or [`prune`] looks at those blocks only
//!    that may hold one of the best hits.
//!
//! The score of a document is defined by the normal form: a leaf scores by BM25; a node's score is the sum of
//! its matching clauses' scores, required ones first, from left to right, in `f32`.

pub mod ops;
pub mod plan;
pub mod prune;
pub mod syntax;
pub mod tree;

pub use plan::Plan;
pub use tree::Query;
