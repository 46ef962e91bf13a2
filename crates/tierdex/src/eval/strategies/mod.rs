//! The algorithms of evaluation, one a file, and what several of them use: the threshold before the first
//! posting is scored, and the clauses that propose no candidates.

pub mod conjunction;
pub mod count;
pub mod impact_ordered;
pub mod initial_threshold;
pub mod maxscore;
pub mod refiners;
pub mod small_merge;
pub mod windows;
