//! `tierdex.Document`: a stored document.

use pyo3::prelude::*;
use tierdex::Snapshot;

/// A document read from the stored fields of an index.
#[pyclass(frozen, eq, module = "tierdex")]
#[derive(Clone, PartialEq)]
pub struct Document {
    /// External id.
    #[pyo3(get)]
    id: String,
    /// Title; `None` if the index does not store documents.
    #[pyo3(get)]
    title: Option<String>,
    /// Text; `None` if the index does not store documents.
    #[pyo3(get)]
    text: Option<String>,
    /// Document number in the commit.
    #[pyo3(get)]
    document: u32,
}

/// Id, title, text and number of a document.
type DocumentState = (String, Option<String>, Option<String>, u32);

impl Document {
    /// Reads a document of a commit.
    pub fn read(snapshot: &Snapshot, document: u32, id: String) -> tierdex::Result<Document> {
        let stored = snapshot.stored(document)?;
        let (title, text) = stored.map(|stored| (stored.title, stored.text)).unzip();
        Ok(Document { id, title, text, document })
    }
}

#[pymethods]
impl Document {
    fn __repr__(&self) -> String {
        format!("<tierdex.Document: {:?}>", self.id)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, DocumentState)> {
        let Document { id, title, text, document } = slf.get().clone();
        Ok((slf.py().import("tierdex._restore")?.getattr("document")?, (id, title, text, document)))
    }

    /// A document from the state of a pickle.
    #[staticmethod]
    fn _restore(id: String, title: Option<String>, text: Option<String>, document: u32) -> Document {
        Document { id, title, text, document }
    }
}
