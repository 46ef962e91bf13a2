//! Times algorithms at points of a sweep, one after the other.

use crate::intersect::request::{IntersectRequest, Sweep};
use crate::intersect::work_dir::WorkDir;
use crate::intersection::{
    Algorithm, Bl, CostModel, Direct, Intersector, PagedList, ReadStats, ReaderThreads,
};
use crate::{Error, Result, seek_disk::HDD_BYTES_PER_SECOND, seek_disk::SHORT_SEEK_TIME};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tierdex::io::{Disk, PosixDisk, ReadKind, ReadOptions};
use tierdex::{StopSignal, codec::Codec};

/// Number of reads that measure the cost model.
const COST_MODEL_READS: usize = 2_000;

/// Reads in flight of `direct`, and its largest read in bytes.
const DIRECT_READS: (usize, usize) = (128, 128 << 10);

/// The same on a hard disk, where a read is as large as one of `bl`.
const HDD_DIRECT_READS: (usize, usize) = (16, 1 << 20);

/// The codecs that are compared.
pub(super) const COMPARED_CODECS: [Codec; 3] = [Codec::Raw, Codec::Pfor256Delta, Codec::Bp256Delta];

/// A query: its lists on disk, and the ids that an intersection must find.
pub(super) type SweepQuery = (Vec<PagedList>, Vec<u32>);

/// A run: the lists on disk, the algorithms, and the rows measured so far.
pub(super) struct IntersectRun<'a> {
    pub(super) request: &'a IntersectRequest,
    work: WorkDir,
    algorithms: Intersector,
    pub(super) stop: &'a StopSignal,
    pub(super) rows: Vec<Value>,
}

impl<'a> IntersectRun<'a> {
    /// Uses direct I/O if the file system supports it.
    pub(super) fn new(request: &'a IntersectRequest, stop: &'a StopSignal) -> Result<IntersectRun<'a>> {
        let work = WorkDir::new(request)?;
        let disk = work.read_disk();
        let (depth, read_bytes_max) = if request.hdd { HDD_DIRECT_READS } else { DIRECT_READS };
        let algorithms = Intersector {
            readers: ReaderThreads::new(disk, read_options(disk, 1), request.threads)?,
            bl: Bl::default(),
            direct: Direct::new(disk, read_options(disk, depth), read_bytes_max)?,
        };
        Ok(IntersectRun { request, work, algorithms, stop, rows: Vec::new() })
    }

    /// Writes lists into a new file and opens it.
    pub(super) fn write(&self, codec: Codec, lists: &[&[u32]]) -> Result<Vec<PagedList>> {
        self.work.write(codec, lists, self.stop)
    }

    /// Sets the number of threads of all algorithms but `direct`.
    pub(super) fn set_threads(&mut self, threads: usize) -> Result<()> {
        let disk = self.work.read_disk();
        self.algorithms.readers = ReaderThreads::new(disk, read_options(disk, 1), threads)?;
        Ok(())
    }

    /// Sets the cost model of `direct`: measured on the longest of the lists, or for the emulated hard disk
    /// computed from the times of its emulation.
    pub(super) fn calibrate(&mut self, lists: &[PagedList]) -> Result<()> {
        let direct = &mut self.algorithms.direct;
        if self.request.hdd {
            direct.cost = CostModel {
                read_seconds: SHORT_SEEK_TIME.as_secs_f64(),
                bytes_per_second: HDD_BYTES_PER_SECOND as f64,
                ..CostModel::default()
            };
        } else if let Some(longest) = lists.iter().max_by_key(|list| list.pages()) {
            direct.measure_cost(longest, COST_MODEL_READS)?;
        }
        Ok(())
    }

    /// Measures all algorithms where the parameter of a sweep is `x`, and adds a row for each. An untimed run
    /// of `bl` comes first, because it allocates memory.
    pub(super) fn measure(
        &mut self,
        sweep: Sweep,
        x: f64,
        label: &str,
        queries: &[SweepQuery],
    ) -> Result<()> {
        let pages = |lists: &[PagedList]| lists.iter().map(|list| list.pages() as u64).sum::<u64>();
        self.run_queries(Algorithm::Bl, label, queries)?;
        for algorithm in Algorithm::ALL {
            let is_direct = algorithm == Algorithm::Direct;
            let cpu = process_cpu_time();
            let (time, reads) = self.run_queries(algorithm, label, queries)?;
            self.rows.push(json!({
                "sweep": sweep,
                "x": x,
                "label": label,
                "algorithm": algorithm.name(),
                "threads": if is_direct { 1 } else { self.algorithms.readers.threads() },
                "queries": queries.len(),
                "seconds": time.as_secs_f64(),
                "cpu_seconds": (process_cpu_time() - cpu).as_secs_f64(),
                "pages_read": reads.pages,
                "bytes_read": reads.bytes,
                "reads": reads.reads,
                "pages_in_memory": reads.resident,
                "pages_skipped": reads.skipped,
                "pages": queries.iter().map(|(lists, _)| pages(lists)).sum::<u64>(),
                "false_positives": reads.false_positives,
                "found": queries.iter().map(|(_, ids)| ids.len() as u64).sum::<u64>(),
            }));
        }
        Ok(())
    }

    /// Runs and checks all queries. Returns the time of the intersections, and the reads.
    fn run_queries(
        &mut self,
        algorithm: Algorithm,
        label: &str,
        queries: &[SweepQuery],
    ) -> Result<(Duration, ReadStats)> {
        let (mut time, mut reads) = (Duration::ZERO, ReadStats::default());
        for (number, (lists, expected)) in queries.iter().enumerate() {
            self.stop.check()?;
            let start = Instant::now();
            let found = self.algorithms.intersect(algorithm, lists)?;
            time += start.elapsed();
            if found.ids != *expected {
                let (name, ids) = (algorithm.name(), found.ids.len());
                return Err(Error::Failed(format!(
                    "{name} finds {ids} ids instead of {} at {label}, query {number}",
                    expected.len()
                )));
            }
            reads += found.reads;
        }
        Ok((time, reads))
    }
}

fn read_options(disk: &PosixDisk, depth: usize) -> ReadOptions {
    ReadOptions { kind: ReadKind::Auto, depth, direct: disk.check_direct().is_ok() }
}

/// CPU time of all threads so far.
fn process_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}
