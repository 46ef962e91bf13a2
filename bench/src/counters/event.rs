//! The events, by the names that the vendors give them.
//!
//! Codes of raw events are those of the vendors' lists (github.com/intel/perfmon; AMD's processor programming
//! references): event select, unit mask, and for Intel the counter mask.

use crate::value_names::value_names;

/// Events that are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterSet {
    /// Instructions, cycles and misses of the last cache, which all processors count.
    Cache,
    /// The events of [`CounterSet::Cache`], and those of the top-down method.
    TopDown,
}

value_names!(CounterSet, "set of counters"; Cache = "cache", TopDown = "top-down");

/// An event: its name, and how the kernel is told to count it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CounterEvent {
    pub(super) name: &'static str,
    pub(super) selector: Selector,
}

/// How the kernel is told which event to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Selector {
    Instructions,
    Cycles,
    CacheMisses,
    /// The code of a raw event.
    Raw(u64),
    /// The code of a fixed top-down metric, which is counted together with [`PIPELINE_SLOTS`].
    Fixed(u64),
}

pub(super) const INSTRUCTIONS: &str = "instructions";
pub(super) const CPU_CYCLES: &str = "cycles";
pub(super) const LLC_MISSES: &str = "cache-misses";

pub(super) const UNHALTED_CLOCKS: &str = "cpu_clk_unhalted.thread_p";
pub(super) const UOPS_NOT_DELIVERED: &str = "idq_uops_not_delivered.core";
pub(super) const UOPS_ISSUED: &str = "uops_issued.any";
pub(super) const RETIRE_SLOTS: &str = "uops_retired.retire_slots";
pub(super) const RECOVERY_CYCLES: &str = "int_misc.recovery_cycles";
pub(super) const CYCLES_3_UOPS: &str = "uops_executed.thread_cycles_ge_3";
pub(super) const STALLS_MEM_ANY: &str = "cycle_activity.stalls_mem_any";
pub(super) const STALLS_STORES: &str = "resource_stalls.sb";
pub(super) const STALLS_L1D: &str = "cycle_activity.stalls_l1d_miss";
pub(super) const STALLS_L2: &str = "cycle_activity.stalls_l2_miss";
pub(super) const STALLS_L3: &str = "cycle_activity.stalls_l3_miss";

pub(super) const PIPELINE_SLOTS: &str = "slots";
pub(super) const TOPDOWN_RETIRING: &str = "topdown-retiring";
pub(super) const TOPDOWN_BAD_SPECULATION: &str = "topdown-bad-spec";
pub(super) const TOPDOWN_FRONT_END: &str = "topdown-fe-bound";
pub(super) const TOPDOWN_BACK_END: &str = "topdown-be-bound";
pub(super) const TOPDOWN_MEMORY: &str = "topdown-mem-bound";

pub(super) const AMD_NO_OPS_FROM_FRONT_END: &str = "de_no_dispatch_per_slot.no_ops_from_frontend";
pub(super) const AMD_BACK_END_STALLS: &str = "de_no_dispatch_per_slot.backend_stalls";
pub(super) const AMD_OPS_DISPATCHED: &str = "de_src_op_disp.all";
pub(super) const AMD_OPS_RETIRED: &str = "ex_ret_ops";
pub(super) const AMD_NO_RETIRE: &str = "ex_no_retire.not_complete";
pub(super) const AMD_NO_RETIRE_LOAD: &str = "ex_no_retire.load_not_complete";
/// No AMD event counts pipeline slots. Generations that share these events have 6 or 8 slots a cycle, so
/// cycles are recorded under a name that says how many.
pub(super) const AMD_CYCLES_6_SLOTS: &str = "ls_not_halted_cyc (6 slots)";
pub(super) const AMD_CYCLES_8_SLOTS: &str = "ls_not_halted_cyc (8 slots)";

/// Events that all processors count.
pub(super) const GENERIC_EVENTS: [CounterEvent; 3] = [
    CounterEvent { name: INSTRUCTIONS, selector: Selector::Instructions },
    CounterEvent { name: CPU_CYCLES, selector: Selector::Cycles },
    CounterEvent { name: LLC_MISSES, selector: Selector::CacheMisses },
];

/// Intel cores from Skylake to Cascade Lake: table 5.1 of the thesis.
pub(super) const SKYLAKE_EVENTS: [CounterEvent; 11] = [
    intel_event(UNHALTED_CLOCKS, 0x3C, 0x00, 0),
    intel_event(UOPS_NOT_DELIVERED, 0x9C, 0x01, 0),
    intel_event(UOPS_ISSUED, 0x0E, 0x01, 0),
    intel_event(RETIRE_SLOTS, 0xC2, 0x02, 0),
    intel_event(RECOVERY_CYCLES, 0x0D, 0x01, 0),
    intel_event(CYCLES_3_UOPS, 0xB1, 0x01, 3),
    intel_event(STALLS_MEM_ANY, 0xA3, 0x14, 20),
    intel_event(STALLS_STORES, 0xA2, 0x08, 0),
    intel_event(STALLS_L1D, 0xA3, 0x0C, 12),
    intel_event(STALLS_L2, 0xA3, 0x05, 5),
    intel_event(STALLS_L3, 0xA3, 0x06, 6),
];

/// The fixed metrics of Intel cores from Ice Lake on: slots first, because it leads the group.
pub(super) const FIXED_METRICS: [CounterEvent; 5] = [
    CounterEvent { name: PIPELINE_SLOTS, selector: Selector::Fixed(0x0400) },
    CounterEvent { name: TOPDOWN_RETIRING, selector: Selector::Fixed(0x8000) },
    CounterEvent { name: TOPDOWN_BAD_SPECULATION, selector: Selector::Fixed(0x8100) },
    CounterEvent { name: TOPDOWN_FRONT_END, selector: Selector::Fixed(0x8200) },
    CounterEvent { name: TOPDOWN_BACK_END, selector: Selector::Fixed(0x8300) },
];

/// The fixed metric of the second level, from Sapphire Rapids on.
pub(super) const FIXED_MEMORY_METRIC: CounterEvent =
    CounterEvent { name: TOPDOWN_MEMORY, selector: Selector::Fixed(0x8700) };

/// Stalls of the cores with fixed metrics.
pub(super) const STALL_EVENTS_BESIDE_FIXED: [CounterEvent; 4] = [
    intel_event(UNHALTED_CLOCKS, 0x3C, 0x00, 0),
    intel_event(STALLS_L1D, 0xA3, 0x0C, 12),
    intel_event(STALLS_L2, 0xA3, 0x05, 5),
    intel_event(STALLS_L3, 0xA3, 0x06, 6),
];

/// AMD cores from Zen 4 on, beside their cycles.
pub(super) const ZEN_EVENTS: [CounterEvent; 6] = [
    amd_event(AMD_NO_OPS_FROM_FRONT_END, 0x1A0, 0x01),
    amd_event(AMD_BACK_END_STALLS, 0x1A0, 0x1E),
    amd_event(AMD_OPS_DISPATCHED, 0x0AA, 0x07),
    amd_event(AMD_OPS_RETIRED, 0x0C1, 0x00),
    amd_event(AMD_NO_RETIRE, 0x0D6, 0x02),
    amd_event(AMD_NO_RETIRE_LOAD, 0x0D6, 0xA2),
];

const fn intel_event(name: &'static str, select: u64, mask: u64, counter_mask: u64) -> CounterEvent {
    CounterEvent { name, selector: Selector::Raw(select | mask << 8 | counter_mask << 24) }
}

/// The upper four bits of AMD's event select are apart from the others.
pub(super) const fn amd_event(name: &'static str, select: u64, mask: u64) -> CounterEvent {
    CounterEvent { name, selector: Selector::Raw(select & 0xFF | mask << 8 | (select >> 8) << 32) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_fields_of_the_vendors() {
        assert_eq!(SKYLAKE_EVENTS[6].selector, Selector::Raw(0x1400_14A3));
        assert_eq!(SKYLAKE_EVENTS[3].selector, Selector::Raw(0x02C2));
        assert_eq!(ZEN_EVENTS[0].selector, Selector::Raw(0x1_0000_01A0));
    }
}
