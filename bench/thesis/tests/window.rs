//! Belady's rule within a window, on traces, compared with Belady's optimum.

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../../../crates/cache/tests/policies/simulate.rs"]
mod simulate;

use proptest::prelude::*;
use tierdex_thesis::BeladyWindow;

use simulate::{Access, HitCounts, hash, repeated_accesses, simulate_belady, simulate_with, zipf_accesses};

/// Uses ahead that the window of the cache has.
const USES_AHEAD: usize = BeladyWindow::USES_AHEAD;

fn simulate_window(uses_max: usize, capacity: u32, trace: &[Access]) -> HitCounts {
    let mut window = BeladyWindow::new(capacity, uses_max);
    simulate_with(&mut window, capacity, trace, |window, ahead, entries| {
        let uses = ahead.iter().take(uses_max).filter_map(|access| entries.get(&access.list).copied());
        window.set_upcoming(uses);
    })
}

/// A trace of lists of one cell.
fn lists_of_one_cell(lists: impl IntoIterator<Item = u64>) -> Vec<Access> {
    lists.into_iter().map(|list| Access { list, cells: 1 }).collect()
}

/// A trace of lists of 1 to 9 cells, most of them small.
fn lists_of_several_sizes(lists: impl IntoIterator<Item = u64>) -> Vec<Access> {
    let cells = |list: u64| 1 + (hash(list, 7) % 82).isqrt() as u32;
    lists.into_iter().map(|list| Access { list, cells: 10 - cells(list) }).collect()
}

#[test]
fn the_window_has_the_hits_of_the_optimum_on_a_known_trace() {
    let trace = lists_of_one_cell([1, 2, 3, 1, 4, 1, 2, 5, 1, 2]);
    // The optimum evicts 3 and then 4.
    assert_eq!((simulate_window(USES_AHEAD, 3, &trace).hits, simulate_belady(3, &trace).hits), (5, 5));
}

#[test]
fn scans_do_not_evict_frequently_used_lists() {
    // Two lists that are used again and again, between scans of lists that are used once.
    let lists = (0..3000_u64).flat_map(|scan| [1, 2, 1, 2].into_iter().chain(100 + scan * 8..108 + scan * 8));
    let rate = simulate_window(USES_AHEAD, 10, &lists_of_one_cell(lists)).hit_rate();
    assert!(rate > 0.95 * 4.0 / 12.0, "{rate}");
}

#[test]
fn the_window_does_not_exceed_belady_on_lists_of_one_size() {
    let traces = [
        ("zipf", zipf_accesses(1000, 10_000, 1)),
        ("RP 0%", repeated_accesses(0.0, 10_000, 2)),
        ("RP 25%", repeated_accesses(0.25, 10_000, 2)),
        ("RP 50%", repeated_accesses(0.5, 10_000, 2)),
    ];
    for (name, lists) in traces {
        for capacity in [10, 50, 100] {
            let trace = lists_of_one_cell(lists.iter().copied());
            let (rate, optimum) = (
                simulate_window(USES_AHEAD, capacity, &trace).hit_rate(),
                simulate_belady(capacity, &trace).hit_rate(),
            );
            assert!(rate <= optimum, "{name} {capacity}: {rate} and {optimum}");
        }
    }
}

proptest! {
    #[test]
    fn an_infinite_window_is_belady(trace in prop::collection::vec(0..30_u64, 0..300), capacity in 1..20_u32) {
        let trace = lists_of_one_cell(trace);
        prop_assert_eq!(simulate_window(usize::MAX, capacity, &trace), simulate_belady(capacity, &trace));
    }

    #[test]
    fn the_window_does_not_exceed_belady(trace in prop::collection::vec(0..30_u64, 0..300), capacity in 1..20_u32) {
        let trace = lists_of_one_cell(trace);
        prop_assert!(simulate_window(USES_AHEAD, capacity, &trace).hits <= simulate_belady(capacity, &trace).hits);
    }

    #[test]
    fn lists_of_any_size_are_simulated(trace in prop::collection::vec(0..30_u64, 0..300), capacity in 1..20_u32) {
        let counts = simulate_window(USES_AHEAD, capacity, &lists_of_several_sizes(trace.iter().copied()));
        prop_assert_eq!(counts.hits + counts.misses, trace.len() as u64);
    }
}
