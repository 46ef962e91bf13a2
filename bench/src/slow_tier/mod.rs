//! Emulation of a slower memory tier: the lists of an index are in a memory region, and evaluation waits for
//! their bytes as long as a slower memory would take.
//!
//! *Input*: an index, a region and a [`ReadDelay`]. *Output*: a [`BlockSource`] for each query that lends the
//! bytes of documents and frequencies in place, after a wait. All else that a query reads is in memory and
//! not delayed: dictionaries, skip data with the short lists in it, lengths, positions.
//!
//! 1. A query reads lines of 256 bytes. A line takes the latency of the memory; lines next to those that the
//!    query read lately were requested ahead (`streams`), and those that it read are in the CPU cache.
//! 2. With a bandwidth, the transfers of all threads follow each other (`arrivals`).
//! 3. The thread waits, without sleeping, until the last line has arrived.

mod arrivals;
mod delay;
mod streams;

pub use delay::ReadDelay;

use crate::Result;
use arrivals::Arrivals;
use std::{cell::RefCell, ops::Range, sync::Arc};
use streams::ReadStreams;
use tierdex::internal::{cursor::verify_uncompressed, segment::read::BlockSource, segment::read::FILES};
use tierdex::io::{Arena, Region, RegionKind, ResidentBytes, SealedFile};
use tierdex::{Index, Query, SearchOptions, explain::SearchResult, internal::index::Searcher};

/// Bytes of a file that are read, verified and copied at a time.
const COPY_CHUNK_BYTES: usize = 1 << 20;

/// The lists of an index in emulated slow memory.
pub struct SlowTier {
    searcher: Searcher,
    /// The payloads of the files of postings, with the number of their file.
    payloads: Vec<(u64, ResidentBytes)>,
    arrivals: Arrivals,
}

/// The [`BlockSource`] of one query: lends bytes of lists after the delay of the slow tier.
struct SlowReads<'t> {
    tier: &'t SlowTier,
    streams: RefCell<ReadStreams>,
}

impl SlowTier {
    /// Loads the lists of an index into a region of `kind`, and all else that queries read into DRAM.
    ///
    /// # Errors
    /// If the region cannot be allocated, or the index is damaged.
    pub fn load(index: &Index, kind: &RegionKind, delay: ReadDelay) -> Result<SlowTier> {
        let fields = || index.segments().iter().flat_map(|segment| segment.fields());
        let bytes: u64 =
            fields().map(|field| Arena::allocation_bytes(payload_bytes(field.postings_file()))).sum();
        let mut arena = Arena::new(Region::new(kind, bytes.max(1))?);
        let mut payloads = Vec::new();
        for segment in index.segments() {
            segment.load_checksums_and_norms(None)?;
            segment.load_terms(None)?;
            segment.load_skips(None)?;
        }
        for field in fields() {
            field.positions_file().map_or(Ok(()), |file| file.load())?;
            payloads.push((field.postings_file().number(), copy_payload(field.postings_file(), &mut arena)?));
        }
        let tier = SlowTier { searcher: index.searcher(), payloads, arrivals: Arrivals::new(delay) };
        fields().try_for_each(|field| verify_uncompressed(field, &tier.reads()))?;
        Ok(tier)
    }

    fn reads(&self) -> SlowReads<'_> {
        SlowReads { tier: self, streams: RefCell::default() }
    }

    /// Evaluates a query on the calling thread.
    ///
    /// # Errors
    /// As [`Searcher::search`].
    pub fn search(&self, query: &Query, options: &SearchOptions) -> tierdex::Result<SearchResult> {
        let reads = self.reads();
        let plan = self.searcher.plan(query, options, &reads)?;
        self.searcher.answer(&plan, options, &reads)
    }
}

/// The number of bytes of a payload.
fn payload_bytes(file: &SealedFile) -> u64 {
    file.payload().end - file.payload().start
}

/// Copies the payload of a file into an arena, verified.
fn copy_payload(file: &SealedFile, arena: &mut Arena) -> Result<ResidentBytes> {
    let fill = |out: &mut [u8]| {
        let (mut at, mut read) = (file.payload().start, Vec::new());
        for chunk in out.chunks_mut(COPY_CHUNK_BYTES) {
            file.read_into(at, chunk.len(), &mut read)?;
            chunk.copy_from_slice(&read);
            at += chunk.len() as u64;
        }
        Ok::<(), tierdex::io::Error>(())
    };
    Ok(ResidentBytes::allocate(Some(arena), payload_bytes(file) as usize, fill, file.name())?)
}

impl BlockSource for SlowReads<'_> {
    fn read(&self, file: &Arc<SealedFile>, range: Range<u64>, out: &mut Vec<u8>) -> tierdex::Result<()> {
        FILES.read(file, range, out)
    }

    fn lends(&self) -> bool {
        true
    }

    fn lend(&self, file: &SealedFile, range: &Range<u64>) -> tierdex::Result<Option<&[u8]>> {
        let mut payloads = self.tier.payloads.iter();
        let Some((_, payload)) = payloads.find(|(number, _)| *number == file.number()) else {
            return Ok(None);
        };
        let start = file.payload().start;
        let from = range.start.checked_sub(start).and_then(|from| usize::try_from(from).ok());
        let to = range.end.checked_sub(start).and_then(|to| usize::try_from(to).ok());
        let bytes = from.zip(to).and_then(|(from, to)| payload.get(from..to));
        // A range outside the payload gets the error of the file.
        let Some(bytes) = bytes else { return Ok(None) };
        let arrivals = &self.tier.arrivals;
        if let Some(arrival) = self.streams.borrow_mut().read_arrival(arrivals, file.number(), range) {
            while arrivals.now() < arrival {
                std::hint::spin_loop();
            }
        }
        Ok(Some(bytes))
    }
}
