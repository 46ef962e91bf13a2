//! Exchange of indexes by CIFF files: the native part of `tierdex.ciff`.

use crate::options::{SchemaTuple, schema_from_tuple};
use crate::{errors::guard_entry_point, text::Text, wait};
use pyo3::{prelude::*, types::PyDict};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use tierdex::ciff::{CiffReport, export, import};
use tierdex::schema::{Schema, Stored};
use tierdex::{Error, Index, IndexWriter, Merge, StopSignal, WriterOptions};

/// Writes an index from an uncompressed CIFF file; `name` is the name of the file in messages.
#[pyfunction]
#[pyo3(signature = (file, name, path, schema, overwrite, updatable))]
pub fn _ciff_import<'py>(
    py: Python<'py>,
    file: PathBuf,
    name: Text,
    path: PathBuf,
    schema: SchemaTuple,
    overwrite: bool,
    updatable: bool,
) -> PyResult<Bound<'py, PyDict>> {
    guard_entry_point(py, || {
        let schema = Schema { stored: Stored::Nothing, ..schema_from_tuple(py, schema)? };
        let stop = StopSignal::default();
        let options = WriterOptions { updatable, stop: stop.clone(), ..WriterOptions::default() };
        let imported = wait::run_interruptible(py, Some(&stop), move || {
            let mut input = File::open(&file).map_err(|error| file_error("open", &file, &error))?;
            let mut writer = match overwrite {
                true => IndexWriter::replace(&path, schema, options),
                false => IndexWriter::create(&path, schema, options),
            }?;
            let report = import(&mut writer, &mut input, &name)?;
            writer.commit(Merge::Keep)?;
            Ok(report)
        });
        report_dict(py, &imported?)
    })
}

/// Writes a field of the newest commit to an uncompressed CIFF file.
#[pyfunction]
#[pyo3(signature = (path, field, description, file))]
pub fn _ciff_export<'py>(
    py: Python<'py>,
    path: PathBuf,
    field: Text,
    description: Text,
    file: PathBuf,
) -> PyResult<Bound<'py, PyDict>> {
    guard_entry_point(py, || {
        let stop = StopSignal::default();
        let signal = stop.clone();
        let exported = wait::run_interruptible(py, Some(&stop), move || {
            let failed = |what, error: &std::io::Error| file_error(what, &file, error);
            let out = File::create(&file).map_err(|error| failed("create", &error))?;
            let mut out = BufWriter::new(StoppableFile { file: out, stop: signal });
            let report = export(&Index::open(&path)?, &field, &description, &mut out)?;
            out.flush().map_err(|error| failed("write", &error))?;
            Ok(report)
        });
        report_dict(py, &exported?)
    })
}

/// A file whose writes fail once `stop` is raised.
struct StoppableFile {
    file: File,
    stop: StopSignal,
}

impl Write for StoppableFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.stop.check().map_err(std::io::Error::other)?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

fn file_error(what: &'static str, path: &Path, error: &std::io::Error) -> Error {
    tierdex::io::Error::from_os(what, path.display().to_string(), error).into()
}

fn report_dict<'py>(py: Python<'py>, report: &CiffReport) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("documents", report.documents)?;
    out.set_item("lists", report.lists)?;
    out.set_item("postings", report.postings)?;
    out.set_item("collection_documents", report.collection.0)?;
    out.set_item("collection_lists", report.collection.1)?;
    out.set_item("missing_tokens", report.missing_tokens)?;
    out.set_item("raised_lengths", report.raised_lengths)?;
    out.set_item("other_frequencies", report.other_frequencies)?;
    out.set_item("long_terms", report.long_terms)?;
    out.set_item("changed_terms", report.changed_terms)?;
    out.set_item("first_changed_term", report.first_changed_term.as_deref())?;
    out.set_item("description", &report.description)?;
    Ok(out)
}
