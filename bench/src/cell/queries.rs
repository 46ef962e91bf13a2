//! The queries of a cell.

use crate::{Error, Result, cell::query_kind::QueryShape, query_lines};
use serde::Deserialize;
use std::path::PathBuf;
use tierdex::{Index, Query};

/// The queries of a cell.
#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "`queries` has either `texts`, or `file`, or `terms`, `shape` and `field`"
)]
pub enum CellQueries {
    /// In the query language.
    Texts {
        /// One text per query.
        texts: Vec<String>,
    },
    /// A file with one query in the query language per line.
    File {
        /// Path of the file.
        file: PathBuf,
    },
    /// Terms of a field as they are in the dictionary.
    Terms {
        /// The terms of each query.
        terms: Vec<Vec<String>>,
        /// The form of the queries.
        shape: QueryShape,
        /// The number of the field.
        field: usize,
    },
}

impl CellQueries {
    /// The queries over an index.
    ///
    /// # Errors
    /// If the file cannot be read, has no query, a query has an error of syntax, or there is no such field.
    pub(super) fn parse(&self, index: &Index) -> Result<Vec<Query>> {
        match self {
            CellQueries::Texts { texts } => Ok(texts
                .iter()
                .map(|text| Query::parse(text, index.schema()))
                .collect::<tierdex::Result<_>>()?),
            CellQueries::File { file } => query_lines::read_queries(file, index),
            CellQueries::Terms { field, .. } if *field >= index.schema().fields.len() => {
                Err(Error::Usage(format!("the index has no field {field}")))
            }
            CellQueries::Terms { terms, shape, field } => {
                Ok(terms.iter().map(|terms| shape.query(*field, terms)).collect())
            }
        }
    }
}
