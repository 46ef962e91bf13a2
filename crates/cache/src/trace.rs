//! Hit rates of policies on traces, beside Belady's optimum.
//!
//! *You have* a trace: which list is used when, and how many segments it has. *You get* how often a cache of so many
//! segments would have had it. No bytes are moved; it is for choosing a policy, and for tests.

use std::collections::HashMap;

use crate::chains::Key;
use crate::policy::Policy;

/// One use of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Use {
    /// Which list.
    pub list: u64,
    /// Its size in segments.
    pub segments: u32,
}

/// What a cache would have had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outcome {
    /// Uses of lists that were there.
    pub hits: u64,
    /// Uses of lists that were not.
    pub misses: u64,
    /// Segments of the lists that were not there.
    pub segments_read: u64,
}

impl Outcome {
    /// Hits as a part of all uses.
    pub fn hit_rate(&self) -> f64 {
        self.hits as f64 / (self.hits + self.misses).max(1) as f64
    }

    fn count(&mut self, used: Use, hit: bool) {
        if hit {
            self.hits += 1;
        } else {
            self.misses += 1;
            self.segments_read += u64::from(used.segments);
        }
    }
}

/// Runs a trace through a fresh policy for a cache of `capacity` segments. A list that is longer is never there.
pub fn simulate(policy: &mut dyn Policy, capacity: u32, trace: &[Use]) -> Outcome {
    let mut outcome = Outcome::default();
    let mut chains: HashMap<u64, u32> = HashMap::new();
    let mut lists = vec![Use { list: 0, segments: 0 }; capacity as usize];
    let mut vacant: Vec<u32> = (0..capacity).rev().collect();
    let mut free = capacity;
    for (at, used) in trace.iter().enumerate() {
        let found = chains.get(&used.list).copied();
        outcome.count(*used, found.is_some());
        if let Some(chain) = found {
            policy.touch(chain);
        } else if used.segments <= capacity {
            if free < used.segments && policy.window() > 0 {
                let ahead = trace[at + 1..].iter().take(policy.window());
                policy.expect(&mut ahead.filter_map(|used| chains.get(&used.list).copied()));
            }
            while free < used.segments {
                let victim = policy.victim(&|_| true).expect("lists that are there fill the cache");
                policy.remove(victim);
                let Use { list, segments } = lists[victim as usize];
                chains.remove(&list);
                vacant.push(victim);
                free += segments;
            }
            let chain = vacant.pop().expect("there are as many chains as segments");
            lists[chain as usize] = *used;
            chains.insert(used.list, chain);
            free -= used.segments;
            policy.insert(chain, Key(used.list, 0).hash(), used.segments);
        }
    }
    outcome
}

/// Evicts the list whose next use is farthest. With lists of one size no policy that loads what it misses has more hits;
/// with several sizes it is a rule that knows the future, and not the optimum.
pub fn belady(capacity: u32, trace: &[Use]) -> Outcome {
    let mut outcome = Outcome::default();
    let next_uses = next_uses(trace);
    // The lists that are there: size and next use.
    let mut there: HashMap<u64, (u32, usize)> = HashMap::new();
    let mut free = capacity;
    for (used, next_use) in trace.iter().zip(next_uses) {
        let hit = there.contains_key(&used.list);
        outcome.count(*used, hit);
        if !hit && used.segments <= capacity {
            while free < used.segments {
                let farthest = there.iter().max_by_key(|(list, (_, next))| (*next, **list));
                let (list, segments) = farthest.map(|(list, (segments, _))| (*list, *segments)).unwrap();
                there.remove(&list);
                free += segments;
            }
            free -= used.segments;
        }
        if used.segments <= capacity {
            there.insert(used.list, (used.segments, next_use));
        }
    }
    outcome
}

/// For each use the place of the next one of the same list.
fn next_uses(trace: &[Use]) -> Vec<usize> {
    let mut later: HashMap<u64, usize> = HashMap::new();
    let mut next_uses: Vec<usize> = trace
        .iter()
        .enumerate()
        .rev()
        .map(|(at, used)| later.insert(used.list, at).unwrap_or(usize::MAX))
        .collect();
    next_uses.reverse();
    next_uses
}

/// `len` uses of `lists` lists, the k-th of which is used in proportion to 1 / k.
pub fn zipf(lists: u64, len: usize, seed: u64) -> Vec<u64> {
    let mut random = Random(seed);
    let sums: Vec<f64> = (1..=lists)
        .scan(0.0, |sum, k| {
            *sum += 1.0 / k as f64;
            Some(*sum)
        })
        .collect();
    let total = sums.last().copied().unwrap_or(0.0);
    (0..len).map(|_| sums.partition_point(|sum| *sum < random.part() * total) as u64).collect()
}

/// A query set of `len` terms in which one is repeated with probability `repetition` (thesis, section 5.2.3): from the
/// last 100 terms that were drawn, else the next new one comes.
pub fn repetitions(repetition: f64, len: usize, seed: u64) -> Vec<u64> {
    const REPEAT_QUEUE: u64 = 100;
    let mut random = Random(seed);
    (0..len as u64)
        .map(|next| {
            let queued = next.min(REPEAT_QUEUE);
            let repeats = queued > 0 && random.part() < repetition;
            if repeats { next - 1 - random.below(queued) } else { next }
        })
        .collect()
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        Key(self.0, 0).hash()
    }

    /// From 0 up to 1.
    fn part(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Lru, PolicyKind, Window};
    use proptest::prelude::*;

    fn units(lists: impl IntoIterator<Item = u64>) -> Vec<Use> {
        lists.into_iter().map(|list| Use { list, segments: 1 }).collect()
    }

    /// Sizes from 1 to 9, many of them small.
    fn sized(lists: impl IntoIterator<Item = u64>) -> Vec<Use> {
        let segments = |list: u64| 1 + (Key(list, 7).hash() % 82).isqrt() as u32;
        lists.into_iter().map(|list| Use { list, segments: 10 - segments(list) }).collect()
    }

    /// The best that can be had, by trying all evictions.
    fn best(there: &[u64], capacity: usize, trace: &[u64]) -> u64 {
        let Some((list, rest)) = trace.split_first() else { return 0 };
        if there.contains(list) {
            return 1 + best(there, capacity, rest);
        }
        let mut with = there.to_vec();
        with.push(*list);
        if with.len() <= capacity {
            return best(&with, capacity, rest);
        }
        (0..capacity)
            .map(|out| {
                let mut left = with.clone();
                left.remove(out);
                best(&left, capacity, rest)
            })
            .max()
            .unwrap_or(0)
    }

    #[test]
    fn what_policies_do_on_known_traces() {
        let trace = units([1, 2, 3, 1, 4, 1, 2, 5, 1, 2]);
        let hits = |kind: PolicyKind| simulate(&mut *kind.policy(3), 3, &trace).hits;
        // LRU keeps 1; 2 went for 4, came for 3, and stayed.
        assert_eq!(hits(PolicyKind::Lru), 4);
        // FIFO but for 1, which was used when the hand came by.
        assert_eq!(hits(PolicyKind::Sieve), 4);
        // The optimum evicts 3 and then 4.
        assert_eq!((hits(PolicyKind::Window), belady(3, &trace).hits), (5, 5));
    }

    #[test]
    fn scans_do_not_wash_out_what_is_used_often() {
        // Two lists that are used again and again, between scans of what is used once.
        let lists =
            (0..3000_u64).flat_map(|scan| [1, 2, 1, 2].into_iter().chain(100 + scan * 8..108 + scan * 8));
        let trace = units(lists);
        let rate = |kind: PolicyKind| simulate(&mut *kind.policy(10), 10, &trace).hit_rate();
        let often = 4.0 / 12.0;
        for kind in [PolicyKind::S3Fifo, PolicyKind::Sieve, PolicyKind::Window] {
            assert!(rate(kind) > 0.95 * often, "{kind}: {}", rate(kind));
        }
    }

    #[test]
    fn repetition_probabilities_are_met() {
        for repetition in [0.0, 0.25, 0.5] {
            let lists = repetitions(repetition, 20_000, 3);
            let repeated = lists.iter().enumerate().filter(|(at, list)| **list < *at as u64).count();
            assert!((repeated as f64 / 20_000.0 - repetition).abs() < 0.02, "{repetition}: {repeated}");
            assert!(
                lists.iter().enumerate().all(|(at, list)| *list + 100 >= at as u64 && *list <= at as u64)
            );
        }
    }

    /// Prints the hit rates that the documents show: run with `--nocapture`.
    #[test]
    fn none_beats_belady_with_lists_of_one_size() {
        let traces = [
            ("zipf", zipf(1000, 10_000, 1)),
            ("RP 0%", repetitions(0.0, 10_000, 2)),
            ("RP 25%", repetitions(0.25, 10_000, 2)),
            ("RP 50%", repetitions(0.5, 10_000, 2)),
        ];
        for (name, lists) in traces {
            for capacity in [10, 50, 100] {
                let trace = units(lists.iter().copied());
                let optimum = belady(capacity, &trace).hit_rate();
                print!("{name} {capacity}: belady {optimum:.3}");
                for kind in PolicyKind::ALL {
                    let rate = simulate(&mut *kind.policy(capacity), capacity, &trace).hit_rate();
                    print!(", {kind} {rate:.3}");
                    assert!(rate <= optimum, "{name} {capacity} {kind}");
                }
                let trace = sized(lists.iter().copied());
                print!("; sizes 1 to 9: farthest {:.3}", belady(capacity, &trace).hit_rate());
                for kind in PolicyKind::ALL {
                    print!(
                        ", {kind} {:.3}",
                        simulate(&mut *kind.policy(capacity), capacity, &trace).hit_rate()
                    );
                }
                println!();
            }
        }
    }

    proptest! {
        #[test]
        fn belady_is_the_optimum(trace in prop::collection::vec(0..6_u64, 0..12), capacity in 1..4_u32) {
            prop_assert_eq!(belady(capacity, &units(trace.iter().copied())).hits, best(&[], capacity as usize, &trace));
        }

        #[test]
        fn an_infinite_window_is_belady(trace in prop::collection::vec(0..30_u64, 0..300), capacity in 1..20_u32) {
            let trace = units(trace);
            let mut window = Window::new(capacity, usize::MAX);
            prop_assert_eq!(simulate(&mut window, capacity, &trace), belady(capacity, &trace));
        }

        #[test]
        fn none_beats_belady(trace in prop::collection::vec(0..30_u64, 0..300), capacity in 1..20_u32) {
            let trace = units(trace);
            let optimum = belady(capacity, &trace).hits;
            for kind in PolicyKind::ALL {
                prop_assert!(simulate(&mut *kind.policy(capacity), capacity, &trace).hits <= optimum, "{}", kind);
            }
        }

        /// What a smaller LRU cache has, a larger one has too.
        #[test]
        fn a_larger_lru_has_no_fewer_hits(trace in prop::collection::vec(0..30_u64, 0..300)) {
            let trace = units(trace);
            let hits: Vec<u64> =
                (1..32).map(|capacity| simulate(&mut Lru::new(capacity), capacity, &trace).hits).collect();
            prop_assert!(hits.is_sorted(), "{:?}", hits);
        }

        #[test]
        fn lists_of_any_size_are_run(trace in prop::collection::vec(0..30_u64, 0..300), capacity in 1..20_u32) {
            let trace = sized(trace);
            for kind in PolicyKind::ALL {
                let outcome = simulate(&mut *kind.policy(capacity), capacity, &trace);
                prop_assert_eq!(outcome.hits + outcome.misses, trace.len() as u64);
            }
        }
    }
}
