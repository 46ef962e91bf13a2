//! Query throughput when memory for postings is limited: an index in memory, the engine, and the modes of the
//! APCache thesis, by cache size, each in a process with a memory limit.
//!
//! *Input*: an index. *Output*: for each cell queries per second, latencies, reads, cache misses and peak
//! memory. The answers of all cells to the same queries must be equal.
//!
//! 1. `queries` draws queries from the dictionary of the index, as the thesis does.
//! 2. Each [`TableCell`] is a combination of settings from the [`Flags`]: workload, device, mode, size, and
//!    the settings that apply to the mode.
//! 3. `plan` makes a [`Cell`](crate::cell::Cell) of each, and `runner` starts a process for it in a
//!    [control group](crate::cgroup). `system_state` changes the machine for the run: page cache, huge pages
//!    and throttled devices.
//! 4. [`CellRows`] hold the measurements: a table during the run, then a report, rows of JSON and plots.
//!
//! With `--print-cells` the cells are printed instead, for `compare`.

mod cell;
mod device;
mod flags;
mod mode;
mod plan;
mod plot;
mod report;
mod rows;
mod runner;
mod system_state;

pub use cell::TableCell;
pub use device::Device;
pub use flags::Flags;
pub use mode::CellMode;
pub use rows::{CellRow, CellRows};

use crate::{Error, Machine, Result, cell::Launch, output_dir};
use plan::RunPlan;
use std::{io::Write, path::Path};
use tierdex::{StopSignal, io::Region, io::RegionKind};

/// Runs the experiment: prints a line per cell to `out` during the run, then writes all results into the
/// directory that the flags name. `program` is the command name in the report. With `--print-cells` prints
/// the cells only.
///
/// # Errors
/// If the flags are invalid, the machine does not permit the measurement, answers differ, all cells fail, or
/// `stop` is raised. In the last three cases the measurements so far are written.
pub fn run(
    flags: &Flags,
    program: &str,
    launch: &Launch,
    stop: &StopSignal,
    out: &mut dyn Write,
) -> Result<CellRows> {
    flags.check()?;
    flags.regions().into_iter().try_for_each(check_region)?;
    let plan = RunPlan::new(flags)?;
    let Some(dir) = &flags.out else { return print_cells(&plan, out) };
    output_dir::create(dir)?;
    let mut say =
        |text: &str| out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Error::Output);
    say(&report::terminal_heading())?;
    let mut rows = CellRows::default();
    let complete = runner::run_cells(flags, &plan, launch, stop, &mut |row| {
        let mut one = CellRows::default();
        one.push(row.clone());
        rows.push(row);
        one.medians().iter().try_for_each(|median| say(&report::terminal_line(median)))
    })?;
    save_results(program, dir, flags, &plan, &rows, complete)?;
    if !complete {
        return Err(Error::Interrupted);
    }
    if let Some(first) = rows.differences().first() {
        return Err(Error::Failed(format!("wrong answers: {first}")));
    }
    match rows.failure_of_all() {
        Some(first) => Err(Error::Failed(format!("all cells failed, the first one: {first}"))),
        None => Ok(rows),
    }
}

/// Writes `report.md`, `data.json` and plots into the output directory. `program` is the command name in the
/// report; `complete` says whether all cells were measured.
fn save_results(
    program: &str,
    out: &Path,
    flags: &Flags,
    plan: &RunPlan,
    rows: &CellRows,
    complete: bool,
) -> Result<()> {
    let plots = plot::draw_all(rows)?;
    let command = format!("{program} {}", flags.command());
    let report = report::markdown(&command, &Machine::here(), flags, plan, rows, &plots, complete);
    output_dir::write_file(out, "report.md", &report)?;
    output_dir::write_file(out, "data.json", &(output_dir::json_lines(&rows.to_json()) + "\n"))?;
    plots.iter().try_for_each(|plot| output_dir::write_file(out, &plot.file, &plot.svg))
}

/// Prints the cells of a plan, one line of JSON each, with their descriptions as `name`.
fn print_cells(plan: &RunPlan, out: &mut dyn Write) -> Result<CellRows> {
    for planned in &plan.cells {
        let cell = serde_json::to_value(&planned.cell);
        let mut cell = cell.map_err(|error| Error::Failed(error.to_string()))?;
        cell["name"] = planned.table.describe().into();
        writeln!(out, "{cell}").map_err(Error::Output)?;
    }
    Ok(CellRows::default())
}

/// Checks that a region can be allocated, before it fails cell by cell. DRAM always can, and huge pages are
/// reserved later.
///
/// # Errors
/// The reason, if it cannot.
pub(crate) fn check_region(kind: &RegionKind) -> Result<()> {
    match kind {
        RegionKind::Dram | RegionKind::Hugetlb => Ok(()),
        RegionKind::Numa(_) | RegionKind::Dax(_) | RegionKind::File(_) => Ok(Region::new(kind, 1).map(drop)?),
    }
}
