//! The algorithms of evaluation, one a file, and what several of them use: `initial_threshold`, the threshold
//! before the first posting is scored, and `refiners`, the clauses in which candidates are looked up.

pub mod conjunction;
pub mod count;
pub mod impact_ordered;
pub mod initial_threshold;
pub mod maxscore;
pub mod refiners;
pub mod small_merge;
pub mod windows;
