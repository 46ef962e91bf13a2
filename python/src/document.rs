//! `tierdex.Document`: a stored document.

use crate::errors::guard_entry_point;
use pyo3::types::{PyDict, PyString};
use pyo3::{IntoPyObjectExt, exceptions::PyValueError, prelude::*};
use tierdex::{Snapshot, StoredDocument, schema::Stored};

/// A document read from the stored fields of an index.
#[pyclass(frozen, eq, module = "tierdex")]
#[derive(Clone, PartialEq)]
pub struct Document {
    /// External id.
    #[pyo3(get)]
    id: String,
    /// The first value of the title; `None` if the index does not store documents.
    #[pyo3(get)]
    title: Option<String>,
    /// Names of members with their values; `None` if the index does not store documents.
    values: Option<Vec<(String, Vec<String>)>>,
    /// The text of what the document has beside its members; `None` if the index does not store it.
    others: Option<String>,
    /// Document number in the commit.
    #[pyo3(get)]
    document: u32,
}

/// Id, title, values, others and number of a document.
type DocumentState = (String, Option<String>, Option<Vec<(String, Vec<String>)>>, Option<String>, u32);

/// The values of the member `text`, one a line.
pub fn text_of(stored: &StoredDocument) -> String {
    stored.values("text").join("\n")
}

impl Document {
    /// Reads a document of a commit.
    pub fn read(snapshot: &Snapshot, document: u32, id: String) -> tierdex::Result<Document> {
        let Some(stored) = snapshot.stored(document)? else {
            return Ok(Document { id, title: None, values: None, others: None, document });
        };
        let values = stored.members().map(|(name, values)| (name.to_string(), values.to_vec())).collect();
        let keeps_others = snapshot.schema().stored == Stored::All;
        let others = keeps_others.then(|| stored.others().to_string());
        Ok(Document { id, title: Some(stored.title().to_string()), values: Some(values), others, document })
    }
}

#[pymethods]
impl Document {
    /// The values of the member `text`, one a line; `None` if the index does not store documents.
    #[getter]
    fn text(&self) -> Option<String> {
        let values = self.values.as_ref()?;
        let text = values.iter().find(|(name, _)| name == "text");
        Some(text.map_or_else(String::new, |(_, values)| values.join("\n")))
    }

    /// The members that have values, by their names: a `str`, or a list of them if there are several. `None`
    /// if the index does not store documents.
    #[getter]
    fn members<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        guard_entry_point(py, || {
            let Some(members) = &self.values else { return Ok(None) };
            let dict = PyDict::new(py);
            for (name, values) in members {
                match &values[..] {
                    [] => (),
                    [value] => dict.set_item(name, value)?,
                    values => dict.set_item(name, values)?,
                }
            }
            Ok(Some(dict))
        })
    }

    /// What the document has beside its members; `None` unless the index stores it. A text that is no JSON,
    /// which other programs may store, is a `str`.
    #[getter]
    fn others<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        guard_entry_point(py, || match self.others.as_deref() {
            None => Ok(None),
            Some("") => PyDict::new(py).into_bound_py_any(py).map(Some),
            Some(text) => match py.import("json")?.call_method1("loads", (text,)) {
                Err(error) if error.is_instance_of::<PyValueError>(py) => {
                    Ok(Some(PyString::new(py, text).into_any()))
                }
                read => read.map(Some),
            },
        })
    }

    fn __repr__(&self) -> String {
        format!("<tierdex.Document: {:?}>", self.id)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, DocumentState)> {
        let Document { id, title, values, others, document } = slf.get().clone();
        let restore = slf.py().import("tierdex._restore")?.getattr("document")?;
        Ok((restore, (id, title, values, others, document)))
    }

    /// A document from the state of a pickle.
    #[staticmethod]
    fn _restore(
        id: String,
        title: Option<String>,
        values: Option<Vec<(String, Vec<String>)>>,
        others: Option<String>,
        document: u32,
    ) -> Document {
        Document { id, title, values, others, document }
    }
}
