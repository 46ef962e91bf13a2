//! Requests of the engine from the arguments of Python.

use crate::errors::usage_error;
use crate::process::{ProcessLocal, forked_error};
use crate::query::{QuerySource, Syntax, field_number};
use crate::text::Text;
use crate::wait::{SIGNAL_CHECK_INTERVAL, run_without_gil};
use pyo3::prelude::*;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tierdex::{Error, Query, Scorer, SearchOptions, SearchRequest, Snapshot, Statistics, Ticket};

/// Number of hits and ranking of a search.
pub struct RankingOptions {
    pub options: SearchOptions,
    pub syntax: Syntax,
    pub field: Option<String>,
}

impl RankingOptions {
    pub fn new(
        py: Python<'_>,
        k: usize,
        count: bool,
        scorer: Scorer,
        syntax: &str,
        field: Option<Text>,
    ) -> PyResult<RankingOptions> {
        let options = SearchOptions { k, scorer, count, ids: true, ..SearchOptions::default() };
        Ok(RankingOptions {
            options,
            syntax: Syntax::from_name(py, syntax)?,
            field: field.map(Text::into_string),
        })
    }

    /// The request of a query for a snapshot, the query, and its warnings.
    pub fn request(
        &self,
        source: QuerySource,
        snapshot: &Arc<Snapshot>,
        statistics: Option<Arc<Statistics>>,
        deadline: Option<Instant>,
    ) -> Result<(SearchRequest, Query, Vec<Error>), Error> {
        let schema = snapshot.schema();
        let field = field_number(schema, self.field.as_deref())?;
        let (query, warnings) = source.parse(schema, self.syntax, field)?;
        let mut request = SearchRequest::new(query.clone()).options(self.options).snapshot(snapshot.clone());
        if let Some(statistics) = statistics {
            request = request.statistics(statistics);
        }
        if let Some(deadline) = deadline {
            request = request.deadline(deadline);
        }
        Ok((request, query, warnings))
    }
}

/// Waits for the result of a request, and checks for signals meanwhile.
pub fn wait_for_hits(py: Python<'_>, ticket: Ticket) -> PyResult<tierdex::Hits> {
    let mut ticket = ProcessLocal::new(ticket);
    loop {
        let waiting = ticket.get().ok_or_else(|| forked_error(py))?;
        if py.detach(|| waiting.wait_timeout(SIGNAL_CHECK_INTERVAL)) {
            break;
        }
        // Dropping the ticket cancels the request.
        py.check_signals()?;
    }
    let ticket = ticket.take().ok_or_else(|| forked_error(py))?;
    run_without_gil(py, || ticket.wait())
}

/// The time after this number of seconds; `None` without one, and if it is beyond the range of the clock.
pub fn deadline_after(py: Python<'_>, seconds: Option<f64>) -> PyResult<Option<Instant>> {
    let seconds = seconds.map(|seconds| parse_seconds(py, "deadline", seconds)).transpose()?;
    Ok(seconds.and_then(|seconds| Instant::now().checked_add(seconds)))
}

/// A number of seconds, at least 0. Infinity is the longest time that there is.
pub fn parse_seconds(py: Python<'_>, name: &str, seconds: f64) -> PyResult<Duration> {
    if seconds.is_nan() || seconds < 0.0 {
        return Err(usage_error(py, format!("{name} is {seconds}; it is a number of seconds, at least 0")));
    }
    Ok(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}
