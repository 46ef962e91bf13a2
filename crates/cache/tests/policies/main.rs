//! Hit rates of the eviction policies on simulated traces, compared with those of Belady's rule.

mod simulate;

use proptest::prelude::*;
use simulate::{Access, hash, repeated_accesses, simulate_belady, simulate_policy, zipf_accesses};
use tierdex_cache::PolicyKind;

/// A trace in which each list has one cell.
fn lists_of_one_cell(lists: impl IntoIterator<Item = u64>) -> Vec<Access> {
    lists.into_iter().map(|list| Access { list, cells: 1 }).collect()
}

/// A trace in which a list has 1 to 9 cells, depending on its number. Most lists are small.
fn lists_of_several_cells(lists: impl IntoIterator<Item = u64>) -> Vec<Access> {
    let cells = |list: u64| 1 + (hash(list, 7) % 82).isqrt() as u32;
    lists.into_iter().map(|list| Access { list, cells: 10 - cells(list) }).collect()
}

/// The maximum number of hits of any policy, by trying all evictions. The oracle for Belady's rule.
fn max_hits(cached: &[u64], capacity: usize, trace: &[u64]) -> u64 {
    let Some((list, rest)) = trace.split_first() else { return 0 };
    if cached.contains(list) {
        return 1 + max_hits(cached, capacity, rest);
    }
    let mut with = cached.to_vec();
    with.push(*list);
    if with.len() <= capacity {
        return max_hits(&with, capacity, rest);
    }
    (0..capacity)
        .map(|victim| {
            let mut left = with.clone();
            left.remove(victim);
            max_hits(&left, capacity, rest)
        })
        .max()
        .unwrap_or(0)
}

#[test]
fn policies_have_the_expected_hits_on_a_known_trace() {
    let trace = lists_of_one_cell([1, 2, 3, 1, 4, 1, 2, 5, 1, 2]);
    let hits = |kind: PolicyKind| simulate_policy(&mut *kind.policy(3), 3, &trace).hits;
    // Three hits on list 1. List 2 was evicted for 4, and its last access is a hit.
    assert_eq!(hits(PolicyKind::Lru), 4);
    // As FIFO, except that list 1 is not evicted, because it was used when the hand passed it.
    assert_eq!(hits(PolicyKind::Sieve), 4);
    // Belady's rule evicts 3 and then 4.
    assert_eq!(simulate_belady(3, &trace).hits, 5);
}

#[test]
fn scans_do_not_evict_frequently_used_lists() {
    // Lists 1 and 2 are used twice before each scan of eight lists that are used once.
    let lists = (0..3000_u64).flat_map(|scan| [1, 2, 1, 2].into_iter().chain(100 + scan * 8..108 + scan * 8));
    let trace = lists_of_one_cell(lists);
    let rate = |kind: PolicyKind| simulate_policy(&mut *kind.policy(10), 10, &trace).hit_rate();
    let frequent = 4.0 / 12.0;
    for kind in [PolicyKind::S3Fifo, PolicyKind::Sieve] {
        assert!(rate(kind) > 0.95 * frequent, "{kind}: {}", rate(kind));
    }
}

#[test]
fn traces_have_the_given_repetition_probability() {
    for repetition in [0.0, 0.25, 0.5] {
        let lists = repeated_accesses(repetition, 20_000, 3);
        let repeated = lists.iter().enumerate().filter(|(at, list)| **list < *at as u64).count();
        assert!((repeated as f64 / 20_000.0 - repetition).abs() < 0.02, "{repetition}: {repeated}");
        assert!(lists.iter().enumerate().all(|(at, list)| *list + 100 >= at as u64 && *list <= at as u64));
    }
}

/// With `--nocapture` it prints the hit rates of all policies.
#[test]
fn no_policy_exceeds_belady_on_lists_of_one_size() {
    let traces = [
        ("zipf", zipf_accesses(1000, 10_000, 1)),
        ("RP 0%", repeated_accesses(0.0, 10_000, 2)),
        ("RP 25%", repeated_accesses(0.25, 10_000, 2)),
        ("RP 50%", repeated_accesses(0.5, 10_000, 2)),
    ];
    for (name, lists) in traces {
        for capacity in [10, 50, 100] {
            let trace = lists_of_one_cell(lists.iter().copied());
            let optimum = simulate_belady(capacity, &trace).hit_rate();
            print!("{name} {capacity}: belady {optimum:.3}");
            for kind in PolicyKind::ALL {
                let rate = simulate_policy(&mut *kind.policy(capacity), capacity, &trace).hit_rate();
                print!(", {kind} {rate:.3}");
                assert!(rate <= optimum, "{name} {capacity} {kind}");
            }
            let trace = lists_of_several_cells(lists.iter().copied());
            print!("; sizes 1 to 9: farthest {:.3}", simulate_belady(capacity, &trace).hit_rate());
            for kind in PolicyKind::ALL {
                let rate = simulate_policy(&mut *kind.policy(capacity), capacity, &trace).hit_rate();
                print!(", {kind} {rate:.3}");
            }
            println!();
        }
    }
}

proptest! {
    #[test]
    fn belady_is_optimal(trace in prop::collection::vec(0..6_u64, 0..12), capacity in 1..4_u32) {
        let expected = max_hits(&[], capacity as usize, &trace);
        prop_assert_eq!(simulate_belady(capacity, &lists_of_one_cell(trace)).hits, expected);
    }

    #[test]
    fn no_policy_exceeds_belady(trace in prop::collection::vec(0..30_u64, 0..300), capacity in 1..20_u32) {
        let trace = lists_of_one_cell(trace);
        let optimum = simulate_belady(capacity, &trace).hits;
        for kind in PolicyKind::ALL {
            prop_assert!(simulate_policy(&mut *kind.policy(capacity), capacity, &trace).hits <= optimum, "{}", kind);
        }
    }

    /// The lists in a cache of LRU are also in any larger one (the inclusion property).
    #[test]
    fn a_larger_lru_has_no_fewer_hits(trace in prop::collection::vec(0..30_u64, 0..300)) {
        let trace = lists_of_one_cell(trace);
        let hits = |capacity| simulate_policy(&mut *PolicyKind::Lru.policy(capacity), capacity, &trace).hits;
        let hits: Vec<u64> = (1..32).map(hits).collect();
        prop_assert!(hits.is_sorted(), "{:?}", hits);
    }

    #[test]
    fn lists_of_any_size_are_simulated(trace in prop::collection::vec(0..30_u64, 0..300), capacity in 1..20_u32) {
        let trace = lists_of_several_cells(trace);
        for kind in PolicyKind::ALL {
            let counts = simulate_policy(&mut *kind.policy(capacity), capacity, &trace);
            prop_assert_eq!(counts.hits + counts.misses, trace.len() as u64);
        }
    }
}
