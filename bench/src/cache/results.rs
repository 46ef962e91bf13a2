//! What a run found, written as files.

use super::flags::Flags;
use super::plot;
use super::report;
use super::rows::Rows;
use super::runner::Plan;
use crate::{Error, Machine, Result};
use std::fs;
use std::path::Path;

/// Writes `report.md`, `data.json` and plots where the flags want them; `program` is how one calls the program that ran, and
/// `whole` whether all cells were measured.
pub(super) fn save(program: &str, flags: &Flags, plan: &Plan, rows: &Rows, whole: bool) -> Result<()> {
    let plots = plot::all(rows)?;
    let command = format!("{program} {}", flags.command());
    let report = report::markdown(&command, &Machine::here(), (flags, plan), rows, (&plots, whole));
    write(&flags.out, "report.md", &report)?;
    write(&flags.out, "data.json", &json(rows))?;
    plots.iter().try_for_each(|plot| write(&flags.out, &plot.file, &plot.svg))
}

/// A row a line.
fn json(rows: &Rows) -> String {
    let rows = rows.to_json();
    let lines: Vec<String> = rows.as_array().into_iter().flatten().map(ToString::to_string).collect();
    format!("[\n{}\n]\n", lines.join(",\n"))
}

fn write(dir: &Path, name: &str, text: &str) -> Result<()> {
    let path = dir.join(name);
    fs::write(&path, text).map_err(|error| Error::Failed(format!("cannot write {}: {error}", path.display())))
}
