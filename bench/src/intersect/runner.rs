//! Runs the algorithms: holds their threads, I/O engines and memory.

use crate::intersect::{settings::Settings, work_dir::WorkDir};
use crate::intersection::{
    Algorithm, Bl, CostModel, Direct, DirectOptions, IntersectionResult, PagedList, ReaderThreads, bf, sl, zz,
};
use crate::{Result, seek_disk::HDD_BYTES, seek_disk::SHORT_SEEK};
use tierdex::io::{Disk, ReadKind, ReadOptions};

/// Number of reads that measure the cost model.
const COST_READS: usize = 2_000;

/// Threads, engine and memory of each algorithm.
pub(super) struct IntersectionRunner {
    readers: ReaderThreads,
    bl: Bl,
    direct: Direct,
    hdd: bool,
    pub(super) threads: usize,
}

impl IntersectionRunner {
    /// Uses direct I/O if the file system supports it.
    pub(super) fn new(
        work: &WorkDir,
        settings: &Settings,
        threads: usize,
        depth: usize,
    ) -> Result<IntersectionRunner> {
        let direct_io = work.reads().check_direct().is_ok();
        let engine = |depth| ReadOptions { kind: ReadKind::Auto, depth, direct: direct_io };
        let options = DirectOptions {
            engine: engine(depth),
            read_bytes_max: settings.read_bytes,
            region: settings.region.clone(),
        };
        Ok(IntersectionRunner {
            readers: ReaderThreads::new(work.reads(), engine(settings.bl_depth), threads)?,
            bl: Bl::new(),
            direct: Direct::new(work.reads(), &options)?,
            hdd: settings.hdd,
            threads,
        })
    }

    /// Measures the cost model on the longest of the lists. That of the emulated hard disk is given by its
    /// model.
    pub(super) fn calibrate(&mut self, lists: &[PagedList]) -> Result<CostModel> {
        if self.hdd {
            let cost = CostModel {
                read_seconds: SHORT_SEEK.as_secs_f64(),
                bytes_per_second: HDD_BYTES as f64,
                ..CostModel::default()
            };
            self.set_cost(cost);
            return Ok(cost);
        }
        let longest = lists.iter().max_by_key(|list| list.pages());
        Ok(longest.map_or(Ok(self.direct.cost()), |list| self.direct.measure(list, COST_READS))?)
    }

    pub(super) fn set_cost(&mut self, cost: CostModel) {
        self.direct.set_cost(cost);
    }

    pub(super) fn description(&self) -> &str {
        self.direct.description()
    }

    pub(super) fn run(&mut self, algorithm: Algorithm, lists: &[PagedList]) -> Result<IntersectionResult> {
        Ok(match algorithm {
            Algorithm::Bl => self.bl.intersect(&self.readers, lists),
            Algorithm::Sl => sl::intersect(&self.readers, lists),
            Algorithm::Zz => zz::intersect(&self.readers, lists),
            Algorithm::Bf => bf::intersect(&self.readers, lists),
            Algorithm::Direct => self.direct.intersect(lists),
        }?)
    }
}
