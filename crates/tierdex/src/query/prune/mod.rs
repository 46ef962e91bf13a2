//! Evaluation that looks only at blocks that may hold one of the best hits. What it finds is what [`super::ops`]
//! find by looking at all: the same documents, the same scores, the same order.
//!
//! | query | way | file |
//! |---|---|---|
//! | one term | blocks with the highest bounds first | `term` |
//! | all of several terms | blocks of the rarest, intersected with the others' | `all` |
//! | both of two terms, not counted | documents of the rarer that may be hits, looked up in the other | `both` |
//! | any of several terms | `MaxScore` over windows of documents | `any` |
//! | the same, where lists come near one after the other | documents that may be hits by those that are, looked up in the others | `candidates` |
//! | any of terms that stand in few documents | their lists are merged | `few` |
//! | how many hold any of several terms, or all of several frequent ones | bits of windows of documents | `count` |

mod all;
mod any;
mod batch;
mod both;
mod candidates;
mod count;
mod few;
mod needs;
mod scored;
mod scratch;
mod sums;
mod term;

pub use all::best_of_all;
pub use any::{best_of_any, noted_bytes};
pub use both::best_of_both;
pub use candidates::{CANDIDATES_BYTES, CANDIDATES_MAX, Candidates};
pub use count::{are_frequent, count_any, count_frequent};
pub use few::{best_of_few, few};
pub use needs::{Needs, needs};
pub use scored::{Bounds, SCORED_BYTES, Scored};
pub use scratch::Scratch;
pub use term::{best_of_term, blocks_of_best};

/// How the documents of a segment are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A term that must be there is not, or none is.
    Nothing,
    /// The dictionary says how many documents hold the term; no hit is wanted.
    Dictionary,
    /// [`best_of_term`]
    OneTerm,
    /// [`best_of_all`], or [`best_of_both`] of two that are not counted
    All,
    /// [`best_of_any`]
    Any,
    /// [`Candidates::offer`]
    Candidates,
    /// [`best_of_few`]
    Few,
    /// [`count_any`]
    CountAny,
    /// [`count_frequent`]
    CountFrequent,
    /// Operators look at all documents.
    Operators,
}

/// What sums of bounds of so many terms are multiplied by before they are compared. They are summed in another order
/// than scores are, and each addition, of theirs and of those, rounds by up to half of [`f32::EPSILON`].
fn slack(terms: usize) -> f32 {
    1.0 + 2.0 * f32::EPSILON * (terms as f32 + 1.0)
}
