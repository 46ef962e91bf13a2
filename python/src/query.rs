//! Queries from Python: text, a list of terms, or weights of terms.

use crate::errors::usage_error;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use std::collections::HashMap;
use tierdex::{Error, Query, Schema, limits::QUERY_TERMS_MAX};

/// How the text of a query is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// The query language; a syntax error rejects the query.
    Query,
    /// The query language; parts with syntax errors are ignored.
    Lenient,
    /// Plain text: any of its words.
    Terms,
}

impl Syntax {
    /// The syntax of this name.
    pub fn from_name(py: Python<'_>, name: &str) -> PyResult<Syntax> {
        match name {
            "query" => Ok(Syntax::Query),
            "lenient" => Ok(Syntax::Lenient),
            "terms" => Ok(Syntax::Terms),
            other => Err(usage_error(
                py,
                format!("syntax is {other:?}; it is \"query\", \"lenient\" or \"terms\""),
            )),
        }
    }
}

/// A query that no longer refers to Python objects.
pub enum QuerySource {
    /// Text, to be parsed.
    Text(String),
    /// Terms as they are in the index, with their weights.
    Weights(Vec<(String, f64)>),
}

impl QuerySource {
    /// Reads `str`, a mapping from terms to weights, or a sequence of terms.
    pub fn from_python(object: &Bound<'_, PyAny>) -> PyResult<QuerySource> {
        let py = object.py();
        if let Ok(text) = object.cast::<PyString>() {
            return Ok(QuerySource::Text(text.to_string_lossy().into_owned()));
        }
        if let Ok(weights) = object.cast::<PyDict>() {
            let pair = |(term, weight): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
                Ok((extract_term(&term)?, weight.extract::<f64>().map_err(|_| wrong_query_type(&weight))?))
            };
            return Ok(QuerySource::Weights(weights.iter().map(pair).collect::<PyResult<_>>()?));
        }
        if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
            let terms = object.try_iter()?.map(|term| extract_term(&term?));
            return Ok(QuerySource::Weights(count_terms(terms.collect::<PyResult<_>>()?)));
        }
        if object.hasattr("items")? {
            let copy = PyDict::new(py);
            copy.call_method1("update", (object,))?;
            return QuerySource::from_python(copy.as_any());
        }
        Err(wrong_query_type(object))
    }

    /// Whether there is no text and no term.
    pub fn is_empty(&self) -> bool {
        match self {
            QuerySource::Text(text) => text.trim().is_empty(),
            QuerySource::Weights(weights) => weights.is_empty(),
        }
    }

    /// The query, and warnings: notes on parts that look like operators and are text, and what the lenient
    /// syntax ignores. Terms of weights are looked up in `field`.
    pub fn parse(&self, schema: &Schema, syntax: Syntax, field: usize) -> Result<(Query, Vec<Error>), Error> {
        match self {
            QuerySource::Text(text) => match syntax {
                Syntax::Query => Query::parse_with_notes(text, schema),
                Syntax::Lenient => Ok(Query::parse_lenient(text, schema)),
                Syntax::Terms => Ok((Query::any_term(text, schema)?, Vec::new())),
            },
            QuerySource::Weights(weights) => Ok((weighted_disjunction(weights, field)?, Vec::new())),
        }
    }
}

/// Number of the field called `name`; the first without a name.
pub fn field_number(schema: &Schema, name: Option<&str>) -> Result<usize, Error> {
    let Some(name) = name else { return Ok(0) };
    let names = || schema.fields.iter().map(|field| field.name.as_str()).collect::<Vec<_>>().join(", ");
    let missing = || Error::Usage(format!("the index has no field {name:?}; its fields are: {}", names()));
    schema.field(name).ok_or_else(missing)
}

/// A disjunction of weighted terms. Terms of weight 0 add nothing and are left out.
fn weighted_disjunction(weights: &[(String, f64)], field: usize) -> Result<Query, Error> {
    if weights.len() > QUERY_TERMS_MAX {
        let message = format!("{} terms; at most {QUERY_TERMS_MAX} are allowed", weights.len());
        return Err(Error::Query { at: None, message });
    }
    let negative = weights.iter().find(|(_, weight)| weight.is_nan() || *weight < 0.0);
    if let Some((term, weight)) = negative {
        let message = format!("the weight of {term:?} is {weight}; weights are at least 0");
        return Err(Error::Query { at: None, message });
    }
    let weighted = weights.iter().filter(|(_, weight)| *weight > 0.0);
    let should: Vec<_> =
        weighted.map(|(term, weight)| Query::Term { field, term: term.clone(), boost: *weight }).collect();
    if should.is_empty() {
        return Ok(Query::Nothing);
    }
    Ok(Query::clauses(Vec::new(), should, Vec::new()))
}

/// Distinct terms with their numbers of occurrences, in order of first occurrence.
fn count_terms(terms: Vec<String>) -> Vec<(String, f64)> {
    let mut positions: HashMap<String, usize> = HashMap::new();
    let mut weights: Vec<(String, f64)> = Vec::new();
    for term in terms {
        match positions.get(&term) {
            Some(&position) => weights[position].1 += 1.0,
            None => {
                positions.insert(term.clone(), weights.len());
                weights.push((term, 1.0));
            }
        }
    }
    weights
}

fn extract_term(term: &Bound<'_, PyAny>) -> PyResult<String> {
    let text = term.cast::<PyString>().map_err(|_| wrong_query_type(term))?;
    Ok(text.to_string_lossy().into_owned())
}

fn wrong_query_type(object: &Bound<'_, PyAny>) -> PyErr {
    let kind = object.get_type().name().map_or_else(|_| "object".to_string(), |name| name.to_string());
    usage_error(
        object.py(),
        format!("a query is a str, a list of terms, or a dict from terms to weights; this one has a {kind}"),
    )
}
