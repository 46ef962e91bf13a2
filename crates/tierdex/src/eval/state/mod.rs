//! The state of an evaluation: its range of documents and collector (`search`), batches of candidates,
//! bitsets and score windows over ranges of documents (`range_sets`), and buffers for reuse (`scratch`).

pub mod batch;
pub mod buffers;
pub mod collector;
pub mod range;
pub mod range_sets;
pub mod refinement;
pub mod scratch;
pub mod search;

pub use batch::CandidateBatch;
pub use collector::Collector;
pub(crate) use range::{
    CandidateRange, DocRange, aligned_origin, positions_within, prefetch_ahead, window_from,
};
pub use range_sets::{BitCounters, Bits, ScoreWindow};
pub use refinement::{Refine, Refinement};
pub use scratch::Scratch;
pub use search::{DocumentRange, Search};
