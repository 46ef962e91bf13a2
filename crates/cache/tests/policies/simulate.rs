//! Simulates a cache of posting lists with an eviction policy or with Belady's rule.
//!
//! *Input*: a trace of accesses to lists, and the number of cells of the cache. *Output*: the numbers of hits
//! and misses.

use std::collections::HashMap;
use tierdex_cache::Policy;

/// An access to a list: an element of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    pub list: u64,
    /// The size of the list in cells.
    pub cells: u32,
}

/// Hits and misses of a simulated cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HitCounts {
    pub hits: u64,
    pub misses: u64,
    /// Cells that were read on misses.
    pub cells_read: u64,
}

impl HitCounts {
    /// Hits as a fraction of all accesses.
    pub fn hit_rate(&self) -> f64 {
        self.hits as f64 / (self.hits + self.misses).max(1) as f64
    }

    fn count(&mut self, access: Access, hit: bool) {
        if hit {
            self.hits += 1;
        } else {
            self.misses += 1;
            self.cells_read += u64::from(access.cells);
        }
    }
}

/// Simulates a cache of `capacity` cells with a new `policy`. A list of more cells is never cached.
pub fn simulate_policy(policy: &mut dyn Policy, capacity: u32, trace: &[Access]) -> HitCounts {
    simulate_with(policy, capacity, trace, |_, _, _| {})
}

/// As [`simulate_policy`]. Before evictions it calls `announce` with the policy, the accesses to come, and
/// the entry of each cached list, so that the policy can be told the future.
pub fn simulate_with<P: Policy + ?Sized>(
    policy: &mut P,
    capacity: u32,
    trace: &[Access],
    announce: impl Fn(&mut P, &[Access], &HashMap<u64, u32>),
) -> HitCounts {
    let mut counts = HitCounts::default();
    let mut entries: HashMap<u64, u32> = HashMap::new();
    let mut lists = vec![Access { list: 0, cells: 0 }; capacity as usize];
    let mut vacant: Vec<u32> = (0..capacity).rev().collect();
    let mut free = capacity;
    for (at, access) in trace.iter().enumerate() {
        let found = entries.get(&access.list).copied();
        counts.count(*access, found.is_some());
        if let Some(entry) = found {
            policy.touch(entry);
        } else if access.cells <= capacity {
            if free < access.cells {
                announce(policy, &trace[at + 1..], &entries);
            }
            while free < access.cells {
                let victim = policy.victim(&|_| true).expect("the cells that are not free have entries");
                policy.remove(victim);
                let Access { list, cells } = lists[victim as usize];
                entries.remove(&list);
                vacant.push(victim);
                free += cells;
            }
            let entry = vacant.pop().expect("there are as many entries as cells");
            lists[entry as usize] = *access;
            entries.insert(access.list, entry);
            free -= access.cells;
            policy.insert(entry, hash(access.list, 0), access.cells);
        }
    }
    counts
}

/// Simulates Belady's rule: evict the list whose next access is farthest in the future. If all lists have the
/// same size, no policy that caches each miss has more hits; otherwise the rule is not optimal.
pub fn simulate_belady(capacity: u32, trace: &[Access]) -> HitCounts {
    let mut counts = HitCounts::default();
    let next_uses = next_uses(trace);
    // Size and next use of each cached list.
    let mut cached: HashMap<u64, (u32, usize)> = HashMap::new();
    let mut free = capacity;
    for (access, next_use) in trace.iter().zip(next_uses) {
        let hit = cached.contains_key(&access.list);
        counts.count(*access, hit);
        if !hit && access.cells <= capacity {
            while free < access.cells {
                let farthest = cached.iter().max_by_key(|(list, (_, next))| (*next, **list));
                let (list, cells) = farthest.map(|(list, (cells, _))| (*list, *cells)).unwrap();
                cached.remove(&list);
                free += cells;
            }
            free -= access.cells;
        }
        if access.cells <= capacity {
            cached.insert(access.list, (access.cells, next_use));
        }
    }
    counts
}

/// For each access the index of the next access to the same list; `usize::MAX` if there is none.
fn next_uses(trace: &[Access]) -> Vec<usize> {
    let mut later: HashMap<u64, usize> = HashMap::new();
    let mut next_uses: Vec<usize> = trace
        .iter()
        .enumerate()
        .rev()
        .map(|(at, access)| later.insert(access.list, at).unwrap_or(usize::MAX))
        .collect();
    next_uses.reverse();
    next_uses
}

/// `len` random accesses to `lists` lists, with probabilities proportional to 1 / rank.
pub fn zipf_accesses(lists: u64, len: usize, seed: u64) -> Vec<u64> {
    let mut random = SplitMix64(seed);
    let sums: Vec<f64> = (1..=lists)
        .scan(0.0, |sum, rank| {
            *sum += 1.0 / rank as f64;
            Some(*sum)
        })
        .collect();
    let total = sums.last().copied().unwrap_or(0.0);
    (0..len).map(|_| sums.partition_point(|sum| *sum < random.unit() * total) as u64).collect()
}

/// A query set of `len` terms with a repetition probability (APCache thesis, section 5.2.3): each term is
/// drawn, with that probability, from the last 100 terms, and is a new one otherwise.
pub fn repeated_accesses(repetition: f64, len: usize, seed: u64) -> Vec<u64> {
    const REPEAT_QUEUE: u64 = 100;
    let mut random = SplitMix64(seed);
    (0..len as u64)
        .map(|next| {
            let queued = next.min(REPEAT_QUEUE);
            let repeats = queued > 0 && random.unit() < repetition;
            if repeats { next - 1 - random.below(queued) } else { next }
        })
        .collect()
}

/// A hash of a number, another one for each seed.
pub fn hash(number: u64, seed: u64) -> u64 {
    mix_bits(number ^ mix_bits(seed))
}

/// The finalizer of SplitMix64: each bit of the result depends on all bits of `number`.
fn mix_bits(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        let number = mix_bits(self.0);
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        number
    }

    /// A random number in `0.0..1.0`.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A random number in `0..end`.
    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}
