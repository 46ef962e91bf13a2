//! The memory report of an engine, and the check of its budget.

use crate::error::{Error, Result};
use std::fmt;
use tierdex_io::Size;

/// Label of the lists of an index that is held in memory.
pub(super) const LISTS: &str = "posting lists and positions";

/// Label of the row for which [`MemoryReport::check`] suggests another tier.
pub(super) const DICTIONARIES: &str = "term dictionaries";

/// A part of the memory of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUse {
    /// Name of the part.
    pub what: &'static str,
    /// Bytes, at most.
    pub bytes: u64,
    /// The memory region, if it is another than DRAM within the budget.
    pub region: Option<String>,
}

/// The memory that an engine takes, by part: all that grows with the index, the options or the load.
/// `Display` writes a line for each part.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryReport {
    /// The parts.
    pub rows: Vec<MemoryUse>,
    /// The memory budget in bytes.
    pub dram: Option<u64>,
    /// Bytes of a cache in the budget, at least. The row of the cache has what the minimums of all other
    /// parts leave.
    pub cache_min: u64,
    /// Bytes of a cache in the budget when nothing is reserved.
    pub cache_max: u64,
    /// Smallest sufficient budget, if `dram` is too small; 0 otherwise. It differs from
    /// [`MemoryReport::needed`] because some rows grow with the budget.
    least: u64,
}

impl MemoryUse {
    /// Its bytes, if it is in DRAM within the budget.
    pub(super) fn dram_bytes(&self) -> Option<u64> {
        self.region.is_none().then_some(self.bytes)
    }

    /// A part in DRAM, or in a region.
    #[doc(hidden)]
    pub fn new(what: &'static str, bytes: u64, region: Option<String>) -> MemoryUse {
        MemoryUse { what, bytes, region }
    }
}

impl MemoryReport {
    /// The report for a budget of `dram` bytes, from the `rows` of any budget.
    #[doc(hidden)]
    pub fn new(dram: Option<u64>, rows: impl Fn(Option<u64>) -> Vec<MemoryUse>) -> MemoryReport {
        let mut report = MemoryReport { rows: rows(dram), dram, cache_min: 0, cache_max: 0, least: 0 };
        if report.dram.is_some_and(|dram| report.needed() > dram) {
            let needed = |dram| dram_bytes(&rows(Some(dram))).next_multiple_of(1024);
            // Least fixed point in KiB, iterated from below: the memory needed never falls as the budget
            // grows.
            let (mut least, mut next) = (0, needed(0));
            while next > least {
                (least, next) = (next, needed(next));
            }
            report.least = least;
        }
        report
    }

    pub(super) fn with_cache(self, cache_min: u64, cache_max: u64) -> MemoryReport {
        MemoryReport { cache_min, cache_max, ..self }
    }

    /// The smallest sufficient budget, if the budget is too small.
    pub fn least(&self) -> Option<u64> {
        self.dram.filter(|dram| self.needed() > *dram).map(|_| self.least)
    }

    /// Bytes of DRAM that the parts take together, without those in other regions.
    pub fn needed(&self) -> u64 {
        dram_bytes(&self.rows)
    }

    /// Checks that the parts fit into the budget.
    ///
    /// # Errors
    /// [`Error::Usage`] with the smallest sufficient budget.
    pub fn check(&self) -> Result<()> {
        let Some(dram) = self.dram.filter(|dram| self.needed() > *dram) else { return Ok(()) };
        let is_in_dram = |what| self.rows.iter().any(|row| row.what == what && row.region.is_none());
        let advice = match (is_in_dram(LISTS), is_in_dram(DICTIONARIES)) {
            (true, _) => ", or hold the index in another region or leave it on disk",
            (false, true) => ", or keep dictionaries, skip data and norms on disk or in another region",
            (false, false) => "",
        };
        Err(Error::Usage(format!(
            "a budget of {} of DRAM is too small: {} are needed; make it larger{advice}",
            Size::Bytes(dram),
            Size::Bytes(self.least)
        )))
    }
}

/// Bytes of DRAM of the rows, without those in other regions.
fn dram_bytes(rows: &[MemoryUse]) -> u64 {
    rows.iter().filter_map(MemoryUse::dram_bytes).fold(0, u64::saturating_add)
}

impl fmt::Display for MemoryReport {
    /// A line for each part, and one for their sum.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for MemoryUse { what, bytes, region } in &self.rows {
            let region = region.as_ref().map(|region| format!("  (in {region})")).unwrap_or_default();
            writeln!(f, "{bytes:>15}  {what}{region}")?;
        }
        let budget = self.dram.map(|dram| format!(", of {dram}")).unwrap_or_default();
        writeln!(f, "{:>15}  bytes of DRAM in total, without regions{budget}", self.needed())?;
        match self.cache_max {
            0 => Ok(()),
            max => writeln!(f, "The cache has {} to {max} bytes: what is not reserved.", self.cache_min),
        }
    }
}
