//! The memory budget: the size of each part of an engine, computed before any of it is allocated.

use super::delivery::RESULTS_AHEAD;
use super::list_prefetch::LIST_REQUEST_BYTES;
use super::options::{ExecutorOptions, MetaTier, Mode};
use super::resident_sizes::ResidentSizes;
use crate::error::{Error, Result};
use crate::eval::{RETAINED_BYTES, leaf_memory, working_memory};
use crate::index::{IDS_BYTES, Index, SearchOptions, result_ids_bytes};
use crate::limits::{ID_BYTES_MAX, PREVIEW_TEXT_BYTES, PREVIEW_TITLE_BYTES};
use crate::segment::read::UNPACK_BYTES;
use std::fmt;
use tierdex_cache::{LookaheadSample, READ_BYTES_MAX, READ_PAGES_MAX};
use tierdex_io::{EngineOptions, ReadEngine, Size};

/// The program itself: the part of its code that is used, and static memory of its libraries.
const PROGRAM_BYTES: u64 = 7 << 20;

/// A search thread, without its evaluations.
const SEARCH_THREAD_BYTES: u64 = 128 << 10;

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
const PREVIEW_BYTES: u64 = UNPACK_BYTES + (2 * PREVIEW_TEXT_BYTES + 8 * PREVIEW_TITLE_BYTES) as u64;

/// A reader thread of the postings cache: its stack and its queues.
const READER_BYTES: u64 = 256 << 10;

/// A thread of a read engine that has threads: its stacks, in user space and in the kernel.
const READ_ENGINE_THREAD_BYTES: u64 = 64 << 10;

/// Memory of planned queries: 1/`PLANS_DIVISOR` of the budget, at most `PLANS_BYTES_MAX`, but at least
/// `PLANS_BYTES_MIN` and enough for [`RESERVED_TERMS`] terms; `PLANS_BYTES_UNLIMITED` without a budget. Half
/// of it is reserved for the last query planned; with a budget, a query that needs more than that half is
/// rejected.
const PLANS_BYTES_MIN: u64 = 128 << 10;
const PLANS_BYTES_MAX: u64 = 64 << 20;
const PLANS_DIVISOR: u64 = 16;
const PLANS_BYTES_UNLIMITED: u64 = 16 << 20;

/// Terms of a query whose memory is always reserved: for a planned query, and for each running one.
const RESERVED_TERMS: usize = 32;

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

/// State of an in-flight read, and of each cell that it fills.
const READ_STATE_BYTES: u64 = 256;
const READ_CELL_BYTES: u64 = 48;

/// Memory of queued requests: 1/`QUEUE_DIVISOR` of the budget within these bounds. Each priority has half.
const QUEUE_BYTES_MIN: u64 = 64 << 10;
const QUEUE_BYTES_MAX: u64 = 16 << 20;
const QUEUE_DIVISOR: u64 = 512;

/// Memory of the evaluations of all threads, without their lists, if a thread runs several:
/// 1/`EVALUATIONS_DIVISOR` of the budget, and at most `EVALUATIONS_BYTES_MAX` a thread.
const EVALUATIONS_DIVISOR: u64 = 16;
const EVALUATIONS_BYTES_MAX: u64 = 5 << 20;

/// Concurrent evaluations of a thread, at most.
const IN_FLIGHT_MAX: u64 = 16;

/// Label of the row for which [`MemoryReport::check`] suggests another tier.
const DICTIONARIES: &str = "term dictionaries";

/// Bytes of an evaluation for `hits` hits.
fn evaluation_bytes(hits: usize) -> u64 {
    EVALUATION_BYTES.saturating_add(HIT_EVALUATION_BYTES.saturating_mul(hits as u64))
}

/// Bytes for queued requests.
pub(super) fn queue_bytes(dram: Option<u64>) -> u64 {
    dram.map_or(QUEUE_BYTES_MAX, |dram| (dram / QUEUE_DIVISOR).clamp(QUEUE_BYTES_MIN, QUEUE_BYTES_MAX))
}

/// Rejects a query that needs more memory than it may use.
pub(super) fn check_query_memory(step: &str, needed: u64, available: u64) -> Result<()> {
    if needed <= available {
        return Ok(());
    }
    Err(Error::Limit(format!(
        "{step} this query takes {needed} bytes of DRAM, and the budget leaves {available} for it; raise the budget \
         or ask for fewer terms"
    )))
}

/// Rejects a search for more hits than the memory budget counts.
pub(super) fn check_hits(hits_max: Option<usize>, options: &SearchOptions, index: &Index) -> Result<()> {
    let hits = (options.k as u64).min(index.documents());
    match hits_max {
        Some(max) if hits > max as u64 => Err(Error::Usage(format!(
            "{hits} hits requested, but the memory budget allows {max} a query; raise the option `hits_max`"
        ))),
        _ => Ok(()),
    }
}

/// A part of the memory of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUse {
    /// Name of the part.
    pub what: &'static str,
    /// Bytes, at most.
    pub bytes: u64,
    /// The memory region, if it is another than DRAM within the budget.
    pub region: Option<String>,
}

/// The memory that an engine takes, by part: all that grows with the index, the options or the load.
/// `Display` writes a line for each part.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryReport {
    /// The parts.
    pub rows: Vec<MemoryUse>,
    /// The memory budget in bytes.
    pub dram: Option<u64>,
    /// Smallest sufficient budget, if `dram` is too small; 0 otherwise. It differs from
    /// [`MemoryReport::needed`] because some rows grow with the budget.
    least: u64,
    /// Bytes of DRAM for the metadata of segments, which are in several rows.
    metadata: u64,
}

/// Inputs of the rows that are shares of the budget, and their minimums in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BudgetShares {
    /// Search threads.
    threads: u64,
    /// Concurrent evaluations of each thread.
    in_flight: u64,
    /// Whether queries are planned before a thread takes them.
    plans_ahead: bool,
    /// Bytes for plans and lists of each thread, at least.
    lists_min: u64,
    /// Bytes for planned queries, at least.
    plans_min: u64,
}

impl BudgetShares {
    pub(super) fn of(index: &Index, options: &ExecutorOptions) -> BudgetShares {
        let segments = index.segments();
        let documents = segments.iter().map(|segment| u64::from(segment.documents())).max().unwrap_or(0);
        let skips = if options.meta_tier.keeps_skips() && options.growth == 0 {
            0
        } else {
            // Skip data of segments that are opened later may stay on disk.
            let least = if options.growth > 0 { SKIPS_BYTES_MAX } else { 0 };
            (SKIPS_DOCUMENT_BYTES * documents)
                .clamp(least, SKIPS_BYTES_MAX)
                .max((documents / 2).min(4 * SKIPS_BYTES_MAX))
                .max(documents / DOCUMENTS_PER_SKIPS_BYTE)
        };
        let planned =
            (RESERVED_TERMS * (leaf_memory(segments.len()) + LIST_REQUEST_BYTES * segments.len())) as u64;
        let positions = index.schema().fields.iter().any(|field| field.positions);
        BudgetShares {
            threads: options.threads.max(1) as u64,
            in_flight: options.in_flight() as u64,
            plans_ahead: options.mode != Mode::Direct,
            lists_min: planned + working_memory(RESERVED_TERMS, positions) + skips,
            // Half of it is reserved for the last query planned.
            plans_min: PLANS_BYTES_MIN.max(2 * planned),
        }
    }

    /// Bytes for planned queries.
    pub(super) fn plans(&self, dram: Option<u64>) -> u64 {
        if !self.plans_ahead {
            return 0;
        }
        let share = dram.map_or(PLANS_BYTES_UNLIMITED, |dram| (dram / PLANS_DIVISOR).min(PLANS_BYTES_MAX));
        share.max(self.plans_min)
    }

    /// Bytes for each thread, of `bytes` for all.
    pub(super) fn each(&self, bytes: u64) -> u64 {
        bytes / self.threads
    }

    /// Bytes for the plans and lists of the running queries of a thread.
    pub(super) fn lists(&self, dram: Option<u64>) -> u64 {
        let share = dram.map_or(0, |dram| self.each(dram / LISTS_DIVISOR));
        share.min(LISTS_BYTES_MAX).max(self.lists_min)
    }
}

impl ExecutorOptions {
    /// Concurrent evaluations of a thread, at most.
    pub(super) fn in_flight(&self) -> usize {
        match self.mode {
            Mode::Direct => {
                let share = self
                    .dram
                    .map_or(u64::MAX, |dram| dram / EVALUATIONS_DIVISOR / self.threads.max(1) as u64);
                let evaluations = share.min(EVALUATIONS_BYTES_MAX) / evaluation_bytes(self.hits_max);
                evaluations.clamp(1, IN_FLIGHT_MAX) as usize
            }
            _ => 1,
        }
    }
}

impl MemoryReport {
    /// The memory of an engine or executor with `options`.
    pub(super) fn of(index: &Index, options: &ExecutorOptions) -> MemoryReport {
        let mut report = MemoryReport::with(index, options);
        if report.dram.is_some_and(|dram| report.needed() > dram) {
            let with = |dram| ExecutorOptions { dram: Some(dram), ..options.clone() };
            let needed = |dram| MemoryReport::with(index, &with(dram)).needed().next_multiple_of(1024);
            // Least fixed point in KiB, iterated from below: the memory needed never falls as the budget
            // grows.
            let (mut least, mut next) = (0, needed(0));
            while next > least {
                (least, next) = (next, needed(next));
            }
            report.least = least;
        }
        report
    }

    fn with(index: &Index, options: &ExecutorOptions) -> MemoryReport {
        let (sizes, shares) = (ResidentSizes::of(index), BudgetShares::of(index, options));
        let mut rows = Vec::new();
        let mut add = |what, bytes, region: Option<String>| rows.push(MemoryUse { what, bytes, region });
        add("program", PROGRAM_BYTES, None);
        let region = options.metadata_region().map(|kind| kind.to_string());
        add("page index of dictionaries", sizes.term_index, region.clone());
        add("page checksums", sizes.checksums, region.clone());
        if options.reads_mapped() {
            // A bit for each checksum.
            add("verified pages", sizes.checksums / 32, None);
        }
        if options.meta_tier != MetaTier::Disk {
            let region = match &options.meta_tier {
                MetaTier::Region(kind) => Some(kind.to_string()),
                MetaTier::Disk | MetaTier::Terms | MetaTier::Dram => None,
            };
            add(DICTIONARIES, sizes.terms, region.clone());
            add("prefix keys of terms", sizes.restart_keys, region.clone());
            if options.meta_tier.keeps_skips() {
                add("skip data and short lists", sizes.skips, region);
            }
        }
        add("norms", sizes.norms, region);
        if options.mode.has_cache() {
            let cache = options.cache_bytes(index);
            add("cache", cache, (!options.cache_in_budget).then(|| options.region.to_string()));
            let cells = cache / options.cell_bytes() as u64;
            add("cache metadata", options.cell_metadata() * cells, None);
        }
        let queued = if shares.plans_ahead { shares.plans(options.dram) } else { queue_bytes(options.dram) };
        add("queued queries", queued, None);
        if options.growth > 0 {
            add("metadata of later segments", options.growth, None);
        }
        // Later commits may have more documents.
        let documents = if options.growth > 0 { u64::MAX } else { index.documents() };
        let (threads, hits) = (options.threads as u64, (options.hits_max as u64).min(documents));
        let evaluations = shares.in_flight * evaluation_bytes(hits as usize);
        // One more evaluation, reserved for interactive requests.
        let reserved = if options.mode == Mode::Direct { evaluation_bytes(hits as usize) } else { 0 };
        add("search threads", shares.threads * (SEARCH_THREAD_BYTES + evaluations) + reserved, None);
        add("plans and lists of running queries", shares.threads * shares.lists(options.dram), None);
        let ahead = if options.mode == Mode::Direct { 2 * options.in_flight() } else { RESULTS_AHEAD };
        let results = threads * (1 + ahead as u64);
        let ids = if options.mode == Mode::Direct { result_ids_bytes(hits as usize) as u64 } else { 0 };
        let result = ids.saturating_add(HIT_RESULT_BYTES.saturating_mul(hits));
        let output = IDS_OUTPUT_BYTES.saturating_add(HIT_OUTPUT_BYTES.saturating_mul(hits));
        add("results", output.saturating_add(results.saturating_mul(result)), None);
        if options.previews && index.schema().stored {
            add("previews of hits", PREVIEW_BYTES, None);
        }
        if options.lookahead_samples > 0 && options.mode != Mode::Base {
            // Twice: they are copied to be read.
            add(
                "lookahead samples",
                2 * (size_of::<LookaheadSample>() * options.lookahead_samples) as u64,
                None,
            );
        }
        add("index of external ids", sizes.id_index, None);
        if options.mode != Mode::Base {
            let engine = EngineOptions { depth: options.depth(), ..options.engine };
            let threads =
                if options.mode.has_cache() { ReadEngine::threads(engine, index.disk()) } else { 0 };
            let (readers, reader, cells) = match options.mode {
                Mode::Direct => (options.threads, 0, READ_PAGES_MAX as u64),
                _ => (options.reader_threads, READER_BYTES, READ_BYTES_MAX / options.list_cell_bytes as u64),
            };
            let read = READ_STATE_BYTES + READ_CELL_BYTES * cells;
            let bytes = reader + READ_ENGINE_THREAD_BYTES * threads as u64 + read * engine.depth as u64;
            add("readers and reads in flight", readers as u64 * bytes, None);
        }
        let metadata = sizes.in_dram(&options.metadata_location());
        MemoryReport { rows, dram: options.dram, least: 0, metadata }
    }

    /// Bytes of DRAM that the metadata of segments takes: dictionaries and their indexes, skip data, norms,
    /// page checksums and the index of external ids, as far as they are there.
    #[doc(hidden)]
    pub fn metadata_in_dram(&self) -> u64 {
        self.metadata
    }

    /// The smallest sufficient budget, if the budget is too small.
    #[doc(hidden)]
    pub fn least(&self) -> Option<u64> {
        self.dram.filter(|dram| self.needed() > *dram).map(|_| self.least)
    }

    /// Bytes of DRAM that the parts take together, without those in other regions.
    pub fn needed(&self) -> u64 {
        self.rows.iter().filter(|row| row.region.is_none()).map(|row| row.bytes).sum()
    }

    /// Checks that the parts fit into the budget.
    ///
    /// # Errors
    /// [`Error::Usage`] with the smallest sufficient budget.
    pub fn check(&self) -> Result<()> {
        let Some(dram) = self.dram.filter(|dram| self.needed() > *dram) else { return Ok(()) };
        let resident = self.rows.iter().any(|row| row.what == DICTIONARIES && row.region.is_none());
        let advice = if resident {
            ", or keep dictionaries, skip data and norms on disk or in another region"
        } else {
            ""
        };
        Err(Error::Usage(format!(
            "a budget of {} of DRAM is too small: {} are needed; make it larger{advice}",
            Size::Bytes(dram),
            Size::Bytes(self.least)
        )))
    }
}

impl fmt::Display for MemoryReport {
    /// A line for each part, and one for their sum.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for MemoryUse { what, bytes, region } in &self.rows {
            let region = region.as_ref().map(|region| format!("  (in {region})")).unwrap_or_default();
            writeln!(f, "{bytes:>15}  {what}{region}")?;
        }
        let budget = self.dram.map(|dram| format!(", of {dram}")).unwrap_or_default();
        writeln!(f, "{:>15}  bytes of DRAM in total, without regions{budget}", self.needed())
    }
}
