//! Ranking: BM25 and other scores of postings, and top-k selection.

mod bm25;
mod scorer;
mod statistics;
mod topk;

pub use bm25::{Bm25, CollectionStats, LengthNorms, idf};
pub use scorer::{ScoreScale, Scorer, TermScorer};
pub use statistics::Statistics;
pub(crate) use statistics::{TermTotals, WordCandidates};
pub use topk::{Hit, SharedThreshold, TopK};
