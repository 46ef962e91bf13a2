//! The top-down events of a processor, by vendor, family and model.

use crate::counters::event::{
    AMD_CYCLES_6_SLOTS, AMD_CYCLES_8_SLOTS, CounterEvent, CounterSet, FIXED_MEMORY_METRIC, FIXED_METRICS,
    GENERIC_EVENTS, PIPELINE_SLOTS, SKYLAKE_EVENTS, STALL_EVENTS_BESIDE_FIXED, TOPDOWN_MEMORY,
    TOPDOWN_RETIRING, ZEN_EVENTS, amd_event,
};
use std::{fs, path::Path};

/// The properties of a processor that decide which events it has.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Processor {
    vendor: String,
    family: u32,
    model: u32,
    /// Whether the kernel offers the fixed metrics of the first level, and memory of the second.
    fixed: bool,
    fixed_memory: bool,
}

/// Models of Intel's family 6 from Skylake to Cascade Lake and Comet Lake.
const SKYLAKE_MODELS: [u32; 7] = [0x4E, 0x55, 0x5E, 0x8E, 0x9E, 0xA5, 0xA6];

impl Processor {
    pub(super) fn here() -> Processor {
        let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let events = Path::new("/sys/bus/event_source/devices/cpu/events");
        let has = |name: &str| events.join(name).exists();
        let fixed = has(PIPELINE_SLOTS) && has(TOPDOWN_RETIRING);
        Processor { fixed, fixed_memory: fixed && has(TOPDOWN_MEMORY), ..Processor::parse(&text) }
    }

    /// Parses the first processor of `/proc/cpuinfo`.
    fn parse(text: &str) -> Processor {
        let value = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once(':'));
            lines.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim()).unwrap_or_default()
        };
        let number = |name: &str| value(name).parse().unwrap_or_default();
        let (family, model) = (number("cpu family"), number("model"));
        Processor { vendor: value("vendor_id").to_string(), family, model, ..Processor::default() }
    }

    /// The events of a set.
    ///
    /// # Errors
    /// One line, if the top-down events of this processor are not known.
    pub(super) fn events(&self, set: CounterSet) -> Result<Vec<CounterEvent>, String> {
        let mut events = GENERIC_EVENTS.to_vec();
        if set == CounterSet::Cache {
            return Ok(events);
        }
        match (self.vendor.as_str(), self.family, self.model) {
            ("GenuineIntel", ..) if self.fixed => {
                events.extend(FIXED_METRICS);
                events.extend(self.fixed_memory.then_some(FIXED_MEMORY_METRIC));
                events.extend(STALL_EVENTS_BESIDE_FIXED);
            }
            ("GenuineIntel", 6, model) if SKYLAKE_MODELS.contains(&model) => events.extend(SKYLAKE_EVENTS),
            // Zen 4 has the models 0x10 to 0x1F and 0x60 to 0xAF of this family.
            ("AuthenticAMD", 0x19, 0x10..=0x1F | 0x60..=0xAF) => {
                events.extend(ZEN_EVENTS);
                events.push(amd_event(AMD_CYCLES_6_SLOTS, 0x076, 0));
            }
            ("AuthenticAMD", 0x1A, _) => {
                events.extend(ZEN_EVENTS);
                events.push(amd_event(AMD_CYCLES_8_SLOTS, 0x076, 0));
            }
            (vendor, family, model) => {
                return Err(format!(
                    "top-down events are not known for the processor {vendor}, family {family}, model {model}"
                ));
            }
        }
        Ok(events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(cpuinfo: &str, fixed: bool) -> Result<Vec<&'static str>, String> {
        let processor = Processor { fixed, fixed_memory: fixed, ..Processor::parse(cpuinfo) };
        Ok(processor.events(CounterSet::TopDown)?.iter().map(|event| event.name).collect())
    }

    #[test]
    fn events_are_selected_by_vendor_family_and_model() {
        let cascade_lake =
            "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\nmodel name\t: x\n";
        assert!(names(cascade_lake, false).unwrap().contains(&"resource_stalls.sb"));
        let fixed = names(&cascade_lake.replace("85", "143"), true).unwrap();
        assert_eq!(fixed[3..5], ["slots", "topdown-retiring"]);
        assert!(fixed.contains(&"topdown-mem-bound"));
        let zen5 = "vendor_id\t: AuthenticAMD\ncpu family\t: 26\nmodel\t\t: 2\n";
        assert!(names(zen5, false).unwrap().contains(&AMD_CYCLES_8_SLOTS));
        for unknown in ["", "vendor_id : AuthenticAMD\ncpu family : 23\nmodel : 49\n"] {
            assert!(names(unknown, false).unwrap_err().contains("not known"));
        }
        assert_eq!(Processor::default().events(CounterSet::Cache).unwrap().len(), 3);
    }
}
