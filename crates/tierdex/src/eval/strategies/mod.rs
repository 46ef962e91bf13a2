//! The algorithms of evaluation, one a file, and what several of them use: the threshold before the first
//! posting is scored, and the clauses that propose no candidates.

pub(in crate::eval) mod conjunction;
pub(in crate::eval) mod count;
pub(in crate::eval) mod impact_ordered;
pub(in crate::eval) mod initial_threshold;
pub(in crate::eval) mod maxscore;
pub(in crate::eval) mod refiners;
pub(in crate::eval) mod small_merge;
pub(in crate::eval) mod windows;
