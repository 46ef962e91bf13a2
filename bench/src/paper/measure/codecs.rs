//! Cells of the experiment [`crate::codecs`]: a row for each codec, kernel and length of lists.

use crate::paper::measure::{context::Context, settings::members_of, settings::parse_settings};
use crate::{
    Result, codecs, codecs::Flags, paper::cell::FigureCell, paper::cell::Row, paper::data::IndexSpec,
};
use serde_json::Value;
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
    let results = codecs::run(&flags_of(cell, index.as_deref())?, Vec::new(), context.stop)?;
    let Value::Array(rows) = results.rows().to_json() else { return Ok(Vec::new()) };
    // Left out are sums over all lengths, and copies of uncompressed values.
    let measured =
        |row: &Row| row.get("k") != Some(&Value::Null) && row.get("codec") != Some(&"memcpy".into());
    Ok(rows.into_iter().map(members_of).filter(measured).collect())
}
