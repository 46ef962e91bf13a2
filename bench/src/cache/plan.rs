//! The plan of a run: everything that is determined before the first measurement.

use crate::cell::{
    Cell, CellQueries, DrawnQueries, EngineReads, ListReads, ProcessPlacement, QueryWorkload, Reads,
    TermPools, set_memory_limit,
};
use crate::{Result, cache::cell::TableCell, cache::flags::Flags, cache::mode::CellMode};
use std::sync::Arc;
use tierdex::{Index, io::PosixDisk, io::Size};
use tierdex_thesis::{ListPolicy, Lookahead};

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
        let workloads: Vec<_> = flags.workloads().into_iter().map(draw).collect::<Result<_>>()?;
        let cells = TableCell::all(flags).into_iter().map(|table| {
            let queries = CellQueries::Terms {
                terms: queries_of(&workloads, table.workload).terms.clone(),
                shape: table.workload.shape,
                field: terms.field,
            };
            let mut cell = cell_of(flags, &table, queries);
            let huge_pages = set_memory_limit(&index, flags.slack, &mut cell)?;
            Ok(PlannedCell { table, cell, huge_pages })
        });
        let facts = IndexFacts {
            documents: index.documents(),
            postings_bytes: index.postings_bytes(),
            field: index.schema().fields[terms.field].name.clone(),
        };
        Ok(RunPlan { cells: cells.collect::<Result<_>>()?, index: facts, workloads })
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
