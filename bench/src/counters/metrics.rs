//! Metrics from counts: a pure function.
//!
//! Table 5.1 of the thesis (events of Skylake to Cascade Lake; per query, in pipeline slots or clock cycles):
//!
//! 1. clocks = `cpu_clk_unhalted.thread_p`, slots = 4 clocks.
//! 2. front end = `idq_uops_not_delivered.core`; retiring = `uops_retired.retire_slots`; bad speculation =
//!    `uops_issued.any` - retiring + 4 `int_misc.recovery_cycles`; back end = slots - the other three. The
//!    table leaves out the factor 4, which Yasin's formula and table 5.3 of Chilukuri's thesis have: it
//!    converts cycles into slots.
//! 3. core = clocks - `uops_executed.thread_cycles_ge_3`; memory = `cycle_activity.stalls_mem_any` +
//!    `resource_stalls.sb`.
//! 4. external = `stalls_l3_miss`, L3 = `stalls_l2_miss` - external, L2 = `stalls_l1d_miss` -
//!    `stalls_l2_miss`, L1 = `stalls_mem_any` - `stalls_l1d_miss`.
//!
//! Cores with fixed metrics report the four parts of step 2 themselves. AMD's parts are those of the Linux
//! tool `perf` (amdzen4, amdzen5). Both split the slots of the back end into memory and core; here they are
//! converted into cycles by their share of all slots.

use super::count::EventCounts;
use super::event::{
    AMD_BACK_END_STALLS, AMD_CYCLES_6_SLOTS, AMD_CYCLES_8_SLOTS, AMD_NO_OPS_FROM_FRONT_END, AMD_NO_RETIRE,
    AMD_NO_RETIRE_LOAD, AMD_OPS_DISPATCHED, AMD_OPS_RETIRED, CPU_CYCLES, CYCLES_3_UOPS, INSTRUCTIONS,
    LLC_MISSES, PIPELINE_SLOTS, RECOVERY_CYCLES, RETIRE_SLOTS, STALLS_L1D, STALLS_L2, STALLS_L3,
    STALLS_MEM_ANY, STALLS_STORES, TOPDOWN_BACK_END, TOPDOWN_BAD_SPECULATION, TOPDOWN_FRONT_END,
    TOPDOWN_MEMORY, TOPDOWN_RETIRING, UNHALTED_CLOCKS, UOPS_ISSUED, UOPS_NOT_DELIVERED,
};

/// Pipeline slots in the four parts of the first level of the top-down method, and all slots.
struct TopDownSlots {
    slots: f64,
    front_end: f64,
    bad_speculation: f64,
    retiring: f64,
    back_end: f64,
    /// The part of `back_end` that waits for memory, if the processor counts it in slots.
    memory: Option<f64>,
}

/// The metrics of `queries` queries, by name: amounts per query (`retiring_slots`, `external_cycles`) and
/// shares of all slots or cycles (`retiring_share`, `external_share`). Metrics whose events were not counted
/// are left out; a negative difference of multiplexed counts is 0.
pub(crate) fn metrics(counts: &EventCounts, queries: u64) -> Vec<(&'static str, f64)> {
    let mut all = Vec::new();
    if queries == 0 {
        return all;
    }
    let per_query = |count: f64| count.max(0.0) / queries as f64;
    let mut add = |name, value: Option<f64>| all.extend(value.map(|value| (name, value)));
    let (instructions, misses) = (counts.get(INSTRUCTIONS), counts.get(LLC_MISSES));
    add("instructions", instructions.map(per_query));
    add("llc_misses", misses.map(per_query));
    let instructions = instructions.filter(|count| *count > 0.0);
    add("llc_mpki", misses.zip(instructions).map(|(misses, all)| 1000.0 * misses / all));
    add("cycles", counts.get(CPU_CYCLES).map(per_query));
    if let Some(top) =
        skylake_slots(counts).or_else(|| fixed_metric_slots(counts)).or_else(|| zen_slots(counts))
    {
        let parts = [
            ("frontend_slots", "frontend_share", top.front_end),
            ("bad_speculation_slots", "bad_speculation_share", top.bad_speculation),
            ("retiring_slots", "retiring_share", top.retiring),
            ("backend_slots", "backend_share", top.back_end),
        ];
        for (amount, share, slots) in parts {
            add(amount, Some(per_query(slots)));
            add(share, Some(slots.max(0.0) / top.slots));
        }
        let parts = [
            ("memory_cycles", "memory_share", top.memory),
            ("core_cycles", "core_share", top.memory.map(|memory| top.back_end - memory)),
        ];
        for (amount, share, slots) in parts {
            let part = slots.map(|slots| slots.max(0.0) / top.slots);
            add(amount, part.zip(counts.get(CPU_CYCLES)).map(|(part, cycles)| per_query(part * cycles)));
            add(share, part);
        }
    }
    let Some(clocks) = counts.get(UNHALTED_CLOCKS).filter(|clocks| *clocks > 0.0) else { return all };
    let stalls = |name| counts.get(name);
    let difference = |one: Option<f64>, other: Option<f64>| Some(one? - other?);
    let memory = || Some(stalls(STALLS_MEM_ANY)? + stalls(STALLS_STORES)?);
    let parts = [
        ("core_cycles", "core_share", difference(Some(clocks), stalls(CYCLES_3_UOPS))),
        ("memory_cycles", "memory_share", memory()),
        ("l1_cycles", "l1_share", difference(stalls(STALLS_MEM_ANY), stalls(STALLS_L1D))),
        ("l2_cycles", "l2_share", difference(stalls(STALLS_L1D), stalls(STALLS_L2))),
        ("l3_cycles", "l3_share", difference(stalls(STALLS_L2), stalls(STALLS_L3))),
        ("external_cycles", "external_share", stalls(STALLS_L3)),
    ];
    for (amount, share, cycles) in parts {
        add(amount, cycles.map(per_query));
        add(share, cycles.map(|cycles| cycles.max(0.0) / clocks));
    }
    all
}

/// Step 2 for Skylake to Cascade Lake.
fn skylake_slots(counts: &EventCounts) -> Option<TopDownSlots> {
    let slots = 4.0 * counts.get(UNHALTED_CLOCKS).filter(|clocks| *clocks > 0.0)?;
    let (front_end, retiring) = (counts.get(UOPS_NOT_DELIVERED)?, counts.get(RETIRE_SLOTS)?);
    let recovery = 4.0 * counts.get(RECOVERY_CYCLES)?;
    let bad_speculation = (counts.get(UOPS_ISSUED)? - retiring + recovery).max(0.0);
    let back_end = slots - (front_end + bad_speculation + retiring);
    Some(TopDownSlots { slots, front_end, bad_speculation, retiring, back_end, memory: None })
}

/// The parts that Intel cores from Ice Lake on count themselves, in slots.
fn fixed_metric_slots(counts: &EventCounts) -> Option<TopDownSlots> {
    Some(TopDownSlots {
        slots: counts.get(PIPELINE_SLOTS).filter(|slots| *slots > 0.0)?,
        front_end: counts.get(TOPDOWN_FRONT_END)?,
        bad_speculation: counts.get(TOPDOWN_BAD_SPECULATION)?,
        retiring: counts.get(TOPDOWN_RETIRING)?,
        back_end: counts.get(TOPDOWN_BACK_END)?,
        memory: counts.get(TOPDOWN_MEMORY),
    })
}

/// AMD from Zen 4 on. Slots that another thread of the core took are in none of the parts.
fn zen_slots(counts: &EventCounts) -> Option<TopDownSlots> {
    let six = counts.get(AMD_CYCLES_6_SLOTS).map(|cycles| 6.0 * cycles);
    let slots = six.or_else(|| counts.get(AMD_CYCLES_8_SLOTS).map(|cycles| 8.0 * cycles));
    let (retiring, back_end) = (counts.get(AMD_OPS_RETIRED)?, counts.get(AMD_BACK_END_STALLS)?);
    let not_retired = counts.get(AMD_NO_RETIRE).filter(|cycles| *cycles > 0.0);
    let waiting = counts.get(AMD_NO_RETIRE_LOAD).zip(not_retired).map(|(load, all)| load / all);
    Some(TopDownSlots {
        slots: slots.filter(|slots| *slots > 0.0)?,
        front_end: counts.get(AMD_NO_OPS_FROM_FRONT_END)?,
        bad_speculation: counts.get(AMD_OPS_DISPATCHED)? - retiring,
        retiring,
        back_end,
        memory: waiting.map(|share| share * back_end),
    })
}

#[cfg(test)]
mod tests {
    use super::{super::count::EventCount, *};

    /// Counts of events that were counted all the time.
    fn counts(events: &[(&str, u64)]) -> EventCounts {
        let mut counts = EventCounts::default();
        for (name, count) in events {
            counts.insert(name, EventCount { count: *count, enabled: 1000, running: 1000 });
        }
        counts
    }

    fn metric(all: &[(&'static str, f64)], name: &str) -> Option<f64> {
        all.iter().find(|(found, _)| *found == name).map(|(_, value)| *value)
    }

    const CASCADE_LAKE_COUNTS: [(&str, u64); 13] = [
        (INSTRUCTIONS, 2_000_000),
        (LLC_MISSES, 1_500),
        (UNHALTED_CLOCKS, 1_000_000),
        (UOPS_NOT_DELIVERED, 400_000),
        (UOPS_ISSUED, 2_300_000),
        (RETIRE_SLOTS, 2_000_000),
        (RECOVERY_CYCLES, 25_000),
        (CYCLES_3_UOPS, 600_000),
        (STALLS_MEM_ANY, 250_000),
        (STALLS_STORES, 10_000),
        (STALLS_L1D, 150_000),
        (STALLS_L2, 120_000),
        (STALLS_L3, 90_000),
    ];

    #[test]
    fn table_5_1_by_hand() {
        let all = metrics(&counts(&CASCADE_LAKE_COUNTS), 10);
        let amounts = [
            ("instructions", 200_000.0),
            ("llc_misses", 150.0),
            ("llc_mpki", 0.75),
            ("frontend_slots", 40_000.0),
            ("bad_speculation_slots", 40_000.0),
            ("retiring_slots", 200_000.0),
            ("backend_slots", 120_000.0),
            ("core_cycles", 40_000.0),
            ("memory_cycles", 26_000.0),
            ("l1_cycles", 10_000.0),
            ("l2_cycles", 3_000.0),
            ("l3_cycles", 3_000.0),
            ("external_cycles", 9_000.0),
            ("backend_share", 0.3),
            ("retiring_share", 0.5),
            ("memory_share", 0.26),
            ("external_share", 0.09),
        ];
        for (name, expected) in amounts {
            assert_eq!(metric(&all, name), Some(expected), "{name}");
        }
    }

    #[test]
    fn missing_events_leave_out_their_metrics_only() {
        for (missing, _) in CASCADE_LAKE_COUNTS {
            let left: Vec<_> = CASCADE_LAKE_COUNTS.into_iter().filter(|(name, _)| *name != missing).collect();
            let all = metrics(&counts(&left), 1);
            let has = |name: &str| metric(&all, name).is_some();
            assert_eq!(has("llc_mpki"), ![INSTRUCTIONS, LLC_MISSES].contains(&missing), "{missing}");
            let is_needed = [UNHALTED_CLOCKS, STALLS_L2, STALLS_L3].contains(&missing);
            assert_eq!(has("l3_cycles"), !is_needed, "{missing}");
            let top = [UNHALTED_CLOCKS, UOPS_NOT_DELIVERED, UOPS_ISSUED, RETIRE_SLOTS, RECOVERY_CYCLES];
            assert_eq!(has("backend_share"), !top.contains(&missing), "{missing}");
        }
        assert!(metrics(&EventCounts::default(), 1).is_empty());
    }

    #[test]
    fn zero_counts_give_no_ratios() {
        let zero = CASCADE_LAKE_COUNTS.map(|(name, _)| (name, 0));
        let all = metrics(&counts(&zero), 5);
        assert_eq!((metric(&all, "instructions"), metric(&all, "llc_mpki")), (Some(0.0), None));
        assert!(all.iter().all(|(_, value)| value.is_finite()) && metric(&all, "backend_share").is_none());
        assert!(metrics(&counts(&CASCADE_LAKE_COUNTS), 0).is_empty());
    }

    #[test]
    fn counts_that_took_turns_are_scaled_and_never_negative() {
        let mut counted = counts(&CASCADE_LAKE_COUNTS);
        // A third of the time: three times as many L3 stalls as counted, more than those of L2.
        counted.insert(STALLS_L3, EventCount { count: 60_000, enabled: 900, running: 300 });
        let all = metrics(&counted, 1);
        let found = ["external_cycles", "l3_cycles"].map(|name| metric(&all, name));
        assert_eq!(found, [Some(180_000.0), Some(0.0)]);
        // An event that never ran is missing.
        counted.insert(STALLS_L3, EventCount { count: 0, enabled: 900, running: 0 });
        assert_eq!(metric(&metrics(&counted, 1), "external_cycles"), None);
    }

    #[test]
    fn fixed_metrics_are_taken_as_they_are() {
        let all = metrics(
            &counts(&[
                (PIPELINE_SLOTS, 6_000),
                (TOPDOWN_RETIRING, 3_000),
                (TOPDOWN_BAD_SPECULATION, 600),
                (TOPDOWN_FRONT_END, 900),
                (TOPDOWN_BACK_END, 1_500),
                (TOPDOWN_MEMORY, 1_200),
                (CPU_CYCLES, 1_200),
                (UNHALTED_CLOCKS, 1_000),
                (STALLS_L3, 100),
            ]),
            3,
        );
        let found = ["retiring_slots", "retiring_share"].map(|name| metric(&all, name));
        assert_eq!(found, [Some(1000.0), Some(0.5)]);
        assert_eq!((metric(&all, "memory_cycles"), metric(&all, "memory_share")), (Some(80.0), Some(0.2)));
        assert_eq!((metric(&all, "core_cycles"), metric(&all, "core_share")), (Some(20.0), Some(0.05)));
        assert_eq!((metric(&all, "external_share"), metric(&all, "l3_share")), (Some(0.1), None));
    }

    #[test]
    fn slots_of_amd_are_six_or_eight_a_cycle() {
        let events = [
            (AMD_NO_OPS_FROM_FRONT_END, 100),
            (AMD_BACK_END_STALLS, 400),
            (AMD_OPS_DISPATCHED, 260),
            (AMD_OPS_RETIRED, 240),
            (AMD_NO_RETIRE, 50),
            (AMD_NO_RETIRE_LOAD, 20),
        ];
        for (cycles, slots) in [(AMD_CYCLES_6_SLOTS, 600.0), (AMD_CYCLES_8_SLOTS, 800.0)] {
            let all = metrics(&counts(&[&events[..], &[(cycles, 100)]].concat()), 1);
            assert_eq!(metric(&all, "frontend_share"), Some(100.0 / slots));
            assert_eq!(metric(&all, "bad_speculation_slots"), Some(20.0));
            assert_eq!(metric(&all, "memory_share"), Some(160.0 / slots));
        }
    }
}
