//! From postings in document order to compressed blocks and their impacts, the competitive (frequency, norm)
//! pairs that bound their scores.
//!
//! It knows codecs and impacts, but no files: [`block::BlockEncoder`] turns up to 256 postings into bytes
//! and the block's Pareto front of (frequency, norm) pairs.

pub mod block;
pub mod impact;
pub mod norm;
