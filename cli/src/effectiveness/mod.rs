//! Effectiveness of TREC runs, from relevance judgments: files, measures, and the comparison of two runs.

mod files;
mod measure;
mod paired;

pub use files::{Judgments, TrecRun, read_judgments, read_run};
pub use measure::{JudgedRanking, Measure};
pub use paired::PairedComparison;
