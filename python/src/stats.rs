//! Sizes and counters of an index, its engine and a check, as Python objects.

use crate::errors::Failure;
use pyo3::{prelude::*, types::PyDict};
use tierdex::{CheckReport, Engine, Snapshot, io::PAGE};

/// The sizes and counters as a dict: documents, segments, fields, memory and cache.
pub fn stats_dict<'py>(
    py: Python<'py>,
    engine: &Engine,
    snapshot: &Snapshot,
) -> PyResult<Bound<'py, PyDict>> {
    let index = snapshot.index();
    let segments = || index.manifests().flat_map(|manifest| &manifest.segments);
    let files = segments().flat_map(|segment| segment.named_files());
    let out = PyDict::new(py);
    out.set_item("generation", index.generation())?;
    let written: u64 = index.manifests().map(|manifest| manifest.documents()).sum();
    out.set_item("updatable", index.is_updatable())?;
    out.set_item("documents", index.documents())?;
    out.set_item("deleted_documents", written - index.documents())?;
    out.set_item("scores_exact", index.inexact_deletes() == 0)?;
    out.set_item("segments", segments().count())?;
    out.set_item("bytes", files.map(|file| file.seal.len).sum::<u64>())?;
    let fields = PyDict::new(py);
    for (number, field) in index.schema().fields.iter().enumerate() {
        let of = || segments().map(|segment| segment.stats(number));
        let one = PyDict::new(py);
        let documents = of().map(|stats| u64::from(stats.documents)).sum::<u64>();
        let tokens = of().map(|stats| stats.tokens).sum::<u64>();
        one.set_item("documents", documents)?;
        one.set_item("terms", of().map(|stats| stats.terms).sum::<u64>())?;
        one.set_item("postings", of().map(|stats| stats.postings).sum::<u64>())?;
        one.set_item("tokens", tokens)?;
        one.set_item("average_length", tokens as f64 / documents.max(1) as f64)?;
        fields.set_item(&field.name, one)?;
    }
    out.set_item("fields", fields)?;
    let memory = engine.memory();
    let parts = PyDict::new(py);
    for part in &memory.rows {
        parts.set_item(part.what, part.bytes)?;
    }
    out.set_item("dram", memory.dram)?;
    out.set_item("memory", parts)?;
    let (requests, metrics) = (PyDict::new(py), engine.metrics());
    for (name, of) in [("interactive", metrics.interactive), ("batch", metrics.batch)] {
        let one = PyDict::new(py);
        one.set_item("queued", of.queued)?;
        one.set_item("running", of.running)?;
        one.set_item("answered", of.answered)?;
        one.set_item("cancelled", of.cancelled)?;
        one.set_item("expired", of.expired)?;
        one.set_item("queued_seconds", of.queued_time.as_secs_f64())?;
        one.set_item("p50", of.latencies.p50.as_secs_f64())?;
        one.set_item("p99", of.latencies.p99.as_secs_f64())?;
        requests.set_item(name, one)?;
    }
    requests.set_item("rejected", metrics.rejected)?;
    out.set_item("requests", requests)?;
    let (cache, stats) = (PyDict::new(py), engine.stats());
    cache.set_item("hits", stats.hits)?;
    cache.set_item("misses", stats.misses)?;
    cache.set_item("evictions", stats.evictions)?;
    cache.set_item("reads", stats.reads)?;
    cache.set_item("bytes_read", stats.bytes_read)?;
    cache.set_item("capacity", stats.frames * PAGE)?;
    cache.set_item("used", stats.frames_used() * PAGE)?;
    out.set_item("cache", cache)?;
    out.set_item("read_engine", engine.read_method())?;
    Ok(out)
}

/// The report of a check as a dict.
///
/// # Errors
/// The first problem, as an exception.
pub fn check_report_dict<'py>(py: Python<'py>, report: CheckReport) -> PyResult<Bound<'py, PyDict>> {
    let problems: Vec<String> = report.problems.iter().map(ToString::to_string).collect();
    if let Some(first) = report.problems.into_iter().next() {
        let raised = Failure::from(first).into_exception(py);
        for other in &problems[1..] {
            raised.add_note(py, other)?;
        }
        return Err(raised);
    }
    let out = PyDict::new(py);
    out.set_item("generation", report.generation)?;
    out.set_item("files", report.files)?;
    out.set_item("bytes", report.bytes)?;
    out.set_item("documents", report.documents)?;
    out.set_item("terms", report.terms)?;
    out.set_item("postings", report.postings)?;
    out.set_item("orphans", report.orphans)?;
    Ok(out)
}
