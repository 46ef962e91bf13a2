//! `tierdex.Column`: numbers or strings that NumPy and Arrow libraries read without a copy.

use crate::errors::usage_error;
use arrow_array::types::{ArrowPrimitiveType, Float32Type, Int64Type, UInt32Type};
use arrow_array::{Array, ArrayRef, cast::AsArray};
use arrow_schema::Field;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyTuple};
use pyo3_arrow::ffi::to_array_pycapsules;
use std::sync::Arc;

/// A column in memory: `numpy.asarray(column)` and `pyarrow.array(column)` share its memory.
#[pyclass(frozen, module = "tierdex")]
pub struct Column {
    array: ArrayRef,
}

impl Column {
    /// A column with the memory of `array`.
    pub fn new(array: ArrayRef) -> Column {
        Column { array }
    }

    /// A read-only NumPy array with the memory of `array`.
    pub fn numpy<'py>(py: Python<'py>, array: ArrayRef) -> PyResult<Bound<'py, PyAny>> {
        py.import("numpy")?.call_method1("asarray", (Bound::new(py, Column::new(array))?,))
    }
}

#[pymethods]
impl Column {
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        fn buffer_address<T: ArrowPrimitiveType>(array: &ArrayRef) -> Option<usize> {
            array.as_primitive_opt::<T>().map(|array| array.values().as_ptr().addr())
        }
        let array = &self.array;
        let numbers = buffer_address::<Float32Type>(array).map(|at| (at, "<f4"));
        let numbers = numbers.or_else(|| buffer_address::<UInt32Type>(array).map(|at| (at, "<u4")));
        let numbers = numbers.or_else(|| buffer_address::<Int64Type>(array).map(|at| (at, "<i8")));
        let Some((address, kind)) = numbers else {
            return Err(usage_error(py, "a column of strings is no NumPy array; use to_list() or Arrow"));
        };
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("typestr", kind)?;
        interface.set_item("shape", (array.len(),))?;
        interface.set_item("data", (address, true))?;
        Ok(interface)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let field = Field::new("", self.array.data_type().clone(), false);
        Ok(to_array_pycapsules(py, Arc::new(field), &self.array, requested_schema)?)
    }

    fn __len__(&self) -> usize {
        self.array.len()
    }

    /// The values as Python objects.
    pub fn to_list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(strings) = self.array.as_string_opt::<i64>() {
            let strings: Vec<&str> = strings.iter().flatten().collect();
            return strings.into_pyobject(py);
        }
        Column::numpy(py, self.array.clone())?.call_method0("tolist")
    }
}
