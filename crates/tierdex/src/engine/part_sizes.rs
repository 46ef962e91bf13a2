//! Sizes of the parts of an engine in bytes, from which a memory report is added up. Experiments that
//! evaluate queries with another cache use them for their reports.

use crate::error::{Error, Result};
use crate::eval::{RETAINED_BYTES, leaf_memory, working_memory};
use crate::index::{IDS_BYTES, Index, SearchOptions, result_ids_bytes};
use crate::limits::{ID_BYTES_MAX, PREVIEW_TEXT_BYTES, PREVIEW_TITLE_BYTES};
use crate::segment::read::UNPACK_BYTES;

/// The program itself: the part of its code that is used, and static memory of its libraries.
pub const PROGRAM_BYTES: u64 = 7 << 20;

/// A search thread, without its evaluations.
pub const SEARCH_THREAD_BYTES: u64 = 128 << 10;

/// An evaluation, without its hits: its stack, and the buffers that it retains for the next query.
const EVALUATION_BYTES: u64 = (48 << 10) + RETAINED_BYTES as u64;

/// A requested hit: during evaluation, in each result held in memory, and in the output without its id.
const HIT_EVALUATION_BYTES: u64 = 64;
const HIT_RESULT_BYTES: u64 = 16;
const HIT_OUTPUT_BYTES: u64 = 64;

/// Ids of the result that is written: a buffer that grows by doubling, a page of ids, and an id.
const IDS_OUTPUT_BYTES: u64 = (2 * IDS_BYTES + 4 * ID_BYTES_MAX) as u64;

/// Preview of a hit: decompression, title and text, tokens and snippet, and the output, in which a character
/// may take six bytes.
pub(super) const PREVIEW_BYTES: u64 =
    UNPACK_BYTES + (2 * PREVIEW_TEXT_BYTES + 8 * PREVIEW_TITLE_BYTES) as u64;

/// A thread of a read engine that has threads: its stacks, in user space and in the kernel.
pub const READ_ENGINE_THREAD_BYTES: u64 = 64 << 10;

/// State of an in-flight read.
pub const READ_STATE_BYTES: u64 = 256;
/// State of each cell that it fills.
pub const READ_CELL_BYTES: u64 = 48;

/// Terms of a query whose memory is always reserved: for a planned query, and for each running one.
const RESERVED_TERMS: usize = 32;

/// A list of a planned query: the byte ranges that are read of it.
pub const LIST_BYTES: usize = 256;

/// Memory of the plans and posting lists of running queries: 1/`LISTS_DIVISOR` of the budget, at most
/// `LISTS_BYTES_MAX` a thread unless [`RESERVED_TERMS`] terms need more, plus the unallocated rest of the
/// budget. A query that needs more is rejected.
const LISTS_DIVISOR: u64 = 16;
const LISTS_BYTES_MAX: u64 = 256 << 20;

/// Part of this memory for non-resident skip data, by the documents of the largest segment:
/// `SKIPS_DOCUMENT_BYTES` for each, up to `SKIPS_BYTES_MAX`; at least half a byte, up to four times that;
/// and in any case a byte for `DOCUMENTS_PER_SKIPS_BYTE` of them. The skip data of a term that all documents
/// contain takes an eighth of a byte a document, and less than a fifteenth without impacts.
const SKIPS_DOCUMENT_BYTES: u64 = 2;
const SKIPS_BYTES_MAX: u64 = 2 << 20;
const DOCUMENTS_PER_SKIPS_BYTE: u64 = 15;

/// Bytes of an evaluation for `hits` hits.
pub fn evaluation_bytes(hits: usize) -> u64 {
    EVALUATION_BYTES.saturating_add(HIT_EVALUATION_BYTES.saturating_mul(hits as u64))
}

/// Bytes of a result of `hits` hits, without ids.
pub fn result_bytes(hits: u64) -> u64 {
    HIT_RESULT_BYTES.saturating_mul(hits)
}

/// Bytes of the ids of a result of `hits` hits.
pub(super) fn ids_bytes(hits: u64) -> u64 {
    result_ids_bytes(hits as usize) as u64
}

/// Bytes of the output of `hits` hits.
pub fn output_bytes(hits: u64) -> u64 {
    IDS_OUTPUT_BYTES.saturating_add(HIT_OUTPUT_BYTES.saturating_mul(hits))
}

/// Bytes of the plan of a query that is always accepted, and of its lists.
pub fn plan_bytes_min(index: &Index) -> u64 {
    let segments = index.segments().len();
    (RESERVED_TERMS * (leaf_memory(segments) + LIST_BYTES * segments)) as u64
}

/// Bytes of the skip data of running queries, if it is not resident. `grows`: segments of later commits may
/// be larger.
pub fn skips_bytes_min(index: &Index, grows: bool) -> u64 {
    let segments = index.segments();
    let documents = segments.iter().map(|segment| u64::from(segment.documents())).max().unwrap_or(0);
    let least = if grows { SKIPS_BYTES_MAX } else { 0 };
    (SKIPS_DOCUMENT_BYTES * documents)
        .clamp(least, SKIPS_BYTES_MAX)
        .max((documents / 2).min(4 * SKIPS_BYTES_MAX))
        .max(documents / DOCUMENTS_PER_SKIPS_BYTE)
}

/// Bytes for the plans and lists of the running queries of one of `threads` threads. `skips` is the part for
/// skip data.
pub fn lists_bytes(index: &Index, dram: Option<u64>, threads: u64, skips: u64) -> u64 {
    let positions = index.schema().fields.iter().any(|field| field.positions);
    let least = plan_bytes_min(index) + working_memory(RESERVED_TERMS, positions) + skips;
    let share = dram.map_or(0, |dram| dram / LISTS_DIVISOR / threads);
    share.min(LISTS_BYTES_MAX).max(least)
}

/// Rejects a query that needs more memory than it may use.
///
/// # Errors
/// [`Error::TooLarge`].
pub fn check_query_memory(step: &str, needed: u64, available: u64) -> Result<()> {
    if needed <= available {
        return Ok(());
    }
    Err(Error::TooLarge(format!(
        "{step} this query takes {needed} bytes of DRAM, and the budget leaves {available} for it; raise the budget \
         or ask for fewer terms"
    )))
}

/// Rejects a search for more hits than the memory budget counts.
///
/// # Errors
/// [`Error::Usage`].
pub fn check_hits(hits_max: Option<usize>, options: &SearchOptions, index: &Index) -> Result<()> {
    let hits = (options.k as u64).min(index.documents());
    match hits_max {
        Some(max) if hits > max as u64 => Err(Error::Usage(format!(
            "{hits} hits requested, but the memory budget allows {max} a query; raise the option `hits_max`"
        ))),
        _ => Ok(()),
    }
}
