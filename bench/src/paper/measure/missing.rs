//! What the machine cannot do, so that cells which need it are left out with a reason.

use super::super::cell::{Cell, Experiment};
use super::context::{Context, TIER};
use crate::Result;
use crate::cgroup::CgroupParent;
use crate::throttle::{HDD, Throttle};

/// What this machine cannot do, each with the reason.
pub(in super::super) struct Missing {
    groups: Option<String>,
    /// All cells of [`Experiment::Cache`] run in groups, not only those that need a memory limit.
    all_in_groups: bool,
    throttle: Option<String>,
    tier: Option<String>,
    /// Neither a second tier nor an emulated one, for indexes that are held in memory.
    held_tier: Option<String>,
}

impl Missing {
    /// Tries what cells may need.
    pub(in super::super) fn here(context: &Context<'_>) -> Missing {
        let groups = || CgroupParent::memory()?.create_limited(64 << 20).map(drop);
        let throttle = || Throttle::new(context.data.dir(), HDD).map(drop);
        let reason = |result: Result<()>| result.err().map(|error| error.to_string());
        let no_group = || Some("--no-group: no memory limits and no emulated devices".to_string());
        let tier = || "no second memory tier; name one by --tier, such as numa:1 or dax:PATH".to_string();
        let held_tier = || format!("{}, or emulate one by --slow-tier, such as 300", tier());
        Missing {
            groups: if context.groups { reason(groups()) } else { no_group() },
            all_in_groups: context.groups,
            throttle: if context.groups { reason(throttle()) } else { no_group() },
            tier: context.tier.is_none().then(tier),
            held_tier: (context.tier.is_none() && context.slow_tier.is_none()).then(held_tier),
        }
    }

    /// Why a cell cannot be measured here.
    pub(in super::super) fn of(&self, cell: &Cell) -> Option<&str> {
        let is = |name: &str, values: &[&str]| cell.get(name).is_some_and(|value| values.contains(&value));
        let tier = (is("region", &[TIER]) || is("meta-tier", &[TIER])).then_some(&self.tier);
        let held_tier = is("keep-in", &[TIER]).then_some(&self.held_tier);
        let throttle = (is("devices", &["hdd", "sas"]) || is("hdd", &["true"])).then_some(&self.throttle);
        // Without a memory limit the page cache would hold the whole index.
        let limited = self.all_in_groups || is("modes", &["base", "base-prefetch"]);
        let limited = limited && cell.experiment == Experiment::Cache;
        let groups = limited.then_some(&self.groups);
        [tier, held_tier, throttle, groups].into_iter().flatten().find_map(|why| why.as_deref())
    }
}
