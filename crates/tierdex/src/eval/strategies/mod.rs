//! The algorithms of evaluation, one a file, and `initial_threshold`, the threshold before the first posting
//! is scored.

pub mod conjunction;
pub mod impact_ordered;
pub mod initial_threshold;
pub mod windows;
