//! Encodes postings. Input: postings in the order of documents. Output: compressed blocks, and their impacts:
//! the competitive (frequency, norm) pairs, from which follows the highest score in a block.
//!
//! [`block::BlockEncoder`] encodes up to 256 postings. This module depends on codecs, not on files.

pub mod block;
pub mod impact;
pub mod norm;
