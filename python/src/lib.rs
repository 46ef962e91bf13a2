//! The native part of the Python package `tierdex`. The package wraps its classes; names with an underscore
//! are for the package alone.
#![forbid(unsafe_code)]

mod adding;
mod batch;
mod ciff;
mod column;
mod columns;
mod deletes;
mod document;
mod documents;
mod errors;
mod explain;
mod hits;
mod index;
mod marks;
mod options;
mod pieces;
mod process;
mod query;
mod request;
mod rows;
mod run_ids;
mod statistics;
mod stats;
mod text;
mod wait;
mod writer;
mod writer_handle;
mod writer_thread;

use pyo3::prelude::*;

/// Native classes of tierdex.
#[pymodule]
mod _tierdex {
    use super::*;

    #[pymodule_export]
    use crate::batch::Batch;
    #[pymodule_export]
    use crate::ciff::{_ciff_export, _ciff_import};
    #[pymodule_export]
    use crate::column::Column;
    #[pymodule_export]
    use crate::document::Document;
    #[pymodule_export]
    use crate::hits::{Hit, Hits};
    #[pymodule_export]
    use crate::index::Index;
    #[pymodule_export]
    use crate::statistics::{_merge_hits, Statistics};
    #[pymodule_export]
    use crate::writer::Writer;

    /// Panics, for the test that a panic becomes an exception.
    #[pyfunction]
    fn _panic(py: Python<'_>, message: String) -> PyResult<()> {
        errors::guard_entry_point(py, || panic!("{message}"))
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("_ENGLISH_STOP_WORDS", tierdex::analysis::ENGLISH_STOP_WORDS.to_vec())
    }
}
