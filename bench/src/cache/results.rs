//! What a run found, written as files.

use super::flags::Flags;
use super::plot;
use super::report;
use super::rows::Rows;
use super::runner::Plan;
use crate::{Machine, Result, folder};

/// Writes `report.md`, `data.json` and plots where the flags want them; `program` is how one calls the program that ran, and
/// `whole` whether all cells were measured.
pub(super) fn save(program: &str, flags: &Flags, plan: &Plan, rows: &Rows, whole: bool) -> Result<()> {
    let plots = plot::all(rows)?;
    let command = format!("{program} {}", flags.command());
    let report = report::markdown(&command, &Machine::here(), (flags, plan), rows, (&plots, whole));
    folder::write(&flags.out, "report.md", &report)?;
    folder::write(&flags.out, "data.json", &(folder::lines(&rows.to_json()) + "\n"))?;
    plots.iter().try_for_each(|plot| folder::write(&flags.out, &plot.file, &plot.svg))
}
