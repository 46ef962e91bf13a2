//! The log of an evaluation as Python objects.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use tierdex::explain::{Explanation, ListUse, SegmentExplanation};

/// The log of an evaluation as a dict: number of hits, score threshold, and a dict for each segment.
pub fn explanation_dict<'py>(
    py: Python<'py>,
    explained: &Explanation,
    ids: &[String],
) -> PyResult<Bound<'py, PyDict>> {
    let hits = explained.result.hits.iter().zip(ids).map(|(hit, id)| (id.as_str(), hit.score));
    let segments =
        explained.segments.iter().map(|part| segment_dict(py, part)).collect::<PyResult<Vec<_>>>()?;
    let out = PyDict::new(py);
    out.set_item("hits", hits.collect::<Vec<_>>())?;
    out.set_item("total", explained.result.total)?;
    out.set_item("threshold", explained.threshold)?;
    out.set_item("segments", segments)?;
    Ok(out)
}

fn segment_dict<'py>(py: Python<'py>, part: &SegmentExplanation) -> PyResult<Bound<'py, PyDict>> {
    let nodes: Vec<_> = part.evaluation.nodes.iter().map(|(depth, node)| (*depth, node.as_str())).collect();
    let lists = part.evaluation.lists.iter().map(|list| list_dict(py, list)).collect::<PyResult<Vec<_>>>()?;
    let reads: Vec<_> = part.files.iter().map(|file| (file.file.as_str(), file.reads, file.bytes)).collect();
    let out = PyDict::new(py);
    out.set_item("id", part.id)?;
    out.set_item("documents", part.documents)?;
    out.set_item("strategy", part.evaluation.strategy.name())?;
    out.set_item("matches", part.matches)?;
    out.set_item("threshold_before", part.threshold_before)?;
    out.set_item("threshold_after", part.threshold_after)?;
    out.set_item("nodes", PyList::new(py, nodes)?)?;
    out.set_item("lists", lists)?;
    out.set_item("reads", reads)?;
    Ok(out)
}

fn list_dict<'py>(py: Python<'py>, list: &ListUse) -> PyResult<Bound<'py, PyDict>> {
    let blocks = &list.blocks;
    let out = PyDict::new(py);
    out.set_item("field", &list.field)?;
    out.set_item("term", &list.term)?;
    out.set_item("documents", list.documents)?;
    out.set_item("weight", list.weight)?;
    out.set_item("max_score", list.highest_bound)?;
    out.set_item("blocks", blocks.blocks)?;
    out.set_item("decoded", blocks.decoded)?;
    out.set_item("skipped_by_bound", blocks.by_bound)?;
    out.set_item("skipped_by_range", blocks.by_range)?;
    out.set_item("looked_up", list.candidates)?;
    out.set_item("kept", list.kept)?;
    Ok(out)
}
