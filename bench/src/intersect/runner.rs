//! The algorithms with the threads, I/O engines and memory that the settings of a run give them.

use crate::intersect::{settings::Settings, work_dir::WorkDir};
use crate::intersection::{Bl, CostModel, Direct, DirectOptions, Intersector, PagedList, ReaderThreads};
use crate::{Result, seek_disk::HDD_BYTES_PER_SECOND, seek_disk::SHORT_SEEK_TIME};
use tierdex::io::{Disk, ReadKind, ReadOptions};

/// Number of reads that measure the cost model.
const COST_MODEL_READS: usize = 2_000;

/// The algorithms with the settings of a run.
pub(super) struct IntersectionRunner {
    pub(super) algorithms: Intersector,
    /// Whether the lists are read from the emulated hard disk.
    hdd: bool,
    /// Threads of all algorithms but `direct`.
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
        let direct_io = work.read_disk().check_direct().is_ok();
        let reads = |depth| ReadOptions { kind: ReadKind::Auto, depth, direct: direct_io };
        let options = DirectOptions {
            reads: reads(depth),
            read_bytes_max: settings.read_bytes,
            region: settings.region.clone(),
        };
        let algorithms = Intersector {
            readers: ReaderThreads::new(work.read_disk(), reads(settings.bl_depth), threads)?,
            bl: Bl::new(),
            direct: Direct::new(work.read_disk(), &options)?,
        };
        Ok(IntersectionRunner { algorithms, hdd: settings.hdd, threads })
    }

    /// Sets the cost model of `direct`: measured on the longest of the lists, or for the emulated hard disk
    /// computed from the times of its emulation.
    pub(super) fn calibrate(&mut self, lists: &[PagedList]) -> Result<CostModel> {
        let direct = &mut self.algorithms.direct;
        if self.hdd {
            let cost = CostModel {
                read_seconds: SHORT_SEEK_TIME.as_secs_f64(),
                bytes_per_second: HDD_BYTES_PER_SECOND as f64,
                ..CostModel::default()
            };
            direct.set_cost(cost);
            return Ok(cost);
        }
        let longest = lists.iter().max_by_key(|list| list.pages());
        Ok(longest.map_or(Ok(direct.cost()), |list| direct.measure_cost(list, COST_MODEL_READS))?)
    }
}
