//! Ranking: scores of postings by BM25, and the best k documents.

mod bm25;
mod statistics;
mod topk;

pub use bm25::{Bm25, Collection, Lengths, Scale, TermScorer, idf};
pub use statistics::Statistics;
pub use topk::{Hit, SharedThreshold, TopK};
