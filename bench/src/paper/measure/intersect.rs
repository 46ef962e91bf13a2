//! Cells of the experiment [`crate::intersect`]: a row for each algorithm at each point of a sweep.

use crate::paper::measure::settings::{parse_settings, rows_of};
use crate::paper::{cell::FigureCell, cell::Row, data::IndexSpec, measure::context::Context};
use crate::{Result, intersect::Flags, request::ExperimentRequest};
use std::path::Path;

/// The flags of a cell. The lists are written into a directory below `work`.
pub(super) fn flags_of(cell: &FigureCell, work: Option<&Path>) -> Result<Flags> {
    let mut flags: Flags = parse_settings(cell, &[], &[])?;
    flags.work = work.map(Path::to_path_buf);
    Ok(flags)
}

/// A cell with an index measures generated queries over its lists.
pub(super) fn measure(cell: &FigureCell, context: &Context<'_>) -> Result<Vec<Row>> {
    let mut flags = flags_of(cell, Some(&context.data.dir))?;
    if let Some(spec) = IndexSpec::of(cell)? {
        flags.queries = Some(context.data.queries(&spec)?);
        flags.index = Some(context.data.path(&spec));
    }
    Ok(rows_of(flags.answer(context.stop)?))
}
