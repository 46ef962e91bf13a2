//! Cells of the experiment [`crate::codecs`]: a row for each codec, kernel and length of lists.

use crate::paper::measure::{context::Context, settings::parse_settings, settings::rows_of};
use crate::{
    Result, codecs::Flags, paper::cell::FigureCell, paper::cell::Row, paper::data::IndexSpec,
    request::ExperimentRequest,
};
use std::path::Path;

/// The flags of a cell. `codec` names the codec that is measured, not that of an index.
pub(super) fn flags_of(cell: &FigureCell, index: Option<&Path>) -> Result<Flags> {
    let mut flags: Flags = parse_settings(cell, &[], &["codec"])?;
    flags.codec.extend(cell.get("codec").map(str::to_string));
    flags.index = index.map(Path::to_path_buf);
    Ok(flags)
}

pub(super) fn measure(cell: &FigureCell, context: &Context<'_>) -> Result<Vec<Row>> {
    let index = IndexSpec::of(cell)?.map(|spec| context.data.path(&spec));
    Ok(rows_of(flags_of(cell, index.as_deref())?.answer(context.stop)?))
}
