//! The cells of the experiment: all combinations of the settings in the flags that make a difference.

use crate::cache::{device::Device, flags::Flags, mode::CellMode};
use crate::{cell::QueryWorkload, cell::lookahead_text, slow_tier::ReadDelay};
use serde_json::{Value, json};
use tierdex::io::Size;
use tierdex_thesis::{ListPolicy, Lookahead, Mode};

/// One measurement: a combination of settings. A setting that does not apply to the mode is `None`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TableCell {
    /// Class, form and repetition probability of the queries.
    pub workload: QueryWorkload,
    /// The device of the index.
    pub device: Device,
    /// How queries are evaluated.
    pub mode: CellMode,
    /// Memory for postings, as a share of the bytes of all documents and frequencies.
    pub size: Option<Size>,
    /// Bytes of a cache segment (thesis, section 7.2).
    pub segment: Option<u64>,
    /// How far ahead lists are prefetched.
    pub lookahead: Option<Lookahead>,
    /// Eviction policy.
    pub policy: Option<ListPolicy>,
    /// Delay of reads of the index in memory.
    pub slow_tier: Option<ReadDelay>,
}

impl TableCell {
    /// All cells that the flags select: for each workload, all devices and modes in the order of the flags.
    /// `memory` reads no device, so it is measured for the first one only.
    pub(super) fn all(flags: &Flags) -> Vec<TableCell> {
        let mut cells = Vec::new();
        for workload in flags.workloads() {
            for (number, &device) in flags.devices.iter().enumerate() {
                for &mode in &flags.modes {
                    match mode {
                        CellMode::Memory if number > 0 => {}
                        _ => TableCell::push_combinations(flags, workload, device, mode, &mut cells),
                    }
                }
            }
        }
        cells
    }

    fn push_combinations(
        flags: &Flags,
        workload: QueryWorkload,
        device: Device,
        mode: CellMode,
        cells: &mut Vec<TableCell>,
    ) {
        let sizes = values_or_none(mode != CellMode::Memory, &flags.sizes);
        let segments = values_or_none(mode.has_segments(), &flags.segments);
        let policies = cell_policies(flags, mode);
        let lookaheads = cell_lookaheads(flags, mode);
        let slow_tier = flags.held.slow_tier.filter(|_| mode == CellMode::Memory);
        for &size in &sizes {
            for &segment in &segments {
                for &lookahead in &lookaheads {
                    for &policy in &policies {
                        cells.push(TableCell {
                            workload,
                            device,
                            mode,
                            size,
                            segment,
                            lookahead,
                            policy,
                            slow_tier,
                        });
                    }
                }
            }
        }
    }

    /// The mode and all settings that differ from the defaults: the name of a line in a plot.
    pub fn name(&self) -> String {
        let mut name = self.mode.to_string();
        if let Some(lookahead) =
            self.lookahead.filter(|lookahead| *lookahead != self.mode.default_lookahead())
        {
            name += &format!(" ahead={}", lookahead_text(lookahead));
        }
        if let Some(segment) = self.segment.filter(|segment| *segment != 32 << 10) {
            name += &format!(" segment={}", Size::Bytes(segment));
        }
        if let Some(policy) = self.policy.filter(|policy| *policy != ListPolicy::Lru) {
            name += &format!(" policy={policy}");
        }
        if let Some(delay) = self.slow_tier {
            name += &format!(" slow={delay} emulated");
        }
        name
    }

    /// All settings in one line, for error messages: `direct of AND H RP 25% on ssd at 5%`.
    pub fn describe(&self) -> String {
        let size = self.size.map(|size| format!(" at {size}")).unwrap_or_default();
        format!("{} of {} on {}{size}", self.name(), self.workload, self.device.title())
    }

    /// Whether two cells differ at most in their memory for postings.
    pub fn differs_only_in_size(&self, other: &TableCell) -> bool {
        TableCell { size: None, ..*self } == TableCell { size: None, ..*other }
    }

    /// The settings as a JSON object.
    pub(super) fn to_json(self) -> Value {
        json!({
            "class": self.workload.class.to_string(),
            "shape": self.workload.shape.to_string(),
            "repeats_percent": self.workload.repeats,
            "device": self.device.to_string(),
            "emulated": self.device != Device::Ssd || self.slow_tier.is_some(),
            "mode": self.mode.to_string(),
            "size_percent": self.size.map(size_percent),
            "segment_bytes": self.segment,
            "lookahead": self.lookahead.map(lookahead_text),
            "policy": self.policy.map(|policy| policy.to_string()),
            "slow_tier": self.slow_tier.map(|delay| delay.to_string()),
        })
    }
}

/// A size in percent; 0 if it is a number of bytes.
pub(super) fn size_percent(size: Size) -> f64 {
    match size {
        Size::BasisPoints(part) => part as f64 / 100.0,
        Size::Bytes(_) => 0.0,
    }
}

/// The lookaheads to measure: those of the flags that apply to the mode, or the default of the mode.
fn cell_lookaheads(flags: &Flags, mode: CellMode) -> Vec<Option<Lookahead>> {
    if !mode.looks_ahead() {
        return vec![None];
    }
    let fixed = |lookahead: &&Lookahead| matches!(lookahead, Lookahead::Queries(_));
    let chosen: Vec<_> = match mode {
        CellMode::Lists(Mode::BasePrefetch) => {
            flags.lookahead.iter().filter(fixed).copied().map(Some).collect()
        }
        _ => flags.lookahead.iter().copied().map(Some).collect(),
    };
    if chosen.is_empty() { vec![Some(mode.default_lookahead())] } else { chosen }
}

/// The eviction policies that the mode has.
fn cell_policies(flags: &Flags, mode: CellMode) -> Vec<Option<ListPolicy>> {
    let mut policies = flags.policies.clone();
    policies.retain(|policy| mode != CellMode::Direct || policy.page_policy().is_some());
    values_or_none(mode.has_cache(), &policies)
}

/// The values of a setting; one `None` if the setting has no effect in the mode of the cell.
fn values_or_none<T: Copy>(applies: bool, values: &[T]) -> Vec<Option<T>> {
    if applies { values.iter().copied().map(Some).collect() } else { vec![None] }
}

#[cfg(test)]
mod tests {
    use super::{super::flags::tests::parse_line, *};

    #[test]
    fn no_two_cells_are_equal() {
        let flags = parse_line(
            "--modes memory,base,base-prefetch,hybrid,direct --sizes 5,100 --segments 4K,32K --devices ssd,hdd",
        );
        let cells = TableCell::all(&flags);
        let count = |name: &str| cells.iter().filter(|cell| cell.mode.to_string() == name).count();
        // Each for two query shapes.
        assert_eq!((count("memory"), count("base")), (2, 2 * 2 * 2));
        assert_eq!((count("base-prefetch"), count("hybrid")), (2 * 2 * 2, 2 * 2 * 2 * 2));
        assert_eq!(count("direct"), 2 * 2 * 2);
        let twice = cells.iter().enumerate().any(|(number, cell)| cells[..number].contains(cell));
        assert!(!twice);
    }

    #[test]
    fn a_name_shows_settings_that_are_not_the_default() {
        let flags = parse_line(
            "--modes direct,hybrid-prefetch,base-prefetch --segments 4K,32K --sizes 5 --shapes AND",
        );
        let names: Vec<String> = TableCell::all(&flags).iter().map(TableCell::name).collect();
        let expected = [
            "direct",
            "hybrid-prefetch segment=4K",
            "hybrid-prefetch ahead=16 segment=4K",
            "hybrid-prefetch",
            "hybrid-prefetch ahead=16",
            "base-prefetch",
        ];
        assert_eq!(names, expected);
    }
}
