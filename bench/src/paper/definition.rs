//! The definitions in `bench/definitions`: one file for each paper, with an entry for each of its tables and
//! figures. Unknown members are errors.

use crate::paper::{
    cell::Experiment, expectation::Expectation, plot_definition::PlotDefinition, scale::Scale,
};
use serde::Deserialize;
use toml::Table;

/// A paper: its name and figures, and settings that its figures share.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct PaperDefinition {
    /// First part of the names of its figures.
    pub(super) name: String,
    /// Authors, title and year.
    pub(super) title: String,
    /// Whether the figures are controls: they are in no paper, and test why claims of others differ here.
    #[serde(default)]
    pub(super) controls: bool,
    /// Postings of the paper's index, to state the scale factor; 0 if it has none.
    #[serde(default)]
    pub(super) postings: u64,
    /// Settings at every scale, and those of each scale.
    #[serde(default)]
    pub(super) settings: Table,
    #[serde(default)]
    pub(super) scale: ScaleSettings,
    #[serde(rename = "figure")]
    pub(super) figures: Vec<FigureDefinition>,
}

/// Settings that replace others at a scale.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ScaleSettings {
    small: Table,
    machine: Table,
    full: Table,
}

/// A table or figure of a paper.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct FigureDefinition {
    /// Name after that of the paper: `fig-8.3`, `table-2`.
    pub(super) name: String,
    /// What the figure shows, in one line.
    pub(super) title: String,
    /// What the paper found, or what a control tests.
    pub(super) found: String,
    /// Why the figure cannot be reproduced. Such a figure has no experiment.
    pub(super) unavailable: Option<String>,
    /// How the set-up differs from that of the paper.
    pub(super) differences: Option<String>,
    /// The experiment that measures the cells of the figure.
    pub(super) experiment: Option<Experiment>,
    #[serde(default)]
    pub(super) settings: Table,
    #[serde(default)]
    pub(super) scale: ScaleSettings,
    /// Groups of cells: each has all combinations of its settings.
    #[serde(default)]
    pub(super) cells: Vec<CellGroup>,
    pub(super) plot: Option<PlotDefinition>,
    /// What must hold, as far as a program can check it.
    #[serde(default)]
    pub(super) expect: Vec<Expectation>,
    /// Whether the measures of the figure are simulated. Not part of a definition.
    #[serde(skip)]
    pub(super) simulated: bool,
}

/// Settings of a group of cells.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CellGroup {
    pub(super) settings: Table,
    pub(super) scale: ScaleSettings,
}

impl ScaleSettings {
    /// The settings of a scale.
    pub(super) fn at(&self, scale: Scale) -> &Table {
        match scale {
            Scale::Small => &self.small,
            Scale::Machine => &self.machine,
            Scale::Full => &self.full,
        }
    }
}
