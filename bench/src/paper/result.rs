//! The result of a figure: rows of its cells, the points of its plot, and its checked expectations.

use super::cell::{Cell, Row};
use super::expand::{PlannedCell, cells};
use super::expectation::{Checked, Verdict};
use super::measure::Missing;
use super::points::{Point, points};
use super::registry::Figure;
use super::scale::Scale;
use super::store::ResultStore;
use crate::Result;

/// A figure with everything that was measured for it.
pub(super) struct FigureResult<'a> {
    pub(super) figure: Figure<'a>,
    pub(super) scale: Scale,
    /// Cells of the figure at this scale.
    pub(super) cells: Vec<Cell>,
    /// Rows of all cells and rounds.
    pub(super) rows: Vec<Row>,
    /// Medians and ranges over the rounds.
    pub(super) points: Vec<Point>,
    /// The expectations, in the order of the definition.
    pub(super) checks: Vec<Checked>,
    /// Why cells were not measured, each reason once: what this machine cannot do, and then why cells failed
    /// or were not run.
    pub(super) missing: Vec<String>,
    pub(super) failures: Vec<String>,
}

impl<'a> FigureResult<'a> {
    /// Collects the results of a figure from the store.
    ///
    /// # Errors
    /// If its definition is malformed.
    pub(super) fn new(
        figure: Figure<'a>,
        scale: Scale,
        store: &ResultStore,
        missing: &Missing,
    ) -> Result<FigureResult<'a>> {
        let definition = figure.figure;
        let planned = cells(figure.paper, definition, scale)?;
        let (mut machine, mut failures): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
        let add = |reasons: &mut Vec<String>, why: String| {
            if !reasons.contains(&why) {
                reasons.push(why);
            }
        };
        for PlannedCell { cell, rounds } in &planned {
            match (missing.of(cell), store.failure(cell)) {
                (Some(why), _) => add(&mut machine, why.to_string()),
                (None, Some(why)) => add(&mut failures, format!("failed: {why}")),
                (None, None) if (1..=*rounds).all(|round| store.has_rows(cell, round)) => {}
                (None, None) => add(&mut failures, "not run yet".to_string()),
            }
        }
        let cells: Vec<Cell> = planned.into_iter().map(|planned| planned.cell).collect();
        let rows: Vec<Row> = cells.iter().flat_map(|cell| store.rows(cell)).collect();
        let (points, checks) = match &definition.plot {
            Some(plot) => {
                let measures: Vec<&str> = plot.y.iter().map(String::as_str).collect();
                let checks = definition.expect.iter().map(|expected| expected.check(plot, &rows));
                (points(plot, &measures, &rows), checks.collect())
            }
            None => (Vec::new(), Vec::new()),
        };
        Ok(FigureResult { figure, scale, cells, rows, points, checks, missing: machine, failures })
    }

    /// The result of the n-th expectation, and a possible reason if it differs. If cells are missing, both
    /// say why.
    pub(super) fn verdict(&self, number: usize) -> (&'static str, String) {
        let expected = &self.figure.figure.expect[number];
        let partly = |reason: String| match self.reasons() {
            missing if missing.is_empty() => reason,
            missing if reason.is_empty() => format!("without some cells: {missing}"),
            missing => format!("{reason}; without some cells: {missing}"),
        };
        match self.checks[number].verdict {
            Verdict::Agrees => ("agrees", partly(String::new())),
            Verdict::Differs => {
                let reason = expected.because.as_ref().map(|because| format!("possible reason: {because}"));
                ("differs", partly(reason.unwrap_or_else(|| "not explained".to_string())))
            }
            Verdict::NotMeasured if !self.missing.is_empty() => ("not measurable here", self.reasons()),
            Verdict::NotMeasured => ("not measured", self.reasons()),
        }
    }

    /// All reasons why cells were not measured.
    pub(super) fn reasons(&self) -> String {
        let all = self.missing.iter().chain(&self.failures);
        all.map(String::as_str).collect::<Vec<_>>().join("; ")
    }
}
