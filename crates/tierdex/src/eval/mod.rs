//! Evaluation. Input: the plan of a query and the lists of a segment. Output: hits.
//!
//! 1. [`choose_strategy`](strategy::choose_strategy) rewrites the plan for the segment, and chooses a
//!    strategy by the remaining clauses and their document frequencies.
//! 2. `Strategy::open` opens the lists of its clauses: a tree of nodes.
//! 3. `Strategy::find_matches`: one or several clauses propose candidates; these are looked up in the lists
//!    of the other clauses, in batches. The score of a candidate is an upper bound until all clauses have
//!    been looked up. Documents that may be hits are offered to the [`Collector`].
//!
//! | query | strategy | file in `strategies` |
//! |---|---|---|
//! | one scored term; exclusions, frequent filters | blocks by descending max score | `impact_ordered` |
//! | required clauses led by a term or phrase | its blocks, then the others | `conjunction`, `windows` |
//! | all others | candidates of windows, or of blocks of short lists | `windows` |
//! | only counted | by the dictionary, in blocks, or with bitsets | `conjunction`, `windows` |
//!
//! Groups are nodes like terms, whatever they contain: a conjunction takes candidates from its cheapest
//! clause (`nodes/all_of.rs`), a disjunction finds them with `MaxScore` (`nodes/any_of.rs`).
//!
//! Evaluation does no I/O: a [`BlockSource`](crate::segment::read::BlockSource) returns the bytes of lists
//! that are not resident, and may suspend the evaluation until they are. A strategy prefetches the blocks
//! that it will need.
//!
//! Segments are searched in order; the threshold (the smallest score of a hit, once there are `k`) is kept
//! from one to the next. [`initial_threshold()`] computes a threshold before the first segment.
//!
//! Scores are integers (see [`crate::rank::ScoreScale`]), so they do not depend on pruning or on the order
//! of summation.

#[cfg(test)]
mod contract;
mod log;
mod memory;
mod nodes;
mod open;
mod run;
mod scratch_memory;
mod search_plan;
mod segment_view;
mod state;
mod strategies;
mod strategy;
mod tuning;

pub use log::{EvaluationLog, ListUse};
pub use memory::{RETAINED_BYTES, explanation_memory, leaf_memory, working_memory};
pub use search_plan::SearchPlan;
pub(crate) use segment_view::SegmentView;
pub use state::{Collector, DocumentRange, Scratch, Search};
pub use strategies::initial_threshold::{InitialThreshold, initial_threshold};
pub(crate) use strategy::Strategy;
pub use strategy::{EvaluationOptions, StrategyKind};
pub use tuning::Tuning;
