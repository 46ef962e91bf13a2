//! Converts the settings of a cell into the index that it needs and the flags of its experiment.

use crate::paper::{cell::FigureCell, cell::Row, data::INDEX_SETTINGS, data::IndexSpec};
use crate::{Error, Result, parse_flags};
use clap::Args;
use serde_json::Value;

/// The index of a cell that needs one.
pub(super) fn index_of(cell: &FigureCell) -> Result<IndexSpec> {
    IndexSpec::of(cell)?.ok_or_else(|| Error::Failed(format!("{cell} has no index")))
}

/// Parses the settings of a cell as flags of its experiment, after the words `first`. Settings of the index
/// and those in `own` are not passed as flags.
pub(super) fn parse_settings<F: Args>(cell: &FigureCell, first: &[String], own: &[&str]) -> Result<F> {
    let settings = cell.settings.iter();
    let flags = settings
        .filter(|(name, _)| !INDEX_SETTINGS.contains(&name.as_str()) && !own.contains(&name.as_str()));
    let flags = flags.flat_map(|(name, value)| match value.as_str() {
        "true" if is_switch(name) => vec![format!("--{name}")],
        value => vec![format!("--{name}={value}")],
    });
    let words = [cell.experiment.to_string()].into_iter().chain(first.iter().cloned()).chain(flags);
    parse_flags(words).map_err(|error| {
        let text = error.to_string();
        Error::Failed(format!("{cell}: {}", text.lines().next().unwrap_or_default()))
    })
}

/// Whether a flag has no value.
fn is_switch(name: &str) -> bool {
    matches!(name, "quick" | "hdd" | "no-readahead")
}

/// The rows of an experiment's results.
pub(super) fn rows_of(mut results: Value) -> Vec<Row> {
    let Value::Array(rows) = results["rows"].take() else { return Vec::new() };
    rows.into_iter().map(members_of).collect()
}

/// The members of a JSON object.
pub(super) fn members_of(value: Value) -> Row {
    match value {
        Value::Object(row) => row,
        _ => Row::new(),
    }
}
