//! `tierdex.Batch`: the results of many queries, in columns.

use crate::errors::{Failure, guard_entry_point, in_python, usage_error};
use crate::hits::{bare_hit, sequence_position};
use crate::process::{ProcessLocal, forked_error};
use crate::query::{QuerySource, Syntax};
use crate::wait::{SIGNAL_CHECK_INTERVAL, run_without_gil};
use crate::{adding::PROGRESS_INTERVAL, column::Column, run_ids::written_alike, text::Text};
use arrow_array::builder::LargeStringBuilder;
use arrow_array::{ArrayRef, Float32Array, Int64Array, LargeStringArray, RecordBatch, UInt32Array};
use arrow_schema::{DataType, Field, Schema};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use pyo3_arrow::PyTable;
use std::io::{BufWriter, Write};
use std::sync::{Arc, OnceLock};
use std::{collections::VecDeque, fs::File, path::PathBuf, time::Instant};
use tierdex::{Engine, Error, Priority, SearchOptions, SearchRequest, Snapshot, Ticket, run_id};

/// The queries of a batch, with their syntax, ranking and treatment of errors.
pub struct BatchPlan<'q> {
    /// The queries, in the order of their results.
    pub queries: &'q [QuerySource],
    /// The syntax of queries that are text.
    pub syntax: Syntax,
    /// Number of the field in which terms with weights are looked up.
    pub field: usize,
    /// Number of hits and ranking.
    pub options: SearchOptions,
    /// Whether a query with an error is noted; otherwise it ends the batch, as damage and failed reads do.
    pub keeps_errors: bool,
}

/// The results of many queries, in columns: the hits of query `i` are those from `offsets[i]` up to
/// `offsets[i + 1]`.
///
/// It is an Arrow stream with the columns `qid`, `id`, `document`, `score` and `rank`: pass it to
/// `pyarrow.table`, `polars.DataFrame` or `duckdb`. A pickle has all columns.
#[pyclass(frozen, module = "tierdex")]
pub struct Batch {
    qids: ArrayRef,
    offsets: Int64Array,
    documents: UInt32Array,
    scores: Float32Array,
    totals: Int64Array,
    errors: Vec<(usize, String)>,
    generation: u64,
    seconds: f64,
    /// `None` after unpickling: the ids are read then.
    snapshot: Option<ProcessLocal<Arc<Snapshot>>>,
    ids: OnceLock<LargeStringArray>,
}

/// BatchColumns under construction.
#[derive(Default)]
struct BatchColumns {
    offsets: Vec<i64>,
    documents: Vec<u32>,
    scores: Vec<f32>,
    totals: Vec<i64>,
    errors: Vec<(usize, String)>,
}

/// Answers queries in order. Checks for signals and reports progress meanwhile.
pub fn answer_batch(
    py: Python<'_>,
    engine: &Engine,
    snapshot: &Arc<Snapshot>,
    plan: &BatchPlan<'_>,
    qids: Option<Vec<String>>,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Batch> {
    let start = Instant::now();
    let progress = progress.map(Bound::unbind);
    let columns = py
        .detach(|| crate::errors::catch_panic(|| Ok(answer_all(engine, snapshot, plan, progress.as_ref()))));
    let columns = columns.map_err(|failure| failure.into_exception(py))?.map_err(|error| match error {
        BatchError::Raised(error) => error,
        BatchError::Query(number, error) => query_exception(py, number, qids.as_deref(), error),
    })?;
    let qids = match qids {
        Some(qids) => LargeStringArray::from(qids),
        None => LargeStringArray::from_iter_values((0..plan.queries.len()).map(|number| number.to_string())),
    };
    Ok(Batch {
        qids: Arc::new(qids),
        offsets: columns.offsets.into(),
        documents: columns.documents.into(),
        scores: columns.scores.into(),
        totals: columns.totals.into(),
        errors: columns.errors,
        generation: snapshot.index().generation(),
        seconds: start.elapsed().as_secs_f64(),
        snapshot: Some(ProcessLocal::new(snapshot.clone())),
        ids: OnceLock::new(),
    })
}

enum BatchError {
    /// The exception of a signal handler, or of the progress function.
    Raised(PyErr),
    /// The error of a query.
    Query(usize, Error),
}

/// The exception of a failed query, with the query in its message.
fn query_exception(py: Python<'_>, number: usize, qids: Option<&[String]>, error: Error) -> PyErr {
    let raised = Failure::from(error).into_exception(py);
    let name = qids.map_or_else(|| format!("query {number}"), |qids| format!("query {:?}", qids[number]));
    // Notes are shown below the message.
    match raised.add_note(py, &name) {
        Ok(()) => raised,
        Err(error) => error,
    }
}

fn answer_all(
    engine: &Engine,
    snapshot: &Arc<Snapshot>,
    plan: &BatchPlan<'_>,
    progress: Option<&Py<PyAny>>,
) -> Result<BatchColumns, BatchError> {
    let in_progress = engine.requests_ahead();
    let mut columns = BatchColumns::default();
    columns.offsets.push(0);
    let mut monitor = BatchMonitor { last: Instant::now(), shown: Instant::now(), progress };
    let tickets: VecDeque<Result<Ticket, Error>> = VecDeque::with_capacity(in_progress);
    let mut tickets = ProcessLocal::new(tickets);
    let mut next = 0;
    for number in 0..plan.queries.len() {
        let tickets = tickets.get_mut().ok_or_else(fork_error)?;
        while next < plan.queries.len() && tickets.len() < in_progress {
            match submit_request(engine, snapshot, plan, &plan.queries[next]) {
                // The queue is full: its requests go first.
                Err(Error::Overloaded { .. }) if !tickets.is_empty() => break,
                ticket => tickets.push_back(ticket),
            }
            next += 1;
        }
        let Some(ticket) = tickets.pop_front() else { break };
        let answer = match ticket {
            Ok(ticket) => wait_for_result(ticket, || monitor.check_and_report(number as u64))?,
            Err(error) => Err(error),
        };
        match answer {
            Ok(hits) => {
                columns.documents.extend(hits.hits.iter().map(|hit| hit.document));
                columns.scores.extend(hits.hits.iter().map(|hit| hit.score));
                columns.totals.push(i64::try_from(hits.total.value()).unwrap_or(i64::MAX));
            }
            Err(error) if plan.keeps_errors && is_query_error(&error) => {
                columns.errors.push((number, in_python(error.to_string())));
                columns.totals.push(0);
            }
            Err(error) => return Err(BatchError::Query(number, error)),
        }
        columns.offsets.push(columns.documents.len() as i64);
        monitor.check_and_report(number as u64 + 1)?;
    }
    monitor.report_progress(plan.queries.len() as u64)?;
    Ok(columns)
}

/// Waits for a result, and calls `check` again and again meanwhile, whose error cancels the request.
fn wait_for_result(
    ticket: Ticket,
    mut check: impl FnMut() -> Result<(), BatchError>,
) -> Result<Result<tierdex::Hits, Error>, BatchError> {
    let mut ticket = ProcessLocal::new(ticket);
    while !ticket.get().ok_or_else(fork_error)?.wait_timeout(SIGNAL_CHECK_INTERVAL) {
        check()?;
    }
    Ok(ticket.take().ok_or_else(fork_error)?.wait())
}

fn fork_error() -> BatchError {
    BatchError::Raised(Python::attach(forked_error))
}

/// Whether the cause of an error is the query, and not the index or the device.
fn is_query_error(error: &Error) -> bool {
    matches!(error, Error::Query { .. } | Error::Usage(_) | Error::TooLarge(_))
}

fn submit_request(
    engine: &Engine,
    snapshot: &Arc<Snapshot>,
    plan: &BatchPlan<'_>,
    query: &QuerySource,
) -> Result<Ticket, Error> {
    let (query, _) = query.parse(snapshot.schema(), plan.syntax, plan.field)?;
    let request = SearchRequest::new(query).options(plan.options).ids(false).snapshot(snapshot.clone());
    engine.submit(request.priority(Priority::Batch))
}

/// Checks for signals, and calls the progress function, while queries are answered.
struct BatchMonitor<'p> {
    last: Instant,
    shown: Instant,
    progress: Option<&'p Py<PyAny>>,
}

impl BatchMonitor<'_> {
    fn check_and_report(&mut self, done: u64) -> Result<(), BatchError> {
        if self.last.elapsed() < SIGNAL_CHECK_INTERVAL {
            return Ok(());
        }
        self.last = Instant::now();
        Python::attach(|py| py.check_signals()).map_err(BatchError::Raised)?;
        if self.shown.elapsed() >= PROGRESS_INTERVAL {
            self.shown = Instant::now();
            self.report_progress(done)?;
        }
        Ok(())
    }

    fn report_progress(&self, done: u64) -> Result<(), BatchError> {
        let Some(progress) = self.progress else { return Ok(()) };
        Python::attach(|py| progress.call1(py, (done,))).map(drop).map_err(BatchError::Raised)
    }
}

impl Batch {
    fn query_count(&self) -> usize {
        self.offsets.len() - 1
    }

    fn hit_range(&self, query: usize) -> std::ops::Range<usize> {
        self.offsets.value(query) as usize..self.offsets.value(query + 1) as usize
    }

    /// The external id of each hit.
    fn id_strings(&self, py: Python<'_>) -> PyResult<&LargeStringArray> {
        if let Some(ids) = self.ids.get() {
            return Ok(ids);
        }
        let Some(snapshot) = self.snapshot.as_ref().and_then(ProcessLocal::get) else {
            return Err(usage_error(py, "the batch belongs to the parent process: search again in this one"));
        };
        let ids = run_without_gil(py, || read_ids(snapshot, self.documents.values()))?;
        Ok(self.ids.get_or_init(|| ids))
    }

    /// A row for each hit: the number of its query, and its rank from 0.
    fn query_and_rank(&self) -> impl Iterator<Item = (usize, i64)> {
        (0..self.query_count())
            .flat_map(|query| (0..self.hit_range(query).len() as i64).map(move |rank| (query, rank)))
    }

    fn record_batch(&self, py: Python<'_>) -> PyResult<RecordBatch> {
        let ids = self.id_strings(py)?.clone();
        let table = py.detach(|| {
            let names = arrow_array::cast::AsArray::as_string::<i64>(&self.qids);
            let mut qids = LargeStringBuilder::with_capacity(self.documents.len(), 0);
            self.query_and_rank().for_each(|(query, _)| qids.append_value(names.value(query)));
            let qids = qids.finish();
            let ranks = Int64Array::from_iter_values(self.query_and_rank().map(|(_, rank)| rank));
            let field = |name, kind| Field::new(name, kind, false);
            let schema = Schema::new(vec![
                field("qid", DataType::LargeUtf8),
                field("id", DataType::LargeUtf8),
                field("document", DataType::UInt32),
                field("score", DataType::Float32),
                field("rank", DataType::Int64),
            ]);
            let columns: Vec<ArrayRef> = vec![
                Arc::new(qids),
                Arc::new(ids),
                Arc::new(self.documents.clone()),
                Arc::new(self.scores.clone()),
                Arc::new(ranks),
            ];
            RecordBatch::try_new(Arc::new(schema), columns)
        });
        table.map_err(|error| Failure::Panic(error.to_string()).into_exception(py))
    }
}

/// The ids of documents, in their order. Each distinct document is read once, in order of documents.
fn read_ids(snapshot: &Snapshot, documents: &[u32]) -> tierdex::Result<LargeStringArray> {
    let mut distinct = documents.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    let hits: Vec<_> = distinct.iter().map(|&document| bare_hit(document)).collect();
    let (mut text, mut ends) = (String::new(), Vec::with_capacity(hits.len() + 1));
    ends.push(0);
    snapshot.for_each_id(&hits, |_, id| {
        text.push_str(id);
        ends.push(text.len());
        Ok::<(), Error>(())
    })?;
    let mut ids = LargeStringBuilder::with_capacity(documents.len(), 0);
    for document in documents {
        let at = distinct.partition_point(|other| other < document);
        ids.append_value(&text[ends[at]..ends[at + 1]]);
    }
    Ok(ids.finish())
}

type BatchState =
    ((Vec<String>, Vec<i64>, Vec<u32>, Vec<f32>, Vec<i64>), Vec<String>, Vec<(usize, String)>, (u64, f64));

#[pymethods]
impl Batch {
    /// Ids of the queries.
    #[getter]
    fn qids(&self) -> Vec<String> {
        let qids = arrow_array::cast::AsArray::as_string::<i64>(&self.qids);
        qids.iter().flatten().map(str::to_string).collect()
    }

    /// Start of the hits of each query, and their number; a read-only NumPy array of int64.
    #[getter]
    fn offsets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Column::numpy(py, Arc::new(self.offsets.clone()))
    }

    /// Document numbers of the commit, a read-only NumPy array of uint32.
    #[getter]
    fn documents<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Column::numpy(py, Arc::new(self.documents.clone()))
    }

    /// Scores, a read-only NumPy array of float32.
    #[getter]
    fn scores<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Column::numpy(py, Arc::new(self.scores.clone()))
    }

    /// Number of matching documents of each query; lower bounds unless `count` was given.
    #[getter]
    fn totals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Column::numpy(py, Arc::new(self.totals.clone()))
    }

    /// External ids, read from the index at the first call.
    #[pyo3(name = "ids")]
    fn id_column(&self, py: Python<'_>) -> PyResult<Column> {
        guard_entry_point(py, || Ok(Column::new(Arc::new(self.id_strings(py)?.clone()))))
    }

    /// Number and message of each query that failed, with `on_error="keep"`.
    #[getter]
    fn errors(&self) -> Vec<(usize, String)> {
        self.errors.clone()
    }

    /// Number of the commit that was searched.
    #[getter]
    fn generation(&self) -> u64 {
        self.generation
    }

    /// Seconds that the batch took, without reading ids.
    #[getter]
    fn took(&self) -> f64 {
        self.seconds
    }

    /// Number of queries.
    fn __len__(&self) -> usize {
        self.query_count()
    }

    /// Ids and scores of the hits of a query.
    fn __getitem__(&self, py: Python<'_>, query: &Bound<'_, PyAny>) -> PyResult<Vec<(String, f32)>> {
        guard_entry_point(py, || {
            let number = sequence_position(query, self.query_count(), "query")?;
            let ids = self.id_strings(py)?;
            let hit = |at| (ids.value(at).to_string(), self.scores.value(at));
            Ok(self.hit_range(number).map(hit).collect())
        })
    }

    /// The run as a dict: for each query id, a dict from document ids to scores.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        guard_entry_point(py, || {
            let (ids, run) = (self.id_strings(py)?, PyDict::new(py));
            for (query, qid) in self.qids().into_iter().enumerate() {
                let hits = PyDict::new(py);
                for at in self.hit_range(query) {
                    hits.set_item(ids.value(at), self.scores.value(at))?;
                }
                run.set_item(qid, hits)?;
            }
            Ok(run)
        })
    }

    /// Writes a TREC run; each line is: query, Q0, document, rank from 1, score, tag. White space in ids is
    /// percent-encoded.
    #[pyo3(signature = (path, tag=Text::new("tierdex")), text_signature = "($self, path, tag='tierdex')")]
    fn to_trec(&self, py: Python<'_>, path: &Bound<'_, PyAny>, tag: Text) -> PyResult<()> {
        guard_entry_point(py, || {
            let tag: &str = &tag;
            if tag.is_empty() || tag.contains(char::is_whitespace) {
                return Err(usage_error(py, format!("tag is {tag:?}; it must be one word")));
            }
            let path = py.import("tierdex._arguments")?.call_method1("path_name", (path,))?;
            let path: PathBuf = path.extract()?;
            let (ids, qids) = (self.id_strings(py)?, self.qids());
            let alike = written_alike(ids.iter().flatten());
            if let Some((one, other)) = alike.or_else(|| written_alike(qids.iter().map(String::as_str))) {
                let message = format!("the ids {one:?} and {other:?} would both be {other:?} in the run");
                return Err(usage_error(py, message));
            }
            run_without_gil(py, || {
                let failed = |error| tierdex::io::Error::from_os("write", path.display().to_string(), &error);
                let mut out = BufWriter::new(File::create(&path).map_err(failed)?);
                for (at, (query, rank)) in self.query_and_rank().enumerate() {
                    let (id, qid) = (run_id(ids.value(at)), run_id(&qids[query]));
                    let score = self.scores.value(at);
                    writeln!(out, "{qid} Q0 {id} {} {score} {tag}", rank + 1).map_err(failed)?;
                }
                Ok(out.flush().map_err(failed)?)
            })
        })
    }

    /// A `pyarrow.Table` with the columns qid, id, document, score and rank (from 0).
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.call_method1("table", (slf,))
    }

    /// A `pandas.DataFrame` with the columns qid, id, document, score and rank (from 0).
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let columns = PyDict::new(py);
        let batch = slf.get();
        let table = guard_entry_point(py, || batch.record_batch(py))?;
        for name in ["qid", "id", "document", "score", "rank"] {
            if let Some(column) = table.column_by_name(name) {
                let column = Column::new(column.clone());
                let values = if name == "qid" || name == "id" {
                    column.to_list(py)?
                } else {
                    py.import("numpy")?.call_method1("asarray", (Bound::new(py, column)?,))?
                };
                columns.set_item(name, values)?;
            }
        }
        py.import("pandas")?.call_method1("DataFrame", (columns,))
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        guard_entry_point(py, || {
            let table = self.record_batch(py)?;
            let table = PyTable::try_new(vec![table.clone()], table.schema())?;
            let table = Bound::new(py, table)?;
            let stream = table.call_method1("__arrow_c_stream__", (requested_schema,))?;
            Ok(stream.cast_into::<PyCapsule>()?)
        })
    }

    fn __repr__(&self) -> String {
        format!("<tierdex.Batch: {} queries, {} hits>", self.query_count(), self.documents.len())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (BatchState,))> {
        let py = slf.py();
        guard_entry_point(py, || {
            let batch = slf.get();
            let ids = batch.id_strings(py)?.iter().flatten().map(str::to_string).collect();
            let columns = (
                batch.qids(),
                batch.offsets.values().to_vec(),
                batch.documents.values().to_vec(),
                batch.scores.values().to_vec(),
                batch.totals.values().to_vec(),
            );
            let state = (columns, ids, batch.errors.clone(), (batch.generation, batch.seconds));
            Ok((py.import("tierdex._restore")?.getattr("batch")?, (state,)))
        })
    }

    /// A batch from the state of a pickle.
    #[staticmethod]
    fn _restore(py: Python<'_>, state: BatchState) -> PyResult<Batch> {
        let ((qids, offsets, documents, scores, totals), ids, errors, (generation, seconds)) = state;
        let sound = offsets.len() == qids.len() + 1
            && totals.len() == qids.len()
            && offsets.first() == Some(&0)
            && offsets.is_sorted()
            && offsets.last() == Some(&(documents.len() as i64))
            && documents.len() == scores.len()
            && documents.len() == ids.len();
        if !sound {
            return Err(usage_error(py, "the pickle of a batch is damaged: its columns do not fit together"));
        }
        Ok(Batch {
            qids: Arc::new(LargeStringArray::from(qids)),
            offsets: offsets.into(),
            documents: documents.into(),
            scores: scores.into(),
            totals: totals.into(),
            errors,
            generation,
            seconds,
            snapshot: None,
            ids: OnceLock::from(LargeStringArray::from(ids)),
        })
    }
}
