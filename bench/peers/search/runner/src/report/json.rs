//! The rows of a run as JSON: one object a line.

use super::limit;
use crate::results::{Results, Row};
use serde_json::{Value, json};

/// Corpus, sets, indexing, checks and speeds.
pub fn text(results: &Results) -> String {
    let lines = |values: Vec<Value>| {
        let lines: Vec<String> = values.iter().map(ToString::to_string).collect();
        lines.join(",\n")
    };
    let corpus = json!({
        "documents": results.corpus.documents,
        "bytes": results.corpus.bytes,
        "terms": results.corpus.terms.len(),
    });
    format!(
        "{{\"corpus\":{corpus},\n\"sets\":[\n{}\n],\n\"indexing\":[\n{}\n],\n\"checks\":[\n{}\n],\n\"speeds\":[\n{}\n],\n\
         \"limited\":[\n{}\n]}}\n",
        lines(sets(results)),
        lines(indexing(results)),
        lines(checks(results)),
        lines(results.rows.iter().flat_map(speeds).collect()),
        lines(results.limited.as_ref().map(limit::speeds_json).unwrap_or_default())
    )
}

fn sets(results: &Results) -> Vec<Value> {
    results.sets.iter().map(|set| json!({ "set": set.name, "queries": set.queries.len() })).collect()
}

fn indexing(results: &Results) -> Vec<Value> {
    let row = |row: &crate::indexing::IndexingRow| {
        json!({
            "engine": row.kind.name(), "index": row.name, "version": row.version, "rounds": row.rounds, "cpu_s": row.usage.cpu_s,
            "wall_s": row.usage.wall_s, "peak_bytes": row.usage.peak_bytes, "index_bytes": row.index_bytes,
        })
    };
    results.indexing.iter().map(row).collect()
}

fn checks(results: &Results) -> Vec<Value> {
    let row = |check: &crate::check::Check| {
        json!({
            "set": check.set, "engine": check.name, "beside": check.base, "counted": check.counted,
            "differ": check.differ, "overlap": check.overlap, "scores": check.scores,
        })
    };
    let limited = results.limited.iter().flat_map(|limited| &limited.checks);
    results.checks.iter().chain(limited).map(row).collect()
}

/// An object an engine.
fn speeds(row: &Row) -> Vec<Value> {
    let cell = |cell: &crate::results::EngineCell| {
        json!({
            "threads": row.threads, "set": row.set, "command": row.command, "engine": cell.name,
            "qps": cell.qps(), "rounds": cell.rounds, "p50_ns": cell.p50_ns, "p99_ns": cell.p99_ns,
            "sum": cell.sum, "times": row.times,
        })
    };
    row.cells.iter().map(cell).collect()
}
