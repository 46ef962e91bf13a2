//! Features that this machine does not have. Cells that need one are not measured, and reports say why.

use crate::counters::{CounterRecorder, CounterSet};
use crate::paper::cell::{Experiment, FigureCell};
use crate::paper::measure::context::{Context, TIER_PLACEHOLDER};
use crate::throttle::{SAS_BYTES_PER_SECOND, Throttle};
use crate::{Result, cgroup::CgroupParent, seek_disk::SeekDisk};
use tierdex::codec::Kernel;

/// For each feature why this machine does not have it; `None` if it has.
pub(in super::super) struct MissingFeatures {
    groups: Option<String>,
    /// All cells of [`Experiment::Cache`] run in groups, not only those that need a memory limit.
    all_in_groups: bool,
    throttle: Option<String>,
    seek_disk: Option<String>,
    tier: Option<String>,
    counters: [(CounterSet, Option<String>); 2],
    /// The regions of caches and of the second tier.
    regions: [String; 2],
    /// A second memory tier, real or emulated, for indexes that are held in memory as a whole.
    held_tier: Option<String>,
}

impl MissingFeatures {
    /// Tries all features that cells may need.
    pub(in super::super) fn here(context: &Context<'_>) -> MissingFeatures {
        let groups = || CgroupParent::memory()?.create_limited(64 << 20).map(drop);
        let throttle = || Throttle::new(&context.data.dir, SAS_BYTES_PER_SECOND).map(drop);
        let seek_disk = || SeekDisk::mount(std::slice::from_ref(&context.data.dir)).map(drop);
        let reason = |result: Result<()>| result.err().map(|error| error.to_string());
        let no_group = || Some("--no-group: no memory limits and no emulated devices".to_string());
        let tier = || "no second memory tier; name one by --tier, such as numa:1 or dax:PATH".to_string();
        let held_tier = || format!("{}, or emulate one by --slow-tier, such as 300", tier());
        MissingFeatures {
            groups: if context.groups { reason(groups()) } else { no_group() },
            all_in_groups: context.groups,
            throttle: if context.groups { reason(throttle()) } else { no_group() },
            seek_disk: if context.groups { reason(seek_disk()) } else { no_group() },
            tier: context.tier.is_none().then(tier),
            held_tier: (context.tier.is_none() && context.slow_tier.is_none()).then(held_tier),
            regions: [context.region.clone(), context.tier.clone().unwrap_or_default()],
            ..MissingFeatures::counters()
        }
    }

    /// Tries performance counters only, and assumes that the machine has all other features: for the list of
    /// figures, which does not know the flags of a run.
    pub(in super::super) fn counters() -> MissingFeatures {
        let open = |set| (set, CounterRecorder::open(set).err().map(|error| error.to_string()));
        MissingFeatures {
            groups: None,
            all_in_groups: false,
            throttle: None,
            seek_disk: None,
            tier: None,
            held_tier: None,
            counters: [CounterSet::Cache, CounterSet::TopDown].map(open),
            regions: [String::new(), String::new()],
        }
    }

    /// Whether cells can run in control groups.
    pub(in super::super) fn has_groups(&self) -> bool {
        self.groups.is_none()
    }

    /// Why a cell cannot be measured here.
    pub(in super::super) fn of(&self, cell: &FigureCell) -> Option<String> {
        let is = |name: &str, values: &[&str]| cell.get(name).is_some_and(|value| values.contains(&value));
        let tier =
            (is("region", &[TIER_PLACEHOLDER]) || is("meta-tier", &[TIER_PLACEHOLDER])).then_some(&self.tier);
        let held_tier = is("keep-in", &[TIER_PLACEHOLDER]).then_some(&self.held_tier);
        let slower = is("devices", &["sas"]) || cell.get("bandwidth").is_some();
        let throttle = slower.then_some(&self.throttle);
        let seeks = is("devices", &["hdd"]) || is("hdd", &["true"]);
        let seek_disk = seeks.then_some(&self.seek_disk);
        // Without a memory limit the page cache would hold the whole index.
        let limited = self.all_in_groups || is("modes", &["base", "base-prefetch"]);
        let limited = limited && cell.experiment == Experiment::Cache;
        let groups = limited.then_some(&self.groups);
        if cell.experiment == Experiment::Callgrind
            && (!is("modes", &["memory"]) || is("keep-in", &[TIER_PLACEHOLDER]))
        {
            return Some(
                "callgrind simulates neither memory tiers nor prefetching, only an index in memory"
                    .to_string(),
            );
        }
        if let Some(Err(error)) = cell.get("kernel").map(Kernel::from_name) {
            return Some(error.to_string());
        }
        let counted =
            |set: &CounterSet| cell.experiment == Experiment::Cache && is("counters", &[&set.to_string()]);
        let counters = self.counters.iter().find(|(set, _)| counted(set)).map(|(_, why)| why);
        let machine = [tier, held_tier, counters, throttle, seek_disk, groups]
            .into_iter()
            .flatten()
            .find_map(Clone::clone);
        machine.or_else(|| self.not_shared(cell))
    }

    /// Why the processes of a cell cannot run at the same time: each would write the file of its region.
    fn not_shared(&self, cell: &FigureCell) -> Option<String> {
        let cores =
            cell.get("cores").filter(|cores| *cores != "1" && cell.experiment == Experiment::Cache)?;
        let [caches, tier] = &self.regions;
        let real = |name: Option<&str>| match name {
            Some(TIER_PLACEHOLDER) => tier.clone(),
            Some(other) => other.to_string(),
            None => caches.clone(),
        };
        // An index that is held in memory has no cache.
        let cache = (cell.get("modes") != Some("memory")).then(|| real(cell.get("region")));
        let others = ["meta-tier", "keep-in"].into_iter().filter_map(|name| cell.get(name));
        let regions: Vec<String> = cache.into_iter().chain(others.map(|region| real(Some(region)))).collect();
        let kind = ["file", "dax"].into_iter().find(|kind| {
            regions.iter().any(|region| region.strip_prefix(kind).is_some_and(|rest| rest.starts_with(':')))
        })?;
        Some(format!("{cores} processes cannot share a region of kind {kind}; use dram or hugetlb"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl MissingFeatures {
        /// A machine that has all but performance counters.
        pub(in super::super::super) fn without_counters() -> MissingFeatures {
            let counters = [CounterSet::Cache, CounterSet::TopDown];
            let counters = counters.map(|set| (set, Some("no counters".to_string())));
            MissingFeatures { counters, ..MissingFeatures::counters() }
        }
    }

    /// A machine that can measure all but cells with top-down counters.
    fn missing(caches: &str, tier: &str) -> MissingFeatures {
        let counters = [(CounterSet::Cache, None), (CounterSet::TopDown, Some("no counters".to_string()))];
        MissingFeatures {
            counters,
            regions: [caches.to_string(), tier.to_string()],
            ..MissingFeatures::counters()
        }
    }

    #[test]
    fn processes_cannot_share_the_region_of_their_cell() {
        let cell = |cores: &str, region: Option<&str>| {
            let region = region.map(|region| ("region", region));
            let settings: Vec<_> = [("cores", cores)].into_iter().chain(region).collect();
            FigureCell::new(Experiment::Cache, &settings)
        };
        let dax = missing("dax:/mnt/a", "file:/mnt/b");
        let why = dax.of(&cell("2", None)).unwrap();
        assert!(why.contains("2 processes") && why.contains("kind dax") && !why.contains("/mnt"), "{why}");
        assert!(dax.of(&cell("2", Some(TIER_PLACEHOLDER))).unwrap().contains("kind file"));
        for fits in [cell("1", None), cell("2", Some("dram"))] {
            assert_eq!(dax.of(&fits), None);
        }
        assert_eq!(missing("hugetlb", "").of(&cell("2", None)), None);
    }

    #[test]
    fn counters_are_needed_by_cells_that_count_and_not_by_simulated_ones() {
        let missing = missing("", "");
        let cell = |experiment, mode: &str, set: &str| {
            FigureCell::new(experiment, &[("modes", mode), ("counters", set)])
        };
        let (cache, callgrind) = (Experiment::Cache, Experiment::Callgrind);
        assert_eq!(missing.of(&cell(cache, "memory", "top-down")).unwrap(), "no counters");
        assert_eq!(missing.of(&cell(cache, "memory", "cache")), None);
        assert_eq!(missing.of(&cell(callgrind, "memory", "top-down")), None);
        assert!(missing.of(&cell(callgrind, "hybrid-prefetch", "cache")).unwrap().contains("memory tiers"));
    }
}
