//! `tierdex.Hits` and `tierdex.Hit`: the result of a search.

use crate::document::text_of;
use crate::errors::{guard_entry_point, out_of_range, usage_error};
use crate::marks::{MarkedText, has_valid_marks, insert_marks};
use crate::{column::Column, process::ProcessLocal, text::Text, wait::run_without_gil};
use arrow_array::{Float32Array, UInt32Array};
use pyo3::types::{PyList, PySlice};
use pyo3::{exceptions::PyOverflowError, prelude::*};
use std::sync::{Arc, OnceLock};
use tierdex::{
    Query, SearchHit, ShardHits, Snapshot, TotalHits, analysis::Snippet, limits::PREVIEW_TITLE_BYTES,
};

/// Target length of a snippet in bytes.
const SNIPPET_BYTES_TARGET: usize = 180;

/// The result of a search: the best documents, best first.
///
/// Titles, texts and snippets are read when they are asked for, from the commit that was searched. A pickle
/// has ids, scores, titles and snippets.
#[pyclass(frozen, sequence, module = "tierdex")]
pub struct Hits {
    ids: Vec<String>,
    documents: Vec<u32>,
    scores: Vec<f32>,
    /// The scores as integers; empty unless statistics were given.
    units: Vec<u32>,
    /// Number of the directory of each hit; empty if only one was opened.
    parts: Vec<u32>,
    totals: SearchTotals,
    warnings: Vec<String>,
    /// The commit that was searched, and the query; `None` after unpickling.
    source: Option<(ProcessLocal<Arc<Snapshot>>, Query)>,
    /// Title and snippet of each hit; empty until one of them is asked for.
    shown: OnceLock<Vec<(String, Option<MarkedText>)>>,
}

/// Number of matches and times of a search.
#[derive(Clone, Copy)]
struct SearchTotals {
    total: u64,
    exact: bool,
    timed_out: bool,
    generation: u64,
    took: f64,
    queued: f64,
    /// The scale of the scores as integers, and the hash of the statistics by which they were computed.
    scale: i32,
    statistics: u64,
}

type HitsState = (
    (Vec<String>, Vec<u32>, Vec<f32>, Vec<u32>, Vec<u32>),
    (u64, bool, bool, u64, f64, f64, i32, u64),
    Vec<String>,
    Vec<(String, Option<MarkedText>)>,
);

impl Hits {
    /// The hits of a search, with their ids.
    pub fn new(hits: tierdex::Hits, ids: Vec<String>, query: Query, warnings: Vec<String>) -> Hits {
        let totals = SearchTotals {
            total: hits.total.value(),
            exact: matches!(hits.total, TotalHits::Exact(_)),
            timed_out: hits.timed_out,
            generation: hits.snapshot.index().generation(),
            took: hits.took.as_secs_f64(),
            queued: hits.queued.as_secs_f64(),
            scale: hits.scale,
            statistics: hits.statistics_hash(),
        };
        let index = hits.snapshot.index();
        let parts = match index.manifests().count() {
            1 => Vec::new(),
            _ => hits.hits.iter().map(|hit| index.part_of(hit.document) as u32).collect(),
        };
        Hits {
            ids,
            documents: hits.hits.iter().map(|hit| hit.document).collect(),
            scores: hits.hits.iter().map(|hit| hit.score).collect(),
            units: hits.units,
            parts,
            totals,
            warnings,
            source: Some((ProcessLocal::new(hits.snapshot), query)),
            shown: OnceLock::new(),
        }
    }

    /// What the merge of shards needs.
    pub fn of_shard(&self) -> ShardHits {
        let SearchTotals { total, exact, timed_out, scale, statistics, .. } = self.totals;
        let hits = self.documents.iter().zip(&self.scores);
        let hits = hits.map(|(&document, &score)| SearchHit { document, score }).collect();
        let total = if exact { TotalHits::Exact(total) } else { TotalHits::AtLeast(total) };
        ShardHits { statistics, scale, hits, units: self.units.clone(), total, timed_out }
    }

    /// The commit that was searched, and the query.
    fn snapshot_and_query(&self, py: Python<'_>) -> PyResult<(&Arc<Snapshot>, &Query)> {
        let source = self.source.as_ref().and_then(|(snapshot, query)| Some((snapshot.get()?, query)));
        source.ok_or_else(|| {
            usage_error(
                py,
                "these hits come from another process and have no texts: read them by `get`, or search again",
            )
        })
    }

    /// Title and snippet of each hit, read from the commit at the first call.
    fn titles_and_snippets(&self, py: Python<'_>) -> PyResult<&[(String, Option<MarkedText>)]> {
        if let Some(shown) = self.shown.get() {
            return Ok(shown);
        }
        let (snapshot, query) = self.snapshot_and_query(py)?;
        let shown = run_without_gil(py, || {
            let mut highlighter = snapshot.highlighter(query)?;
            let mut show = |&document: &u32| {
                let Some(preview) = highlighter.preview(document, SNIPPET_BYTES_TARGET)? else {
                    return Ok((String::new(), None));
                };
                let Snippet { text, marks } = preview.snippet;
                let marks = marks.into_iter().map(|mark| (mark.start, mark.end)).collect();
                Ok((with_ellipsis_if_cut(preview.title), Some((text, marks))))
            };
            self.documents.iter().map(&mut show).collect::<tierdex::Result<Vec<_>>>()
        })?;
        Ok(self.shown.get_or_init(|| shown))
    }

    fn hit_at(slf: &Bound<'_, Hits>, position: usize) -> Hit {
        Hit { hits: slf.clone().unbind(), position }
    }
}

#[pymethods]
impl Hits {
    /// Number of matching documents; a lower bound unless `exact`.
    #[getter]
    fn total(&self) -> u64 {
        self.totals.total
    }

    /// Whether `total` is exact.
    #[getter]
    fn exact(&self) -> bool {
        self.totals.exact
    }

    /// Whether the deadline passed: the hits are the best that were found until then.
    #[getter]
    fn timed_out(&self) -> bool {
        self.totals.timed_out
    }

    /// Number of the commit that was searched.
    #[getter]
    fn generation(&self) -> u64 {
        self.totals.generation
    }

    /// Seconds from the arrival of the query to its result.
    #[getter]
    fn took(&self) -> f64 {
        self.totals.took
    }

    /// The part of `took` in which the query waited for a thread.
    #[getter]
    fn queued(&self) -> f64 {
        self.totals.queued
    }

    /// Parts of the query that look like operators and were read as text, and those with errors, which
    /// `syntax="lenient"` ignores.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    /// External ids.
    #[getter]
    fn ids(&self) -> Vec<String> {
        self.ids.clone()
    }

    /// Scores, a read-only NumPy array of float32.
    #[getter]
    fn scores<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Column::numpy(py, Arc::new(Float32Array::from(self.scores.clone())))
    }

    /// Document numbers of the commit, a read-only NumPy array of uint32.
    #[getter]
    fn documents<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Column::numpy(py, Arc::new(UInt32Array::from(self.documents.clone())))
    }

    fn __len__(&self) -> usize {
        self.ids.len()
    }

    fn __getitem__<'py>(slf: &Bound<'py, Self>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (py, len) = (slf.py(), slf.get().ids.len());
        if let Ok(slice) = index.cast::<PySlice>() {
            let part = slice.indices(len as isize)?;
            let hits = (0..part.slicelength as isize)
                .map(|i| Hits::hit_at(slf, (part.start + i * part.step) as usize));
            return Ok(PyList::new(py, hits.collect::<Vec<_>>())?.into_any());
        }
        Ok(Bound::new(py, Hits::hit_at(slf, sequence_position(index, len, "hit")?))?.into_any())
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let hits: Vec<Hit> = (0..slf.get().ids.len()).map(|position| Hits::hit_at(slf, position)).collect();
        Ok(PyList::new(slf.py(), hits)?.try_iter()?.into_any())
    }

    fn __repr__(&self) -> String {
        let relation = if self.totals.exact { "" } else { "at least " };
        format!("<tierdex.Hits: {} of {relation}{}>", self.ids.len(), self.totals.total)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (HitsState,))> {
        let py = slf.py();
        guard_entry_point(py, || {
            let hits = slf.get();
            let SearchTotals { total, exact, timed_out, generation, took, queued, scale, statistics } =
                hits.totals;
            let shown = match hits.snapshot_and_query(py) {
                Ok(_) => hits.titles_and_snippets(py)?.to_vec(),
                Err(_) => hits.shown.get().cloned().unwrap_or_default(),
            };
            let (ids, documents, scores) = (hits.ids.clone(), hits.documents.clone(), hits.scores.clone());
            let columns = (ids, documents, scores, hits.units.clone(), hits.parts.clone());
            let totals = (total, exact, timed_out, generation, took, queued, scale, statistics);
            let state = (columns, totals, hits.warnings.clone(), shown);
            Ok((py.import("tierdex._restore")?.getattr("hits")?, (state,)))
        })
    }

    /// Hits from the state of a pickle.
    #[staticmethod]
    fn _restore(py: Python<'_>, state: HitsState) -> PyResult<Hits> {
        let ((ids, documents, scores, units, parts), totals, warnings, texts) = state;
        let is_sound = documents.len() == ids.len()
            && scores.len() == ids.len()
            && (units.is_empty() || units.len() == ids.len())
            && (parts.is_empty() || parts.len() == ids.len())
            && texts.iter().filter_map(|(_, shown)| shown.as_ref()).all(has_valid_marks);
        if !is_sound {
            return Err(usage_error(py, "the pickle of hits is damaged: its columns do not fit together"));
        }
        let (total, exact, timed_out, generation, took, queued, scale, statistics) = totals;
        let shown = OnceLock::new();
        if texts.len() == ids.len() {
            shown.get_or_init(|| texts);
        }
        let totals = SearchTotals { total, exact, timed_out, generation, took, queued, scale, statistics };
        Ok(Hits { ids, documents, scores, units, parts, totals, warnings, source: None, shown })
    }
}

/// One of the hits of a search.
#[pyclass(frozen, module = "tierdex")]
pub struct Hit {
    hits: Py<Hits>,
    position: usize,
}

/// The state of a pickle: all hits, and the position.
type HitState = (Py<Hits>, usize);

#[pymethods]
impl Hit {
    /// Rank, from 1.
    #[getter]
    fn rank(&self) -> usize {
        self.position + 1
    }

    /// External id.
    #[getter]
    fn id(&self) -> String {
        self.hits.get().ids[self.position].clone()
    }

    /// Score.
    #[getter]
    fn score(&self) -> f32 {
        self.hits.get().scores[self.position]
    }

    /// Document number in the commit that was searched.
    #[getter]
    fn document(&self) -> u32 {
        self.hits.get().documents[self.position]
    }

    /// Number of the directory, of those that were opened, that has the document.
    #[getter]
    fn part(&self) -> u32 {
        self.hits.get().parts.get(self.position).copied().unwrap_or(0)
    }

    /// Title; empty if the index does not store documents. One of more than 16 KiB is cut and ends with `…`.
    #[getter]
    fn title(&self, py: Python<'_>) -> PyResult<String> {
        guard_entry_point(py, || Ok(self.hits.get().titles_and_snippets(py)?[self.position].0.clone()))
    }

    /// The part of the text with the most words of the query, with an ellipsis for the text before and after
    /// it; `None` if the index does not store documents.
    #[getter]
    fn snippet(&self, py: Python<'_>) -> PyResult<Option<String>> {
        guard_entry_point(py, || {
            let shown = &self.hits.get().titles_and_snippets(py)?[self.position].1;
            Ok(shown.as_ref().map(|(text, _)| text.clone()))
        })
    }

    /// The snippet with its matches between two marks. `escape` makes the snippet text of HTML; by default
    /// it does if a mark has `<`.
    #[pyo3(
        signature = (open=Text::new("**"), close=Text::new("**"), *, escape=None),
        text_signature = "($self, open='**', close='**', *, escape=None)"
    )]
    fn highlight(
        &self,
        py: Python<'_>,
        open: Text,
        close: Text,
        escape: Option<bool>,
    ) -> PyResult<Option<String>> {
        guard_entry_point(py, || {
            let (open, close): (&str, &str) = (&open, &close);
            let escapes = escape.unwrap_or_else(|| open.contains('<') || close.contains('<'));
            let shown = &self.hits.get().titles_and_snippets(py)?[self.position].1;
            Ok(shown.as_ref().map(|shown| insert_marks(shown, open, close, escapes)))
        })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, HitState)> {
        let hit = slf.get();
        let restore = slf.py().import("tierdex._restore")?.getattr("hit")?;
        Ok((restore, (hit.hits.clone_ref(slf.py()), hit.position)))
    }

    /// The values of the member `text`, one a line; `None` if the index does not store documents.
    #[getter]
    fn text(&self, py: Python<'_>) -> PyResult<Option<String>> {
        guard_entry_point(py, || {
            let hits = self.hits.get();
            let (snapshot, _) = hits.snapshot_and_query(py)?;
            let document = hits.documents[self.position];
            Ok(run_without_gil(py, || snapshot.stored(document))?.map(|stored| text_of(&stored)))
        })
    }

    fn __repr__(&self) -> String {
        format!("<tierdex.Hit: {:?}, score {}>", self.id(), self.score())
    }
}

/// The position of a Python index, which counts from the end if it is negative.
pub fn sequence_position(index: &Bound<'_, PyAny>, len: usize, what: &str) -> PyResult<usize> {
    let py = index.py();
    let number = match index.extract::<isize>() {
        Ok(number) if number < 0 => usize::try_from(number + len as isize).ok(),
        Ok(number) => usize::try_from(number).ok(),
        Err(error) if error.is_instance_of::<PyOverflowError>(py) => None,
        Err(error) => return Err(error),
    };
    let number = number.filter(|number| *number < len);
    number.ok_or_else(|| out_of_range(py, format!("there is no {what} {index}, only {len}")))
}

/// The title, with an ellipsis if the engine has cut it.
fn with_ellipsis_if_cut(title: String) -> String {
    if title.len() + char::MAX.len_utf8() > PREVIEW_TITLE_BYTES { title + "…" } else { title }
}

/// A hit without a score, by which the id of a document number is read.
pub fn bare_hit(document: u32) -> SearchHit {
    SearchHit { document, ..SearchHit::default() }
}
