//! Ghost caches: caches that keep the keys of pages only, and count the misses that caches of other sizes would
//! have.
//!
//! *Input*: the requests that [`PageCache::observe_requests`](crate::PageCache::observe_requests) reports.
//! *Output*: for each size of cache the misses, and what the reads of the missed pages cost.
//!
//! 1. A ghost cache has the page table, the shards and the eviction policy of a cache of its size, and evicts
//!    pages of a group together as that does. It does not know pins, nor pages that are read because they are
//!    between two requested ones.
//! 2. A page that is missed after the one before it, or after few others, is in the same read, by the rule of
//!    [`ReadCosts::joins`].
//! 3. If all ghosts would take more than the given memory, they see a sample: the requests of the runs of
//!    [`READ_PAGES_MAX`] pages whose hash is below a threshold, in caches that are smaller in the same
//!    proportion (spatial sampling; Waldspurger and others, "Efficient MRC construction with SHARDS",
//!    FAST 2015). The counts are then estimates: the sampled ones, divided by the sampled share.

use crate::hash::mix_bits;
use crate::page_cache::{shard_of_hash, shards_of_frames};
use crate::page_table::{GROUP_PAGES, PageTable, group_hash};
use crate::policy::{Policy, PolicyKind};
use crate::read_costs::{READ_PAGES_MAX, ReadCosts};

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
    /// The page after the last read, and the pages of that read.
    read_end: u64,
    read_pages: u64,
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

    /// Requests a page, by the number that [`PageCache::observe_requests`](crate::PageCache::observe_requests)
    /// reports.
    pub fn request(&mut self, page: u64) {
        self.requests += 1;
        if self.threshold == u64::MAX || mix_bits(page / READ_PAGES_MAX as u64) < self.threshold {
            self.caches.iter_mut().for_each(|cache| cache.request(page, &self.costs));
        }
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
        GhostCache { shards: shards.collect(), misses: 0, reads: 0, cost: 0, read_end: 0, read_pages: 0 }
    }

    fn request(&mut self, page: u64, costs: &ReadCosts) {
        let hash = group_hash(page);
        let shard = shard_of_hash(hash, self.shards.len());
        if !self.shards[shard].find_or_insert(page, hash) {
            self.misses += 1;
            self.read(page, costs);
        }
    }

    /// Adds a missed page to the last read, or reads it by another.
    fn read(&mut self, page: u64, costs: &ReadCosts) {
        let gap = page.wrapping_sub(self.read_end);
        if self.read_pages > 0 && gap < READ_PAGES_MAX as u64 && costs.joins(self.read_pages, gap) {
            self.cost -= costs.of_read(self.read_pages);
            self.read_pages += gap + 1;
        } else {
            self.reads += 1;
            self.read_pages = 1;
        }
        self.cost += costs.of_read(self.read_pages);
        self.read_end = page.wrapping_add(1);
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
    fn find_or_insert(&mut self, page: u64, hash: u64) -> bool {
        if let Some(frame) = self.find(page, hash) {
            self.policy.touch(frame);
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

    /// Requests of the first half of each of 12,500 runs of 64 pages. The n-th run is requested in proportion to
    /// 1/n^(2/3).
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
        // Pages 0 and 1, 4 after a gap of two, 10, and 3 backwards.
        [640, 641, 644, 650, 643, 641].into_iter().for_each(|page| ghosts.request(page));
        let cost = [5, 1, 1].map(|pages| costs.of_read(pages)).iter().sum::<u64>() as f64;
        let sizes = ghosts.counts().sizes;
        assert_eq!(sizes, [GhostMisses { misses: 5.0, reads: 3.0, cost }; 2]);
        // A read has at most 64 pages.
        (640..740).for_each(|page| ghosts.request(page));
        let [small, large] = ghosts.counts().sizes[..] else { panic!("two sizes") };
        assert_eq!((large.misses - 5.0, large.reads - 3.0), (95.0, 2.0));
        assert!(small.misses > large.misses);
    }
}
