//! Sizes of the parts of an engine in bytes, from which a memory report is added up. Experiments that
//! evaluate queries with another cache use them for their reports.

use crate::error::{Error, Result};
pub use crate::eval::{RETAINED_BYTES, leaf_memory, working_memory};
use crate::index::{IDS_READ_BYTES, Index, PreviewBytes, SearchHit, SearchOptions, result_ids_bytes};
use crate::limits::ID_BYTES_MAX;
use crate::{rank::TopK, segment::read::UNPACK_BYTES};

/// The program itself: the part of its code that is used, and static memory of its libraries.
pub const PROGRAM_BYTES: u64 = 7 << 20;

/// A search thread, without its evaluations.
pub const SEARCH_THREAD_BYTES: u64 = 128 << 10;

/// The part of the stack of an evaluation that is touched: 20 KiB at most in batches of queries of 1 to 1,024
/// terms.
pub const STACK_BYTES: u64 = 24 << 10;

/// Pins and waits of an evaluation, and what does not depend on its query.
pub(super) const EVALUATION_BYTES: u64 = 7_296;

/// A requested hit: in each result held in memory, its score as an integer if that is wanted, the offset and
/// length of its id there, and in the output without its id.
const HIT_RESULT_BYTES: u64 = size_of::<SearchHit>() as u64;
pub(super) const HIT_UNITS_BYTES: u64 = size_of::<u32>() as u64;
const HIT_ID_ENTRY_BYTES: u64 = 10;
const HIT_OUTPUT_BYTES: u64 = 64;

/// Reading of ids by a caller: a buffer that grows by doubling, a page of ids, and an id.
pub(super) const IDS_OUTPUT_BYTES: u64 = (2 * IDS_READ_BYTES + 4 * ID_BYTES_MAX) as u64;

/// Preview of a hit: decompression, title and text, tokens and snippet, and the output, in which a character
/// may take six bytes.
pub(super) const PREVIEW_BYTES: u64 = preview_bytes(PreviewBytes::MAX);

/// As [`PREVIEW_BYTES`], if no more than these bytes of a document are read.
pub(super) const fn preview_bytes(read: PreviewBytes) -> u64 {
    UNPACK_BYTES + (2 * read.text + 8 * read.title) as u64
}

/// A thread of a read queue that has threads: its stacks, in user space and in the kernel.
pub const READ_THREAD_BYTES: u64 = 64 << 10;

/// State of an in-flight read.
pub const READ_STATE_BYTES: u64 = 256;
/// State of each cell that it fills.
pub const READ_CELL_BYTES: u64 = 48;

/// An entry of the list of hot pages while it is written.
pub(super) const HOT_PAGE_BYTES: u64 = 8;

/// The thread of hot pages, and its buffers: of the list that it checks, decodes or writes.
pub(super) const HOT_THREAD_BYTES: u64 = 640 << 10;

/// Terms of an ordinary query, which any accepted budget has memory for.
const ORDINARY_TERMS: usize = 32;

/// Bytes of the hits of an evaluation.
pub fn hits_bytes(hits: u64) -> u64 {
    TopK::bytes_max(usize::try_from(hits).unwrap_or(usize::MAX))
}

/// Bytes of a result of `hits` hits, without ids.
pub fn result_bytes(hits: u64) -> u64 {
    HIT_RESULT_BYTES.saturating_mul(hits)
}

/// Bytes of a result of `hits` hits, with their ids.
pub(super) fn result_with_ids_bytes(hits: u64) -> u64 {
    let ids = result_ids_bytes(usize::try_from(hits).unwrap_or(usize::MAX)) as u64;
    result_bytes(hits).saturating_add(HIT_ID_ENTRY_BYTES.saturating_mul(hits)).saturating_add(ids)
}

/// Bytes of the output of `hits` hits.
pub fn output_bytes(hits: u64) -> u64 {
    IDS_OUTPUT_BYTES.saturating_add(HIT_OUTPUT_BYTES.saturating_mul(hits))
}

/// Number of segments of a commit, at most, for which ordinary queries have memory: as many as merging by
/// levels leaves of ten million documents (`index/policy.rs`).
const SEGMENTS_EXPECTED: usize = 24;

/// Bytes of the plan of an ordinary query, also of a later commit, which may have more segments.
pub fn ordinary_plan_bytes(index: &Index) -> u64 {
    (ORDINARY_TERMS * leaf_memory(index.segments().len().max(SEGMENTS_EXPECTED))) as u64
}

/// Skip data of an ordinary query, at most: that of lists of about 260 million postings without positions. A
/// budget need not grow with the documents beyond that; queries of longer lists have what it leaves.
const ORDINARY_SKIPS_BYTES_MAX: u64 = 12 << 20;

/// Bytes of the lists of an ordinary query, with skip data unless it is resident: half a byte for each
/// document, as terms of ordinary text have.
pub fn ordinary_lists_bytes(index: &Index, has_resident_skips: bool) -> u64 {
    let positions = index.schema().fields.iter().any(|field| field.positions);
    let documents = index.segments().iter().map(|segment| u64::from(segment.documents())).max().unwrap_or(0);
    let skips = if has_resident_skips { 0 } else { (documents / 2).min(ORDINARY_SKIPS_BYTES_MAX) };
    working_memory(ORDINARY_TERMS, positions) + skips
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
         or ask for fewer terms or hits"
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
