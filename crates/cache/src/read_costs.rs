//! What reads of a device cost: the curve by which needed pages are divided into reads.
//!
//! Devices differ by orders of magnitude. A cloud disk serves as many reads of 16 KiB a second as of 4 KiB,
//! and is bound by its bandwidth from 64 KiB on; a throttled one by its bandwidth alone; a hard disk takes as
//! long for a seek as for a megabyte. The curve has the time of a read of each of four sizes while others are
//! in flight, and the CPU time of the thread that reads.

use std::ops::Range;
use std::time::{Duration, Instant};
use std::{fmt, str::FromStr, sync::Arc};
use tierdex_io::{Cells, Error, ErrorKind, PAGE, ReadFile, ReadQueue, ReadTarget, thread_cpu_time};

/// Maximum number of pages of one read.
pub const READ_PAGES_MAX: usize = 64;

/// Maximum number of pages of one read of a device that seeks: it reads many in the time of a seek. A quarter
/// of as many reads are in flight, so that they need no more memory.
pub const SEEKING_READ_PAGES_MAX: usize = 4 * READ_PAGES_MAX;

/// The sizes of the measured reads, in pages.
const SIZES: [u64; 4] = [1, 4, 16, 64];

/// Reads of each size. Together 336, after those that show whether the device seeks.
const READS: [u64; 4] = [128, 96, 64, 48];

/// The reads of a size are measured in this many batches, of which the fastest counts: other processes, and
/// clouds that limit reads for a moment, make reads slower, never faster.
const BATCHES: u64 = 4;

/// Reads of each size on a device that seeks, and the time of a read of one page from which on it does.
const SEEKING_READS: u64 = 16;
const SEEKING: Duration = Duration::from_millis(1);

/// No further size is measured after this time; the costs of the sizes that are left follow from those
/// before.
const TIME_MAX: Duration = Duration::from_millis(100);
const SEEKING_TIME_MAX: Duration = Duration::from_secs(1);

/// Minimum length of a file that is measured, in pages. Reads of smaller files are from memory soon.
const FILE_PAGES_MIN: u64 = 4096;

/// A page that nobody needs, read because it is between two that are needed, costs this many times its share
/// of the read: it also evicts another page.
const UNNEEDED_WEIGHT: u64 = 2;

/// The cost of a read by its size: nanoseconds of the device and the CPU for 1, 4, 16 and 64 pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadCosts([u64; SIZES.len()]);

/// Those of a disk with 50,000 reads and 1.7 GB a second.
impl Default for ReadCosts {
    fn default() -> ReadCosts {
        ReadCosts([20_000, 21_000, 39_000, 131_000])
    }
}

impl ReadCosts {
    /// Costs in nanoseconds of reads of 1, 4, 16 and 64 pages. A larger read costs at least as much as a
    /// smaller one.
    pub fn new(mut costs: [u64; 4]) -> ReadCosts {
        for size in 1..costs.len() {
            costs[size] = costs[size].max(costs[size - 1]);
        }
        ReadCosts(costs)
    }

    /// Costs with which two needed pages are read together if at most `pages` are between them.
    pub fn of_gap(pages: u64) -> ReadCosts {
        // A read costs as much as the pages of the gap at their weight, and half a page.
        ReadCosts(SIZES.map(|size| 2 * UNNEEDED_WEIGHT * pages + 1 + 2 * size))
    }

    /// The cost of a read of `pages` pages, in nanoseconds.
    pub fn of_read(&self, pages: u64) -> u64 {
        let size = (1..SIZES.len() - 1).find(|size| pages <= SIZES[*size]).unwrap_or(SIZES.len() - 1);
        let (pages_before, cost_before) = (SIZES[size - 1], self.0[size - 1]);
        let (more, of_more) = (SIZES[size] - pages_before, self.0[size] - cost_before);
        if pages < pages_before {
            return if pages == 0 { 0 } else { cost_before };
        }
        cost_before + (pages - pages_before) * of_more / more
    }

    /// Whether the device seeks: a read of a page takes a millisecond or more, and one of 64 pages costs less
    /// than two of one page.
    pub fn is_seeking(&self) -> bool {
        let [one, .., most] = self.0;
        u128::from(one) >= SEEKING.as_nanos() && most < 2 * one
    }

    /// Maximum number of pages of one read.
    pub fn read_pages_max(&self) -> usize {
        if self.is_seeking() { SEEKING_READ_PAGES_MAX } else { READ_PAGES_MAX }
    }

    /// Whether a page is read together with the `pages` pages before it, and the `gap` pages between, rather
    /// than by a read of its own. False if the read would have more than
    /// [`ReadCosts::read_pages_max`].
    pub fn joins(&self, pages: u64, gap: u64) -> bool {
        let most = self.read_pages_max() as u64;
        if gap == 0 || pages + gap >= most {
            return pages + gap < most;
        }
        let together = self.of_read(pages + gap + 1);
        let unneeded = together - self.of_read(pages + 1);
        together + (UNNEEDED_WEIGHT - 1) * unneeded <= self.of_read(pages) + self.of_read(1)
    }

    /// The reads of `needed` pages of a file, which are in ascending order.
    pub fn plan(&self, needed: impl IntoIterator<Item = Range<u64>>) -> PlannedReads {
        let mut planned = PlannedReads::new(*self);
        needed.into_iter().for_each(|pages| planned.add(pages));
        planned
    }

    /// Measures the costs by reads that are spread over `file`, into cells that are not in use. At most 352
    /// reads and about 100 ms, or a second if the device seeks. `None` for small files, and if a read fails.
    pub fn measure(queue: &mut ReadQueue, cells: &Arc<Cells>, file: &Arc<dyn ReadFile>) -> Option<ReadCosts> {
        let pages = file.len() / PAGE;
        if pages < FILE_PAGES_MIN
            || (cells.len() as u64) < SIZES[SIZES.len() - 1]
            || file.descriptor().is_none()
        {
            return None;
        }
        let began = Instant::now();
        let mut measured = Measurement { queue, cells, file, number: 0 };
        let is_seeking = measured.cost(1, SEEKING_READS)? > SEEKING.as_nanos() as u64;
        let (time_max, mut costs) = (if is_seeking { SEEKING_TIME_MAX } else { TIME_MAX }, [0; SIZES.len()]);
        for (at, size) in SIZES.into_iter().enumerate() {
            if at >= 2 && began.elapsed() > time_max {
                costs[at] = costs[at - 1] + 4 * (costs[at - 1] - costs[at - 2]);
                continue;
            }
            let reads = if is_seeking { SEEKING_READS } else { READS[at] };
            costs[at] = measured.cost(size, reads)?;
            if at > 0 {
                costs[at] = costs[at].max(costs[at - 1]);
            }
        }
        Some(ReadCosts(costs))
    }
}

/// The reads of some pages of a file, which are added in ascending order: the rule by which a
/// [`PageReader`](crate::PageReader) joins reads, if no page is cached.
#[derive(Clone, Debug)]
pub struct PlannedReads {
    costs: ReadCosts,
    /// Number, pages and cost of all reads but the last.
    reads: u64,
    pages: u64,
    cost: u64,
    /// The pages of the last read; empty before the first.
    last: Range<u64>,
}

impl PlannedReads {
    /// No reads yet.
    pub fn new(costs: ReadCosts) -> PlannedReads {
        PlannedReads { costs, reads: 0, pages: 0, cost: 0, last: 0..0 }
    }

    /// Adds pages; those that were added before are ignored. Takes constant time: a damaged file may name any
    /// pages.
    pub fn add(&mut self, pages: Range<u64>) {
        let first = pages.start.max(self.last.end);
        if first >= pages.end {
            return;
        }
        let before = self.last.end - self.last.start;
        if before == 0 || !self.costs.joins(before, first - self.last.end) {
            self.start_read(first);
        }
        // The first page, and the adjacent ones that the read has place for.
        let most = self.costs.read_pages_max() as u64;
        self.last.end = pages.end.min(self.last.start + most);
        let left = pages.end - self.last.end;
        if left > 0 {
            // Reads of the maximum size, but the last.
            let whole = (left - 1) / most;
            self.start_read(pages.end - (left - whole * most));
            self.last.end = pages.end;
            (self.reads, self.pages) = (self.reads + whole, self.pages + whole * most);
            self.cost = self.cost.saturating_add(whole.saturating_mul(self.costs.of_read(most)));
        }
    }

    /// Ends the last read, and starts one at this page.
    fn start_read(&mut self, page: u64) {
        (self.reads, self.pages, self.cost) = (self.reads(), self.pages(), self.cost());
        self.last = page..page;
    }

    /// Number of reads.
    pub fn reads(&self) -> u64 {
        self.reads + u64::from(!self.last.is_empty())
    }

    /// Number of pages that they read, with those between needed ones.
    pub fn pages(&self) -> u64 {
        self.pages + (self.last.end - self.last.start)
    }

    /// Cost of all reads in nanoseconds.
    pub fn cost(&self) -> u64 {
        self.cost.saturating_add(self.costs.of_read(self.last.end - self.last.start))
    }
}

/// Reads of one measurement.
struct Measurement<'m> {
    queue: &'m mut ReadQueue,
    cells: &'m Arc<Cells>,
    file: &'m Arc<dyn ReadFile>,
    /// Reads so far.
    number: u64,
}

impl Measurement<'_> {
    /// The cost of a read of `size` pages, from `reads`: the mean of the fastest batch.
    fn cost(&mut self, size: u64, reads: u64) -> Option<u64> {
        (0..BATCHES)
            .map(|_| self.batch_cost(size, reads / BATCHES))
            .try_fold(u64::MAX, |least, cost| Some(least.min(cost?)))
    }

    /// The mean cost of a read in a batch. As many are in flight as the queue and the cells allow. No page is
    /// read twice: each read begins elsewhere, by the golden ratio.
    fn batch_cost(&mut self, size: u64, reads: u64) -> Option<u64> {
        let (began, cpu) = (Instant::now(), thread_cpu_time());
        let free: Vec<u64> = (0..(self.cells.len() as u64 / size).min(self.queue.depth() as u64)).collect();
        let (mut free, mut left, mut failed) = (free, reads, false);
        let places = self.file.len() / PAGE / size;
        loop {
            while left > 0
                && let Some(number) = free.pop()
            {
                (self.number, left) = (self.number + 1, left - 1);
                let place = ((self.number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) * places) >> 32;
                let own = (number * size) as u32..((number + 1) * size) as u32;
                let target = ReadTarget::from(self.cells.write_all(own)?);
                self.queue.submit(self.file, place * size * PAGE, target, number);
            }
            let Some(completion) = self.queue.next(true) else { break };
            failed |= !completion.result.is_ok_and(|bytes| bytes as u64 == size * PAGE);
            free.push(completion.tag);
        }
        let spent = began.elapsed() + thread_cpu_time().saturating_sub(cpu);
        (!failed).then(|| spent.as_nanos() as u64 / reads)
    }
}

/// As `FromStr` reads it: the costs in nanoseconds, separated by commas.
impl fmt::Display for ReadCosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [one, four, sixteen, most] = self.0;
        write!(f, "{one},{four},{sixteen},{most}")
    }
}

impl FromStr for ReadCosts {
    type Err = Error;

    fn from_str(text: &str) -> Result<ReadCosts, Error> {
        let costs: Option<Vec<u64>> =
            text.split(',').map(|cost| cost.parse().ok().filter(|cost| *cost <= COST_MAX)).collect();
        let why = "the costs of reads are four increasing numbers of nanoseconds, for 1, 4, 16 and 64 pages of 4 \
                   KiB, separated by commas";
        let denied = || Error::new(ErrorKind::Denied, "use", format!("costs of reads {text:?}"), why);
        let costs: [u64; 4] = costs.and_then(|costs| costs.try_into().ok()).ok_or_else(denied)?;
        if costs.is_sorted() { Ok(ReadCosts(costs)) } else { Err(denied()) }
    }
}

/// Maximum cost of a read, in nanoseconds: an hour.
const COST_MAX: u64 = 3_600_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// A cloud disk, a disk throttled to 400 MB/s, a hard disk, and a file system in memory.
    const CLOUD: ReadCosts = ReadCosts([20_000, 21_000, 39_000, 131_000]);
    const THROTTLED: ReadCosts = ReadCosts([10_500, 41_000, 164_000, 655_000]);
    const HARD_DISK: ReadCosts = ReadCosts([5_500_000, 5_570_000, 5_840_000, 6_930_000]);
    const MEMORY: ReadCosts = ReadCosts([1_500, 3_000, 9_000, 33_000]);

    #[test]
    fn costs_are_interpolated() {
        let costs: Vec<u64> = [0, 1, 2, 4, 10, 16, 40, 64, 128].map(|pages| CLOUD.of_read(pages)).into();
        assert_eq!(costs, [0, 20_000, 20_333, 21_000, 30_000, 39_000, 85_000, 131_000, 253_666]);
    }

    #[test]
    fn the_gap_over_which_reads_are_joined_depends_on_the_device() {
        let gap = |costs: ReadCosts, pages| (0..1000).take_while(|gap| costs.joins(pages, *gap)).last();
        for (costs, after_one, after_many) in
            [(CLOUD, 8, 4), (THROTTLED, 0, 0), (HARD_DISK, 120, 120), (MEMORY, 1, 1)]
        {
            assert_eq!((gap(costs, 1), gap(costs, 40)), (Some(after_one), Some(after_many)), "{costs}");
        }
        let seeking = [CLOUD, THROTTLED, HARD_DISK, MEMORY].map(|costs| costs.is_seeking());
        assert_eq!(seeking, [false, false, true, false]);
        assert!(!ReadCosts([1; 4]).is_seeking() && !ReadCosts([0; 4]).is_seeking());
        // A read has at most 64 pages, on a device that seeks 256.
        assert!(CLOUD.joins(63, 0) && !CLOUD.joins(64, 0) && !HARD_DISK.joins(200, 56));
        for pages in [0, 1, 2, 8] {
            for before in [1, 3, 50] {
                assert_eq!(gap(ReadCosts::of_gap(pages), before), Some(pages));
            }
        }
    }

    #[test]
    fn needed_pages_are_divided_into_reads() {
        let plan = |costs: ReadCosts, needed: &[Range<u64>]| {
            let planned = costs.plan(needed.iter().cloned());
            (planned.reads(), planned.pages(), planned.cost())
        };
        let needed = [3..5, 4..6, 9..10, 40..41, 300..420];
        assert_eq!(plan(CLOUD, &[]), (0, 0, 0));
        // Pages 3 to 9, page 40, and 64 and 56 of the last.
        let cost = |pages: &[u64]| pages.iter().map(|pages| CLOUD.of_read(*pages)).sum::<u64>();
        assert_eq!(plan(CLOUD, &needed), (4, 128, cost(&[7, 1, 64, 56])));
        assert_eq!(plan(THROTTLED, &needed).0, 5);
        assert_eq!(plan(CLOUD, &[0..64, 64..65, 65..66]), (2, 66, cost(&[64, 2])));
        let (reads, pages, _) = plan(CLOUD, &[3..5, 7..1 << 60]);
        assert_eq!((reads, pages), (((1 << 60) - 3_u64).div_ceil(64), (1 << 60) - 3));
        assert_eq!((plan(HARD_DISK, &needed).0, plan(HARD_DISK, &needed).1), (2, 38 + 120));
    }

    #[test]
    fn costs_are_given_as_text() {
        assert_eq!(CLOUD.to_string().parse::<ReadCosts>().unwrap(), CLOUD);
        for text in ["", "1,2,3", "1,2,3,x", "4,3,2,1", "1,2,3,4,5", "1,2,3,99999999999999999"] {
            let error = text.parse::<ReadCosts>().unwrap_err().to_string();
            assert!(error.contains("four increasing numbers"), "{error}");
        }
    }
}
