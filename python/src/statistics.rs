//! `tierdex.Statistics`: the statistics of shards as a value, and the merge of their hits.

use crate::errors::{Failure, guard_entry_point};
use crate::hits::Hits;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Arc;
use tierdex::{ShardHits, TotalHits};

/// The statistics that the scores of one query depend on: of a shard, of all shards, or the question about
/// which all shards are asked again. Pickles, and `bytes(statistics)`, are equal on all machines.
#[pyclass(frozen, module = "tierdex")]
pub struct Statistics(pub Arc<tierdex::Statistics>);

#[pymethods]
impl Statistics {
    /// Adds the statistics of all shards for a query.
    #[staticmethod]
    fn merge(py: Python<'_>, parts: Vec<PyRef<'_, Statistics>>) -> PyResult<Statistics> {
        guard_entry_point(py, || {
            let merged = tierdex::Statistics::merge(parts.iter().map(|part| &*part.0));
            let merged = merged.map_err(|error| Failure::from(error).into_exception(py))?;
            Ok(Statistics(Arc::new(merged)))
        })
    }

    /// Statistics from their bytes.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<Statistics> {
        guard_entry_point(py, || {
            let decoded = tierdex::Statistics::decode(data);
            let decoded = decoded.map_err(|error| Failure::from(error).into_exception(py))?;
            Ok(Statistics(Arc::new(decoded)))
        })
    }

    /// Whether shards can score by these statistics. If not, pass them to `Index.statistics` of all shards
    /// and merge the answers.
    #[getter]
    fn complete(&self) -> bool {
        self.0.is_complete()
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.encode())
    }

    fn __eq__(&self, other: &Statistics) -> bool {
        self.0 == other.0
    }

    fn __hash__(&self) -> u64 {
        self.0.hash()
    }

    fn __repr__(&self) -> String {
        format!("<tierdex.Statistics: {}>", if self.complete() { "complete" } else { "not complete" })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let restore = slf.py().import("tierdex._restore")?.getattr("statistics")?;
        Ok((restore, (slf.get().__bytes__(slf.py()),)))
    }
}

/// Position of a merged hit: its shard, and its position in the hits of the shard.
type MergedPosition = (usize, usize);

/// The positions of the best hits, the number of matches, whether that is exact, whether a deadline passed,
/// and the shards without an answer.
type MergedState = (Vec<MergedPosition>, u64, bool, bool, Vec<usize>);

/// Merges the hits of shards, `None` for one without an answer.
#[pyfunction]
pub fn _merge_hits(
    py: Python<'_>,
    hits: Vec<Option<PyRef<'_, Hits>>>,
    k: usize,
    allow_missing: bool,
) -> PyResult<MergedState> {
    guard_entry_point(py, || {
        // The position of a hit takes the place of its document: both have the same order among equal scores.
        let with_positions = |part: &PyRef<'_, Hits>| {
            let mut part = part.of_shard();
            (0..).zip(&mut part.hits).for_each(|(position, hit)| hit.document = position);
            part
        };
        let parts: Vec<Option<ShardHits>> =
            hits.iter().map(|part| part.as_ref().map(with_positions)).collect();
        let merged = tierdex::merge_hits(&parts, k, allow_missing);
        let merged = merged.map_err(|error| Failure::from(error).into_exception(py))?;
        let positions = merged.hits.iter().map(|found| (found.shard, found.hit.document as usize)).collect();
        let is_exact = matches!(merged.total, TotalHits::Exact(_));
        Ok((positions, merged.total.value(), is_exact, merged.timed_out, merged.missing))
    })
}
