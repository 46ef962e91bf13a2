//! You have postings in document order; this room gives compressed blocks and what a planner must know of
//! them.
//!
//! It knows codecs and impacts, but no files: [`block::BlockEncoder`] turns up to 256 postings into bytes
//! and the block's Pareto front of (frequency, norm) pairs.

pub mod block;
pub mod impact;
pub mod norm;
