//! Measures a cell by the experiment that it names.

mod cache;
mod callgrind;
mod codecs;
mod context;
mod explored;
mod indexing;
mod intersect;
mod missing;
mod settings;
mod sizes;

pub(super) use callgrind::SIMULATED_QUERIES_MAX;
pub(super) use context::Context;
pub(super) use missing::MissingFeatures;

use crate::paper::{
    cell::Experiment, cell::FigureCell, data::INDEX_SETTINGS, data::IndexSpec, store::Outcome,
};
use crate::{Error, Result, cell::one_line};
use settings::index_of;

/// Measures a cell. Returns `None` if the stop signal was raised.
///
/// # Errors
/// If the settings of the cell are wrong. A measurement that fails is an outcome, not an error.
pub(super) fn measure_cell(cell: &FigureCell, context: &Context<'_>) -> Result<Option<Outcome>> {
    let rows = match cell.experiment {
        Experiment::Cache => cache::measure(cell, context)?,
        Experiment::Callgrind => callgrind::measure(cell, context)?,
        Experiment::Codecs => Some(codecs::measure(cell, context)),
        Experiment::Explored => Some(explored::measure(cell, context)),
        Experiment::Indexing => Some(indexing::measure(cell, context)),
        Experiment::Intersect => Some(intersect::measure(cell, context)),
        Experiment::Sizes => Some(sizes::measure(&index_of(cell)?, context)),
    };
    match rows {
        Some(Err(Error::Interrupted)) | None => Ok(None),
        Some(Err(Error::Usage(why))) => Err(Error::Failed(format!("{cell}: {why}"))),
        Some(Err(error)) => Ok(Some(Outcome::Failed(one_line(&error.to_string())))),
        Some(Ok(rows)) => Ok(Some(Outcome::Rows(rows))),
    }
}

/// Checks that the experiment accepts the settings of a cell.
///
/// # Errors
/// If the experiment does not accept them.
pub(super) fn check_settings(cell: &FigureCell) -> Result<()> {
    IndexSpec::of(cell)?;
    match cell.experiment {
        Experiment::Cache | Experiment::Callgrind | Experiment::Explored => {
            cache::flags_of(cell, "index", "dram", None, Some("0"), true).map(drop)
        }
        Experiment::Indexing => indexing::check_settings(cell).map(drop),
        Experiment::Codecs => codecs::flags_of(cell, None).map(drop),
        Experiment::Intersect => intersect::flags_of(cell, None).map(drop),
        Experiment::Sizes => match cell.settings.keys().find(|name| !INDEX_SETTINGS.contains(&name.as_str()))
        {
            Some(name) => {
                Err(Error::Failed(format!("{cell}: `{name}` does not change the size of an index")))
            }
            None => index_of(cell).map(drop),
        },
    }
}
