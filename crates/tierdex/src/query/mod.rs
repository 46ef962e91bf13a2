//! You have the text of a query; this room gives the operators that find and score its documents in a segment.
//!
//! 1. [`syntax`] reads the text into a syntax tree and says where it is wrong.
//! 2. `analyse` makes terms of its words by the field's own chain; [`tree`] brings the [`Query`] into normal form.
//! 3. [`plan`] looks its terms up in all segments (`expand` finds those that a prefix or a fuzzy word stands for), and
//!    weighs them by the statistics of the whole index.
//! 4. [`ops`] run over a segment, a window of 4,096 documents at a time; or [`prune`] looks at those blocks only
//!    that may hold one of the best hits.
//!
//! Which of its bytes a cache is to bring near, [`near`] says, and `memory` what answering takes. What a query may need, and what became of its lists, is noted by [`explain`] for those who ask.
//!
//! The score of a document is defined by the normal form: a leaf scores as [`Query`] says, by BM25 where it says
//! nothing; a node's score is the sum of its matching clauses' scores, required ones first, from left to right, in
//! `f32`.

mod analyse;
mod expand;
pub mod explain;
pub mod fuzzy;
mod marks;
mod memory;
mod near;
pub mod ops;
pub mod plan;
pub mod prune;
pub mod syntax;
pub mod tree;

pub use marks::Marks;
pub use memory::{leaf_memory, working_memory};
pub use plan::Plan;
pub use tree::Query;
