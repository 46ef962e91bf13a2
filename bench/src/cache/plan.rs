//! The plan of a run: everything that is determined before the first measurement.

use crate::cache::{cell::TableCell, flags::Flags, mode::CellMode, system_state::HUGE_PAGE_BYTES};
use crate::cell::{Cell, CellQueries, EngineReads, ListReads, ProcessPlacement, Reads};
use crate::{Result, cache::queries::DrawnQueries, cache::queries::QueryWorkload, cache::queries::TermPools};
use std::sync::Arc;
use tierdex::internal::engine::{MetaTier, MetadataLocation, ResidentSizes};
use tierdex::{Engine, Index, MemoryReport, io::PosixDisk, io::RegionKind, io::Size};
use tierdex_thesis::{ListPolicy, Lookahead, Mode, memory_report};

/// The queries and the cells of a run.
pub(super) struct RunPlan {
    pub(super) index: IndexFacts,
    pub(super) workloads: Vec<(QueryWorkload, DrawnQueries)>,
    pub(super) cells: Vec<PlannedCell>,
}

/// Figures of the index for the report.
pub(super) struct IndexFacts {
    pub(super) documents: u64,
    pub(super) postings_bytes: u64,
    pub(super) field: String,
}

/// A cell: its settings as the report shows them, the input of its process, and the huge pages that it needs.
pub(super) struct PlannedCell {
    pub(super) table: TableCell,
    pub(super) cell: Cell,
    pub(super) huge_pages: u64,
}

impl RunPlan {
    /// Draws the queries and computes the memory of each cell.
    ///
    /// # Errors
    /// If the index cannot be read, or has too few terms of a class.
    pub(super) fn new(flags: &Flags) -> Result<RunPlan> {
        let index = Index::open_on(Arc::new(PosixDisk::open(&flags.index)?))?;
        let terms = TermPools::read(&index, &flags.classes)?;
        let draw = |workload| Ok((workload, terms.draw(workload, flags.count, flags.seed)?));
        let workloads: Vec<_> = QueryWorkload::all(flags).into_iter().map(draw).collect::<Result<_>>()?;
        let cells = TableCell::all(flags).into_iter().map(|table| {
            let queries = CellQueries::Terms {
                terms: queries_of(&workloads, table.workload).terms.clone(),
                shape: table.workload.shape,
                field: terms.field,
            };
            let mut cell = cell_of(flags, &table, queries);
            let huge_pages = set_memory_limit(flags, &index, &mut cell);
            PlannedCell { table, cell, huge_pages }
        });
        let facts = IndexFacts {
            documents: index.documents(),
            postings_bytes: index.postings_bytes(),
            field: index.schema().fields[terms.field].name.clone(),
        };
        Ok(RunPlan { cells: cells.collect(), index: facts, workloads })
    }

    /// Huge pages of the largest cell.
    pub(super) fn huge_pages(&self) -> u64 {
        self.cells.iter().map(|planned| planned.huge_pages).max().unwrap_or(0)
    }
}

fn queries_of(workloads: &[(QueryWorkload, DrawnQueries)], workload: QueryWorkload) -> &DrawnQueries {
    let found = workloads.iter().find(|(there, _)| *there == workload);
    &found.expect("the workload of a cell is in the plan").1
}

/// The cell of a row of the table, without its memory limit.
fn cell_of(flags: &Flags, table: &TableCell, queries: CellQueries) -> Cell {
    let size = table.size.unwrap_or(Size::BasisPoints(10_000));
    let policy = table.policy.unwrap_or(ListPolicy::Lru);
    let reads = match table.mode {
        CellMode::Memory => Reads::Searcher { region: flags.held.region(), slow_tier: flags.held.slow_tier },
        CellMode::Direct => Reads::Engine(EngineReads {
            dram: Some(flags.dram),
            size: Some(size),
            region: flags.region.clone(),
            meta_tier: Some(flags.metadata_tier()),
            policy: policy.page_policy(),
            io: flags.io,
            depth: flags.depth,
            single: false,
        }),
        CellMode::Lists(mode) => Reads::Lists(ListReads {
            mode,
            dram: Some(flags.dram),
            size,
            region: flags.region.clone(),
            meta_tier: flags.metadata_tier(),
            segment: table.segment.unwrap_or(32 << 10),
            lookahead: table.lookahead.unwrap_or(Lookahead::Adaptive),
            policy,
            io: flags.io,
            readahead: !flags.no_readahead,
            depth: flags.depth,
            samples: flags.lookahead_samples,
        }),
    };
    Cell {
        index: flags.index.clone(),
        queries,
        reads,
        k: flags.k,
        count: flags.exhaustive,
        exhaustive: flags.exhaustive,
        k1: flags.k1,
        b: flags.b,
        threads: flags.threads,
        seconds: None,
        limit: None,
        counters: flags.counters,
        process: ProcessPlacement::default(),
    }
}

/// Sets the memory limit of a cell. Returns the number of huge pages that the cell needs.
fn set_memory_limit(flags: &Flags, index: &Index, cell: &mut Cell) -> u64 {
    let report = match &cell.reads {
        Reads::Engine(reads) => Engine::memory_report(index, &reads.options(cell.threads, cell.k)),
        Reads::Lists(reads) => memory_report(index, &reads.options(cell.threads, cell.k)),
        Reads::Searcher { region, .. } | Reads::HeldEngine { region, .. } => {
            if *region != RegionKind::Hugetlb {
                return 0;
            }
            let location = MetadataLocation::of(MetaTier::Index(region.clone()), None);
            return ResidentSizes::of(index).in_region(&location).div_ceil(HUGE_PAGE_BYTES);
        }
    };
    let (beside, huge_pages) = charged_and_huge_pages(&report);
    let slack = (u128::from(flags.dram) * u128::from(flags.slack) / 100) as u64;
    let mut limit = flags.dram + slack + beside;
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
        limit += metadata + size.of(index.postings_bytes());
        // A seventh more, because an executor uses two sixteenths of its budget for queries.
        *dram = Some(flags.dram + metadata + metadata.div_ceil(7));
    }
    cell.limit = Some(limit);
    huge_pages
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
