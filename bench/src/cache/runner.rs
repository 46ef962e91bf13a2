//! The runner: one process per cell, each in a control group of its own, one after the other.
//!
//! 1. Draw the queries and compute the memory of every cell, before the machine is changed.
//! 2. Reserve huge pages for the largest cell, and create groups for emulated devices.
//! 3. In each round, for each cell: drop the page cache, create a group, start a process, send it the cell,
//!    and wait for it.
//! 4. Restore the machine, also after an error.

use crate::cache::system_state::{HugePages, ReadAhead, ThrottledDevices, drop_page_cache};
use crate::cache::{device::Device, flags::Flags, plan::PlannedCell, plan::RunPlan, rows::CellRow};
use crate::cell::{Cell, CellMeasurement, Launch, ProcessPlacement};
use crate::{Error, Result, cgroup::Cgroup, cgroup::CgroupParent, seek_disk::SeekDisk};
use tierdex::StopSignal;

/// Measures the cells of a plan. Until it is dropped, the machine is prepared for them: control groups,
/// throttles, read-ahead, huge pages and emulated disks.
pub(super) struct CellRunner<'a> {
    flags: &'a Flags,
    launch: &'a Launch,
    stop: &'a StopSignal,
    parent: Option<CgroupParent>,
    throttled: ThrottledDevices,
    seek_disk: Option<SeekDisk>,
    _read_ahead: Option<ReadAhead>,
    _pages: Option<HugePages>,
}

impl<'a> CellRunner<'a> {
    /// Prepares the machine for the cells.
    ///
    /// # Errors
    /// If the machine does not permit the measurement.
    pub(super) fn new(
        flags: &'a Flags,
        plan: &RunPlan,
        launch: &'a Launch,
        stop: &'a StopSignal,
    ) -> Result<CellRunner<'a>> {
        let parent = match (flags.no_group, launch) {
            (true, _) => None,
            (false, Launch::Process(..)) => Some(CgroupParent::memory().map_err(add_hint)?),
            (false, Launch::InProcess) => {
                return Err(Error::Usage(
                    "a cell in this process has no control group of its own; add --no-group".to_string(),
                ));
            }
        };
        // Fails before the first cell if groups are not permitted.
        parent.as_ref().map(|parent| parent.create_limited(flags.dram)).transpose().map_err(add_hint)?;
        if !flags.keep_caches {
            drop_page_cache()?;
        }
        let throttled = ThrottledDevices::new(&flags.devices, &flags.index)?;
        let seeks = flags.devices.contains(&Device::Hdd);
        let seek_disk = seeks.then(|| SeekDisk::mount(std::slice::from_ref(&flags.index))).transpose()?;
        let read_ahead = flags.read_ahead_kb.map(|kb| ReadAhead::set(&flags.index, kb)).transpose()?;
        let pages = HugePages::reserve(plan.huge_pages())?;
        Ok(CellRunner {
            flags,
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
    fn drop_page_cache_unless_kept(&self) -> Result<()> {
        if self.flags.keep_caches { Ok(()) } else { drop_page_cache() }
    }

    /// Measures a cell. Returns `None` if the stop signal was raised.
    fn measure(&self, planned: &PlannedCell, round: usize) -> Result<Option<CellRow>> {
        let (table, limit) = (planned.table, planned.cell.limit.filter(|_| self.parent.is_some()));
        let limited = self.parent.as_ref().zip(limit);
        let group = limited.map(|(parent, limit)| parent.create_limited(limit)).transpose()?;
        let disk = self.seek_disk.as_ref().filter(|_| table.device == Device::Hdd);
        let throttle = match disk {
            Some(disk) => Some(disk.delay_later()),
            None => self.throttled.procs_file(table.device, group.as_ref())?,
        };
        let process = ProcessPlacement {
            join: group.as_ref().map(Cgroup::procs).into_iter().collect(),
            throttle,
            stat: group.as_ref().map(Cgroup::stat),
            processor: None,
        };
        let index = disk.map_or_else(|| self.flags.index.clone(), |disk| disk.directory_path(0));
        let cell = Cell { index, process, ..planned.cell.clone() };
        let outcome = self.launch.measure(&cell, group.as_ref(), self.stop)?;
        if self.stop.check().is_err() {
            return Ok(None);
        }
        // The system counts reads from block devices only.
        let outcome = outcome.map(|found| match disk {
            Some(_) => CellMeasurement { bytes_fetched: None, ..found },
            None => found,
        });
        let (peak, limit_met) = group.as_ref().map_or((None, None), |one| (one.peak(), one.limit_met()));
        Ok(Some(CellRow { cell: table, round, limit, peak, limit_met, outcome }))
    }
}

/// Measures all cells and calls `report` with each row. Returns false if `stop` was raised.
///
/// # Errors
/// If the machine does not permit the measurement, or `report` fails. A process that dies gives a row, not
/// an error.
pub(super) fn run_cells(
    flags: &Flags,
    plan: &RunPlan,
    launch: &Launch,
    stop: &StopSignal,
    report: &mut dyn FnMut(CellRow) -> Result<()>,
) -> Result<bool> {
    let runner = CellRunner::new(flags, plan, launch, stop)?;
    for round in 1..=flags.rounds {
        for cell in &plan.cells {
            if stop.check().is_err() {
                return Ok(false);
            }
            runner.drop_page_cache_unless_kept()?;
            match runner.measure(cell, round)? {
                Some(row) => report(row)?,
                None => return Ok(false),
            }
        }
    }
    Ok(true)
}

/// Adds the advice to run with `--no-group` to the error of a control group.
fn add_hint(error: Error) -> Error {
    Error::Failed(format!("{error}; add --no-group to run without a memory limit"))
}
