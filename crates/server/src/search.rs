//! Evaluates searches: from a parsed query to its hits, through admission and the engine.

use crate::admission::Admitted;
use crate::api_error::{ApiError, ApiErrorKind};
use crate::options::MEMORY_WAIT;
use crate::record::{AnswerMemory, SearchRecord};
use crate::shape::SearchShape;
use crate::state::{ServerState, UNIT};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tierdex::{CancelHandle, Engine, Hits, PreviewOptions, Query, Schema, SearchRequest, Ticket};
use tokio::sync::oneshot;

/// Hits of a search with those before its offset, at most.
pub(crate) const HITS_MAX: usize = 1000;

/// Time until a search ends with the best hits found so far, and the most that a client may set.
pub(crate) const DEADLINE_MS: u64 = 2000;
pub(crate) const DEADLINE_MS_MAX: u64 = 30_000;

/// Bytes of a snippet, at most.
pub(crate) const SNIPPET_BYTES_MAX: usize = 2048;

/// Prefixes and fuzzy words of a query, at most: each may stand for thousands of terms.
const EXPANDED_MAX: usize = 8;

/// Bytes of an answer and of its hits in memory: of the answer, of a hit without long ids, and of an
/// explanation.
const ANSWER_BYTES: usize = 4 << 10;
const HIT_BYTES: usize = 1 << 10;
const EXPLANATION_BYTES: usize = 1 << 20;

/// How the text of a query is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Syntax {
    /// The query language; a fault is an error.
    #[default]
    Query,
    /// The query language; faults are warnings, and their parts are ignored.
    Lenient,
    /// Plain text: documents that contain any of its words.
    Terms,
}

/// A search that is ready to be evaluated.
pub(crate) struct PreparedSearch {
    pub(crate) request: SearchRequest,
    pub(crate) shape: SearchShape,
    pub(crate) deadline: Duration,
    /// Bytes of the answer, at most, as far as it is not counted by the engine any more.
    pub(crate) answer_bytes: usize,
}

/// The result of a search, and the memory of its answer.
pub(crate) struct Found {
    pub(crate) hits: Hits,
    pub(crate) memory: AnswerMemory,
}

/// Cancels the request of a client that goes away.
pub(crate) struct CancelOnDrop(pub(crate) CancelHandle);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Parses a query; returns it with its warnings.
pub(crate) fn parse_query(
    text: &str,
    syntax: Syntax,
    schema: &Schema,
) -> Result<(Query, Vec<String>), ApiError> {
    if text.trim().is_empty() {
        let message = "the query is empty; give words to search for, or *:* for all documents";
        return Err(ApiError::new(ApiErrorKind::Query, message));
    }
    let (query, warnings) = match syntax {
        Syntax::Query => Query::parse_with_notes(text, schema)?,
        Syntax::Lenient => Query::parse_lenient(text, schema),
        Syntax::Terms => (Query::any_term(text, schema)?, Vec::new()),
    };
    Ok((query, warnings.iter().map(ToString::to_string).collect()))
}

/// The shape of a query, which may have a limited number of prefixes and fuzzy words. A search without hits
/// counts.
pub(crate) fn checked_shape(query: &Query, k: usize, count: bool) -> Result<SearchShape, ApiError> {
    let shape = SearchShape::of(query, k, count || k == 0);
    if shape.expanded > EXPANDED_MAX {
        let message = format!(
            "the query has {} prefixes and fuzzy words; at most {EXPANDED_MAX} are allowed",
            shape.expanded
        );
        return Err(ApiError::new(ApiErrorKind::Limit, message));
    }
    Ok(shape)
}

/// Bytes of an answer of `k` hits, at most.
pub(crate) fn answer_bytes(k: usize, previews: Option<PreviewOptions>, explains: bool) -> usize {
    // Titles and snippets, as the engine returns them and as text.
    let preview = previews.map_or(0, |shown| 2 * (shown.title + 2 * shown.snippet));
    ANSWER_BYTES + k * (HIT_BYTES + preview) + if explains { EXPLANATION_BYTES } else { 0 }
}

/// Evaluates a search, if it would not wait for too long.
pub(crate) async fn evaluate(
    state: &ServerState,
    engine: &Engine,
    search: PreparedSearch,
) -> Result<Found, ApiError> {
    let until = Instant::now() + search.deadline;
    // First, so that searches that wait for memory count as waiting.
    let admitted = admit(state, &search)?;
    let memory = answer_memory(state, search.answer_bytes).await?;
    let hits = evaluate_admitted(state, engine, search.request.deadline(until), admitted).await?;
    Ok(Found { hits, memory })
}

/// Evaluates a search whose answer has its memory already, if it would not wait for too long.
pub(crate) async fn evaluate_reserved(
    state: &ServerState,
    engine: &Engine,
    search: PreparedSearch,
) -> Result<Hits, ApiError> {
    let until = Instant::now() + search.deadline;
    let admitted = admit(state, &search)?;
    evaluate_admitted(state, engine, search.request.deadline(until), admitted).await
}

fn admit(state: &ServerState, search: &PreparedSearch) -> Result<Admitted, ApiError> {
    let admitted = state.admission.admit(search.shape, search.deadline);
    admitted.map_err(|wait| would_wait(state, wait))
}

async fn evaluate_admitted(
    state: &ServerState,
    engine: &Engine,
    request: SearchRequest,
    admitted: Admitted,
) -> Result<Hits, ApiError> {
    let submitted = match admitted.is_quick_alone {
        true => tokio::task::block_in_place(|| engine.submit_here(request, || false)),
        false => engine.submit(request),
    };
    let submitted = submitted.inspect_err(|error| {
        if error.retry_after().is_some() {
            state.metrics.refused.bytes();
        }
    });
    let hits = result_of(submitted?).await?;
    admitted.finish();
    Ok(hits)
}

/// The engine of the server.
pub(crate) fn engine_of(state: &ServerState) -> Result<&Engine, ApiError> {
    state.catalog.engine().ok_or_else(|| ApiError::new(ApiErrorKind::NotFound, "there is no index"))
}

/// Counts a search that was answered; returns its record for logs.
pub(crate) fn record_search(state: &ServerState, index: &str, query: String, hits: &Hits) -> SearchRecord {
    state.metrics.add_search(hits.took, hits.queued, hits.cost.pages_missed * tierdex::io::PAGE);
    SearchRecord {
        index: index.to_string(),
        query,
        took: hits.took,
        queued: hits.queued,
        memory: hits.cost.memory,
        pages: hits.cost.pages,
        pages_read: hits.cost.pages_missed,
        parts: hits.parts,
        timed_out: hits.timed_out,
    }
}

/// The error of a search that would wait for too long.
pub(crate) fn would_wait(state: &ServerState, wait: Duration) -> ApiError {
    state.metrics.refused.wait();
    let millis = wait.as_secs_f64() * 1e3;
    ApiError::overloaded(format!("the server is busy: a search would wait for {millis:.0} ms"), wait)
}

/// The units of memory of an answer, if it can fit into the memory of answers.
pub(crate) fn answer_units(state: &ServerState, bytes: usize) -> Result<u32, ApiError> {
    let units = u32::try_from(bytes.div_ceil(UNIT)).ok().filter(|units| *units <= state.answers.max);
    units.ok_or_else(|| {
        let available = state.answers.max as usize * UNIT;
        let message = format!(
            "the answer may take {bytes} bytes, and the memory budget leaves {available} for answers; ask for \
             fewer hits or shorter snippets"
        );
        ApiError::new(ApiErrorKind::Limit, message)
    })
}

/// Waits for the memory of an answer.
pub(crate) async fn answer_memory(state: &ServerState, bytes: usize) -> Result<AnswerMemory, ApiError> {
    let units = answer_units(state, bytes)?;
    let permit = state.answers.units.clone().acquire_many_owned(units);
    match tokio::time::timeout(MEMORY_WAIT, permit).await {
        Ok(Ok(permit)) => Ok(AnswerMemory::new(permit)),
        _ => {
            state.metrics.refused.bytes();
            Err(ApiError::no_memory("the answers of other requests take all memory", MEMORY_WAIT))
        }
    }
}

/// Memory for more of an answer, without waiting: its caller has memory that others may wait for.
pub(crate) fn more_answer_memory(state: &ServerState, bytes: usize) -> Result<AnswerMemory, ApiError> {
    let units = answer_units(state, bytes)?;
    let permit = state.answers.units.clone().try_acquire_many_owned(units);
    permit.map(AnswerMemory::new).map_err(|_| {
        state.metrics.refused.bytes();
        ApiError::no_memory("the answers of other requests take all memory", MEMORY_WAIT)
    })
}

/// The result of a ticket. If this future is dropped, the request is cancelled.
pub(crate) async fn result_of(ticket: Ticket) -> Result<Hits, ApiError> {
    let (sender, receiver) = oneshot::channel();
    let _cancel = CancelOnDrop(ticket.on_ready(move |result| drop(sender.send(result))));
    match receiver.await {
        Ok(result) => Ok(result?),
        Err(_) => Err(ApiError::new(ApiErrorKind::Draining, "the server is stopping")),
    }
}

/// Runs a function that reads files on a thread of its own, one of few.
pub(crate) async fn blocking<T: Send + 'static>(
    state: &Arc<ServerState>,
    read: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let permit = tokio::time::timeout(MEMORY_WAIT, state.blocking.clone().acquire_owned()).await;
    let Ok(Ok(permit)) = permit else {
        state.metrics.refused.wait();
        return Err(ApiError::overloaded("other requests read terms or documents", MEMORY_WAIT));
    };
    let run = move || {
        let _permit = permit;
        read()
    };
    let ran = tokio::task::spawn_blocking(run).await;
    ran.unwrap_or_else(|_| {
        Err(ApiError::new(ApiErrorKind::Internal, "reading failed by an error of the server"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_without_hits_counts() {
        let number = |k, count| checked_shape(&Query::Nothing, k, count).unwrap().number();
        assert_eq!(number(0, false), number(0, true));
        assert_ne!(number(10, false), number(10, true));
    }
}
