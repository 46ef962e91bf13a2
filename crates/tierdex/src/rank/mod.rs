//! Ranking: BM25 scores of postings, and top-k selection.

mod bm25;
mod statistics;
mod topk;

pub use bm25::{Bm25, CollectionStats, LengthNorms, ScoreScale, TermScorer, idf};
pub use statistics::Statistics;
pub use topk::{Hit, SharedThreshold, TopK};
