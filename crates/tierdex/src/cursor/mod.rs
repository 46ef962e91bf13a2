//! You have a term's record; this room gives its documents in order, block after block.
//!
//! A [`PostingsCursor`] holds one decoded block of up to 256 documents. It moves forward only. Blocks that a
//! caller passes over are neither decoded nor looked at. [`ScatteredBlocks`] gives blocks in any order. The
//! room knows files and codecs, but no scores.

mod ahead;
mod blocks;
mod positions;
mod postings;
mod scattered;
mod trace;

pub use ahead::ListsAhead;
pub use blocks::{IN_ORDER_BYTES, LIST_BYTES};
pub use positions::{POSITIONS_BUFFER, POSITIONS_BYTES, PositionsReader};
pub use postings::{NO_DOCUMENT, PostingsCursor};
pub use scattered::{DecodedBlock, ScatteredBlocks};
pub use trace::Blockwise;
