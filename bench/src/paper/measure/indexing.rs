//! Cells of the experiment that measures the phases of indexing.

use crate::paper::measure::settings::{index_of, parse_settings, rows_of};
use crate::paper::{cell::FigureCell, cell::Row, data::IndexSpec, measure::context::Context};
use crate::{Result, request::ExperimentRequest, request::IndexingRequest};
use clap::Args;

/// The experiment has no flags.
#[derive(Args)]
struct NoFlags {}

/// Checks that a cell has no settings but those of its collection.
pub(super) fn check_settings(cell: &FigureCell) -> Result<IndexSpec> {
    parse_settings::<NoFlags>(cell, &[], &[])?;
    index_of(cell)
}

pub(super) fn measure(cell: &FigureCell, context: &Context<'_>) -> Result<Vec<Row>> {
    let IndexSpec { docs, postings, vocabulary, codec, .. } = check_settings(cell)?;
    let (dir, codec) = (context.data.dir.clone(), codec.name().to_string());
    let request = IndexingRequest { dir, docs, postings, vocabulary, codec };
    Ok(rows_of(request.answer(context.stop)?))
}
