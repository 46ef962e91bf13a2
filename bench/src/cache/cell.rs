//! The cells of the experiment: every combination of what the flags list, as far as it makes a difference.

use super::flags::Flags;
use super::named::named;
use super::queries::Workload;
use crate::throttle::{HDD, Rates};
use crate::{Error, Result};
use serde_json::{Value, json};
use std::fmt;
use std::str::FromStr;
use tierdex::cache::{Lookahead, PolicyKind};
use tierdex::engine::{Mode, PAGES_AHEAD};
use tierdex::io::Size;

/// Who answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contender {
    /// An index that is wholly in memory, outside of any limit.
    Memory,
    /// An executor in such a mode.
    Near(Mode),
}

impl Contender {
    /// Whether it has a postings cache.
    pub(super) fn has_cache(self) -> bool {
        matches!(self, Contender::Near(mode) if mode.has_cache())
    }

    /// Whether it fetches lists before their query's turn comes.
    fn looks_ahead(self) -> bool {
        matches!(self, Contender::Near(Mode::BasePrefetch | Mode::HybridPrefetch | Mode::Direct))
    }

    /// How far ahead it fetches unless it is told otherwise.
    fn usual_lookahead(self) -> Lookahead {
        if self == Contender::Near(Mode::BasePrefetch) {
            Lookahead::Queries(PAGES_AHEAD)
        } else {
            Lookahead::Adaptive
        }
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Contender::Memory => f.write_str("memory"),
            Contender::Near(mode) => mode.fmt(f),
        }
    }
}

impl FromStr for Contender {
    type Err = Error;

    fn from_str(text: &str) -> Result<Contender> {
        if text == "memory" {
            return Ok(Contender::Memory);
        }
        let mode = text.parse().map(Contender::Near);
        mode.map_err(|error: tierdex::Error| {
            Error::Usage(format!("{error}; or memory, for an index in memory"))
        })
    }
}

/// Where the index is as fast as it would be on such a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// The device that it is on.
    Ssd,
    /// That, slowed down to what the thesis measured of its SAS SSD.
    Sas,
    /// And of its disk.
    Hdd,
}

impl Device {
    /// What it does in a second, at most (thesis, section 8.2.2).
    pub(super) fn rates(self) -> Rates {
        match self {
            Device::Ssd => Rates::default(),
            Device::Sas => Rates { reads: None, bytes: Some(793_000_000) },
            Device::Hdd => HDD,
        }
    }

    /// Its name in reports and plots.
    pub(super) fn title(self) -> String {
        if self == Device::Ssd { self.to_string() } else { format!("{self} emulated") }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Device::Ssd => "ssd",
            Device::Sas => "sas",
            Device::Hdd => "hdd",
        })
    }
}

impl FromStr for Device {
    type Err = Error;

    fn from_str(text: &str) -> Result<Device> {
        named(&[Device::Ssd, Device::Sas, Device::Hdd], text, "device")
    }
}

/// One thing to measure. What makes no difference to its contender is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Which queries.
    pub workload: Workload,
    /// Where from.
    pub device: Device,
    /// Who answers.
    pub contender: Contender,
    /// Memory for postings, as a part of all documents and frequencies.
    pub size: Option<Size>,
    /// Bytes of a segment.
    pub segment: Option<u64>,
    /// How far ahead lists are fetched.
    pub lookahead: Option<Lookahead>,
    /// What gives way.
    pub policy: Option<PolicyKind>,
}

impl Cell {
    /// All that the flags ask for; those with the same queries stand together, and memory first of them. An index in memory
    /// reads nothing, so it is there once for all devices.
    pub(super) fn all(flags: &Flags) -> Vec<Cell> {
        let mut cells = Vec::new();
        for workload in Workload::all(flags) {
            for (number, &device) in flags.devices.iter().enumerate() {
                for &contender in &flags.modes {
                    match contender {
                        Contender::Memory if number > 0 => {}
                        _ => Cell::of(flags, workload, device, contender, &mut cells),
                    }
                }
            }
        }
        cells
    }

    fn of(flags: &Flags, workload: Workload, device: Device, contender: Contender, cells: &mut Vec<Cell>) {
        let cache = contender.has_cache();
        let sizes = some(contender != Contender::Memory, &flags.sizes);
        let (segments, policies) = (some(cache, &flags.segments), some(cache, &flags.policies));
        let lookaheads = lookaheads(flags, contender);
        for &size in &sizes {
            for &segment in &segments {
                for &lookahead in &lookaheads {
                    for &policy in &policies {
                        cells.push(Cell { workload, device, contender, size, segment, lookahead, policy });
                    }
                }
            }
        }
    }

    /// The mode, and what is not as usual: the name of a line of a plot.
    pub fn name(&self) -> String {
        let mut name = self.contender.to_string();
        if let Some(lookahead) = self.lookahead.filter(|some| *some != self.contender.usual_lookahead()) {
            name += &format!(" ahead={}", show_lookahead(lookahead));
        }
        if let Some(segment) = self.segment.filter(|segment| *segment != 32 << 10) {
            name += &format!(" segment={}", Size::Bytes(segment));
        }
        if let Some(policy) = self.policy.filter(|policy| *policy != PolicyKind::Lru) {
            name += &format!(" policy={policy}");
        }
        name
    }

    /// All of it, for messages.
    pub fn describe(&self) -> String {
        let size = self.size.map(|size| format!(" at {size}")).unwrap_or_default();
        format!("{} of {} on {}{size}", self.name(), self.workload, self.device.title())
    }

    /// Whether the other one is the same but for its memory for postings.
    pub fn is_line_of(&self, other: &Cell) -> bool {
        Cell { size: None, ..*self } == Cell { size: None, ..*other }
    }

    /// Members of an object that say what it is.
    pub(super) fn to_json(self) -> Value {
        json!({
            "class": self.workload.class.to_string(),
            "shape": self.workload.shape.to_string(),
            "repeats_percent": self.workload.repeats,
            "device": self.device.to_string(),
            "emulated": self.device != Device::Ssd,
            "mode": self.contender.to_string(),
            "size_percent": self.size.map(percent),
            "segment_bytes": self.segment,
            "lookahead": self.lookahead.map(show_lookahead),
            "policy": self.policy.map(|policy| policy.to_string()),
        })
    }
}

/// What a size is in percent, or 0 if it is none.
pub(super) fn percent(size: Size) -> f64 {
    match size {
        Size::BasisPoints(part) => part as f64 / 100.0,
        Size::Bytes(_) => 0.0,
    }
}

/// The lookaheads to measure: those that mean something to it, or the usual one.
fn lookaheads(flags: &Flags, contender: Contender) -> Vec<Option<Lookahead>> {
    if !contender.looks_ahead() {
        return vec![None];
    }
    let fixed = |lookahead: &&Lookahead| matches!(lookahead, Lookahead::Queries(_));
    let chosen: Vec<_> = match contender {
        Contender::Near(Mode::BasePrefetch) => {
            flags.lookahead.iter().filter(fixed).copied().map(Some).collect()
        }
        _ => flags.lookahead.iter().copied().map(Some).collect(),
    };
    if chosen.is_empty() { vec![Some(contender.usual_lookahead())] } else { chosen }
}

/// The values, or that there is none.
fn some<T: Copy>(wanted: bool, values: &[T]) -> Vec<Option<T>> {
    if wanted { values.iter().copied().map(Some).collect() } else { vec![None] }
}

/// `adaptive`, or a number of queries.
pub(super) fn show_lookahead(lookahead: Lookahead) -> String {
    match lookahead {
        Lookahead::Adaptive => "adaptive".to_string(),
        Lookahead::Queries(queries) => queries.to_string(),
        Lookahead::Pins => "pins".to_string(),
    }
}

/// The executor plans no more queries than so many ahead.
const LOOKAHEAD_MAX: u64 = 1023;

/// Reads what [`show_lookahead`] writes, but for pins.
pub(super) fn read_lookahead(text: &str) -> std::result::Result<Lookahead, String> {
    if text == "adaptive" {
        return Ok(Lookahead::Adaptive);
    }
    let queries = text.parse().ok().filter(|queries| (1..=LOOKAHEAD_MAX).contains(queries));
    let queries = queries.map(Lookahead::Queries);
    queries.ok_or_else(|| format!("write adaptive, or a number of queries from 1 to {LOOKAHEAD_MAX}"))
}

#[cfg(test)]
mod tests {
    use super::super::flags::tests::flags;
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for name in ["memory", "base", "base-prefetch", "hybrid", "hybrid-prefetch", "direct"] {
            assert_eq!(name.parse::<Contender>().unwrap().to_string(), name);
        }
        for name in ["ssd", "sas", "hdd"] {
            assert_eq!(name.parse::<Device>().unwrap().to_string(), name);
        }
        for name in ["adaptive", "1", "1023"] {
            assert_eq!(show_lookahead(read_lookahead(name).unwrap()), name);
        }
        assert!("ram".parse::<Contender>().is_err() && "nvme".parse::<Device>().is_err());
        assert!(["", "0", "1024", "pins"].iter().all(|wrong| read_lookahead(wrong).is_err()));
    }

    #[test]
    fn there_are_no_two_cells_that_do_the_same() {
        let flags = flags(
            "--modes memory,base,base-prefetch,hybrid,direct --sizes 5,100 --segments 4K,32K --devices ssd,hdd",
        );
        let cells = Cell::all(&flags);
        let count = |name: &str| cells.iter().filter(|cell| cell.contender.to_string() == name).count();
        // For each of two shapes.
        assert_eq!((count("memory"), count("base")), (2, 2 * 2 * 2));
        assert_eq!((count("base-prefetch"), count("hybrid")), (2 * 2 * 2, 2 * 2 * 2 * 2));
        assert_eq!(count("direct"), 2 * 2 * 2 * 2 * 2);
        let twice = cells.iter().enumerate().any(|(number, cell)| cells[..number].contains(cell));
        assert!(!twice);
    }

    #[test]
    fn a_name_says_what_is_unusual() {
        let flags = flags("--modes direct,base-prefetch --segments 4K,32K --sizes 5 --shapes AND");
        let names: Vec<String> = Cell::all(&flags).iter().map(Cell::name).collect();
        let expected =
            ["direct segment=4K", "direct ahead=16 segment=4K", "direct", "direct ahead=16", "base-prefetch"];
        assert_eq!(names, expected);
    }
}
