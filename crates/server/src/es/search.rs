//! Searches and counts.

use super::hits::{EsSearchAnswer, EsShards};
use super::indices::one_index;
use super::members::Members;
use super::query::QueryScope;
use super::request::{EsRequest, with_warnings};
use super::search_body::{EsSearch, TotalKind, logged_query, take_query};
use super::stored_source::{READER_BYTES, SourceReader};
use crate::api_error::ApiError;
use crate::catalog::ServedIndex;
use crate::extract::check_busy;
use crate::record::{AnswerMemory, SearchRecord};
use crate::search::{
    DEADLINE_MS, Found, PreparedSearch, answer_bytes, checked_shape, engine_of, evaluate, evaluate_reserved,
    record_search,
};
use crate::state::ServerState;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tierdex::schema::Stored;
use tierdex::{Query, SearchRequest, Snapshot, TotalHits};

/// Time to read the sources of hits after a search has ended, at least: one that ended by its deadline has
/// hits too.
const READ_GRACE: Duration = Duration::from_millis(500);

/// A search that is ready to be evaluated.
pub(super) struct PlannedSearch {
    index: Arc<ServedIndex>,
    search: EsSearch,
    prepared: PreparedSearch,
    reads_sources: bool,
}

/// The answer to a search, with its record and its memory.
pub(super) struct AnsweredSearch {
    pub(super) answer: EsSearchAnswer,
    pub(super) record: SearchRecord,
    pub(super) memory: Option<AnswerMemory>,
    pub(super) warnings: Vec<String>,
}

impl PlannedSearch {
    pub(super) fn new(
        index: Arc<ServedIndex>,
        snapshot: Arc<Snapshot>,
        mut search: EsSearch,
    ) -> Result<PlannedSearch, ApiError> {
        let k = if search.size == 0 { 0 } else { search.from + search.size };
        let count = search.total == TotalKind::Counted;
        let shape = checked_shape(&search.query, k, count)?;
        let previews = search.highlight.as_ref().and_then(|options| options.previews());
        let query_bytes = search.query.memory();
        let query = std::mem::replace(&mut search.query, Query::Nothing);
        let request = SearchRequest::new(query).snapshot(snapshot.clone()).k(k).count(count);
        let request = previews.iter().fold(request, |request, shown| request.previews(*shown));
        let added = search.highlight.as_ref().map_or(0, |options| options.added_bytes());
        let prepared = PreparedSearch {
            request,
            shape,
            deadline: search.deadline,
            answer_bytes: answer_bytes(k, previews, false) + k * added + query_bytes,
        };
        let reads_sources =
            !search.source.is_off && search.size > 0 && snapshot.schema().stored != Stored::Nothing;
        Ok(PlannedSearch { index, search, prepared, reads_sources })
    }

    /// Bytes for reading sources while the search runs.
    pub(super) fn reader_bytes(&self) -> usize {
        if self.reads_sources { READER_BYTES } else { 0 }
    }

    /// Ends the search after a time, if it would not end earlier.
    pub(super) fn end_within(&mut self, time: Duration) {
        self.search.deadline = self.search.deadline.min(time);
        self.prepared.deadline = self.search.deadline;
    }

    /// Bytes of the answer without the sources of documents, at most.
    pub(super) fn answer_bytes(&self) -> usize {
        self.prepared.answer_bytes
    }

    /// Evaluates the search and reads the sources of its hits. With `has_memory` the caller has the memory of
    /// the answer and of the reader of sources.
    pub(super) async fn run(
        self,
        state: &Arc<ServerState>,
        has_memory: bool,
    ) -> Result<AnsweredSearch, ApiError> {
        let reader_bytes = self.reader_bytes();
        let PlannedSearch { index, mut search, mut prepared, reads_sources } = self;
        prepared.answer_bytes += reader_bytes;
        let until = Instant::now() + search.deadline;
        let engine = engine_of(state)?;
        let (hits, mut memory) = match has_memory {
            true => (evaluate_reserved(state, engine, prepared).await?, None),
            false => {
                let Found { hits, memory } = evaluate(state, engine, prepared).await?;
                (hits, Some(memory))
            }
        };
        let record = record_search(state, &index.name, std::mem::take(&mut search.text), &hits);
        let warnings = std::mem::take(&mut search.warnings);
        let answer = match reads_sources && hits.hits.len() > search.from {
            false => EsSearchAnswer::new(&search, &index.name, &hits, None)?,
            true => {
                let read = move |reader: &mut SourceReader| {
                    EsSearchAnswer::new(&search, &index.name, &hits, Some(reader))
                };
                let until = until.max(Instant::now() + READ_GRACE);
                let (answer, more) = SourceReader::run(state, until, read).await?;
                match (&mut memory, more) {
                    (Some(memory), Some(more)) => memory.add(more),
                    (memory, more) => *memory = memory.take().or(more),
                }
                answer
            }
        };
        Ok(AnsweredSearch { answer, record, memory, warnings })
    }
}

/// `_search`
pub(super) async fn search(
    State(state): State<Arc<ServerState>>,
    request: EsRequest,
) -> Result<Response, ApiError> {
    let index = one_index(&state, request.index())?;
    check_busy(&state)?;
    let snapshot = index.snapshot();
    let search = EsSearch::parse(&request.json()?, &request.parameters, snapshot.schema())?;
    drop(request);
    let answered = PlannedSearch::new(index, snapshot, search)?.run(&state, false).await?;
    let mut response = with_warnings(Json(answered.answer).into_response(), &answered.warnings);
    response.extensions_mut().insert(answered.record);
    answered.memory.into_iter().for_each(|memory| drop(response.extensions_mut().insert(memory)));
    Ok(response)
}

/// `_count`
pub(super) async fn count(
    State(state): State<Arc<ServerState>>,
    request: EsRequest,
) -> Result<Response, ApiError> {
    let index = one_index(&state, request.index())?;
    check_busy(&state)?;
    let (snapshot, body) = (index.snapshot(), request.json()?);
    let mut scope = QueryScope::new(snapshot.schema());
    let (mut members, mut url) =
        (Members::of(&body, "count")?, Members::of_url(&request.parameters, "count"));
    let query = take_query(&mut scope, &mut members, &mut url)?;
    members.finish()?;
    url.only("terminate_after", &json!(0))?;
    url.finish_ignoring(&[], &mut scope.ignored)?;
    let shape = checked_shape(&query, 0, true)?;
    let warnings = scope.ignored;
    let text = logged_query(body.get("query").or_else(|| request.parameters.get("q")));
    drop((body, request));
    let search_request = SearchRequest::new(query).snapshot(snapshot.clone()).k(0).count(true);
    let prepared = PreparedSearch {
        request: search_request,
        shape,
        deadline: Duration::from_millis(DEADLINE_MS),
        answer_bytes: answer_bytes(0, None, false),
    };
    let Found { hits, memory } = evaluate(&state, engine_of(&state)?, prepared).await?;
    let record = record_search(&state, &index.name, text, &hits);
    let TotalHits::Exact(count) = hits.total else {
        let message = format!("the documents could not be counted within {DEADLINE_MS} ms");
        return Err(ApiError::overloaded(message, Duration::from_millis(DEADLINE_MS)));
    };
    let mut response = memory.with(Json(json!({ "count": count, "_shards": EsShards::ONE })));
    response.extensions_mut().insert(record);
    Ok(with_warnings(response, &warnings))
}
