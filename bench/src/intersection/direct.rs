//! Ours: one thread, many reads in flight, and no page cache.
//!
//! 1. The shortest list is read as far as the others reach. Pages that follow one another are one read.
//! 2. Its ids are candidates. The skip pointers of the next list say which pages can hold some; if filters are there and are
//!    expected to save more than they cost ([`CostModel`]), candidates that they refuse are dropped first.
//! 3. Pages in memory are looked at; the others become reads, two of them one when the pages between cost less than a
//!    second read. All are asked for as soon as there is room, and whichever arrives is checked, decoded and compared while
//!    the rest is under way.
//! 4. The candidates that were found go on to the next list, from 2.
//!
//! The pages looked at are those of `sl`, or of `bf`, each once.

use super::cost::CostModel;
use super::list::{PagedList, by_length, gallop};
use super::page::PAGE_BYTES;
use super::reads::{Found, Reads};
use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;
use tierdex::codec::{Intersection, intersect};
use tierdex::error::{Error, Result};
use tierdex::io::{
    CELL_BYTES_MAX, CellMut, Cells, Disk, EngineOptions, ReadEngine, ReadTarget, Region, RegionKind,
};
use tierdex::limits::BLOCK;

/// A candidate for so many ids of a page, or fewer, is looked up.
const SPARSE: usize = 16;

/// How often [`Direct::measure`] measures.
const MEASURES: usize = 4;

/// How it reads.
#[derive(Clone, Debug)]
pub struct DirectOptions {
    /// The engine; its depth is how many reads are in flight.
    pub engine: EngineOptions,
    /// The most bytes of a read, a power of two from 4 KiB to 1 MiB.
    pub read_bytes_max: usize,
    /// The memory that reads go into.
    pub region: RegionKind,
}

/// One thread's engine, memory and cost model.
pub struct Direct {
    engine: ReadEngine,
    free: Vec<CellMut>,
    read_pages_max: usize,
    cost: CostModel,
    filters: bool,
    reads: Reads,
    page_ids: Vec<u32>,
}

/// Candidates of a page.
struct Wanted {
    page: usize,
    candidates: Range<usize>,
}

/// Pages that are read together, and what of them is wanted.
struct Run {
    pages: Range<usize>,
    wanted: Range<usize>,
}

impl Direct {
    /// # Errors
    /// When the engine or its memory cannot be had.
    pub fn new(disk: &dyn Disk, options: &DirectOptions) -> Result<Direct> {
        let DirectOptions { engine, read_bytes_max, ref region } = *options;
        if !read_bytes_max.is_power_of_two() || !(PAGE_BYTES..=CELL_BYTES_MAX).contains(&read_bytes_max) {
            return Err(Error::Usage(format!(
                "a read is a power of two from 4K to 1M, not {read_bytes_max}"
            )));
        }
        let cells = Cells::new(Region::new(region, (engine.depth * read_bytes_max) as u64)?, read_bytes_max)?;
        let free: Option<Vec<CellMut>> = (0..engine.depth).map(|cell| cells.write(cell)).collect();
        Ok(Direct {
            engine: ReadEngine::new(engine, disk, &[Arc::clone(&cells)])?,
            free: free.expect("new cells are nobody's"),
            read_pages_max: read_bytes_max / PAGE_BYTES,
            cost: CostModel::default(),
            filters: true,
            reads: Reads::default(),
            page_ids: Vec::new(),
        })
    }

    /// What reads are taken to cost.
    pub fn cost(&self) -> CostModel {
        self.cost
    }

    /// Takes reads to cost so much from now on.
    pub fn set_cost(&mut self, cost: CostModel) {
        self.cost = cost;
    }

    /// Whether filters may be used; at first they may.
    pub fn set_filters(&mut self, filters: bool) {
        self.filters = filters;
    }

    /// One line on the engine.
    pub fn description(&self) -> &str {
        self.engine.description()
    }

    /// The ids that stand in all lists.
    ///
    /// # Errors
    /// When a page cannot be read or is damaged; the next call works.
    pub fn intersect(&mut self, lists: &[PagedList]) -> Result<Found> {
        let lists = by_length(lists);
        self.reads = Reads::default();
        let mut ids = Vec::new();
        if let Some(range) = common_range(&lists) {
            ids = self.read_range(&lists[0], range)?;
            for list in &lists[1..] {
                ids = self.probe(list, ids)?;
            }
        }
        Ok(Found { ids, reads: self.reads }.of(&lists))
    }

    /// Measures what reads of the pages of `list` cost, by about `reads` of one page here and there and as many bytes in
    /// long ones, and takes that from now on. A list of a few pages tells nothing.
    ///
    /// # Errors
    /// When a page cannot be read.
    pub fn measure(&mut self, list: &PagedList, reads: usize) -> Result<CostModel> {
        let (pages, long_pages) = (list.pages(), self.read_pages_max);
        if long_pages < 8 || pages < 4 * long_pages {
            return Ok(self.cost);
        }
        let spread = |count: usize, len: usize| -> Vec<Run> {
            // A step that shares no factor with the number of places goes round all of them.
            let places = pages / len;
            let step = (places * 618 / 1000..).find(|step| gcd(*step, places) == 1).unwrap_or(1);
            let place = |k: usize| k * step % places * len;
            (0..count).map(|k| Run { pages: place(k)..place(k) + len, wanted: 0..0 }).collect()
        };
        let mut seconds = |runs: &[Run]| -> Result<f64> {
            let start = Instant::now();
            self.fetch(list, runs, |_, _, _| Ok(()))?;
            Ok(start.elapsed().as_secs_f64() / runs.len() as f64)
        };
        let short = spread((reads / MEASURES).clamp(64, pages), 1);
        let long = spread((reads / MEASURES / 8).clamp(64, 4096).min(pages / long_pages), long_pages);
        // The least of several, in turn: what else the device does is no part of the model.
        let (mut short_seconds, mut long_seconds) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..MEASURES {
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
    fn read_range(&mut self, list: &PagedList, (first, last): (u32, u32)) -> Result<Vec<u32>> {
        let (Some(from), Some(to)) = (list.find(0, first), list.find(0, last)) else { return Ok(Vec::new()) };
        let base = list.ids_of(from).0;
        let mut ids = vec![0; (list.ids_of(to).0 - base) as usize + list.ids_of(to).1];
        let place = |page: usize| {
            let (before, count) = list.ids_of(page);
            (before - base) as usize..(before - base) as usize + count
        };
        let wanted: Vec<Wanted> = (from..=to).map(|page| Wanted { page, candidates: place(page) }).collect();
        let mut each = |wanted: &Wanted, bytes: &[u8]| {
            list.decode(wanted.page, bytes, &mut ids[wanted.candidates.clone()])
        };
        self.pages(list, &wanted, &mut each)?;
        let end = ids.partition_point(|id| *id <= last);
        ids.truncate(end);
        let start = ids.partition_point(|id| *id < first);
        ids.drain(..start);
        Ok(ids)
    }

    /// Those of the rising `ids` that the list holds.
    fn probe(&mut self, list: &PagedList, mut ids: Vec<u32>) -> Result<Vec<u32>> {
        let mut wanted = places(list, &ids);
        let filtered = self.filters && self.is_worth_testing(list, &wanted);
        if filtered {
            ids = passed(list, &ids, &wanted);
            wanted = places(list, &ids);
        }
        let mut held = vec![false; ids.len()];
        let mut page_ids = std::mem::take(&mut self.page_ids);
        let mut shared = Intersection::new();
        let mut each = |wanted: &Wanted, bytes: &[u8]| {
            page_ids.resize(list.ids_of(wanted.page).1, 0);
            list.decode(wanted.page, bytes, &mut page_ids)?;
            let range = wanted.candidates.clone();
            mark(&ids[range.clone()], &page_ids, &mut held[range], &mut shared);
            Ok(())
        };
        let read = self.pages(list, &wanted, &mut each);
        self.page_ids = page_ids;
        read?;
        let candidates = ids.len();
        let mut of = held.into_iter();
        ids.retain(|_| of.next() == Some(true));
        self.reads.false_positives += if filtered { (candidates - ids.len()) as u64 } else { 0 };
        Ok(ids)
    }

    /// Whether filters are expected to save more than they cost.
    fn is_worth_testing(&self, list: &PagedList, wanted: &[Wanted]) -> bool {
        if !list.has_filters() || wanted.is_empty() {
            return false;
        }
        let runs = self.runs(list, wanted);
        let pages: usize = runs.iter().map(|run| run.pages.len()).sum();
        let ids: usize = wanted.iter().map(|wanted| wanted.candidates.len()).sum();
        let a_page = ids as f64 / wanted.len() as f64;
        let kept_share = 1.0 - (1.0 - list.false_share()).powf(a_page);
        let missing: usize = runs.iter().map(|run| run.wanted.len()).sum();
        let kept = missing as f64 * kept_share;
        self.cost.is_worth_testing(ids, (runs.len() as u64, pages as u64), kept)
    }

    /// Gives `each` page that is wanted, checked, in any order.
    fn pages(
        &mut self,
        list: &PagedList,
        wanted: &[Wanted],
        each: &mut dyn FnMut(&Wanted, &[u8]) -> Result<()>,
    ) -> Result<()> {
        for wanted in wanted {
            if let Some(bytes) = list.near(wanted.page) {
                self.reads.near += 1;
                each(wanted, bytes)?;
            }
        }
        let runs = self.runs(list, wanted);
        self.fetch(list, &runs, |list, run, bytes| {
            for wanted in &wanted[run.wanted.clone()] {
                let at = (wanted.page - run.pages.start) * PAGE_BYTES;
                let page = bytes.get(at..at + PAGE_BYTES).unwrap_or_default();
                if list.near(wanted.page).is_none() {
                    list.check(wanted.page, page)?;
                    each(wanted, page)?;
                }
            }
            Ok(())
        })
    }

    /// The reads of those pages that are not in memory.
    fn runs(&self, list: &PagedList, wanted: &[Wanted]) -> Vec<Run> {
        let gap = self.cost.gap_pages();
        let mut runs: Vec<Run> = Vec::new();
        for (number, Wanted { page, .. }) in wanted.iter().enumerate() {
            if list.near(*page).is_some() {
                continue;
            }
            match runs.last_mut() {
                Some(run)
                    if page - run.pages.end <= gap && page + 1 - run.pages.start <= self.read_pages_max =>
                {
                    run.pages.end = page + 1;
                    run.wanted.end = number + 1;
                }
                _ => runs.push(Run { pages: *page..page + 1, wanted: number..number + 1 }),
            }
        }
        runs
    }

    /// Reads the runs, as many at a time as there is room for, and gives `each` its bytes. All reads have ended when it
    /// returns.
    fn fetch(
        &mut self,
        list: &PagedList,
        runs: &[Run],
        mut each: impl FnMut(&PagedList, &Run, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut failed = None;
        let mut next = 0;
        loop {
            while next < runs.len() && failed.is_none() {
                let Some(cell) = self.free.pop() else { break };
                let pages = &runs[next].pages;
                let target = ReadTarget::new(cell, 0..pages.len() * PAGE_BYTES);
                self.reads.read(pages.len() * PAGE_BYTES);
                self.engine.submit(list.file(), list.offset(pages.start), target, next as u64);
                next += 1;
            }
            let mut ended = self.engine.next(true);
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
                ended = self.engine.next(false);
            }
        }
    }
}

/// From the largest of the first ids to the smallest of the last ones. None if no id can stand in all lists.
fn common_range(lists: &[PagedList]) -> Option<(u32, u32)> {
    let ends: Option<Vec<(u32, u32)>> = lists.iter().map(PagedList::ends).collect();
    let ends = ends?;
    let first = ends.iter().map(|(first, _)| *first).max()?;
    let last = ends.iter().map(|(_, last)| *last).min()?;
    (first <= last).then_some((first, last))
}

/// The pages that can hold some of the rising `ids`, and which.
fn places(list: &PagedList, ids: &[u32]) -> Vec<Wanted> {
    let mut wanted: Vec<Wanted> = Vec::new();
    let (mut at, mut page) = (0, 0);
    let first = list.ends().map_or(0, |(first, _)| first);
    at += ids.partition_point(|id| *id < first);
    while at < ids.len() {
        let Some(found) = list.find(page, ids[at]) else { break };
        page = found;
        let end = match list.firsts().get(page + 1) {
            Some(next) => gallop(ids, at, |id| id < *next),
            None => gallop(ids, at, |id| list.ends().is_some_and(|(_, last)| id <= last)),
        };
        wanted.push(Wanted { page, candidates: at..end });
        at = end;
    }
    wanted
}

/// The ids that their pages' filters may hold.
fn passed(list: &PagedList, ids: &[u32], wanted: &[Wanted]) -> Vec<u32> {
    let of = |wanted: &Wanted| {
        let page = wanted.page;
        ids[wanted.candidates.clone()].iter().copied().filter(move |id| list.may_hold(page, *id))
    };
    wanted.iter().flat_map(of).collect()
}

/// Sets `held` where a candidate stands among `ids`. Few are looked up; many are compared block by block.
fn mark(candidates: &[u32], ids: &[u32], held: &mut [bool], shared: &mut Intersection) {
    if candidates.len() * SPARSE < ids.len() {
        let mut at = 0;
        for (&id, held) in candidates.iter().zip(held) {
            at = gallop(ids, at, |other| other < id);
            *held = ids.get(at) == Some(&id);
        }
        return;
    }
    let (mut at, mut rest) = (0, ids);
    while let (Some(left), Some(right)) = (block(&candidates[at..]), block(rest)) {
        intersect(left, right, shared);
        shared.first().iter().for_each(|place| held[at + usize::from(*place)] = true);
        let (left_last, right_last) = (left[left.len() - 1], right[right.len() - 1]);
        if left_last <= right_last {
            at += left.len();
        }
        if right_last <= left_last {
            rest = &rest[right.len()..];
        }
    }
}

/// The first ids, as many as a block has. None if there is none.
fn block(ids: &[u32]) -> Option<&[u32]> {
    (!ids.is_empty()).then(|| &ids[..ids.len().min(BLOCK)])
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}
