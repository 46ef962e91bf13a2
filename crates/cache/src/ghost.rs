//! Ghost caches: caches that keep the keys of pages only, and count the misses that caches of other sizes
//! would have.
//!
//! *Input*: the requests that [`PageCache::observe_requests`](crate::PageCache::observe_requests) reports.
//! *Output*: for each size of cache the misses, and what the reads of the missed pages cost.
//!
//! 1. A ghost cache has the page table, the shards and the eviction policy of a cache of its size, and evicts
//!    pages of a group together as that does. It does not know pins.
//! 2. The pages that a query has missed are divided into reads by [`ReadCosts::joins`] when it ends. Pages
//!    between two of a read are then cached too. A query that reads in several rounds has more reads.
//! 3. If all ghosts would take more than the given memory, they see a sample: the requests of the runs of
//!    [`ReadCosts::read_pages_max`] pages whose hash is below a threshold, in caches smaller in the same
//!    proportion (spatial sampling; Waldspurger and others, "Efficient MRC construction with SHARDS",
//!    FAST 2015). The counts are then estimates: the sampled ones, divided by the sampled share.

use crate::hash::mix_bits;
use crate::page_cache::{shard_of_hash, shards_of_frames};
use crate::page_table::{GROUP_PAGES, PageTable, group_hash};
use crate::policy::{Policy, PolicyKind};
use crate::read_costs::ReadCosts;

/// Missed pages of a query that are kept, at most; then they are read before it ends.
const MISSED_MAX: usize = 4096;

/// Ghost caches of several sizes, which see the same requests.
pub struct GhostCaches {
    caches: Vec<GhostCache>,
    costs: ReadCosts,
    /// Pages with a hash up to this are sampled.
    threshold: u64,
    requests: u64,
}

/// The number of requests so far, and the counts of each ghost cache in the order of the sizes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GhostCounts {
    /// Requested pages.
    pub requests: u64,
    /// Misses and reads by size.
    pub sizes: Vec<GhostMisses>,
}

/// What a cache of one size has missed; estimates if requests are sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GhostMisses {
    /// Requested pages that were not in the cache.
    pub misses: f64,
    /// Reads of these pages.
    pub reads: f64,
    /// Cost of these reads in nanoseconds.
    pub cost: f64,
}

/// The table and the policies of a cache of one size.
struct GhostCache {
    shards: Box<[GhostShard]>,
    /// Counts of sampled requests.
    misses: u64,
    reads: u64,
    cost: u64,
    /// Missed pages that were not divided into reads yet.
    missed: Vec<u64>,
}

struct GhostShard {
    table: PageTable,
    /// The page of each frame.
    pages: Box<[u64]>,
    free: Vec<u32>,
    policy: Box<dyn Policy>,
}

impl GhostCaches {
    /// Bytes of memory for each frame, at most.
    fn frame_bytes(policy: PolicyKind) -> u64 {
        let frame = size_of::<u64>() + size_of::<u32>() + PageTable::BYTES_PER_FRAME_MAX;
        (frame + policy.bytes_per_entry_max()) as u64
    }

    /// Ghosts of caches with these numbers of frames, which take at most about `memory_max` bytes.
    pub fn new(frames: &[u64], policy: PolicyKind, costs: ReadCosts, memory_max: u64) -> GhostCaches {
        let needed = frames.iter().sum::<u64>().saturating_mul(GhostCaches::frame_bytes(policy));
        let threshold = match needed <= memory_max {
            true => u64::MAX,
            false => (u128::from(u64::MAX) * u128::from(memory_max) / u128::from(needed)) as u64,
        };
        let share = share_of(threshold);
        let caches = frames.iter().map(|frames| GhostCache::new((*frames as f64 * share) as usize, policy));
        GhostCaches { caches: caches.collect(), costs, threshold, requests: 0 }
    }

    /// Requests a page, given by its number as
    /// [`PageCache::observe_requests`](crate::PageCache::observe_requests) reports it.
    pub fn request(&mut self, page: u64) {
        self.requests += 1;
        if self.threshold == u64::MAX || mix_bits(page / self.costs.read_pages_max() as u64) < self.threshold
        {
            self.caches.iter_mut().for_each(|cache| cache.request(page, &self.costs));
        }
    }

    /// Ends a query: the pages that it has missed are read.
    pub fn end_query(&mut self) {
        self.caches.iter_mut().for_each(|cache| cache.read_missed(&self.costs));
    }

    /// The counts so far.
    pub fn counts(&self) -> GhostCounts {
        let share = self.sampled_share();
        let of_all = |count: u64| count as f64 / share;
        let of_size = |cache: &GhostCache| GhostMisses {
            misses: of_all(cache.misses),
            reads: of_all(cache.reads),
            cost: of_all(cache.cost),
        };
        GhostCounts { requests: self.requests, sizes: self.caches.iter().map(of_size).collect() }
    }

    /// The share of the pages that the ghosts see: 1 if their counts are exact.
    pub fn sampled_share(&self) -> f64 {
        share_of(self.threshold)
    }

    /// Bytes of memory of all ghosts.
    pub fn bytes(&self) -> u64 {
        let shards = self.caches.iter().flat_map(|cache| &cache.shards);
        let frame = size_of::<u64>() + size_of::<u32>() + PageTable::BYTES_PER_FRAME_MAX;
        shards.map(|shard| shard.pages.len() * frame + shard.policy.bytes()).sum::<usize>() as u64
    }
}

fn share_of(threshold: u64) -> f64 {
    threshold as f64 / u64::MAX as f64
}

impl GhostCache {
    fn new(frames: usize, policy: PolicyKind) -> GhostCache {
        let frames = frames.clamp(1, u32::MAX as usize - 1);
        let count = shards_of_frames(frames);
        let shards = (0..count).map(|number| GhostShard::new((frames - number).div_ceil(count), policy));
        GhostCache { shards: shards.collect(), misses: 0, reads: 0, cost: 0, missed: Vec::new() }
    }

    fn request(&mut self, page: u64, costs: &ReadCosts) {
        if !self.find_or_insert(page, true) {
            self.misses += 1;
            self.missed.push(page);
            if self.missed.len() == MISSED_MAX {
                self.read_missed(costs);
            }
        }
    }

    fn find_or_insert(&mut self, page: u64, is_requested: bool) -> bool {
        let hash = group_hash(page);
        let shard = shard_of_hash(hash, self.shards.len());
        self.shards[shard].find_or_insert(page, hash, is_requested)
    }

    /// Reads the missed pages, and those between two pages of a read.
    fn read_missed(&mut self, costs: &ReadCosts) {
        let mut missed = std::mem::take(&mut self.missed);
        missed.sort_unstable();
        let mut rest = missed.drain(..).peekable();
        while let Some(first) = rest.next() {
            let mut pages = 1;
            while let Some(next) = rest.peek() {
                let end = first + pages;
                // A page that was missed twice is in the read already.
                let gap = next.saturating_sub(end);
                if !costs.joins(pages, gap) {
                    break;
                }
                for page in end..end + gap {
                    self.find_or_insert(page, false);
                }
                pages = pages.max(next + 1 - first);
                rest.next();
            }
            self.reads += 1;
            self.cost += costs.of_read(pages);
        }
        drop(rest);
        self.missed = missed;
    }
}

impl GhostShard {
    fn new(frames: usize, policy: PolicyKind) -> GhostShard {
        GhostShard {
            table: PageTable::new(frames),
            pages: vec![0; frames].into(),
            free: (0..frames as u32).rev().collect(),
            policy: policy.policy(frames as u32),
        }
    }

    /// Finds the page, whose group has this hash, or gives it a frame as a cache does. Returns whether it was
    /// found.
    fn find_or_insert(&mut self, page: u64, hash: u64, is_requested: bool) -> bool {
        if let Some(frame) = self.find(page, hash) {
            if is_requested {
                self.policy.touch(frame);
            }
            return true;
        }
        let Some(frame) = self.free.pop().or_else(|| self.evict_group()) else { return false };
        self.pages[frame as usize] = page;
        self.table.insert(PageTable::tag(hash, page), frame);
        self.policy.insert(frame, page, 1);
        false
    }

    fn find(&self, page: u64, hash: u64) -> Option<u32> {
        self.table.find(PageTable::tag(hash, page), |frame| self.pages[frame as usize] == page)
    }

    /// Evicts the victim of the policy, and the other pages of its group. Returns the frame of the victim.
    fn evict_group(&mut self) -> Option<u32> {
        let victim = self.policy.victim(&|_| true)?;
        let page = self.pages[victim as usize];
        let (first, hash) = (page / GROUP_PAGES * GROUP_PAGES, group_hash(page));
        self.remove(victim, PageTable::tag(hash, page));
        for other in first..=first | (GROUP_PAGES - 1) {
            if let Some(frame) = self.find(other, hash) {
                self.remove(frame, PageTable::tag(hash, other));
                self.free.push(frame);
            }
        }
        Some(victim)
    }

    fn remove(&mut self, frame: u32, tag: u32) {
        self.policy.remove(frame);
        self.table.remove(tag, frame);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests of the first half of each of 12,500 runs of 64 pages. The n-th run is requested in proportion
    /// to 1/n^(2/3).
    fn skewed_requests(count: u64) -> impl Iterator<Item = u64> {
        (0..count).flat_map(|number| {
            let uniform = (mix_bits(number) >> 11) as f64 / (1u64 << 53) as f64;
            let run = (uniform.powi(3) * 12_500.0) as u64;
            (0..32).map(move |page| run * 64 + page)
        })
    }

    fn count(frames: &[u64], memory_max: u64) -> (f64, GhostCounts) {
        let mut ghosts = GhostCaches::new(frames, PolicyKind::S3Fifo, ReadCosts::default(), memory_max);
        skewed_requests(50_000).for_each(|page| ghosts.request(page));
        assert!(ghosts.bytes() <= memory_max);
        (ghosts.sampled_share(), ghosts.counts())
    }

    #[test]
    fn a_sample_has_nearly_the_miss_rates_of_all_requests() {
        let frames = [4_000, 40_000, 200_000, 400_000];
        let (share, exact) = count(&frames, 1 << 30);
        assert_eq!(share, 1.0);
        let rate = |counts: &GhostCounts, size: usize| counts.sizes[size].misses / counts.requests as f64;
        assert!((1..4).all(|size| rate(&exact, size - 1) > rate(&exact, size)), "{exact:?}");
        assert!(rate(&exact, 0) > 0.6 && rate(&exact, 3) < 0.3, "{exact:?}");
        let (share, sampled) = count(&frames, 16 << 20);
        assert!((0.2..0.5).contains(&share), "{share}");
        for size in 0..frames.len() {
            let (exact, sampled) = (rate(&exact, size), rate(&sampled, size));
            assert!((exact - sampled).abs() < 0.03, "{exact}, sampled {sampled}");
        }
    }

    #[test]
    fn missed_pages_are_joined_to_reads() {
        let costs = ReadCosts::of_gap(2);
        let mut ghosts = GhostCaches::new(&[8, 300], PolicyKind::Lru, costs, 1 << 20);
        let mut ask = |pages: &[u64]| {
            pages.iter().for_each(|page| ghosts.request(*page));
            ghosts.end_query();
            ghosts.counts().sizes
        };
        // Pages 0, 1 and 4 by a read, with 2 and 3, and page 10.
        let cost = (costs.of_read(5) + costs.of_read(1)) as f64;
        let sizes = ask(&[644, 650, 641, 640]);
        assert_eq!(sizes, [GhostMisses { misses: 4.0, reads: 2.0, cost }; 2]);
        assert_eq!(ask(&[642, 643, 650]), sizes);
        // A read has at most 64 pages.
        let [small, large] = ask(&(640..740).collect::<Vec<_>>())[..] else { panic!("two sizes") };
        assert_eq!((large.misses, large.reads), (98.0, 4.0));
        assert!(small.misses > large.misses);
    }
}
