//! The result of a figure: rows of its cells, the points of its plot, and its checked expectations.

use crate::paper::cell::{FigureCell, Row};
use crate::paper::expand::{FigurePlannedCell, figure_cells};
use crate::paper::expectation::{CheckedClaim, Expectation, FigureVerdict};
use crate::paper::points::{Point, measured_points};
use crate::paper::{plot_definition::PlotDefinition, registry::Figure, scale::Scale, store::ResultStore};
use crate::{Result, paper::control::Controls, paper::measure::MissingFeatures};

/// A figure with everything that was measured for it.
pub(super) struct FigureResult<'a> {
    pub(super) figure: Figure<'a>,
    pub(super) scale: Scale,
    /// Cells of the figure at this scale.
    pub(super) cells: Vec<FigureCell>,
    /// Rows of all cells and rounds.
    pub(super) rows: Vec<Row>,
    /// Medians and ranges over the rounds.
    pub(super) points: Vec<Point>,
    /// The expectations, in the order of the definition.
    pub(super) checks: Vec<CheckedClaim>,
    /// The cells that were not measured.
    pub(super) unmeasured: Vec<UnmeasuredCell>,
    /// Cells that were measured in fewer rounds than their definition has, because the run was stopped.
    pub(super) stopped: Vec<FigureCell>,
}

/// A cell without rows.
pub(super) struct UnmeasuredCell {
    pub(super) cell: FigureCell,
    /// Why the cell was not measured, in one line.
    pub(super) reason: String,
    /// Whether this machine cannot measure the cell. Otherwise the measurement failed or was not run.
    pub(super) unavailable: bool,
}

impl<'a> FigureResult<'a> {
    /// Collects the results of a figure from the store.
    ///
    /// # Errors
    /// If the definition of the figure is malformed.
    pub(super) fn new(
        figure: Figure<'a>,
        scale: Scale,
        store: &ResultStore,
        missing: &MissingFeatures,
    ) -> Result<FigureResult<'a>> {
        let definition = figure.figure;
        let planned = figure_cells(figure.paper, definition, scale)?;
        let (mut unmeasured, mut stopped) = (Vec::new(), Vec::new());
        for FigurePlannedCell { cell, rounds } in &planned {
            let (reason, unavailable) = match (missing.of(cell), store.failure(cell)) {
                (Some(why), _) => (why, true),
                (None, Some(why)) => (format!("failed: {why}"), false),
                (None, None) if store.has_rows(cell, 1) => {
                    if !(2..=*rounds).all(|round| store.has_rows(cell, round)) {
                        stopped.push(cell.clone());
                    }
                    continue;
                }
                (None, None) => ("not run yet".to_string(), false),
            };
            unmeasured.push(UnmeasuredCell { cell: cell.clone(), reason, unavailable });
        }
        let cells: Vec<FigureCell> = planned.into_iter().map(|planned| planned.cell).collect();
        let rows: Vec<Row> = cells.iter().flat_map(|cell| store.rows(cell)).collect();
        let (points, checks) = match &definition.plot {
            Some(plot) => {
                let measures: Vec<&str> = plot.y.iter().map(String::as_str).collect();
                let check = |expected: &Expectation| {
                    let mut checked = expected.check(plot, &rows);
                    let missing = unmeasured.iter().any(|one| expected.concerns(&one.cell));
                    if checked.verdict == FigureVerdict::Agrees && missing {
                        checked.verdict = FigureVerdict::AgreesInPart;
                    }
                    checked
                };
                (measured_points(plot, &measures, &rows), definition.expect.iter().map(check).collect())
            }
            None => (Vec::new(), Vec::new()),
        };
        Ok(FigureResult { figure, scale, cells, rows, points, checks, unmeasured, stopped })
    }

    /// The result of the n-th expectation, and its reasons: why it differs, and why cells that it compares
    /// were not measured.
    pub(super) fn verdict(&self, number: usize, controls: &Controls) -> (&'static str, Vec<String>) {
        let expected = &self.figure.figure.expect[number];
        let missing = || self.unmeasured.iter().filter(|one| expected.concerns(&one.cell));
        let mut reasons = Vec::new();
        let name = match self.checks[number].verdict {
            FigureVerdict::Agrees => "agrees",
            FigureVerdict::AgreesInPart => "agrees in part",
            FigureVerdict::Differs => {
                reasons.push(controls.reason(expected));
                "differs"
            }
            FigureVerdict::NotMeasured if self.not_simulated(expected) => {
                reasons.push("callgrind does not simulate the measure of the claim".to_string());
                "not measurable here"
            }
            FigureVerdict::NotMeasured if missing().any(|one| one.unavailable) => "not measurable here",
            FigureVerdict::NotMeasured => "not measured",
        };
        reasons.extend(distinct_reasons(missing()));
        (name, reasons)
    }

    /// Whether the figure is simulated, without the measure of an expectation.
    fn not_simulated(&self, expected: &Expectation) -> bool {
        let figure = self.figure.figure;
        let simulated = |plot: &PlotDefinition| plot.y.iter().any(|name| name == expected.measure(plot));
        figure.simulated && !figure.plot.as_ref().is_some_and(simulated)
    }

    /// All reasons why cells were not measured, each once: first what this machine cannot do.
    pub(super) fn reasons(&self) -> Vec<String> {
        let (unavailable, others): (Vec<_>, Vec<_>) = self.unmeasured.iter().partition(|one| one.unavailable);
        distinct_reasons(unavailable.into_iter().chain(others))
    }
}

fn distinct_reasons<'a>(cells: impl Iterator<Item = &'a UnmeasuredCell>) -> Vec<String> {
    let mut reasons: Vec<String> = Vec::new();
    for one in cells {
        if !reasons.contains(&one.reason) {
            reasons.push(one.reason.clone());
        }
    }
    reasons
}
