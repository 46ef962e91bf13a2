//! Draws queries from the dictionary of an index.

use crate::cell::{CellQueries, DrawnQueries, QueryShape, QueryWorkload, TermClass, TermPools, as_text};
use crate::{Error, Result, request::experiment::ExperimentRequest};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{path::PathBuf, sync::Arc};
use tierdex::{Index, StopSignal, io::PosixDisk};

/// Queries of a workload over an index.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DrawRequest {
    /// Directory of the index.
    pub(crate) index: PathBuf,
    /// Class of the terms.
    #[serde(with = "as_text")]
    pub(crate) class: TermClass,
    /// Form of the queries.
    #[serde(with = "as_text")]
    pub(crate) shape: QueryShape,
    /// Probability that a term is repeated, in percent.
    pub(crate) repeats: u32,
    /// Number of queries.
    pub(crate) count: usize,
    /// Seed of the random numbers.
    pub(crate) seed: u64,
}

/// Largest number of queries that are drawn or generated.
pub(super) const QUERIES_MAX: usize = 1 << 20;

impl DrawRequest {
    /// Opens the index.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(super) fn open_index(&self) -> Result<Index> {
        Ok(Index::open_on(Arc::new(PosixDisk::open(&self.index)?))?)
    }

    /// Draws the queries. Returns the number of their field too.
    ///
    /// # Errors
    /// If a parameter is out of its range, the dictionary cannot be read, or the class has too few terms.
    pub(super) fn draw(&self, index: &Index) -> Result<(usize, DrawnQueries)> {
        if self.repeats > 99 {
            return Err(Error::Usage("`repeats` must be 0 to 99 percent".to_string()));
        }
        check_count(self.count)?;
        let workload = QueryWorkload { class: self.class, shape: self.shape, repeats: self.repeats };
        let terms = TermPools::read(index, &[self.class])?;
        Ok((terms.field, terms.draw(workload, self.count, self.seed)?))
    }
}

impl ExperimentRequest for DrawRequest {
    /// `queries` are those of a [`Cell`](crate::cell::Cell). `class-terms` is the number of terms of the
    /// class, `lists` and `list-bytes` are of the distinct lists, `bytes-asked` counts repetitions too, and
    /// `repeated` is the number of queries all of whose terms were queried before.
    fn answer(&self, _: &StopSignal) -> Result<Value> {
        let (field, drawn) = self.draw(&self.open_index()?)?;
        let (lists, list_bytes) = (drawn.lists.len(), drawn.working_set(None));
        let queries = CellQueries::Terms { terms: drawn.terms, shape: self.shape, field };
        Ok(json!({
            "queries": queries,
            "class-terms": drawn.class_terms,
            "lists": lists,
            "list-bytes": list_bytes,
            "bytes-asked": drawn.bytes_asked,
            "repeated": drawn.repeated,
        }))
    }
}

/// Checks a number of queries.
pub(super) fn check_count(count: usize) -> Result<()> {
    if (1..=QUERIES_MAX).contains(&count) {
        return Ok(());
    }
    Err(Error::Usage(format!("`count` must be 1 to {QUERIES_MAX}")))
}
