//! The state of an evaluation: its documents and collector, candidates, sets of documents of a range, and
//! buffers for reuse.

pub(in crate::eval) mod batch;
pub(in crate::eval) mod buffers;
pub(in crate::eval) mod collector;
pub(in crate::eval) mod range;
pub(in crate::eval) mod range_sets;
pub(in crate::eval) mod refinement;
pub(in crate::eval) mod scratch;
pub(in crate::eval) mod search;
