//! Who needs how much memory: known before any of it is taken.

use super::options::{ExecutorOptions, MetaTier, Mode};
use crate::error::{Error, Result};
use crate::index::reader::Index;
use crate::schema::NormKind;
use crate::segment::read::{FieldReader, Segment};
use std::fmt;
use tierdex_cache::Cache;
use tierdex_io::{Arena, PAGE, SealedFile};

/// The program itself: its code as far as it is used, and what its libraries set up.
const PROGRAM: u64 = 7 << 20;

/// Memory of a thread that answers: its stack, windows of sums and of documents, batches, and room for lists.
const THREAD: u64 = 1 << 20;

/// For each hit that is asked for: the heap of the best, room to sort them, the answer.
const HIT: u64 = 64;

/// Hits that a thread is made ready for.
const HITS: u64 = 1024;

/// A worker: its stack and its queues.
const WORKER: u64 = 256 << 10;

/// A thread that reads for it, in an engine that has such: its stack, here and in the kernel.
const READER: u64 = 64 << 10;

/// For each read in flight.
const READ: u64 = 256;

/// Something that takes memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// What it is.
    pub what: &'static str,
    /// How much it takes, in bytes.
    pub bytes: u64,
    /// The region in which it is, unless that is ordinary memory within the budget.
    pub region: Option<String>,
}

/// All that takes memory which grows with data or load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accounts {
    /// Each of them.
    pub rows: Vec<Account>,
    /// Bytes of ordinary memory for all that is in no region.
    pub dram: Option<u64>,
}

/// Bytes of what says where postings are.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Places {
    /// Dictionaries and skip data.
    pub(super) terms: u64,
    pub(super) skips: u64,
    /// Lengths, one byte a document.
    pub(super) codes: u64,
    /// Exact lengths, which are always in ordinary memory.
    lengths: u64,
    /// What of dictionaries is resident in any case, and what is beside those that are resident whole.
    term_index: u64,
    term_heads: u64,
    checksums: u64,
}

impl Places {
    pub(super) fn of(index: &Index) -> Places {
        let mut places = Places::default();
        for segment in index.segments() {
            places.checksums += segment.files().map(checksums).sum::<u64>();
            segment.fields().iter().for_each(|field| places.add(segment, field));
        }
        places
    }

    fn add(&mut self, segment: &Segment, field: &FieldReader) {
        self.terms += Arena::piece(payload(field.terms().file()));
        self.skips += Arena::piece(payload(field.skips()));
        self.term_index += field.terms().memory() as u64;
        self.term_heads += field.terms().heads_memory();
        match field.field().norms {
            NormKind::Byte => self.codes += Arena::piece(payload(field.norms_file())),
            NormKind::Exact => self.lengths += 4 * u64::from(segment.documents()),
        }
    }

    /// All that a region would hold.
    pub(super) fn all(&self) -> u64 {
        self.terms + self.skips + self.codes
    }
}

impl Accounts {
    /// What an executor with `options` takes; `cache` bytes are for the cache, and `waiting` for planned queries.
    pub(super) fn of(index: &Index, options: &ExecutorOptions, cache: u64, waiting: u64) -> Accounts {
        let places = Places::of(index);
        let mut rows = Vec::new();
        let mut add = |what, bytes, region: Option<String>| rows.push(Account { what, bytes, region });
        add("the program", PROGRAM, None);
        add("first terms of dictionary pages", places.term_index, None);
        add("checksums of pages", places.checksums, None);
        let region = match &options.meta {
            MetaTier::Region(kind) => Some(kind.to_string()),
            MetaTier::Disk | MetaTier::Dram => None,
        };
        if options.meta != MetaTier::Disk {
            add("dictionaries", places.terms, region.clone());
            add("first bytes of terms in dictionary pages", places.term_heads, None);
            add("skip data, and lists below a block", places.skips, region.clone());
        }
        add("lengths of documents", places.codes, region);
        if places.lengths > 0 {
            add("exact lengths of documents", places.lengths, None);
        }
        if options.mode.has_cache() {
            add("cached lists", cache, (!options.within).then(|| options.region.to_string()));
            let each = Cache::metadata_bytes_max(options.policy) as u64;
            add("metadata of the cache", each * (cache / options.segment as u64), None);
        }
        add("queries that wait", waiting, None);
        add("threads that answer", options.threads as u64 * (THREAD + HIT * HITS), None);
        if options.mode != Mode::Base {
            let threads = if options.mode.has_cache() { options.engine.threads() } else { 0 };
            let bytes = WORKER + READER * threads as u64 + READ * options.engine.depth as u64;
            add("threads that read", options.workers as u64 * bytes, None);
        }
        Accounts { rows, dram: options.dram }
    }

    /// Bytes of ordinary memory that are in no region.
    pub fn needed(&self) -> u64 {
        self.rows.iter().filter(|row| row.region.is_none()).map(|row| row.bytes).sum()
    }

    /// Refuses what does not fit.
    ///
    /// # Errors
    /// [`Error::Usage`]; the table says why.
    pub fn check(&self) -> Result<()> {
        match self.dram {
            Some(dram) if self.needed() > dram => Err(Error::Usage(format!(
                "a budget of {dram} bytes of DRAM is too small: {} are needed; make it larger, a cache smaller or its segments \
                 larger, or have terms, skip data and lengths on disk or in another region",
                self.needed()
            ))),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Accounts {
    /// A line for each account, and one for their sum.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Account { what, bytes, region } in &self.rows {
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
