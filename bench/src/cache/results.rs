//! Writes the results of a run into files.

use crate::cache::{flags::Flags, plan::RunPlan, plot, report, rows::CellRows};
use crate::{Machine, Result, output_dir};
use std::path::Path;

/// Writes `report.md`, `data.json` and plots into the output directory. `program` is the command name in the
/// report; `complete` says whether all cells were measured.
pub(super) fn save(
    program: &str,
    out: &Path,
    flags: &Flags,
    plan: &RunPlan,
    rows: &CellRows,
    complete: bool,
) -> Result<()> {
    let plots = plot::all(rows)?;
    let command = format!("{program} {}", flags.command());
    let report = report::markdown(&command, &Machine::here(), flags, plan, rows, &plots, complete);
    output_dir::write(out, "report.md", &report)?;
    output_dir::write(out, "data.json", &(output_dir::json_lines(&rows.to_json()) + "\n"))?;
    plots.iter().try_for_each(|plot| output_dir::write(out, &plot.file, &plot.svg))
}
