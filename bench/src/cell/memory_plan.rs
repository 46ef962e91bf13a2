//! The memory of a cell: the memory limit of its process, and the huge pages that it needs.

use crate::cell::{Cell, reads::ListReads, reads::Reads};
use crate::{Error, Result};
use tierdex::internal::engine::{MetaTier, MetadataLocation, ResidentSizes};
use tierdex::{Engine, Index, MemoryReport, io::RegionKind};
use tierdex_thesis::{Mode, memory_report};

/// Bytes of a huge page.
const HUGE_PAGE_BYTES: u64 = 2 << 20;

/// Sets the memory limit of a cell: its budget, `slack` percent more, and the regions that a control group
/// counts. The modes without a cache get their metadata and their memory for postings on top, and the budget
/// grows by the metadata. A cell whose index is held in memory has no limit. Returns the number of huge pages
/// that the cell needs.
///
/// # Errors
/// [`Error::Usage`] if the cell has no budget.
pub(crate) fn set_memory_limit(index: &Index, slack: u64, cell: &mut Cell) -> Result<u64> {
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
        Reads::Searcher { region, .. } | Reads::HeldEngine { region, .. } => {
            if *region != RegionKind::Hugetlb {
                return Ok(0);
            }
            let location = MetadataLocation::of(MetaTier::Index(region.clone()), None);
            return Ok(ResidentSizes::of(index).in_region(&location).div_ceil(HUGE_PAGE_BYTES));
        }
    };
    let (beside, huge_pages) = charged_and_huge_pages(&report);
    let slack = u64::try_from(u128::from(budget) * u128::from(slack) / 100).unwrap_or(u64::MAX);
    let mut limit = budget.saturating_add(slack).saturating_add(beside);
    // The modes without a cache get the memory of the metadata on top, so that as much is left for the page
    // cache wherever the metadata is.
    let metadata = match &cell.reads {
        Reads::Lists(reads) => {
            let location = reads.options(cell.threads, cell.k).metadata_location();
            ResidentSizes::of(index).in_dram(&location)
        }
        _ => 0,
    };
    if let Reads::Lists(ListReads { mode: Mode::Base | Mode::BasePrefetch, size, dram, .. }) = &mut cell.reads
    {
        limit = limit.saturating_add(metadata).saturating_add(size.of(index.postings_bytes()));
        // A seventh more, because an executor uses two sixteenths of its budget for queries.
        *dram = Some(budget.saturating_add(metadata + metadata.div_ceil(7)));
    }
    cell.limit = Some(limit);
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
