//! How the rows of a figure become lines of a plot.

use serde::Deserialize;

/// How rows become lines of a plot. The members name fields of rows.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct PlotDefinition {
    /// Field of the horizontal axis.
    pub(super) x: String,
    /// Name of the horizontal axis.
    pub(super) x_label: String,
    /// Whether the horizontal axis is a measurement, so that points with different values can be compared.
    #[serde(default)]
    pub(super) measured_x: bool,
    /// Whether the horizontal axis is logarithmic.
    #[serde(default)]
    pub(super) logarithmic: bool,
    /// Fields of the vertical axis; a line for each.
    pub(super) y: Vec<String>,
    /// Name of the vertical axis. Several names, separated by `; `, are those of one panel for each of `y`.
    pub(super) y_label: String,
    /// Factor that converts values of `y` into the unit of the vertical axis.
    #[serde(default = "default_factor")]
    pub(super) factor: f64,
    /// Fields whose values name a line.
    #[serde(default)]
    pub(super) lines: Vec<String>,
    /// Fields whose values name a panel.
    #[serde(default)]
    pub(super) panels: Vec<String>,
    /// What `--callgrind` simulates in place of `y`.
    pub(super) simulated: Option<SimulatedAxis>,
}

/// A vertical axis of simulated measures.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct SimulatedAxis {
    /// Replaces the member `y` of [`PlotDefinition`], as the others replace those of their names.
    pub(super) y: Vec<String>,
    pub(super) y_label: String,
    #[serde(default = "default_factor")]
    pub(super) factor: f64,
}

fn default_factor() -> f64 {
    1.0
}

impl PlotDefinition {
    /// All fields by which rows differ.
    pub(super) fn dimensions(&self) -> Vec<&str> {
        let all = self.panels.iter().chain(&self.lines).chain([&self.x]);
        all.map(String::as_str).collect()
    }
}
