//! Plans the memory of a cell, before its process is started: the memory limit of the process, and the huge
//! pages that it needs.

use crate::{Error, Result, cell::Cell, cell::Reads};
use crate::{held_index::open_index, request::experiment::ExperimentRequest};
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::{Value, json};
use tierdex::internal::engine::{MetaTier, MetadataLocation, ResidentSizes};
use tierdex::io::{RegionKind, Size};
use tierdex::{Engine, Index, MemoryReport, StopSignal};
use tierdex_thesis::{Mode, memory_report};

/// Bytes of a huge page.
const HUGE_PAGE_BYTES: u64 = 2 << 20;

/// A cell whose memory limit is not known yet.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlanRequest {
    /// The cell, and its JSON, to which the plan adds.
    #[serde(deserialize_with = "parse_cell")]
    cell: (Cell, Value),
    /// Margin of the memory limit over the budget, in percent of the budget.
    #[serde(default = "default_slack")]
    slack: u64,
}

impl ExperimentRequest for PlanRequest {
    /// `cell` is the cell with its `limit`; `huge_pages` is the number of huge pages that it needs.
    fn answer(&self, _: &StopSignal) -> Result<Value> {
        let (cell, mut json) = (&self.cell.0, self.cell.1.clone());
        cell.check()?;
        let index = open_index(&cell.index)?;
        let huge_pages = add_plan(&index, self.slack, cell, &mut json)?;
        Ok(json!({ "cell": json, "huge_pages": huge_pages }))
    }
}

/// Adds the memory limit of a cell to its JSON, and returns the number of its huge pages. The limit is the
/// budget, `slack` percent more, and the regions that a control group counts. The modes without a cache get
/// their metadata and their memory for postings on top, and the budget grows by the metadata. A cell whose
/// index is held in memory has no limit.
///
/// # Errors
/// [`Error::Usage`] if the cell has no budget.
fn add_plan(index: &Index, slack: u64, cell: &Cell, json: &mut Value) -> Result<u64> {
    let without = || Error::Usage("`reads` has no `dram`, which the memory limit depends on".to_string());
    let (report, budget) = match &cell.reads {
        Reads::Engine(reads) => {
            let report = Engine::memory_report(index, &reads.options(cell.threads, cell.k));
            (report, reads.dram.ok_or_else(without)?)
        }
        Reads::Lists(reads) => {
            let report = memory_report(index, &reads.options(cell.threads, cell.k));
            (report, reads.dram.ok_or_else(without)?)
        }
        Reads::Searcher { region, .. } => {
            let location = MetadataLocation::of(MetaTier::Index(region.clone()), None);
            let is_huge = *region == RegionKind::Hugetlb;
            let bytes = if is_huge { ResidentSizes::of(index).in_region(&location) } else { 0 };
            return Ok(bytes.div_ceil(HUGE_PAGE_BYTES));
        }
    };
    let (beside, huge_pages) = charged_and_huge_pages(&report);
    let slack = u64::try_from(u128::from(budget) * u128::from(slack) / 100).unwrap_or(u64::MAX);
    let mut limit = budget.saturating_add(slack).saturating_add(beside);
    // The modes without a cache get the memory of the metadata on top, so that as much is left for the page
    // cache wherever the metadata is.
    if let Reads::Lists(reads) = &cell.reads
        && matches!(reads.mode, Mode::Base | Mode::BasePrefetch)
    {
        let location = reads.options(cell.threads, cell.k).metadata_location();
        let metadata = ResidentSizes::of(index).in_dram(&location);
        limit = limit.saturating_add(metadata).saturating_add(reads.size.of(index.postings_bytes()));
        // A seventh more, because an executor uses two sixteenths of its budget for queries.
        let dram = budget.saturating_add(metadata + metadata.div_ceil(7));
        json["reads"]["dram"] = Size::Bytes(dram).to_string().into();
    }
    json["limit"] = Size::Bytes(limit).to_string().into();
    Ok(huge_pages)
}

/// Bytes of regions that a control group counts, and number of huge pages. Huge pages and persistent memory
/// are not counted by a control group.
fn charged_and_huge_pages(report: &MemoryReport) -> (u64, u64) {
    let huge = RegionKind::Hugetlb.to_string();
    let regions = || report.rows.iter().filter_map(|row| Some((row.region.as_deref()?, row.bytes)));
    let huge_pages = regions()
        .filter(|(region, _)| *region == huge)
        .map(|(_, bytes)| bytes.div_ceil(HUGE_PAGE_BYTES))
        .sum();
    let charged = |region: &str| region != huge && !region.starts_with("dax:");
    (regions().filter(|(region, _)| charged(region)).map(|(_, bytes)| bytes).sum(), huge_pages)
}

/// Parses a cell, and keeps its JSON.
fn parse_cell<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<(Cell, Value), D::Error> {
    let json = Value::deserialize(from)?;
    let cell = Cell::deserialize(&json).map_err(D::Error::custom)?;
    Ok((cell, json))
}

fn default_slack() -> u64 {
    20
}
