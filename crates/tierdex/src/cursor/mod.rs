//! Access to the posting list of one term, whose skip record was read.
//!
//! A [`PostingsCursor`] moves forward through the documents, and holds one decoded block of up to 256. Blocks
//! that the caller skips are not decoded. [`ScatteredBlocks`] decodes blocks in any order, and
//! [`DocumentsReader`] adds those of many lists to a bitset. This module depends on files and codecs, not on
//! scores.

mod blocks;
mod documents;
mod error;
mod part_buffer;
mod positions;
mod postings;
mod range_prefetcher;
mod scattered;
mod term_order;
mod trace;
mod verify;

pub use blocks::{BLOCK_BYTES_MAX, IN_ORDER_BUFFER_BYTES, LIST_BYTES};
pub use documents::DocumentsReader;
pub use positions::{POSITIONS_BUFFER_BYTES, POSITIONS_BYTES, POSITIONS_READ_BYTES, PositionsReader};
pub use postings::{NO_DOCUMENT, PostingsCursor, frequency_max};
pub use range_prefetcher::RangePrefetcher;
pub use scattered::{DecodedBlock, ScatteredBlocks};
pub use term_order::ListsInTermOrder;
pub use trace::BlockCounts;
pub use verify::verify_uncompressed;
