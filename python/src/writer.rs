//! `tierdex.Writer`: adds documents to an index, deletes documents, and commits.
//!
//! Documents are read before the state of the writer is locked, as their methods may do anything, even call
//! the writer. Then a call repeats its step on the state (see `tierdex_python_writer`) until it is done; it
//! waits without the GIL and checks for signals meanwhile.

use crate::adding::{DocumentUpload, warn_of_replaced};
use crate::deletes::Matches;
use crate::documents::{DocumentReader, IgnoredNames, quoted_names};
use crate::errors::{Failure, guard_entry_point, issue_warning, usage_error};
use crate::query::{QuerySource, Syntax, field_number};
use crate::writer_handle::{WriterHandle, describe_loss, writer_ended_error};
use crate::writer_thread::{State, WriterFailure, WriterThread};
use crate::{pieces::Piece, text::Text, wait};
use arrow_array::{Array, cast::AsArray};
use arrow_schema::ArrowError;
use pyo3::exceptions::{PyImportError, PyKeyboardInterrupt, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3_arrow::{ffi::ArrayReader, input::AnyArray};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tierdex::schema::{Field, Schema, Stored};
use tierdex::{Error, Index, IndexWriter, SearchOptions, StopSignal, WriterOptions, io::PosixDisk};
use tierdex_python_writer::{Changes, CommitOrder, End, Ticket};

/// Interval between attempts to lock an index.
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// Adds documents to an index; see `tierdex.Index.writer`.
///
/// As a context manager it commits at the end, or discards all documents since the last commit when an
/// exception leaves the block.
#[pyclass(frozen, module = "tierdex")]
pub struct Writer {
    on_commit: OnCommit,
    merge: Option<bool>,
    /// The directory of the index.
    path: PathBuf,
    updatable: bool,
    bytes_max: usize,
    schema: Arc<Schema>,
    /// Reads the mappings that `add` takes.
    reader: DocumentReader,
    ignored: IgnoredNames,
    thread: WriterHandle,
}

/// How a writer is opened.
pub struct OpenWriter {
    /// The directory of the index.
    pub path: PathBuf,
    /// Fields that are added to the index.
    pub fields: Vec<Field>,
    pub memory: usize,
    pub threads: usize,
    /// Maximum time to wait for another writer to end.
    pub wait: Duration,
}

impl OpenWriter {
    fn run(&self, stop: &StopSignal) -> Result<IndexWriter, Failure> {
        let start = Instant::now();
        loop {
            match self.try_to_open(stop) {
                Err(tierdex::Error::Busy(_)) if start.elapsed() < self.wait => {
                    stop.check()?;
                    std::thread::sleep(LOCK_RETRY_INTERVAL);
                }
                other => return Ok(other?),
            }
        }
    }

    fn try_to_open(&self, stop: &StopSignal) -> tierdex::Result<IndexWriter> {
        let (memory, threads) = (self.memory, self.threads);
        let options = WriterOptions { memory, threads, stop: stop.clone(), ..WriterOptions::default() };
        let disk = Arc::new(PosixDisk::open(&self.path)?);
        IndexWriter::open_extended(disk, options, |schema| Ok(schema.with_fields(self.fields.clone())))
    }
}

/// Function that is called after a commit, to refresh the index.
pub type OnCommit = Box<dyn Fn(Python<'_>) -> PyResult<()> + Send + Sync>;

/// The names of id, title and text for `add`.
const DEFAULT_MEMBER_NAMES: [&str; 3] = ["id", "title", "text"];

impl Writer {
    /// Opens a writer.
    pub fn open(
        py: Python<'_>,
        opening: OpenWriter,
        merge: Option<bool>,
        on_commit: OnCommit,
    ) -> PyResult<Writer> {
        let stop = StopSignal::default();
        let path = opening.path.clone();
        let (updatable, bytes_max, schema, thread) =
            wait::run_interruptible(py, Some(&stop.clone()), move || {
                let writer = opening.run(&stop)?;
                let (updatable, bytes_max) = (writer.is_updatable(), writer.document_bytes_max());
                let schema = writer.schema().clone();
                Ok((updatable, bytes_max, schema, WriterThread::start(writer, opening.threads)?))
            })?;
        let reader = DocumentReader::new(py, &schema, DEFAULT_MEMBER_NAMES, bytes_max)?;
        let (thread, ignored) = (WriterHandle::new(thread), IgnoredNames::default());
        Ok(Writer { on_commit, merge, path, updatable, bytes_max, schema, reader, ignored, thread })
    }

    /// Appends a document to a piece, and warns of members that are ignored; returns the number of values in
    /// which U+FFFD was put.
    fn read_document(
        &self,
        reader: &DocumentReader,
        document: &Bound<'_, PyAny>,
        number: u64,
        piece: &mut Piece,
    ) -> PyResult<u64> {
        reader
            .append_document(document, number, piece, |ignored| self.warn_of_ignored(document.py(), ignored))
    }

    /// Warns of what a document has besides its id and members, once for each name.
    fn warn_of_ignored(&self, py: Python<'_>, ignored: Vec<String>) -> PyResult<()> {
        if ignored.is_empty() {
            return Ok(());
        }
        let new = self.ignored.insert_new(ignored);
        let Some((last, first)) = self.schema.members.split_last().filter(|_| !new.is_empty()) else {
            return Ok(());
        };
        let known = [&["id".to_string()], first].concat().join(", ");
        let message =
            format!("the members {} are not indexed; only {known} and {last} are", quoted_names(&new));
        issue_warning(py, &message)
    }

    fn run_commit(&self, py: Python<'_>, order: CommitOrder) -> PyResult<Result<u64, End<WriterFailure>>> {
        let ticket = match self.thread.wait(py, |state| state.request_commit(order))? {
            Ok(ticket) => ticket,
            Err(end) => return Ok(Err(end)),
        };
        let answer = self.thread.wait(py, |state| state.commit_answer(ticket));
        let answer = answer.map_err(|signal| self.stop_interrupted_commit(py, ticket, signal))?;
        if let Ok(generation) = &answer {
            let note = format!(
                "the commit is durable, as generation {generation}: only the index was not refreshed"
            );
            (self.on_commit)(py).map_err(|error| with_note(py, error, note))?;
        }
        Ok(answer)
    }

    /// Stops the commit that a signal has interrupted, and waits for its end, unless there is another signal.
    /// The exception gets a note of the documents that are lost.
    fn stop_interrupted_commit(&self, py: Python<'_>, ticket: Ticket, signal: PyErr) -> PyErr {
        let stopped = self.thread.thread(py).and_then(|thread| {
            thread.stop().raise();
            let answer = self.thread.wait(py, |state| state.commit_answer(ticket));
            thread.step(|state| state.abandon_commit(ticket));
            answer
        });
        match stopped {
            Ok(Err(End::Failed { failure, lost })) => with_note(py, signal, describe_loss(&failure, lost)),
            _ => signal,
        }
    }
}

#[pymethods]
impl Writer {
    /// Adds a document: a mapping with `id` and members of the schema.
    fn add(&self, py: Python<'_>, document: &Bound<'_, PyAny>) -> PyResult<()> {
        guard_entry_point(py, || {
            let number = self.thread.position(py)?;
            let mut copied = Piece::default();
            let replaced = self.read_document(&self.reader, document, number, &mut copied)?;
            warn_of_replaced(py, replaced)?;
            self.thread.call(py, |state| state.add(&mut copied))
        })
    }

    /// Adds the documents of an iterable of mappings; returns their number. `progress` is called with the
    /// number of documents so far.
    #[pyo3(signature = (documents, *, id, title, text, progress))]
    fn add_dicts(
        &self,
        py: Python<'_>,
        documents: &Bound<'_, PyAny>,
        id: Text,
        title: Text,
        text: Text,
        progress: Option<Bound<'_, PyAny>>,
    ) -> PyResult<u64> {
        guard_entry_point(py, || {
            self.thread.position(py)?;
            let reader = DocumentReader::new(py, &self.schema, [&id, &title, &text], self.bytes_max)?;
            let mut adding = DocumentUpload::new(&self.thread, py, progress);
            let mut piece = Piece::default();
            let rejected = |error: PyErr| match error.is_instance_of::<PyTypeError>(py) {
                true => usage_error(py, format!("cannot read the documents: {}", error.value(py))),
                false => error,
            };
            for document in documents.try_iter().map_err(rejected)? {
                let number = adding.added + piece.documents();
                match document.and_then(|document| self.read_document(&reader, &document, number, &mut piece))
                {
                    Ok(replaced) => adding.replaced += replaced,
                    Err(error) => {
                        // The documents before it are added.
                        adding.add_piece(piece)?;
                        return Err(error);
                    }
                }
                if piece.is_full() {
                    adding.add_piece(std::mem::take(&mut piece))?;
                    adding.show_progress()?;
                }
            }
            adding.add_piece(piece)?;
            adding.finish_upload()
        })
    }

    /// Adds the rows of an Arrow table, record batch or stream; returns their number. `None` for a data frame
    /// of pandas, which is not an Arrow stream if pyarrow is not installed.
    #[pyo3(signature = (table, *, id, title, text, progress))]
    fn add_arrow(
        &self,
        py: Python<'_>,
        table: &Bound<'_, PyAny>,
        id: Text,
        title: Text,
        text: Text,
        progress: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Option<u64>> {
        guard_entry_point(py, || {
            self.thread.position(py)?;
            let reader = DocumentReader::new(py, &self.schema, [&id, &title, &text], self.bytes_max)?;
            let mut adding = DocumentUpload::new(&self.thread, py, progress);
            let Some(mut arrays) = record_batches(table)? else { return Ok(None) };
            while let Some(array) = py.detach(|| arrays.next()) {
                let array = array.map_err(|error| stream_exception(py, &error))?;
                let Some(rows) = array.as_struct_opt() else {
                    let message = format!("a table was expected, not an array of {}", array.data_type());
                    return Err(usage_error(py, message));
                };
                let read = reader.read_rows(py, rows, adding.added)?;
                self.warn_of_ignored(py, reader.other_columns(rows))?;
                for rows in &read.pieces {
                    adding.add_piece(py.detach(|| read.copy_piece(rows.clone())))?;
                    adding.show_progress()?;
                }
                adding.replaced += read.replaced;
                if let Some(error) = read.error {
                    return Err(error);
                }
            }
            adding.finish_upload().map(Some)
        })
    }

    /// Rejects an index in which documents are not found by their ids.
    fn check_updatable(&self, py: Python<'_>) -> PyResult<()> {
        guard_entry_point(py, || {
            self.thread.position(py)?;
            if self.updatable {
                return Ok(());
            }
            let message = "the index is not updatable: its documents are not found by their ids; create it \
                           with Index.create(path, schema, updatable=True)";
            Err(usage_error(py, message))
        })
    }

    /// Deletes the documents with these ids that were added before. If it raises, nothing is deleted.
    fn delete(&self, py: Python<'_>, ids: Vec<Bound<'_, PyAny>>) -> PyResult<()> {
        guard_entry_point(py, || {
            self.check_updatable(py)?;
            let mut piece = Piece::default();
            for (number, id) in ids.iter().enumerate() {
                piece.append_delete(id, number)?;
            }
            self.thread.call(py, |state| state.add(&mut piece))
        })
    }

    /// Deletes the documents of the last commit that match a query; returns their number.
    #[pyo3(signature = (query, *, field))]
    fn delete_matches(&self, py: Python<'_>, query: &Bound<'_, PyAny>, field: Option<Text>) -> PyResult<u64> {
        guard_entry_point(py, || {
            self.thread.position(py)?;
            let source = Arc::new((QuerySource::from_python(query)?, field.map(Text::into_string)));
            loop {
                let (commits, changes) = self.thread.call(py, |state| state.commits())?;
                if changes.documents > 0 {
                    let message = format!(
                        "a query finds the documents of the last commit, and {} were added since: commit \
                         before, or delete by ids",
                        changes.documents
                    );
                    return Err(usage_error(py, message));
                }
                let (path, given) = (self.path.clone(), source.clone());
                let find = move || Ok(find_matches(&path, &given.0, given.1.as_deref())?);
                let matches = wait::run_interruptible(py, None, find)?;
                let deleted = matches.documents.len() as u64;
                let mut piece = Piece::default();
                piece.deletes.append_matches(matches);
                // Otherwise another thread has changed the index meanwhile.
                if self.thread.call(py, |state| state.add_to_commit(commits, &mut piece))? {
                    return Ok(deleted);
                }
            }
        })
    }

    /// Makes all changes durable and visible; returns the generation of the commit. `merge` merges
    /// all segments into one, which is the fastest to search, but writes the whole index again.
    #[pyo3(signature = (*, merge=None))]
    fn commit(&self, py: Python<'_>, merge: Option<bool>) -> PyResult<u64> {
        guard_entry_point(py, || {
            let order = CommitOrder { merge: merge.or(self.merge), closes: false };
            self.run_commit(py, order)?.map_err(|end| writer_ended_error(py, end, ""))
        })
    }

    /// Discards the changes since the last commit and closes the writer.
    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        guard_entry_point(py, || {
            drop(self.thread.wait(py, State::roll_back)?);
            self.thread.thread(py)?.stop().raise();
            self.thread.wait_for_exit(py)
        })
    }

    /// Commits and closes the writer. A closed writer rejects all calls.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        guard_entry_point(py, || {
            let order = CommitOrder { merge: self.merge, closes: true };
            match self.run_commit(py, order)? {
                Ok(_) | Err(End::Closed | End::RolledBack) => self.thread.wait_for_exit(py),
                Err(failed) => Err(writer_ended_error(py, failed, "")),
            }
        })
    }

    /// Whether the members that documents have beside those of the schema are stored.
    #[getter]
    fn stores_all(&self) -> bool {
        self.schema.stored == Stored::All
    }

    /// Number of documents since the last commit.
    #[getter]
    fn added(&self, py: Python<'_>) -> PyResult<u64> {
        guard_entry_point(py, || {
            match self.thread.thread(py)?.step(|state| (state.end().cloned(), state.accepted().documents)) {
                (Some(failed @ End::Failed { .. }), _) => Err(writer_ended_error(py, failed, "")),
                (_, added) => Ok(added),
            }
        })
    }
}

/// All documents of the newest commit that match a query.
fn find_matches(path: &Path, source: &QuerySource, field: Option<&str>) -> Result<Matches, Error> {
    if source.is_empty() {
        return Err(Error::Usage("the query is empty; *:* matches all documents".to_string()));
    }
    let index = Index::open(path)?;
    let field = field_number(index.schema(), field)?;
    let (query, notes) = source.parse(index.schema(), Syntax::Query, field)?;
    // A part that is read as text could match more than was meant.
    match notes.into_iter().next() {
        Some(Error::Query { at, message }) => {
            return Err(Error::Query { at, message: message + "; nothing was deleted" });
        }
        Some(other) => return Err(other),
        None => (),
    }
    let k = usize::try_from(index.documents()).unwrap_or(usize::MAX);
    let found = index.searcher().search(&query, &SearchOptions { k, ..SearchOptions::default() })?;
    Ok(Matches { documents: found.hits.iter().map(|hit| hit.document).collect(), index })
}

/// The arrays of a table, a record batch or a stream. `None` for a data frame of pandas, which is not an
/// Arrow stream if pyarrow is not installed.
fn record_batches(table: &Bound<'_, PyAny>) -> PyResult<Option<Box<dyn ArrayReader + Send>>> {
    let py = table.py();
    match table.extract::<AnyArray>().and_then(AnyArray::into_reader) {
        Ok(arrays) => Ok(Some(arrays)),
        Err(error) if error.is_instance_of::<PyImportError>(py) && table.hasattr("iloc")? => Ok(None),
        Err(error) if error.is_instance_of::<PyTypeError>(py) || error.is_instance_of::<PyValueError>(py) => {
            Err(usage_error(py, format!("cannot read the table: {}", error.value(py))))
        }
        Err(error) => Err(error),
    }
}

/// The exception of a stream that failed. Of an exception of Python there is only text, whose last line has
/// its type and message; Ctrl-C remains what it is.
fn stream_exception(py: Python<'_>, error: &ArrowError) -> PyErr {
    let message = error.to_string();
    match message.trim_end().lines().next_back() {
        Some("KeyboardInterrupt") => PyKeyboardInterrupt::new_err(()),
        last => usage_error(py, format!("cannot read the table: {}", last.unwrap_or_default().trim())),
    }
}

/// The exception with a note below its message.
fn with_note(py: Python<'_>, error: PyErr, note: String) -> PyErr {
    match error.add_note(py, note) {
        Ok(()) => error,
        Err(error) => error,
    }
}
