//! Encodes postings. Input: postings in document order. Output: compressed blocks and their impacts, the
//! competitive (frequency, norm) pairs that bound their scores.
//!
//! [`block::BlockEncoder`] encodes up to 256 postings. This module depends on codecs, not on files.

pub mod block;
pub mod impact;
pub mod norm;
