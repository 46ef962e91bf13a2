//! `tierdex.Index`: an index on disk, and the engine that searches it.

use crate::batch::{Batch, answer_batch};
use crate::errors::{Failure, guard_entry_point, in_python, usage_error};
use crate::options::{FieldTuple, SchemaTuple, parse_bytes, read_fields};
use crate::options::{schema_from_tuple, schema_tuple, scorer_from_name};
use crate::process::ProcessLocal;
use crate::query::{QuerySource, field_number};
use crate::request::{RankingOptions, deadline_after, parse_seconds, wait_for_hits};
use crate::statistics::Statistics;
use crate::wait::{self, SIGNAL_CHECK_INTERVAL, run_without_gil};
use crate::writer::{OpenWriter, Writer};
use crate::{document::Document, explain::explanation_dict, hits::Hits, stats, text::Text};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tierdex::{
    Engine, EngineOptions, IndexWriter, Merge, Priority, SearchHit, SearchRequest, Snapshot, WriterOptions,
    analysis::Analyzer,
};

/// Time between two checks for a newer commit, with `refresh="auto"`.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);

/// Number of dictionary terms in each read.
const TERMS_PER_READ: usize = 1000;

/// An index in a directory, and an engine that searches it within a memory budget.
///
/// Made by `tierdex.Index.create` and `tierdex.Index.open`. Threads may share an index. A pickled index is
/// its path and options: it is opened again, at the newest commit, when it is first used. After a fork the
/// child opens the index again when it uses it.
#[pyclass(frozen, module = "tierdex._tierdex")]
pub struct Index {
    /// Several are searched as one index.
    paths: Vec<PathBuf>,
    options: OpenOptions,
    /// Locked only while the GIL is held, so that a fork never copies a locked mutex.
    state: Mutex<Option<ProcessLocal<OpenEngine>>>,
}

#[derive(Clone)]
struct OpenOptions {
    dram: Option<u64>,
    threads: usize,
    hits_max: usize,
    auto_refresh: bool,
}

struct OpenEngine {
    engine: Engine,
    checked: Instant,
}

impl Index {
    /// The engine, which is opened if it is not open in this process.
    fn engine(&self, py: Python<'_>) -> PyResult<Engine> {
        if let Some(open) = self.lock_state().as_ref().and_then(ProcessLocal::get) {
            return Ok(open.engine.clone());
        }
        let (paths, options) = (self.paths.clone(), self.options.engine_options());
        let open = move || Ok(Engine::new(&tierdex::Index::open_all(&paths)?, &options)?);
        let engine = wait::run_interruptible(py, None, open)?;
        let open = OpenEngine { engine: engine.clone(), checked: Instant::now() };
        *self.lock_state() = Some(ProcessLocal::new(open));
        Ok(engine)
    }

    /// The engine and its newest commit. With automatic refresh, looks for a newer one from time to time.
    fn engine_and_snapshot(&self, py: Python<'_>) -> PyResult<(Engine, Arc<Snapshot>)> {
        let engine = self.engine(py)?;
        let is_due = self.options.auto_refresh
            && self.lock_state().as_mut().and_then(ProcessLocal::get_mut).is_some_and(|open| {
                let is_due = open.checked.elapsed() >= REFRESH_INTERVAL;
                if is_due {
                    open.checked = Instant::now();
                }
                is_due
            });
        if is_due {
            run_without_gil(py, || engine.refresh())?;
        }
        let snapshot = engine.snapshot();
        Ok((engine, snapshot))
    }

    /// Opens the newest commit, if the engine is open. Returns whether there is a new one.
    fn refresh(&self, py: Python<'_>) -> PyResult<bool> {
        let open = self.lock_state().as_ref().and_then(ProcessLocal::get).map(|open| open.engine.clone());
        match open {
            Some(engine) => run_without_gil(py, || engine.refresh()),
            None => Ok(false),
        }
    }

    fn lock_state(&self) -> MutexGuard<'_, Option<ProcessLocal<OpenEngine>>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_options(paths: Vec<PathBuf>, options: OpenOptions) -> Index {
        Index { paths, options, state: Mutex::new(None) }
    }

    /// The only directory, for `task`, which does not work on several.
    fn one_path(&self, py: Python<'_>, task: &str) -> PyResult<&PathBuf> {
        match &self.paths[..] {
            [path] => Ok(path),
            paths => Err(usage_error(py, format!("these are {} indexes: {task} one at a time", paths.len()))),
        }
    }
}

impl OpenOptions {
    fn read_options(
        dram: Option<&Bound<'_, PyAny>>,
        threads: Option<usize>,
        hits_max: usize,
        refresh: &Bound<'_, PyString>,
    ) -> PyResult<OpenOptions> {
        let auto_refresh = match &*refresh.to_string_lossy() {
            "auto" => true,
            "manual" => false,
            other => {
                let message = format!("refresh is {other:?}; it is \"auto\" or \"manual\"");
                return Err(usage_error(refresh.py(), message));
            }
        };
        let dram = dram.map(|dram| parse_bytes(dram, "dram")).transpose()?;
        Ok(OpenOptions { dram, threads: threads.unwrap_or(0), hits_max, auto_refresh })
    }

    /// Rejects a `k` for which the memory budget has no memory.
    fn check_k(&self, py: Python<'_>, k: usize) -> PyResult<()> {
        let max = self.hits_max;
        if self.dram.is_some() && k > max {
            return Err(usage_error(
                py,
                format!("k is {k}, but this index was opened for {max} hits: open it with hits_max={k}"),
            ));
        }
        Ok(())
    }

    fn engine_options(&self) -> EngineOptions {
        let options = EngineOptions::new().threads(self.threads).hits_max(self.hits_max);
        match self.dram {
            Some(dram) => options.dram(dram),
            None => options,
        }
    }
}

#[pymethods]
impl Index {
    /// Creates an empty index with the schema that `tierdex.Schema` passes.
    #[staticmethod]
    #[pyo3(signature = (path, schema, overwrite, updatable, dram, threads, hits_max, refresh))]
    #[allow(clippy::too_many_arguments, reason = "called by tierdex.Index.create alone")]
    fn _create(
        py: Python<'_>,
        path: PathBuf,
        schema: SchemaTuple,
        overwrite: bool,
        updatable: bool,
        dram: Option<&Bound<'_, PyAny>>,
        threads: Option<usize>,
        hits_max: usize,
        refresh: &Bound<'_, PyString>,
    ) -> PyResult<Index> {
        guard_entry_point(py, || {
            let options = OpenOptions::read_options(dram, threads, hits_max, refresh)?;
            let (schema, dir) = (schema_from_tuple(py, schema)?, path.clone());
            wait::run_interruptible(py, None, move || {
                let options = WriterOptions { updatable, ..WriterOptions::default() };
                let mut writer = match overwrite {
                    true => IndexWriter::replace(&dir, schema, options),
                    false => IndexWriter::create(&dir, schema, options),
                }?;
                Ok(writer.commit(Merge::Keep)?)
            })?;
            Ok(Index::with_options(vec![path], options))
        })
    }

    /// Opens the newest commit; `lazy` defers it to the first use.
    #[staticmethod]
    #[pyo3(signature = (paths, dram, threads, hits_max, refresh, lazy))]
    fn _open(
        py: Python<'_>,
        paths: Vec<PathBuf>,
        dram: Option<&Bound<'_, PyAny>>,
        threads: Option<usize>,
        hits_max: usize,
        refresh: &Bound<'_, PyString>,
        lazy: bool,
    ) -> PyResult<Index> {
        guard_entry_point(py, || {
            let index =
                Index::with_options(paths, OpenOptions::read_options(dram, threads, hits_max, refresh)?);
            if !lazy {
                index.engine(py)?;
            }
            Ok(index)
        })
    }

    /// Paths, dram, threads, hits_max and refresh.
    fn _options(&self) -> (Vec<PathBuf>, Option<u64>, usize, usize, &'static str) {
        let OpenOptions { dram, threads, hits_max, auto_refresh } = &self.options;
        (self.paths.clone(), *dram, *threads, *hits_max, if *auto_refresh { "auto" } else { "manual" })
    }

    #[pyo3(signature = (memory, threads, merge, wait, fields))]
    fn _writer(
        slf: &Bound<'_, Index>,
        memory: &Bound<'_, PyAny>,
        threads: Option<usize>,
        merge: Option<bool>,
        wait: f64,
        fields: Vec<FieldTuple>,
    ) -> PyResult<Writer> {
        let py = slf.py();
        guard_entry_point(py, || {
            let fields = read_fields(py, fields)?;
            let memory = usize::try_from(parse_bytes(memory, "memory")?).unwrap_or(usize::MAX);
            let processors = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
            let wait = parse_seconds(py, "wait", wait)?;
            let (threads, index) = (threads.unwrap_or_else(processors), slf.clone().unbind());
            let on_commit = move |py: Python<'_>| index.get().refresh(py).map(drop);
            let path = slf.get().one_path(py, "write")?.clone();
            let opening = OpenWriter { path, fields, memory, threads, wait };
            Writer::open(py, opening, merge, Box::new(on_commit))
        })
    }

    /// The statistics that the scores of a query depend on.
    #[pyo3(signature = (query, syntax, field, scorer, k1, b, question, deadline))]
    #[allow(clippy::too_many_arguments, reason = "called by tierdex.Index.statistics alone")]
    fn _statistics(
        &self,
        py: Python<'_>,
        query: &Bound<'_, PyAny>,
        syntax: Text,
        field: Option<Text>,
        scorer: Text,
        k1: f64,
        b: f64,
        question: Option<PyRef<'_, Statistics>>,
        deadline: Option<f64>,
    ) -> PyResult<Statistics> {
        guard_entry_point(py, || {
            let ranking =
                RankingOptions::new(py, 0, false, scorer_from_name(py, &scorer, k1, b)?, &syntax, field)?;
            let (source, question) =
                (QuerySource::from_python(query)?, question.map(|given| given.0.clone()));
            let deadline = deadline_after(py, deadline)?;
            let (engine, snapshot) = self.engine_and_snapshot(py)?;
            let found = wait::run_interruptible(py, None, move || {
                let (request, ..) = ranking.request(source, &snapshot, question, deadline)?;
                Ok(engine.statistics(request)?)
            })?;
            Ok(Statistics(Arc::new(found)))
        })
    }

    #[pyo3(signature = (query, k, syntax, field, scorer, k1, b, count, deadline, statistics))]
    #[allow(clippy::too_many_arguments, reason = "called by tierdex.Index.search alone")]
    fn _search(
        &self,
        py: Python<'_>,
        query: &Bound<'_, PyAny>,
        k: usize,
        syntax: Text,
        field: Option<Text>,
        scorer: Text,
        k1: f64,
        b: f64,
        count: bool,
        deadline: Option<f64>,
        statistics: Option<PyRef<'_, Statistics>>,
    ) -> PyResult<Hits> {
        guard_entry_point(py, || {
            let ranking =
                RankingOptions::new(py, k, count, scorer_from_name(py, &scorer, k1, b)?, &syntax, field)?;
            let source = QuerySource::from_python(query)?;
            let deadline = deadline_after(py, deadline)?;
            self.options.check_k(py, k)?;
            let statistics = statistics.map(|given| given.0.clone());
            let (engine, snapshot) = self.engine_and_snapshot(py)?;
            let mut signal = Ok(());
            let (ticket, parsed, warnings) = run_without_gil(py, || {
                let (request, parsed, warnings) = ranking.request(source, &snapshot, statistics, deadline)?;
                let request = request.priority(Priority::Interactive);
                let mut checked = Instant::now();
                let is_cancelled = || {
                    if checked.elapsed() >= SIGNAL_CHECK_INTERVAL {
                        signal = Python::attach(|py| py.check_signals());
                        checked = Instant::now();
                    }
                    signal.is_err()
                };
                Ok((engine.submit_here(request, is_cancelled)?, parsed, warnings))
            })?;
            signal?;
            let hits = wait_for_hits(py, ticket)?;
            let ids = run_without_gil(py, || hits.ids())?;
            let warnings = warnings.iter().map(|error| in_python(error.to_string())).collect();
            Ok(Hits::new(hits, ids, parsed, warnings))
        })
    }

    #[pyo3(signature = (queries, k, syntax, field, scorer, k1, b, count, qids, on_error, progress))]
    #[allow(clippy::too_many_arguments, reason = "called by tierdex.Index.search_batch alone")]
    fn _search_batch(
        &self,
        py: Python<'_>,
        queries: &Bound<'_, PyAny>,
        k: usize,
        syntax: Text,
        field: Option<Text>,
        scorer: Text,
        k1: f64,
        b: f64,
        count: bool,
        qids: Option<Vec<Text>>,
        on_error: Text,
        progress: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Batch> {
        guard_entry_point(py, || {
            let ranking =
                RankingOptions::new(py, k, count, scorer_from_name(py, &scorer, k1, b)?, &syntax, field)?;
            self.options.check_k(py, k)?;
            let keeps_errors = match &*on_error {
                "raise" => false,
                "keep" | "skip" => true,
                other => {
                    return Err(usage_error(
                        py,
                        format!("on_error is {other:?}; it is \"raise\", \"keep\" or \"skip\""),
                    ));
                }
            };
            let queries = queries
                .try_iter()?
                .map(|query| QuerySource::from_python(&query?))
                .collect::<PyResult<Vec<_>>>()?;
            if let Some(qids) = qids.as_ref().filter(|qids| qids.len() != queries.len()) {
                return Err(usage_error(py, format!("{} queries, but {} qids", queries.len(), qids.len())));
            }
            let (engine, snapshot) = self.engine_and_snapshot(py)?;
            let field = field_number(snapshot.schema(), ranking.field.as_deref())
                .map_err(|error| Failure::from(error).into_exception(py))?;
            let plan = crate::batch::BatchPlan {
                queries: &queries,
                syntax: ranking.syntax,
                field,
                options: ranking.options,
                keeps_errors,
            };
            let qids = qids.map(|qids| qids.into_iter().map(Text::into_string).collect());
            answer_batch(py, &engine, &snapshot, &plan, qids, progress)
        })
    }

    #[pyo3(signature = (query, k, syntax, field, scorer, k1, b, count))]
    #[allow(clippy::too_many_arguments, reason = "called by tierdex.Index.explain alone")]
    fn _explain<'py>(
        &self,
        py: Python<'py>,
        query: &Bound<'_, PyAny>,
        k: usize,
        syntax: Text,
        field: Option<Text>,
        scorer: Text,
        k1: f64,
        b: f64,
        count: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        guard_entry_point(py, || {
            let ranking =
                RankingOptions::new(py, k, count, scorer_from_name(py, &scorer, k1, b)?, &syntax, field)?;
            let source = QuerySource::from_python(query)?;
            let (_, snapshot) = self.engine_and_snapshot(py)?;
            let explained = wait::run_interruptible(py, None, move || {
                let schema = snapshot.schema();
                let field = field_number(schema, ranking.field.as_deref())?;
                let (query, _) = source.parse(schema, ranking.syntax, field)?;
                let explained = snapshot.explain(&SearchRequest::new(query).options(ranking.options))?;
                let ids = snapshot.ids(&explained.result.hits)?;
                Ok((explained, ids))
            })?;
            explanation_dict(py, &explained.0, &explained.1)
        })
    }

    /// Documents with these ids, in order of `ids`; `None` where there is none.
    fn _get_many(&self, py: Python<'_>, ids: Vec<Text>) -> PyResult<Vec<Option<Document>>> {
        guard_entry_point(py, || {
            let (_, snapshot) = self.engine_and_snapshot(py)?;
            wait::run_interruptible(py, None, move || {
                let ids: Vec<&str> = ids.iter().map(|id| &**id).collect();
                let found = ids.iter().zip(snapshot.searcher().find_ids(&ids)?);
                let read = found.map(|(id, document)| {
                    document.map(|document| Document::read(&snapshot, document, id.to_string())).transpose()
                });
                Ok(read.collect::<tierdex::Result<Vec<_>>>()?)
            })
        })
    }

    /// Documents with these numbers (`Hit.document`).
    fn _documents(&self, py: Python<'_>, documents: Vec<u32>) -> PyResult<Vec<Document>> {
        guard_entry_point(py, || {
            let (_, snapshot) = self.engine_and_snapshot(py)?;
            wait::run_interruptible(py, None, move || {
                let hits: Vec<_> = documents
                    .iter()
                    .map(|&document| SearchHit { document, ..SearchHit::default() })
                    .collect();
                let ids = snapshot.ids(&hits)?;
                let read = ids.into_iter().zip(documents);
                let read = read.map(|(id, document)| Document::read(&snapshot, document, id));
                Ok(read.collect::<tierdex::Result<Vec<_>>>()?)
            })
        })
    }

    /// The next terms of a field with `prefix` after the term `after`: tuples of term, documents that
    /// contain it, and occurrences.
    #[pyo3(signature = (prefix, field, after))]
    fn _terms(
        &self,
        py: Python<'_>,
        prefix: Text,
        field: Option<Text>,
        after: Option<Text>,
    ) -> PyResult<Vec<(String, u64, u64)>> {
        guard_entry_point(py, || {
            let (_, snapshot) = self.engine_and_snapshot(py)?;
            wait::run_interruptible(py, None, move || {
                let field = field_number(snapshot.schema(), field.as_deref())?;
                let terms = snapshot.terms(field, &prefix, after.as_deref(), TERMS_PER_READ)?;
                Ok(terms.into_iter().map(|term| (term.term, term.documents, term.occurrences)).collect())
            })
        })
    }

    /// The terms of a text, as a field would index them.
    #[pyo3(signature = (text, field))]
    fn _analyze(
        &self,
        py: Python<'_>,
        text: &Bound<'_, PyString>,
        field: Option<Text>,
    ) -> PyResult<Vec<String>> {
        guard_entry_point(py, || {
            let (_, snapshot) = self.engine_and_snapshot(py)?;
            let text = text.to_string_lossy();
            let text: &str = &text;
            run_without_gil(py, || {
                let field = field_number(snapshot.schema(), field.as_deref())?;
                Ok(Analyzer::new(&snapshot.schema().fields[field].analysis).terms(text))
            })
        })
    }

    /// The schema, for `tierdex.Schema`.
    fn _schema(&self, py: Python<'_>) -> PyResult<SchemaTuple> {
        guard_entry_point(py, || Ok(schema_tuple(self.engine_and_snapshot(py)?.1.schema())))
    }

    /// Sizes and counters of the index and its engine.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        guard_entry_point(py, || {
            let (engine, snapshot) = self.engine_and_snapshot(py)?;
            stats::stats_dict(py, &engine, &snapshot)
        })
    }

    /// Checks every byte and structure of the newest commit.
    fn check<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        guard_entry_point(py, || {
            let path = self.one_path(py, "check")?.clone();
            let report = wait::run_interruptible(py, None, move || Ok(tierdex::check(&path)?))?;
            stats::check_report_dict(py, report)
        })
    }

    /// Opens the newest commit. Returns whether there is a new one.
    #[pyo3(name = "refresh")]
    fn refresh_newest(&self, py: Python<'_>) -> PyResult<bool> {
        guard_entry_point(py, || {
            self.engine(py)?;
            self.refresh(py)
        })
    }

    /// Ends the engine; the next use opens the index again.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let open = self.lock_state().take();
        guard_entry_point(py, || {
            py.detach(|| drop(open));
            Ok(())
        })
    }

    /// The number of the commit that is searched.
    #[getter]
    fn generation(&self, py: Python<'_>) -> PyResult<u64> {
        guard_entry_point(py, || Ok(self.engine_and_snapshot(py)?.1.index().generation()))
    }

    /// The directories.
    #[getter]
    fn paths(&self) -> Vec<String> {
        self.paths.iter().map(|path| path.display().to_string()).collect()
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        guard_entry_point(py, || Ok(self.engine_and_snapshot(py)?.1.index().documents() as usize))
    }
}
