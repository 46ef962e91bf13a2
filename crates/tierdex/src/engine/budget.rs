//! The memory budget: the size of each part, known before any of it is allocated.

use super::delivery::ANSWERS_AHEAD;
use super::ids::Ids;
use super::options::{ExecutorOptions, MetaTier, Mode};
use super::supply::LIST;
use crate::error::{Error, Result};
use crate::eval::{leaf_memory, working_memory};
use crate::index::{IDS_BYTES, Index, SearchOptions};
use crate::limits::{ID_BYTES_MAX, IDS_GROUP, PREVIEW_TEXT_BYTES, PREVIEW_TITLE_BYTES};
use crate::schema::NormKind;
use crate::segment::read::{FieldReader, Segment, UNPACK_BYTES};
use std::fmt;
use tierdex_cache::{LookaheadSample, READ_BYTES_MAX, READ_PAGES_MAX};
use tierdex_io::{Arena, EngineOptions, PAGE, SealedFile};

/// The program itself: its code as far as it is used, and what its libraries set up.
const PROGRAM: u64 = 7 << 20;

/// Memory of a thread that answers.
const THREAD: u64 = 128 << 10;

/// Memory of an evaluation: its stack, windows of sums and of documents, and batches.
const EVALUATION: u64 = 256 << 10;

/// Memory of an evaluation that looks for `hits` hits.
pub(super) fn evaluation(hits: usize) -> u64 {
    EVALUATION.saturating_add(HIT.saturating_mul(hits as u64))
}

/// Bytes per requested hit: `HIT` during evaluation, `HIT_FOUND` in each answer held in memory, and
/// `HIT_SHOWN` in the output, without its id.
const HIT: u64 = 64;
const HIT_FOUND: u64 = 8;
const HIT_SHOWN: u64 = 64;

/// Ids of the answer that is written, in a buffer that grows by doubling, and a group of ids of which they
/// are a part.
const IDS_SHOWN: u64 = (2 * IDS_BYTES + (IDS_GROUP as usize + 1) * ID_BYTES_MAX) as u64;

/// Showing a hit: unpacking it, its title and text, the text's tokens and the snippet, and all of it as it
/// is written, in which a character may take six bytes.
const PREVIEW: u64 = UNPACK_BYTES + (2 * PREVIEW_TEXT_BYTES + 8 * PREVIEW_TITLE_BYTES) as u64;

/// A worker: its stack and its queues.
const WORKER: u64 = 256 << 10;

/// A thread that reads for it, in an engine that has such: its stack, here and in the kernel.
const READER: u64 = 64 << 10;

/// Memory of planned queries: 1/`WAITING_PART` of the budget, at most `WAITING_MAX` bytes, but at least
/// `WAITING_MIN` and enough for [`TERMS`] terms; `WAITING_FREE` without a budget. Half of it is reserved for
/// the last query planned; with a budget, a query that needs more than that half is rejected.
const WAITING_MIN: u64 = 128 << 10;
const WAITING_MAX: u64 = 64 << 20;
const WAITING_PART: u64 = 16;
const WAITING_FREE: u64 = 16 << 20;

/// Terms whose memory is always reserved: of a query that is planned, and of each that is answered.
const TERMS: usize = 32;

/// Memory for the plans and posting lists of running queries: 1/`LISTS_PART` of the budget, at most
/// `LISTS_MAX` bytes a thread unless [`TERMS`] terms need more, plus the unallocated rest of the budget. A
/// query that needs more is rejected.
const LISTS_PART: u64 = 16;
const LISTS_MAX: u64 = 256 << 20;

/// Bytes of these for skip data that is not resident: [`RECORDS`] for each document of the largest segment,
/// up to [`RECORDS_MAX`], but at least half a byte for each. The skip data of a term that all documents
/// contain takes about an eighth of a byte for each.
const RECORDS: u64 = 2;
const RECORDS_MAX: u64 = 2 << 20;

/// Labels of the rows that grow with the budget.
const WAITING: &str = "queries that wait";
const LISTS: &str = "lists of queries that are answered";

/// Labels of the rows that can be reduced or moved to another region: [`MemoryReport::check`] suggests it.
const CACHE: &str = "cached lists";
const DICTIONARIES: &str = "dictionaries";

/// For each read in flight, and for each segment into which it goes.
const READ: u64 = 256;
const READ_SEGMENT: u64 = 48;

/// Bytes of requests that wait, at least and at most; between them, this part of the budget. Each priority
/// has half.
const QUEUE_MIN: u64 = 64 << 10;
const QUEUE_MAX: u64 = 16 << 20;
const QUEUE_PART: u64 = 512;

/// Bytes of requests that wait.
pub(super) fn queue_bytes(dram: Option<u64>) -> u64 {
    dram.map_or(QUEUE_MAX, |dram| (dram / QUEUE_PART).clamp(QUEUE_MIN, QUEUE_MAX))
}

/// Rejects a query that takes more than it may.
pub(super) fn check_query_memory(what: &str, takes: u64, may: u64) -> Result<()> {
    if takes <= may {
        return Ok(());
    }
    Err(Error::Limit(format!(
        "{what} this query takes {takes} bytes of DRAM, and the budget leaves {may} for it; make it larger, or ask for \
         fewer terms"
    )))
}

/// Rejects a search for more hits than the memory budget counts.
pub(super) fn check_hits(most: Option<usize>, options: &SearchOptions, index: &Index) -> Result<()> {
    let asked = (options.k as u64).min(index.documents());
    match most {
        Some(most) if asked > most as u64 => Err(Error::Usage(format!(
            "{asked} hits requested, but the memory budget allows {most} a query; raise the option `hits`"
        ))),
        _ => Ok(()),
    }
}

/// A part of the memory of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUse {
    /// What takes the memory.
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
    /// Smallest sufficient budget, if `dram` is too small; 0 otherwise. It differs from [`MemoryReport::needed`]
    /// because some rows grow with the budget.
    least: u64,
}

/// Inputs of the rows that are shares of the budget, and their minimums in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shares {
    /// Threads that answer, all together, and the least bytes for lists on each.
    threads: u64,
    /// Evaluations on each of them.
    in_flight: u64,
    /// Whether queries are planned before they are answered.
    plans_ahead: bool,
    lists_min: u64,
    waiting_min: u64,
}

/// Sizes in bytes of the metadata of segments: dictionaries, skip data, norms, page checksums, id offsets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ResidentSizes {
    /// Dictionaries and skip data.
    pub(super) terms: u64,
    pub(super) skips: u64,
    /// Lengths, one byte a document.
    pub(super) codes: u64,
    /// Exact lengths, which are always in ordinary memory.
    lengths: u64,
    /// First terms of dictionary pages, always resident; and the term heads that are added when whole
    /// dictionaries are resident.
    term_index: u64,
    term_heads: u64,
    checksums: u64,
    /// What says where ids are.
    ids: u64,
}

impl ResidentSizes {
    pub(super) fn of(index: &Index) -> ResidentSizes {
        let mut sizes = ResidentSizes::default();
        index.segments().iter().for_each(|segment| sizes.add_segment(segment));
        sizes
    }

    pub(super) fn of_segment(segment: &Segment) -> ResidentSizes {
        let mut sizes = ResidentSizes::default();
        sizes.add_segment(segment);
        sizes
    }

    fn add_segment(&mut self, segment: &Segment) {
        self.ids += segment.ids().memory();
        self.checksums += segment.files().map(checksums).sum::<u64>();
        segment.fields().iter().for_each(|field| self.add(segment, field));
    }

    /// Bytes of ordinary memory that are taken if dictionaries, skip data and norms are in that tier.
    pub(super) fn resident(&self, tier: &MetaTier) -> u64 {
        let always = self.term_index + self.checksums + self.ids + self.lengths;
        always
            + match tier {
                MetaTier::Disk => self.codes,
                MetaTier::Terms => self.codes + self.terms + self.term_heads,
                MetaTier::Dram => self.codes + self.terms + self.term_heads + self.skips,
                MetaTier::Region(_) => self.term_heads,
            }
    }

    fn add(&mut self, segment: &Segment, field: &FieldReader) {
        self.terms += Arena::allocation_bytes(payload(field.terms().file()));
        self.skips += Arena::allocation_bytes(payload(field.skips()));
        self.term_index += field.terms().memory() as u64;
        self.term_heads += field.terms().restart_keys_memory();
        match field.field().norms {
            NormKind::Byte => self.codes += Arena::allocation_bytes(payload(field.norms_file())),
            NormKind::Exact => self.lengths += 4 * u64::from(segment.documents()),
        }
    }

    /// All that a region would hold.
    pub(super) fn all(&self) -> u64 {
        self.terms + self.skips + self.codes
    }
}

impl Shares {
    pub(super) fn of(index: &Index, options: &ExecutorOptions) -> Shares {
        let segments = index.segments();
        let documents = segments.iter().map(|segment| u64::from(segment.documents())).max().unwrap_or(0);
        // Skip data of segments that are opened later may stay on disk.
        let records = if options.growth > 0 {
            RECORDS_MAX
        } else if options.meta.keeps_skips() {
            0
        } else {
            (RECORDS * documents).min(RECORDS_MAX).max(documents / 2)
        };
        let planned = (TERMS * (leaf_memory(segments.len()) + LIST * segments.len())) as u64;
        let positions = index.schema().fields.iter().any(|field| field.positions);
        Shares {
            threads: options.threads.max(1) as u64,
            in_flight: options.in_flight() as u64,
            plans_ahead: options.mode != Mode::Direct,
            lists_min: planned + working_memory(TERMS, positions) + records,
            // Half of it waits when it is planned.
            waiting_min: WAITING_MIN.max(2 * planned),
        }
    }

    /// Bytes for planned queries.
    pub(super) fn waiting(&self, dram: Option<u64>) -> u64 {
        if !self.plans_ahead {
            return 0;
        }
        let part = dram.map_or(WAITING_FREE, |dram| (dram / WAITING_PART).min(WAITING_MAX));
        part.max(self.waiting_min)
    }

    /// Bytes for each thread, of `bytes` for all.
    pub(super) fn each(&self, bytes: u64) -> u64 {
        bytes / self.threads
    }

    /// Bytes for the query that a thread answers: its plan and its lists.
    pub(super) fn lists(&self, dram: Option<u64>) -> u64 {
        let part = dram.map_or(0, |dram| self.each(dram / LISTS_PART));
        part.min(LISTS_MAX).max(self.lists_min)
    }
}

impl MemoryReport {
    /// What an executor with `options` takes; `cache` bytes are for the cache.
    pub(super) fn of(index: &Index, options: &ExecutorOptions, cache: u64) -> MemoryReport {
        let mut report = MemoryReport::with(index, options, cache);
        if report.dram.is_some_and(|dram| report.needed() > dram) {
            let with = |dram| ExecutorOptions { dram: Some(dram), ..options.clone() };
            let needed = |dram| MemoryReport::with(index, &with(dram), cache).needed();
            // Least fixed point, iterated from below: the memory needed never falls as the budget grows.
            let (mut least, mut next) = (0, needed(0));
            while next > least {
                (least, next) = (next, needed(next));
            }
            report.least = least;
        }
        report
    }

    fn with(index: &Index, options: &ExecutorOptions, cache: u64) -> MemoryReport {
        let (sizes, shares) = (ResidentSizes::of(index), Shares::of(index, options));
        let mut rows = Vec::new();
        let mut add = |what, bytes, region: Option<String>| rows.push(MemoryUse { what, bytes, region });
        add("the program", PROGRAM, None);
        add("first terms of dictionary pages", sizes.term_index, None);
        add("checksums of pages", sizes.checksums, None);
        let region = match &options.meta {
            MetaTier::Region(kind) => Some(kind.to_string()),
            MetaTier::Disk | MetaTier::Terms | MetaTier::Dram => None,
        };
        if options.meta != MetaTier::Disk {
            add(DICTIONARIES, sizes.terms, region.clone());
            add("first bytes of terms in dictionary pages", sizes.term_heads, None);
        }
        if options.meta.keeps_skips() {
            add("skip data, and lists below a block", sizes.skips, region.clone());
        }
        add("lengths of documents", sizes.codes, region);
        if sizes.lengths > 0 {
            add("exact lengths of documents", sizes.lengths, None);
        }
        if options.mode.has_cache() {
            add(CACHE, cache, (!options.within).then(|| options.region.to_string()));
            let cells = cache / options.cell_bytes() as u64;
            add("metadata of the cache", options.cell_metadata() * cells, None);
        }
        let waiting =
            if shares.plans_ahead { shares.waiting(options.dram) } else { queue_bytes(options.dram) };
        add(WAITING, waiting, None);
        if options.growth > 0 {
            add("segments of later commits", options.growth, None);
        }
        // More documents may be added to an index that grows.
        let documents = if options.growth > 0 { u64::MAX } else { index.documents() };
        let (threads, hits) = (options.threads as u64, (options.hits as u64).min(documents));
        let evaluations = shares.in_flight * evaluation(hits as usize);
        // One is for interactive requests.
        let reserved = if options.mode == Mode::Direct { evaluation(hits as usize) } else { 0 };
        add("threads that answer", shares.threads * (THREAD + evaluations) + reserved, None);
        add(LISTS, shares.threads * shares.lists(options.dram), None);
        let ahead = if options.mode == Mode::Direct { 2 * options.in_flight() } else { ANSWERS_AHEAD };
        add("answers", IDS_SHOWN + hits * (HIT_SHOWN + HIT_FOUND * threads * (1 + ahead as u64)), None);
        if options.previews && index.schema().stored {
            add("titles and texts of hits", PREVIEW, None);
        }
        if options.samples > 0 && options.mode != Mode::Base {
            // Twice, as they are copied to be looked at.
            add("log of the lookahead", 2 * (size_of::<LookaheadSample>() * options.samples) as u64, None);
        }
        let reads = if options.mode == Mode::Direct { Ids::memory(options.engine.depth) } else { 0 };
        add("where ids are, and those on their way", reads + sizes.ids, None);
        if options.mode != Mode::Base {
            let engine = EngineOptions { depth: options.depth(), ..options.engine };
            let threads = if options.mode.has_cache() { engine.threads() } else { 0 };
            let (readers, worker, cells) = match options.mode {
                Mode::Direct => (options.threads, 0, READ_PAGES_MAX as u64),
                _ => (options.workers, WORKER, READ_BYTES_MAX / options.segment as u64),
            };
            let read = READ + READ_SEGMENT * cells;
            let bytes = worker + READER * threads as u64 + read * engine.depth as u64;
            add("threads that read", readers as u64 * bytes, None);
        }
        MemoryReport { rows, dram: options.dram, least: 0 }
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
        let advice =
            if resident { ", or keep terms, skip data and lengths on disk or in another region" } else { "" };
        let least = self.least;
        Err(Error::Usage(format!(
            "a budget of {dram} bytes of DRAM is too small: {least} are needed; make it larger{advice}"
        )))
    }
}

impl fmt::Display for MemoryReport {
    /// A line for each account, and one for their sum.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for MemoryUse { what, bytes, region } in &self.rows {
            let place = region.as_ref().map(|region| format!("  (in {region})")).unwrap_or_default();
            writeln!(f, "{bytes:>15}  {what}{place}")?;
        }
        let budget = self.dram.map(|dram| format!(", of {dram}")).unwrap_or_default();
        writeln!(f, "{:>15}  bytes of DRAM together, without regions{budget}", self.needed())
    }
}

fn payload(file: &SealedFile) -> u64 {
    file.payload().end - file.payload().start
}

/// The page table of a file.
fn checksums(file: &SealedFile) -> u64 {
    4 * file.payload().end.div_ceil(PAGE)
}
