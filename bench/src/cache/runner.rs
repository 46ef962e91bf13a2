//! The runner: one process per cell, each in a control group of its own, one after the other.
//!
//! 1. Draw the queries and compute the memory of every cell, before the machine is changed.
//! 2. Reserve huge pages for the largest cell, and create groups for emulated devices.
//! 3. In each round, for each cell: drop the page cache, create a group, start a process, send it the cell,
//!    and wait for it.
//! 4. Restore the machine, also after an error.

use super::cell::TableCell;
use super::device::Device;
use super::flags::Flags;
use super::measurement::CellMeasurement;
use super::mode::CellMode;
use super::process;
use super::queries::{DrawnQueries, TermPools, Workload};
use super::rows::CellRow;
use super::system_state::{HUGE_PAGE, HugePages, ReadAhead, ThrottledDevices, drop_page_cache};
use super::task::CellTask;
use crate::cgroup::{Cgroup, CgroupParent};
use crate::seek_disk::SeekDisk;
use crate::{Error, Result};
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tierdex::codec::Kernel;
use tierdex::engine::{Executor, Mode};
use tierdex::index::{Index, Stop};
use tierdex::io::{PosixDisk, RegionKind};

/// Where a cell runs.
#[derive(Clone, Debug)]
pub enum Launch {
    /// In a process of its own: the path and the arguments of a program that passes its standard input and
    /// output to [`run_cell`](process::run_cell).
    Process(PathBuf, Vec<String>),
    /// In this process, for tests: no control group, and memory of earlier cells is not returned.
    InProcess,
}

impl Launch {
    /// A process with the given SIMD kernel. `before` are arguments in front of the program's path, such as
    /// those of a simulator.
    ///
    /// # Errors
    /// If cells have no process of their own.
    pub(crate) fn with_kernel(&self, kernel: Kernel, before: &[String]) -> Result<Launch> {
        let Launch::Process(program, arguments) = self else {
            return Err(Error::Failed("another kernel needs a process for each cell".to_string()));
        };
        let mut words = vec![format!("TIERDEX_KERNEL={}", kernel.name())];
        words.extend(before.iter().cloned());
        words.push(program.display().to_string());
        words.extend(arguments.iter().cloned());
        Ok(Launch::Process(PathBuf::from("env"), words))
    }
}

/// The plan of a run: everything that is determined before the first measurement.
pub(super) struct RunPlan {
    pub(super) index: IndexFacts,
    pub(super) workloads: Vec<(Workload, DrawnQueries)>,
    field: usize,
    cells: Vec<(TableCell, MemoryNeeds)>,
}

/// What the report says about the index.
pub(super) struct IndexFacts {
    pub(super) documents: u64,
    pub(super) postings_bytes: u64,
    pub(super) field: String,
}

/// Memory that a cell needs.
#[derive(Clone, Copy, Debug, Default)]
struct MemoryNeeds {
    /// Memory limit of the control group in bytes; `None` for no limit.
    limit: Option<u64>,
    /// Metadata in DRAM that is not part of the memory budget of `--dram`.
    metadata: u64,
    huge_pages: u64,
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
        let workloads: Vec<_> = Workload::all(flags).into_iter().map(draw).collect::<Result<_>>()?;
        let cells = TableCell::all(flags).into_iter().map(|cell| {
            let queries = &queries_of(&workloads, cell.workload);
            let needs = needs(flags, &index, &CellTask::new(flags, &cell, terms.field, queries));
            (cell, needs)
        });
        let facts = IndexFacts {
            documents: index.documents(),
            postings_bytes: index.postings_bytes(),
            field: index.schema().fields[terms.field].name.clone(),
        };
        Ok(RunPlan { cells: cells.collect(), index: facts, field: terms.field, workloads })
    }

    fn task(&self, flags: &Flags, cell: &TableCell) -> CellTask {
        CellTask::new(flags, cell, self.field, queries_of(&self.workloads, cell.workload))
    }

    fn huge_pages(&self) -> u64 {
        self.cells.iter().map(|(_, needs)| needs.huge_pages).max().unwrap_or(0)
    }
}

fn queries_of(workloads: &[(Workload, DrawnQueries)], workload: Workload) -> &DrawnQueries {
    let found = workloads.iter().find(|(there, _)| *there == workload);
    &found.expect("the workload of a cell is in the plan").1
}

/// The memory limit and the huge pages of a cell.
fn needs(flags: &Flags, index: &Index, task: &CellTask) -> MemoryNeeds {
    let (Some(options), CellMode::Executor(mode)) = (task.executor(), task.mode) else {
        let huge_pages = match task.held.region() {
            RegionKind::Hugetlb => index.kept_bytes().div_ceil(HUGE_PAGE),
            _ => 0,
        };
        return MemoryNeeds { limit: None, metadata: 0, huge_pages };
    };
    let report = Executor::memory_report(index, &options);
    let huge = RegionKind::Hugetlb.to_string();
    let regions = || report.rows.iter().filter_map(|row| Some((row.region.as_deref()?, row.bytes)));
    let huge_pages =
        regions().filter(|(region, _)| *region == huge).map(|(_, bytes)| bytes.div_ceil(HUGE_PAGE));
    // Huge pages and persistent memory are not charged to a control group.
    let charged = |region: &str| region != huge && !region.starts_with("dax:");
    let beside: u64 = regions().filter(|(region, _)| charged(region)).map(|(_, bytes)| bytes).sum();
    // What the page cache of `base` has does not depend on where metadata is.
    let (pages, metadata) = match mode {
        Mode::Base | Mode::BasePrefetch => (task.size.of(index.postings_bytes()), report.metadata_in_dram()),
        Mode::Hybrid | Mode::HybridPrefetch | Mode::Direct => (0, 0),
    };
    let slack = (u128::from(flags.dram) * u128::from(flags.slack) / 100) as u64;
    let limit = flags.dram + slack + metadata + beside + pages;
    MemoryNeeds { limit: Some(limit), metadata, huge_pages: huge_pages.sum() }
}

/// The changed state of the machine during a run: control groups, throttles, read-ahead and huge pages.
pub(super) struct CellRunner<'a> {
    flags: &'a Flags,
    plan: &'a RunPlan,
    launch: &'a Launch,
    stop: &'a Stop,
    parent: Option<CgroupParent>,
    throttled: ThrottledDevices,
    seek_disk: Option<SeekDisk>,
    _read_ahead: Option<ReadAhead>,
    _pages: Option<HugePages>,
}

impl<'a> CellRunner<'a> {
    /// Prepares the machine for cells on these indexes, which run at the same time.
    ///
    /// # Errors
    /// If the machine does not permit the measurement.
    pub(super) fn new(
        (flags, plan): (&'a Flags, &'a RunPlan),
        launch: &'a Launch,
        stop: &'a Stop,
        indexes: &[PathBuf],
    ) -> Result<CellRunner<'a>> {
        let parent = match (flags.no_group, launch) {
            (true, _) => None,
            (false, Launch::Process(..)) => Some(CgroupParent::memory().map_err(without_limit)?),
            (false, Launch::InProcess) => {
                return Err(Error::Usage(
                    "a cell in this process has no control group of its own; add --no-group".to_string(),
                ));
            }
        };
        // Fails before the first cell if groups are not permitted.
        parent.as_ref().map(|parent| parent.create_limited(flags.dram)).transpose().map_err(without_limit)?;
        if !flags.keep_caches {
            drop_page_cache()?;
        }
        let throttled = ThrottledDevices::new(&flags.devices, &flags.index)?;
        let seeks = flags.devices.contains(&Device::Hdd);
        let seek_disk = seeks.then(|| SeekDisk::mount(indexes)).transpose()?;
        let read_ahead = flags.read_ahead_kb.map(|kb| ReadAhead::set(&flags.index, kb)).transpose()?;
        let pages = HugePages::reserve(plan.huge_pages() * indexes.len() as u64)?;
        Ok(CellRunner {
            flags,
            plan,
            launch,
            stop,
            parent,
            throttled,
            seek_disk,
            _read_ahead: read_ahead,
            _pages: pages,
        })
    }

    /// Drops the page cache, unless the flags keep it.
    fn prepare(&self) -> Result<()> {
        if self.flags.keep_caches { Ok(()) } else { drop_page_cache() }
    }

    /// Measures a cell on `index`, which is the index of the flags or a copy of it, and its number, which is
    /// also that of its processor if it is `pinned` to one. Returns `None` if the stop signal was raised.
    fn measure(
        &self,
        (cell, needs): &(TableCell, MemoryNeeds),
        (number, index, pinned): (usize, &Path, bool),
        round: usize,
    ) -> Result<Option<CellRow>> {
        let limit = needs.limit.filter(|_| self.parent.is_some());
        let group = self
            .parent
            .as_ref()
            .zip(limit)
            .map(|(parent, limit)| parent.create_limited(limit))
            .transpose()?;
        let mut task = self.plan.task(self.flags, cell);
        // Two sixteenths of a budget are shares for queries.
        task.dram += needs.metadata + needs.metadata.div_ceil(7);
        let disk = self.seek_disk.as_ref().filter(|_| cell.device == Device::Hdd);
        task.index = disk.map_or_else(|| index.to_path_buf(), |disk| disk.path(number));
        task.join.extend(group.as_ref().map(Cgroup::procs));
        task.throttle = match disk {
            Some(disk) => Some(disk.delay_later()),
            None => self.throttled.procs(cell.device, group.as_ref())?,
        };
        task.stat = group.as_ref().map(Cgroup::stat);
        task.processor = pinned.then_some(number);
        let outcome = match self.launch {
            Launch::Process(program, arguments) => {
                child((program, arguments), &task, group.as_ref(), self.stop)?
            }
            Launch::InProcess => process::run(&task).map_err(|error| line(&error.to_string())),
        };
        if self.stop.check().is_err() {
            return Ok(None);
        }
        // The system counts reads from block devices only.
        let outcome = outcome.map(|found| match disk {
            Some(_) => CellMeasurement { bytes_fetched: None, ..found },
            None => found,
        });
        let (peak, limit_met) =
            group.as_ref().map_or((None, None), |group| (group.peak(), group.limit_met()));
        Ok(Some(CellRow { cell: *cell, round, limit, peak, limit_met, outcome }))
    }

    /// Measures the only cell of the plan on each of `indexes` at the same time.
    pub(super) fn measure_together(&self, indexes: &[PathBuf], pinned: bool) -> Result<Option<Vec<CellRow>>> {
        let [cell] = &self.plan.cells[..] else {
            let cells = self.plan.cells.len();
            return Err(Error::Usage(format!("the flags select {cells} cells; expected one")));
        };
        self.prepare()?;
        thread::scope(|scope| {
            let mut threads = Vec::new();
            for (number, index) in indexes.iter().enumerate() {
                let measure = move || self.measure(cell, (number, index, pinned), 1);
                let thread = thread::Builder::new().spawn_scoped(scope, measure);
                threads
                    .push(thread.map_err(|error| Error::Failed(format!("cannot start a thread: {error}")))?);
            }
            threads.into_iter().map(|thread| thread.join().expect("a thread does not panic")).collect()
        })
    }
}

/// Measures all cells and calls `report` with each row. Returns false if `stop` was raised.
///
/// # Errors
/// If the machine does not permit the measurement, or `report` fails. A process that dies gives a row, not
/// an error.
pub(super) fn run(
    (flags, plan): (&Flags, &RunPlan),
    launch: &Launch,
    stop: &Stop,
    report: &mut dyn FnMut(CellRow) -> Result<()>,
) -> Result<bool> {
    let runner = CellRunner::new((flags, plan), launch, stop, std::slice::from_ref(&flags.index))?;
    for round in 1..=flags.rounds {
        for cell in &plan.cells {
            if stop.check().is_err() {
                return Ok(false);
            }
            runner.prepare()?;
            match runner.measure(cell, (0, &flags.index, false), round)? {
                Some(row) => report(row)?,
                None => return Ok(false),
            }
        }
    }
    Ok(true)
}

/// Adds to an error of a control group how to run without one.
fn without_limit(error: Error) -> Error {
    Error::Failed(format!("{error}; add --no-group to run without a memory limit"))
}

/// Runs a cell in a process of its own. The inner result is the measurement, or why the process failed.
fn child(
    (program, arguments): (&PathBuf, &[String]),
    task: &CellTask,
    group: Option<&Cgroup>,
    stop: &Stop,
) -> Result<std::result::Result<CellMeasurement, String>> {
    let failed = |what: &str, error: std::io::Error| Error::Failed(format!("cannot {what} a cell: {error}"));
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| failed("start", error))?;
    let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (status, output, errors) = thread::scope(|scope| {
        let output = thread::Builder::new().spawn_scoped(scope, || read(output))?;
        let errors = thread::Builder::new().spawn_scoped(scope, || read(errors))?;
        if let Some(mut input) = input {
            // If the process has died, its exit status is reported below.
            let _ = input.write_all(task.to_json().to_string().as_bytes());
        }
        let status = wait(&mut child, stop);
        let text = |thread: thread::ScopedJoinHandle<'_, String>| thread.join().unwrap_or_default();
        Ok((status, text(output), text(errors)))
    })
    .map_err(|error| failed("start the threads of", error))?;
    let status = status.map_err(|error| failed("await", error))?;
    if status.success() {
        let value = serde_json::from_str(&output).map_err(|error| Error::Failed(error.to_string()));
        return Ok(value
            .and_then(|value| CellMeasurement::from_json(&value))
            .map_err(|error| line(&error.to_string())));
    }
    Ok(Err(failure(status, group.and_then(Cgroup::oom_kills), &errors)))
}

/// Interval at which the exit status of the process is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Waits for a process; kills it when `stop` is raised.
fn wait(child: &mut Child, stop: &Stop) -> std::io::Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if stop.check().is_err() {
            child.kill()?;
            return child.wait();
        }
        thread::sleep(POLL_INTERVAL);
    }
}

fn read(stream: Option<impl Read>) -> String {
    let mut text = Vec::new();
    // After a read error, the text so far is used.
    let _ = stream.map(|mut stream| stream.read_to_end(&mut text));
    String::from_utf8_lossy(&text).into_owned()
}

/// Why a process failed, in one line.
fn failure(status: ExitStatus, oom_kills: Option<u64>, errors: &str) -> String {
    let how = match (status.signal(), status.code()) {
        (Some(_), _) if oom_kills.is_some_and(|kills| kills > 0) => "killed: out of memory".to_string(),
        (Some(signal), _) => format!("killed by signal {signal}"),
        (None, code) => format!("exit code {}", code.unwrap_or(-1)),
    };
    let said = line(errors.trim());
    if said.is_empty() { how } else { format!("{how}: {said}") }
}

/// The text in one line.
fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_one_line() {
        let status = ExitStatus::from_raw;
        assert_eq!(failure(status(9), Some(1), ""), "killed: out of memory");
        assert_eq!(failure(status(9), Some(0), ""), "killed by signal 9");
        assert_eq!(
            failure(status(1 << 8), None, "tierdex: no\n  such thing\n"),
            "exit code 1: tierdex: no such thing"
        );
    }
}
