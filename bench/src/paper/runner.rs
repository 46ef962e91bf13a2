//! The runner: all cells of the selected figures, round after round.
//!
//! 1. Collect the cells of all figures. A cell that several figures share is measured once per round.
//! 2. Leave out cells that this machine cannot measure, and those that an earlier run finished.
//! 3. Generate the indexes that are missing.
//! 4. In each round measure every cell once, so that a disturbance of the machine affects all of them, and
//!    store each result before the next cell starts.

use crate::paper::measure::{Context, MissingFeatures, check_settings, measure_cell};
use crate::paper::store::{FinishedCell, Outcome, ResultStore};
use crate::paper::{cell::Experiment, cell::FigureCell, data::IndexSpec, registry::Figure, scale::Scale};
use crate::{Error, Result, paper::expand::FigurePlannedCell, paper::expand::figure_cells};
use std::{collections::BTreeMap, io::Write, time::Instant};

/// The cells of a run, in the order of the figures.
pub(super) struct FigureRunPlan {
    cells: Vec<FigurePlannedCell>,
}

impl FigureRunPlan {
    /// All cells of `figures`, each with the largest number of rounds that a figure needs.
    ///
    /// # Errors
    /// If a definition is malformed. That is found before anything is measured.
    pub(super) fn new(figures: &[Figure<'_>], scale: Scale) -> Result<FigureRunPlan> {
        let mut rounds: BTreeMap<FigureCell, usize> = BTreeMap::new();
        let mut order = Vec::new();
        for figure in figures {
            figure.check_definition()?;
            for planned in figure_cells(figure.paper, figure.figure, scale)? {
                check_settings(&planned.cell)?;
                let most = rounds.entry(planned.cell.clone()).or_insert_with(|| {
                    order.push(planned.cell);
                    0
                });
                *most = planned.rounds.max(*most);
            }
        }
        let planned = order.into_iter().map(|cell| FigurePlannedCell { rounds: rounds[&cell], cell });
        Ok(FigureRunPlan { cells: planned.collect() })
    }

    /// Checks that no cell failed.
    ///
    /// # Errors
    /// The number of failed cells and the first reason.
    pub(super) fn check(&self, store: &ResultStore, missing: &MissingFeatures) -> Result<()> {
        let possible = self.cells.iter().filter(|planned| missing.of(&planned.cell).is_none());
        let failures: Vec<&str> = possible.filter_map(|planned| store.failure(&planned.cell)).collect();
        let Some(first) = failures.first() else { return Ok(()) };
        let (count, all) = (failures.len(), self.cells.len());
        Err(Error::Failed(format!("{count} of {all} cells failed, the first one: {first}")))
    }

    /// Measures everything that is not in the store, and prints a line for each cell.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if the stop signal was raised; if a definition is wrong, an index cannot be
    /// written, or the output fails.
    pub(super) fn measure_missing(
        &self,
        context: &Context<'_>,
        missing: &MissingFeatures,
        store: &mut ResultStore,
        out: &mut dyn Write,
    ) -> Result<()> {
        let rounds = self.cells.iter().map(|planned| planned.rounds).max().unwrap_or(0);
        let possible = || self.cells.iter().filter(|planned| missing.of(&planned.cell).is_none());
        let mut left: Vec<(&FigureCell, usize)> = Vec::new();
        for round in 1..=rounds {
            let cells = possible().filter(|planned| planned.rounds >= round).map(|planned| &planned.cell);
            left.extend(cells.filter(|cell| !store.has_rows(cell, round)).map(|cell| (cell, round)));
        }
        make_indexes(&left, context, out)?;
        let mut pace = RemainingTime::default();
        for (number, &(cell, round)) in left.iter().enumerate() {
            let began = Instant::now();
            let outcome = match context.stop.check() {
                Ok(()) => measure_cell(cell, context)?,
                Err(_) => None,
            };
            let Some(outcome) = outcome else { return Err(Error::Interrupted) };
            let seconds = began.elapsed().as_secs_f64();
            let failure = match &outcome {
                Outcome::Failed(why) => format!(": {why}"),
                Outcome::Rows(_) => String::new(),
            };
            store.add(cell, round, FinishedCell { seconds, outcome })?;
            pace.add(cell, seconds);
            let rest = pace.remaining_text(left[number + 1..].iter().map(|(cell, _)| *cell));
            let line =
                format!("{}/{} {seconds:.1} s, {rest} left: {cell}{failure}\n", number + 1, left.len());
            out.write_all(line.as_bytes()).and_then(|()| out.flush()).map_err(Error::Output)?;
        }
        Ok(())
    }
}

/// Generates the indexes of cells.
fn make_indexes(left: &[(&FigureCell, usize)], context: &Context<'_>, out: &mut dyn Write) -> Result<()> {
    let mut made: Vec<IndexSpec> = Vec::new();
    for (cell, _) in left {
        let spec = IndexSpec::of(cell)?.filter(|spec| !made.contains(spec));
        let Some(spec) = spec.filter(|_| cell.experiment != Experiment::Indexing) else { continue };
        let began = Instant::now();
        let exists = context.data.path(&spec).exists();
        context.data.generate_if_missing(&spec, context.stop).map_err(|error| {
            match context.stop.check() {
                Ok(()) => error,
                Err(_) => Error::Interrupted,
            }
        })?;
        if !exists {
            let line = format!("{:.1} s: index {}\n", began.elapsed().as_secs_f64(), spec.name());
            out.write_all(line.as_bytes()).map_err(Error::Output)?;
        }
        made.push(spec);
    }
    Ok(())
}

/// Estimates how long a run will still take, from the times of the cells measured so far.
#[derive(Default)]
struct RemainingTime {
    /// Seconds of each cell, and sum and number for each experiment.
    cells: BTreeMap<FigureCell, f64>,
    experiments: BTreeMap<Experiment, (f64, u32)>,
}

impl RemainingTime {
    fn add(&mut self, cell: &FigureCell, seconds: f64) {
        self.cells.insert(cell.clone(), seconds);
        let (sum, count) = self.experiments.entry(cell.experiment).or_default();
        *sum += seconds;
        *count += 1;
    }

    /// The expected time for `cells` as text. For each it takes the time of the same cell in an earlier
    /// round, else the mean of its experiment, else the mean of all experiments.
    fn remaining_text<'a>(&self, cells: impl Iterator<Item = &'a FigureCell>) -> String {
        let all = self.experiments.values().fold((0.0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
        let mean = |(sum, count): (f64, u32)| sum / f64::from(count.max(1));
        let one = |cell: &FigureCell| match (self.cells.get(cell), self.experiments.get(&cell.experiment)) {
            (Some(seconds), _) => *seconds,
            (None, Some(of)) => mean(*of),
            (None, None) => mean(all),
        };
        let seconds = cells.map(one).fold(0.0, |sum, one| sum + one);
        if seconds < 90.0 {
            format!("about {seconds:.0} s")
        } else {
            format!("about {:.0} min", seconds / 60.0)
        }
    }
}
