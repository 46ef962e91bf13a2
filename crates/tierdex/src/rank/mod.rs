//! You have frequencies and lengths; this room gives scores, and keeps the best documents.

mod bm25;
mod topk;

pub use bm25::{Bm25, Collection, Lengths, TermScorer, idf};
pub use topk::{Hit, TopK};
