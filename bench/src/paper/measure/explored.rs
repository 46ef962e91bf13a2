//! Shares of the postings that the queries of [`crate::cache`] explore (thesis, figure 8.8).

use crate::paper::measure::{cache::flags_of, context::Context, settings::index_of, settings::rows_of};
use crate::request::{DrawRequest, ExperimentRequest, ExploredRequest};
use crate::{Result, paper::cell::FigureCell, paper::cell::Row};

pub(super) fn measure(cell: &FigureCell, context: &Context<'_>) -> Result<Vec<Row>> {
    let dir = context.data.path(&index_of(cell)?).display().to_string();
    let flags = flags_of(cell, &dir, &context.region, None, None, false)?;
    let queries = DrawRequest {
        index: flags.index,
        class: flags.classes[0],
        shape: flags.shapes[0],
        repeats: flags.repeats[0],
        count: flags.count,
        seed: flags.seed,
    };
    Ok(rows_of(ExploredRequest(queries).answer(context.stop)?))
}
