//! Bytes of the parts of an index.

use crate::paper::{cell::Row, data::IndexSpec, measure::context::Context, measure::settings::rows_of};
use crate::{Result, request::ExperimentRequest, request::SizesRequest};

pub(super) fn measure(spec: &IndexSpec, context: &Context<'_>) -> Result<Vec<Row>> {
    let request = SizesRequest { index: context.data.path(spec), ids_only: spec.ids_only };
    Ok(rows_of(request.answer(context.stop)?))
}

/// The sizes, in one row.
pub(super) fn sizes_row(spec: &IndexSpec, context: &Context<'_>) -> Result<Row> {
    Ok(measure(spec, context)?.pop().unwrap_or_default())
}
