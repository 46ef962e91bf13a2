//! Which bytes are near: the postings cache.
//!
//! This room knows ranges, budgets and jobs; it does not know what a posting is.

#![forbid(unsafe_code)]
#![allow(dead_code, reason = "who uses segments and chains comes next")]

mod chains;
mod policy;
mod segments;
pub mod trace;

pub use chains::Key;
pub use policy::{Lru, Policy, PolicyKind, S3Fifo, Sieve, Window};
