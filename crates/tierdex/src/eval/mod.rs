//! Evaluation: from the plan of a query and the lists of a segment to its hits.
//!
//! 1. [`open()`] makes a tree of nodes of the plan: clauses that cannot match in the segment are left out.
//! 2. A strategy is chosen by the shape of the query and the length of its lists.
//! 3. One clause or several propose candidates; the others refine them, in batches. The score of a candidate
//!    is an upper bound until all clauses have been looked up.
//!
//! | query | strategy | file |
//! |---|---|---|
//! | one scored term; exclusions, weak filters | blocks of the highest scores first | `impact_ordered` |
//! | several required clauses, and others | blocks of the rarest, looked up in the others | `conjunction` |
//! | alternatives, with any filters and exclusions | `MaxScore` over windows of documents | `maxscore` |
//! | alternatives of few documents | their lists are merged | `small_merge` |
//! | a minimum of alternatives, and what else is left | windows of documents | `windows` |
//! | how many documents match | candidates of the rarest clause, or bits | `count` |
//!
//! Evaluation never reads: a [`BlockSource`](crate::segment::read::BlockSource) gives it the bytes of lists
//! that are not in memory, and may suspend it until they are there. Before a strategy needs blocks it
//! prefetches those that it already knows to need.
//!
//! Segments are searched one after the other, and what the best of those before score is the threshold of
//! the next. Where skip data is resident, [`initial_threshold`] computes one before any segment is searched.
//!
//! Scores are integers (see [`crate::rank::ScoreScale`]): the same whatever is pruned, and in whatever order.

mod batch;
mod bounds;
mod buffers;
mod conjunction;
#[cfg(test)]
mod contract;
mod count;
mod document_set;
mod group;
mod impact_ordered;
mod log;
mod maxscore;
mod memory;
mod node;
mod occurrences;
mod open;
mod phrase;
mod range;
mod refine;
mod refinement;
mod scratch;
mod search;
mod slop;
mod small_merge;
mod strategy;
mod term;
mod tuning;
mod window;
mod windows;

pub use impact_ordered::initial_threshold;
pub use log::{EvaluationLog, ListUse};
pub use memory::{leaf_memory, working_memory};
pub use open::open;
pub use scratch::Scratch;
pub use search::{DocumentRange, Search};
pub use strategy::{Strategy, evaluate};
