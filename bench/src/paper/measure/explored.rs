//! Shares of the postings that the queries of [`crate::cache`] explore (thesis, figure 8.8).

use crate::paper::measure::{cache::flags_of, context::Context, settings::index_of, settings::members_of};
use crate::{Result, cache::count_explored, paper::cell::FigureCell, paper::cell::Row};
use serde_json::json;

pub(super) fn measure(cell: &FigureCell, context: &Context<'_>) -> Result<Vec<Row>> {
    let dir = context.data.path(&index_of(cell)?).display().to_string();
    let found = count_explored(&flags_of(cell, &dir, &context.region, None, None, false)?, context.stop)?;
    let percent = |postings: u64| 100.0 * postings as f64 / found.index.max(1) as f64;
    Ok(vec![members_of(json!({
        "postings": found.index,
        "total_percent": percent(found.total),
        "unique_percent": percent(found.unique),
        "unique_share": found.unique as f64 / found.total.max(1) as f64,
    }))])
}
