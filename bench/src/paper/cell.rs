//! Cells: the single measurements that figures are made of.
//!
//! A cell is an experiment and a value for each of its settings. Two figures with an equal cell share its
//! measurements. Settings that describe an index (`docs`, `postings`, `vocabulary`, `codec`, `ids-only`)
//! select the data; the others are flags of the experiment without their dashes.

use crate::value_names::value_names;
use serde::Deserialize;
use std::{collections::BTreeMap, fmt};
use toml::Value;

/// Fields of a measurement: the settings of its cell, and what was measured.
pub(super) type Row = serde_json::Map<String, serde_json::Value>;

/// What measures a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Experiment {
    /// Queries over an index, see [`crate::cache`].
    Cache,
    /// Queries over an index in memory, whose process is simulated, see [`crate::callgrind`].
    Callgrind,
    /// Size and speed of codecs, see [`crate::codecs`].
    Codecs,
    /// Postings that the queries of `cache` explore.
    Explored,
    /// Phases of indexing.
    Indexing,
    /// Intersections on disk, see [`crate::intersect`].
    Intersect,
    /// Bytes of the parts of an index.
    Sizes,
}

value_names!(
    Experiment;
    Cache = "cache", Callgrind = "callgrind", Codecs = "codecs", Explored = "explored", Indexing = "indexing",
    Intersect = "intersect", Sizes = "sizes"
);

/// A measurement: an experiment, and a value for each of its settings.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FigureCell {
    pub(super) experiment: Experiment,
    pub(super) settings: BTreeMap<String, String>,
}

impl FigureCell {
    /// A cell with these names and values of settings.
    #[cfg(test)]
    pub(super) fn new(experiment: Experiment, settings: &[(&str, &str)]) -> FigureCell {
        let settings = settings.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        FigureCell { experiment, settings: settings.collect() }
    }

    /// The value of a setting.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(String::as_str)
    }
}

/// The experiment and the settings. Cells with equal texts are equal.
impl fmt::Display for FigureCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.experiment)?;
        self.settings.iter().try_for_each(|(name, value)| write!(f, " {name}={value}"))
    }
}

/// A value of a definition as the text of a flag; `None` for a list or a table.
pub(super) fn flag_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Boolean(yes) => Some(yes.to_string()),
        Value::Datetime(_) | Value::Array(_) | Value::Table(_) => None,
    }
}
