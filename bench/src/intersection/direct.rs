//! `direct`, this project's algorithm: one thread with many reads in flight that bypass the page cache.
//!
//! 1. Read the part of the shortest list that overlaps the ranges of all others. Adjacent pages are one
//!    read.
//! 2. Its ids are the candidates. The skip pointers of the next list give the pages that can contain
//!    candidates. If the [`CostModel`] expects that filters save time, candidates that fail the filter are
//!    dropped first.
//! 3. Pages in memory are processed at once. The others are read; two of them are one read if the pages
//!    between cost less than a separate read. Reads are submitted as soon as a buffer is free. Each page is
//!    verified, decoded and compared when its read completes, while other reads are in flight.
//! 4. Repeat from 2 with the surviving candidates and the next list.
//!
//! The accessed pages are those of `sl` or `bf`, each once.

use crate::intersection::list::{PagedList, by_length, gallop};
use crate::intersection::reads::{IntersectionResult, ReadStats};
use crate::intersection::{cost::CostModel, filter::PageIds, filter::false_positive_rate, page::PAGE_BYTES};
use std::{hint::black_box, ops::Range, sync::Arc, time::Instant};
use tierdex::io::{CellMut, Cells, Disk, ReadOptions, ReadQueue, ReadTarget, Region, RegionKind};
use tierdex::{Result, codec::Intersection, codec::intersect, limits::BLOCK};

/// If a page has at least this many ids for each candidate, each candidate is searched in the page; else
/// blocks of candidates are intersected with blocks of ids.
const SPARSE_IDS_PER_CANDIDATE: usize = 16;

/// How often [`Direct::measure_cost`] measures; it takes the shortest time.
const COST_REPETITIONS: usize = 4;

/// The read queue and buffers of one thread.
pub struct Direct {
    /// The cost model.
    pub cost: CostModel,
    read_queue: ReadQueue,
    free: Vec<CellMut>,
    read_pages_max: usize,
    reads: ReadStats,
}

/// A page and its candidates.
struct PageCandidates {
    page: usize,
    candidates: Range<usize>,
}

/// Pages that are read together, and the needed pages among them.
struct PageRun {
    pages: Range<usize>,
    /// Range in the list of [`PageCandidates`].
    needed: Range<usize>,
}

impl Direct {
    /// Creates the read queue and its buffers. As many reads are in flight as the queue has depth, each of at
    /// most `read_bytes_max` bytes, a power of two from 4 KiB to 1 MiB.
    ///
    /// # Errors
    /// When the read queue or the buffers cannot be created.
    pub fn new(disk: &dyn Disk, reads: ReadOptions, read_bytes_max: usize) -> Result<Direct> {
        let region = Region::new(&RegionKind::Dram, (reads.depth * read_bytes_max) as u64)?;
        let cells = Cells::new(region, read_bytes_max)?;
        let free: Option<Vec<CellMut>> = (0..reads.depth).map(|cell| cells.write(cell)).collect();
        Ok(Direct {
            read_queue: ReadQueue::new(reads, disk, &[Arc::clone(&cells)])?,
            free: free.expect("new cells are free"),
            read_pages_max: read_bytes_max / PAGE_BYTES,
            cost: CostModel::default(),
            reads: ReadStats::default(),
        })
    }

    /// The ids that are in all lists.
    ///
    /// # Errors
    /// When a page cannot be read or is damaged. The error does not affect later calls.
    pub fn intersect(&mut self, lists: &[PagedList]) -> Result<IntersectionResult> {
        let lists = by_length(lists);
        self.reads = ReadStats::default();
        let mut ids = Vec::new();
        if let Some(range) = common_range(&lists) {
            ids = self.read_range(&lists[0], range)?;
            for list in &lists[1..] {
                ids = self.retain_common(list, ids)?;
            }
        }
        Ok(IntersectionResult { ids, reads: self.reads }.with_skipped(&lists))
    }

    /// Measures the cost model on `list`, with about `reads` scattered reads of one page and with long
    /// reads, and uses it from then on. A list with too few pages leaves the model unchanged.
    ///
    /// # Errors
    /// When a page cannot be read.
    pub fn measure_cost(&mut self, list: &PagedList, reads: usize) -> Result<CostModel> {
        let (pages, long_pages) = (list.pages(), self.read_pages_max);
        if long_pages < 8 || pages < 4 * long_pages {
            return Ok(self.cost);
        }
        let spread = |count: usize, len: usize| -> Vec<PageRun> {
            // A step that is coprime to the number of slots visits all of them.
            let slots = pages / len;
            let step = (slots * 618 / 1000..).find(|step| gcd(*step, slots) == 1).unwrap_or(1);
            let first = |k: usize| k * step % slots * len;
            (0..count).map(|k| PageRun { pages: first(k)..first(k) + len, needed: 0..0 }).collect()
        };
        let mut seconds = |runs: &[PageRun]| -> Result<f64> {
            let start = Instant::now();
            self.read_runs(list, runs, |_, _, _| Ok(()))?;
            Ok(start.elapsed().as_secs_f64() / runs.len() as f64)
        };
        let short = spread((reads / COST_REPETITIONS).clamp(64, pages), 1);
        let long = spread((reads / COST_REPETITIONS / 8).clamp(64, 4096).min(pages / long_pages), long_pages);
        // The minimum of several repetitions excludes other load of the device.
        let (mut short_seconds, mut long_seconds) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..COST_REPETITIONS {
            short_seconds = short_seconds.min(seconds(&short)?);
            long_seconds = long_seconds.min(seconds(&long)?);
        }
        let model = CostModel::fit((PAGE_BYTES, short_seconds), (long_pages * PAGE_BYTES, long_seconds));
        let start = Instant::now();
        let tests =
            (0..4096).filter(|k| list.may_hold(k * 31 % pages, black_box(*k as u32 * 99_991))).count();
        black_box(tests);
        self.cost = CostModel { test_seconds: start.elapsed().as_secs_f64() / 4096.0, ..model };
        Ok(self.cost)
    }

    /// The ids of a list within `range`.
    fn read_range(&mut self, list: &PagedList, range: (u32, u32)) -> Result<Vec<u32>> {
        let (first, last) = range;
        let (Some(from), Some(to)) = (list.find_page(0, first), list.find_page(0, last)) else {
            return Ok(Vec::new());
        };
        let base = list.ids_of(from).before;
        let mut ids = vec![0; (list.ids_of(to).before - base) as usize + list.ids_of(to).count];
        let positions = |page: usize| {
            let PageIds { before, count } = list.ids_of(page);
            (before - base) as usize..(before - base) as usize + count
        };
        let wanted: Vec<PageCandidates> =
            (from..=to).map(|page| PageCandidates { page, candidates: positions(page) }).collect();
        let mut each = |wanted: &PageCandidates, bytes: &[u8]| {
            list.decode(wanted.page, bytes, &mut ids[wanted.candidates.clone()])
        };
        self.process_pages(list, &wanted, &mut each)?;
        let end = ids.partition_point(|id| *id <= last);
        ids.truncate(end);
        let start = ids.partition_point(|id| *id < first);
        ids.drain(..start);
        Ok(ids)
    }

    /// The ids of the increasing `ids` that the list contains.
    fn retain_common(&mut self, list: &PagedList, mut ids: Vec<u32>) -> Result<Vec<u32>> {
        let mut wanted = pages_with_candidates(list, &ids);
        let filtered = self.is_worth_testing(list, &wanted);
        if filtered {
            ids = filter_candidates(list, &ids, &wanted);
            wanted = pages_with_candidates(list, &ids);
        }
        let mut held = vec![false; ids.len()];
        let (mut page_ids, mut shared) = (Vec::<u32>::new(), Intersection::new());
        let mut each = |wanted: &PageCandidates, bytes: &[u8]| {
            page_ids.resize(list.ids_of(wanted.page).count, 0);
            list.decode(wanted.page, bytes, &mut page_ids)?;
            let range = wanted.candidates.clone();
            mark_common(&ids[range.clone()], &page_ids, &mut held[range], &mut shared);
            Ok(())
        };
        self.process_pages(list, &wanted, &mut each)?;
        let candidates = ids.len();
        let mut of = held.into_iter();
        ids.retain(|_| of.next() == Some(true));
        self.reads.false_positives += if filtered { (candidates - ids.len()) as u64 } else { 0 };
        Ok(ids)
    }

    /// Whether the cost model expects filters to save time.
    fn is_worth_testing(&self, list: &PagedList, wanted: &[PageCandidates]) -> bool {
        if wanted.is_empty() {
            return false;
        }
        let runs = self.plan_reads(list, wanted);
        let pages: usize = runs.iter().map(|run| run.pages.len()).sum();
        let ids: usize = wanted.iter().map(|wanted| wanted.candidates.len()).sum();
        let per_page = ids as f64 / wanted.len() as f64;
        let kept_share = 1.0 - (1.0 - false_positive_rate()).powf(per_page);
        let missing: usize = runs.iter().map(|run| run.needed.len()).sum();
        let kept = missing as f64 * kept_share;
        self.cost.is_worth_testing(ids, runs.len() as u64, pages as u64, kept)
    }

    /// Passes each needed page, verified, to `each`, in any order.
    fn process_pages(
        &mut self,
        list: &PagedList,
        wanted: &[PageCandidates],
        each: &mut dyn FnMut(&PageCandidates, &[u8]) -> Result<()>,
    ) -> Result<()> {
        for wanted in wanted {
            if let Some(bytes) = list.resident_page(wanted.page) {
                self.reads.resident += 1;
                each(wanted, bytes)?;
            }
        }
        let runs = self.plan_reads(list, wanted);
        self.read_runs(list, &runs, |list, run, bytes| {
            for wanted in &wanted[run.needed.clone()] {
                let at = (wanted.page - run.pages.start) * PAGE_BYTES;
                let page = bytes.get(at..at + PAGE_BYTES).unwrap_or_default();
                if list.resident_page(wanted.page).is_none() {
                    list.check(wanted.page, page)?;
                    each(wanted, page)?;
                }
            }
            Ok(())
        })
    }

    /// The reads of the needed pages that are not in memory.
    fn plan_reads(&self, list: &PagedList, wanted: &[PageCandidates]) -> Vec<PageRun> {
        let gap = self.cost.gap_pages();
        let mut runs: Vec<PageRun> = Vec::new();
        for (number, PageCandidates { page, .. }) in wanted.iter().enumerate() {
            if list.resident_page(*page).is_some() {
                continue;
            }
            match runs.last_mut() {
                Some(run)
                    if page - run.pages.end <= gap && page + 1 - run.pages.start <= self.read_pages_max =>
                {
                    run.pages.end = page + 1;
                    run.needed.end = number + 1;
                }
                _ => runs.push(PageRun { pages: *page..page + 1, needed: number..number + 1 }),
            }
        }
        runs
    }

    /// Reads the runs, limited by the number of free buffers, and passes their bytes to `each`. No read is
    /// in flight when it returns.
    fn read_runs(
        &mut self,
        list: &PagedList,
        runs: &[PageRun],
        mut each: impl FnMut(&PagedList, &PageRun, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut failed = None;
        let mut next = 0;
        loop {
            while next < runs.len() && failed.is_none() {
                let Some(cell) = self.free.pop() else { break };
                let pages = &runs[next].pages;
                let target = ReadTarget::new(cell, 0..pages.len() * PAGE_BYTES);
                self.reads.count_read(pages.len() * PAGE_BYTES);
                self.read_queue.submit(list.file(), list.offset(pages.start), target, next as u64);
                next += 1;
            }
            let mut ended = self.read_queue.next(true);
            if ended.is_none() {
                return failed.map_or(Ok(()), Err);
            }
            while let Some(read) = ended {
                let done = match (read.result, &failed) {
                    (Ok(bytes), None) => each(list, &runs[read.tag as usize], &read.target.bytes()[..bytes]),
                    (Err(error), None) => Err(error.into()),
                    _ => Ok(()),
                };
                failed = failed.or(done.err());
                self.free.push(read.target.into_cell());
                ended = self.read_queue.next(false);
            }
        }
    }
}

/// The range from the largest first id to the smallest last id; `None` if no id can be in all lists.
fn common_range(lists: &[PagedList]) -> Option<(u32, u32)> {
    let ends: Option<Vec<(u32, u32)>> = lists.iter().map(PagedList::id_range).collect();
    let ends = ends?;
    let first = ends.iter().map(|(first, _)| *first).max()?;
    let last = ends.iter().map(|(_, last)| *last).min()?;
    (first <= last).then_some((first, last))
}

/// The pages that can contain some of the increasing `ids`, with their candidates.
fn pages_with_candidates(list: &PagedList, ids: &[u32]) -> Vec<PageCandidates> {
    let (mut wanted, mut page) = (Vec::new(), 0);
    let first = list.id_range().map_or(0, |(first, _)| first);
    let mut at = ids.partition_point(|id| *id < first);
    while at < ids.len() {
        let Some(found) = list.find_page(page, ids[at]) else { break };
        page = found;
        let end = match list.firsts().get(page + 1) {
            Some(next) => gallop(ids, at, |id| id < *next),
            None => gallop(ids, at, |id| list.id_range().is_some_and(|(_, last)| id <= last)),
        };
        wanted.push(PageCandidates { page, candidates: at..end });
        at = end;
    }
    wanted
}

/// The ids that pass the filters of their pages.
fn filter_candidates(list: &PagedList, ids: &[u32], wanted: &[PageCandidates]) -> Vec<u32> {
    let of = |wanted: &PageCandidates| {
        let page = wanted.page;
        ids[wanted.candidates.clone()].iter().copied().filter(move |id| list.may_hold(page, *id))
    };
    wanted.iter().flat_map(of).collect()
}

/// Sets `held` to true for each candidate that is in `ids`.
fn mark_common(candidates: &[u32], ids: &[u32], held: &mut [bool], shared: &mut Intersection) {
    if candidates.len() * SPARSE_IDS_PER_CANDIDATE < ids.len() {
        let mut at = 0;
        for (&id, held) in candidates.iter().zip(held) {
            at = gallop(ids, at, |other| other < id);
            *held = ids.get(at) == Some(&id);
        }
        return;
    }
    let (mut at, mut rest) = (0, ids);
    while let (Some(left), Some(right)) = (first_block(&candidates[at..]), first_block(rest)) {
        intersect(left, right, shared);
        shared.first().iter().for_each(|index| held[at + usize::from(*index)] = true);
        let (left_last, right_last) = (left[left.len() - 1], right[right.len() - 1]);
        if left_last <= right_last {
            at += left.len();
        }
        if right_last <= left_last {
            rest = &rest[right.len()..];
        }
    }
}

/// The first block of ids; `None` if there are none.
fn first_block(ids: &[u32]) -> Option<&[u32]> {
    (!ids.is_empty()).then(|| &ids[..ids.len().min(BLOCK)])
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}
