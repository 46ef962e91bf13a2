//! Cells of the experiment [`crate::cache`], each in a process of its own.
//!
//! The setting `cores` is the number of processes that run at the same time, each with a copy of the index
//! and a cache of its own (thesis, section 8.2.3), pinned to a processor of its own. Their queries per second
//! are summed, and their latencies averaged. The setting `kernel` names the SIMD kernel of the process.

use crate::paper::measure::settings::{index_of, members_of, parse_settings};
use crate::paper::measure::{context::Context, context::TIER_PLACEHOLDER, sizes};
use crate::{Error, Result, cache, cache::CellRow, cache::Flags, paper::cell::FigureCell, paper::cell::Row};
use serde_json::{Value, json};
use tierdex::codec::Kernel;

/// Settings that are not passed on as flags of the experiment: they choose the processes and their memory.
const PROCESS_SETTINGS: [&str; 5] = ["cores", "region", "meta-tier", "keep-in", "kernel"];

/// The flags of a cell that is measured on the index in `dir`.
pub(super) fn flags_of(
    cell: &FigureCell,
    dir: &str,
    region: &str,
    tier: Option<&str>,
    slow_tier: Option<&str>,
    groups: bool,
) -> Result<Flags> {
    // Without a tier the cell is not measured, or is a held index whose tier is emulated in DRAM.
    let real = |name: &'static str| match cell.get(name) {
        Some(TIER_PLACEHOLDER) => Some(tier.unwrap_or("dram")),
        other => other,
    };
    let mut first = vec![dir.to_string(), "--out=unused".to_string()];
    first.push(format!("--region={}", real("region").unwrap_or(region)));
    first.extend(real("meta-tier").map(|place| format!("--meta-tier={place}")));
    first.extend(real("keep-in").map(|region| format!("--keep-in={region}")));
    let slow_tier = slow_tier.filter(|_| cell.get("keep-in") == Some(TIER_PLACEHOLDER));
    first.extend(slow_tier.map(|delay| format!("--slow-tier={delay}")));
    if !groups {
        first.extend(["--no-group".to_string(), "--keep-caches".to_string()]);
    }
    process_count(cell)?;
    parse_settings(cell, &first, &PROCESS_SETTINGS)
}

/// Number of processes that run at the same time.
fn process_count(cell: &FigureCell) -> Result<usize> {
    let cores = cell.get("cores").map_or(Ok(1), str::parse);
    let cores = cores.ok().filter(|cores| (1..=64).contains(cores));
    cores.ok_or_else(|| Error::Failed(format!("{cell}: `cores` is not a number from 1 to 64")))
}

/// Measures a cell; `None` if the stop signal was raised.
pub(super) fn measure(cell: &FigureCell, context: &Context<'_>) -> Result<Option<Result<Vec<Row>>>> {
    let (spec, cores) = (index_of(cell)?, process_count(cell)?);
    let indexes = match context.data.copies(&spec, cores, context.stop) {
        Err(Error::Interrupted) => return Ok(None),
        indexes => indexes?,
    };
    let dir = context.data.path(&spec).display().to_string();
    let (tier, slow_tier) = (context.tier.as_deref(), context.slow_tier.as_deref());
    let flags = flags_of(cell, &dir, &context.region, tier, slow_tier, context.groups)?;
    let kernel = cell.get("kernel").map(Kernel::from_name).transpose();
    let kernel = kernel.map_err(|error| Error::Failed(error.to_string()))?;
    let forced = kernel.map(|kernel| context.launch.with_kernel(kernel, &[])).transpose()?;
    let launch = forced.as_ref().unwrap_or(context.launch);
    let rows = match cache::measure(&flags, &indexes, cell.get("cores").is_some(), launch, context.stop) {
        Ok(Some(rows)) => rows,
        Ok(None) => return Ok(None),
        Err(error) => return Ok(Some(Err(error))),
    };
    Ok(Some(sum_of_processes(&rows).and_then(|mut row| {
        row.extend(sizes::sizes_row(&spec, context)?);
        let mut all = take_lookahead_samples(&mut row);
        all.insert(0, row);
        Ok(all)
    })))
}

/// Joins the rows of processes that ran at the same time: their speeds are summed, and their latencies
/// averaged.
fn sum_of_processes(rows: &[CellRow]) -> Result<Row> {
    if let Some(why) = rows.iter().find_map(|row| row.outcome.as_ref().err()) {
        return Err(Error::Failed(why.clone()));
    }
    let all: Vec<Row> = rows.iter().map(|row| members_of(row.to_json())).collect();
    let mut row = all.first().cloned().unwrap_or_default();
    if all.iter().any(|other| other.get("checksum") != row.get("checksum")) {
        return Err(Error::Failed("the processes of a cell answer the same queries differently".to_string()));
    }
    let sum = |field: &str| all.iter().filter_map(|row| row.get(field).and_then(Value::as_f64)).sum::<f64>();
    for field in ["qps", "first_qps"] {
        row.insert(field.to_string(), json!(sum(field)));
    }
    for field in ["p50_us", "p99_us"] {
        row.insert(field.to_string(), json!(sum(field) / all.len().max(1) as f64));
    }
    // Nested members become fields, so that plots can name them.
    if let Some(Value::Object(lists)) = row.remove("lists") {
        row.extend(lists.into_iter().filter(|(name, _)| name == "miss_rate"));
    }
    let mean = sum("seconds") / sum("queries").max(1.0);
    row.insert("mean_us".to_string(), json!(1e6 * mean));
    Ok(row)
}

/// Removes the lookahead samples from a row. Returns a row for each sample, and one with their mean.
fn take_lookahead_samples(row: &mut Row) -> Vec<Row> {
    let Some(Value::Array(samples)) = row.remove("lookahead_samples") else { return Vec::new() };
    let pair = |sample: &Value| Some((sample[0].as_u64()?, sample[1].as_u64()?));
    let samples: Vec<(u64, u64)> = samples.iter().filter_map(pair).collect();
    if samples.is_empty() {
        return Vec::new();
    }
    let mode = row.get("mode").cloned().unwrap_or_default();
    let mean = samples.iter().map(|sample| sample.1 as f64).sum::<f64>() / samples.len() as f64;
    let rows = samples.iter().map(|(ended, ahead)| json!({ "mode": mode, "ended": ended, "ahead": ahead }));
    rows.chain([json!({ "mode": mode, "ended": "all", "ahead_mean": mean })]).map(members_of).collect()
}
