//! Many queries in one request, as lines of JSON, answered in their order while the rest arrives. They give
//! way to single searches.

use super::search::Total;
use crate::api_error::{ApiError, ApiErrorKind};
use crate::catalog::ServedIndex;
use crate::extract::{IndexPath, Parameters, check_media_type};
use crate::options::{BATCH_ANSWERS_BYTES, BATCH_LINES_BYTES, BATCHES_MAX, MEMORY_WAIT};
use crate::search::{CancelOnDrop, Syntax, answer_bytes, checked_shape, parse_query};
use crate::state::ServerState;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use http_body_util::BodyExt;
use hyper::body::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tierdex::{Bm25, Hits, Priority, Scorer, SearchHit, SearchRequest, Snapshot};
use tokio::sync::oneshot::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use utoipa::{IntoParams, ToSchema};

/// Media types of lines of JSON.
const LINES: [&str; 2] = ["application/x-ndjson", "application/jsonl"];

/// Bytes of a line, and of all lines, at most.
const LINE_MAX: usize = BATCH_LINES_BYTES / 2;
const BODY_MAX: u64 = 100 << 20;

/// Time between two parts of the body, of all queries, and of a pause while the engine has no memory.
const BODY_STALL: Duration = Duration::from_secs(5);
const DEADLINE: Duration = Duration::from_secs(600);
const PAUSE: Duration = Duration::from_millis(5);

/// Bytes of a `qid`, at most.
const QID_MAX: usize = 256;

/// Hits of a query, at most.
const HITS_MAX: usize = 1000;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct BatchParameters {
    /// Hits of each query, at most.
    #[param(maximum = 1000, default = 10)]
    k: Option<usize>,
    /// How queries are read.
    #[serde(default)]
    #[param(inline)]
    syntax: Syntax,
    /// Whether all matches are counted.
    #[serde(default)]
    count: bool,
    /// How documents are scored.
    #[serde(default)]
    #[param(inline)]
    scorer: ScorerName,
    /// Of BM25: saturation of the term frequency, 0 to 1000; 1.2 by default.
    #[param(minimum = 0, maximum = 1000)]
    k1: Option<f64>,
    /// Of BM25: normalization by document length, 0 to 1; 0.75 by default.
    #[param(minimum = 0, maximum = 1)]
    b: Option<f64>,
}

/// The name of a scorer.
#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum ScorerName {
    /// BM25.
    #[default]
    Bm25,
    /// The sum of boost times frequency.
    Dot,
}

/// A query of a batch: a line of the body.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BatchQuery {
    /// Returned with the hits; at most 256 bytes.
    #[schema(max_length = 256)]
    qid: String,
    query: String,
}

/// The result of a query of a batch: a line of the answer.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BatchAnswer {
    /// That of the query; empty if the line could not be read.
    qid: String,
    /// The commit that was searched, the same for all queries.
    generation: u64,
    /// The number of matches and the hits, unless there is an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    total: Option<Total>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    hits: Option<Vec<BatchHit>>,
    /// Whether the deadline of the batch passed: hits are the best of those found until then.
    timed_out: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    error: Option<ApiError>,
}

/// A hit of a query of a batch.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BatchHit {
    score: f32,
    id: String,
    /// Number of the document in the commit.
    document: u32,
}

/// A query whose result is awaited.
enum PendingAnswer {
    Search { qid: String, result: oneshot::Receiver<tierdex::Result<Hits>>, _cancel: CancelOnDrop },
    Failed(String, ApiError),
}

/// The lines of a body, which is read as they are taken.
struct BodyLines {
    body: Body,
    /// Bytes that were read, of which the first `taken` were taken.
    bytes: Vec<u8>,
    taken: usize,
    read: u64,
    has_ended: bool,
}

/// A batch in progress.
struct BatchStream {
    state: Arc<ServerState>,
    snapshot: Arc<Snapshot>,
    k: usize,
    syntax: Syntax,
    count: bool,
    scorer: Scorer,
    lines: BodyLines,
    /// A query that was read, and for which the engine had no memory.
    next: Option<(String, SearchRequest)>,
    pending: VecDeque<PendingAnswer>,
    ahead: usize,
    until: Instant,
    _permit: OwnedSemaphorePermit,
}

/// Search by many queries
///
/// The body has one query a line, and the answer one result a line, in their order. Answers begin before the
/// body ends: read them while you write.
#[utoipa::path(
    post,
    path = "/indexes/{index}/batch",
    params(("index" = String, Path, description = "Name of the index"), BatchParameters),
    request_body(content = BatchQuery, content_type = "application/x-ndjson"),
    responses(
        (status = 200, body = BatchAnswer, content_type = "application/x-ndjson"),
        (status = "4XX", body = crate::api_error::ErrorBody),
        (status = "5XX", body = crate::api_error::ErrorBody),
    ),
    tag = "search"
)]
pub(crate) async fn search_batch(
    State(state): State<Arc<ServerState>>,
    IndexPath(index): IndexPath,
    Parameters(parameters): Parameters<BatchParameters>,
    request: Request,
) -> Result<Response, ApiError> {
    check_media_type(request.headers(), &LINES)?;
    let k = parameters.k.unwrap_or(10);
    if k > HITS_MAX {
        return Err(ApiError::new(ApiErrorKind::Limit, format!("k is {k}; at most {HITS_MAX} is allowed")));
    }
    let batch = BatchStream::new(state, &index, request.into_body(), k, parameters).await?;
    let lines = stream::unfold(batch, |mut batch| async move {
        let line = batch.next_answer().await?;
        Some((Ok::<_, std::convert::Infallible>(line), batch))
    });
    Ok(([(header::CONTENT_TYPE, LINES[0])], Body::from_stream(lines)).into_response())
}

impl BatchStream {
    async fn new(
        state: Arc<ServerState>,
        index: &ServedIndex,
        body: Body,
        k: usize,
        parameters: BatchParameters,
    ) -> Result<BatchStream, ApiError> {
        let scorer = parameters.scorer()?;
        let answer = answer_bytes(k, None, false);
        let in_progress = state.catalog.engine().map_or(1, |engine| engine.requests_ahead());
        let permit = tokio::time::timeout(MEMORY_WAIT, state.batches.clone().acquire_owned()).await;
        let Ok(Ok(permit)) = permit else {
            state.metrics.refused.bytes();
            let message = format!("{BATCHES_MAX} batches are in progress");
            return Err(ApiError::overloaded(message, MEMORY_WAIT));
        };
        Ok(BatchStream {
            snapshot: index.snapshot(),
            state,
            k,
            syntax: parameters.syntax,
            count: parameters.count,
            scorer,
            lines: BodyLines { body, bytes: Vec::new(), taken: 0, read: 0, has_ended: false },
            next: None,
            pending: VecDeque::new(),
            ahead: (BATCH_ANSWERS_BYTES / answer).clamp(1, in_progress),
            until: Instant::now() + DEADLINE,
            _permit: permit,
        })
    }

    /// The next line of the answer; `None` after the last. While an answer is awaited, lines that arrive are
    /// submitted.
    async fn next_answer(&mut self) -> Option<Bytes> {
        let answer = loop {
            self.submit_lines().await;
            let reads = self.next.is_none() && !self.lines.has_ended && self.pending.len() < self.ahead;
            match self.pending.front_mut() {
                None if self.lines.has_ended && self.next.is_none() => return None,
                None if self.next.is_some() => tokio::time::sleep(PAUSE).await,
                None => self.read_more().await,
                Some(PendingAnswer::Failed(..)) => match self.pending.pop_front()? {
                    PendingAnswer::Failed(qid, error) => break self.failed(qid, error),
                    search => self.pending.push_front(search),
                },
                Some(PendingAnswer::Search { qid, result, .. }) => tokio::select! {
                    found = result => {
                        let qid = std::mem::take(qid);
                        self.pending.pop_front();
                        break self.answer_of(qid, found);
                    }
                    read = self.lines.read(), if reads => self.note(read),
                },
            }
        };
        let mut line = serde_json::to_vec(&answer).unwrap_or_default();
        line.push(b'\n');
        Some(line.into())
    }

    /// Submits the lines that have arrived, as far as there is memory for them.
    async fn submit_lines(&mut self) {
        while self.pending.len() < self.ahead {
            let next = match self.next.take() {
                Some(next) => Some(next),
                None => match self.lines.take_line() {
                    Some(line) => self.parse_line(&line),
                    None => return,
                },
            };
            let Some((qid, request)) = next else { continue };
            let Some(engine) = self.state.catalog.engine() else { return };
            match engine.submit(request.clone()) {
                Ok(ticket) => {
                    let (sender, result) = oneshot::channel();
                    let cancel = CancelOnDrop(ticket.on_ready(move |found| drop(sender.send(found))));
                    self.pending.push_back(PendingAnswer::Search { qid, result, _cancel: cancel });
                }
                Err(error) if error.retry_after().is_some() && Instant::now() < self.until => {
                    self.next = Some((qid, request));
                    return;
                }
                Err(error) => self.pending.push_back(PendingAnswer::Failed(qid, error.into())),
            }
        }
    }

    /// The query of a line; `None` if it failed.
    fn parse_line(&mut self, line: &[u8]) -> Option<(String, SearchRequest)> {
        let (qid, request) = match serde_json::from_slice::<BatchQuery>(line) {
            Ok(line) if line.qid.len() > QID_MAX => {
                let error = format!("qid has {} bytes; at most {QID_MAX} are allowed", line.qid.len());
                (String::new(), Err(ApiError::new(ApiErrorKind::Limit, error)))
            }
            Ok(line) => {
                let request = self.request(&line.query);
                (line.qid, request)
            }
            Err(error) => (String::new(), Err(ApiError::new(ApiErrorKind::Usage, format!("line: {error}")))),
        };
        match request {
            Ok(request) => Some((qid, request)),
            Err(error) => {
                self.pending.push_back(PendingAnswer::Failed(qid, error));
                None
            }
        }
    }

    fn request(&self, text: &str) -> Result<SearchRequest, ApiError> {
        let (query, _) = parse_query(text, self.syntax, self.snapshot.schema())?;
        checked_shape(&query, self.k, self.count)?;
        let request = SearchRequest::new(query).snapshot(self.snapshot.clone()).k(self.k).count(self.count);
        Ok(request.scorer(self.scorer).priority(Priority::Batch).deadline(self.until))
    }

    fn failed(&self, qid: String, error: ApiError) -> BatchAnswer {
        let generation = self.snapshot.index().generation();
        BatchAnswer { qid, generation, total: None, hits: None, timed_out: false, error: Some(error) }
    }

    fn answer_of(&self, qid: String, found: Result<tierdex::Result<Hits>, RecvError>) -> BatchAnswer {
        let stopping = |_| ApiError::new(ApiErrorKind::Draining, "the server is stopping");
        let found = found.map_err(stopping).and_then(|found| found.map_err(ApiError::from));
        match found.and_then(|found| Ok((hits_of(&found)?, found))) {
            Ok((hits, found)) => {
                let (total, timed_out) = (Some(Total::of(&found)), found.timed_out);
                let generation = found.snapshot.index().generation();
                BatchAnswer { qid, generation, total, hits: Some(hits), timed_out, error: None }
            }
            Err(error) => self.failed(qid, error),
        }
    }

    async fn read_more(&mut self) {
        let read = tokio::time::timeout(BODY_STALL, self.lines.read()).await;
        self.note(read.unwrap_or_else(|_| Err("no part of the body arrived within 5 s".to_string())));
    }

    /// Adds the error of reading the body, which ends the batch.
    fn note(&mut self, read: Result<(), String>) {
        let late = || format!("the batch took longer than {} s", DEADLINE.as_secs());
        let read = if Instant::now() < self.until { read } else { read.and_then(|()| Err(late())) };
        if let Err(message) = read {
            self.lines.end();
            let error = ApiError::new(ApiErrorKind::Usage, message);
            self.pending.push_back(PendingAnswer::Failed(String::new(), error));
        }
    }
}

impl BodyLines {
    /// The next line that was read whole and is not blank.
    fn take_line(&mut self) -> Option<Vec<u8>> {
        loop {
            let rest = &self.bytes[self.taken..];
            let (line, taken) = match rest.iter().position(|byte| *byte == b'\n') {
                Some(end) => (&rest[..end], end + 1),
                None if self.has_ended && !rest.is_empty() => (rest, rest.len()),
                None => return None,
            };
            let line = line.trim_ascii().to_vec();
            self.taken += taken;
            if !line.is_empty() {
                return Some(line);
            }
        }
    }

    /// Reads the next part of the body. It may be dropped and called again.
    async fn read(&mut self) -> Result<(), String> {
        let frame = match self.body.frame().await {
            Some(frame) => frame.map_err(|_| "the body ends early".to_string())?,
            None => {
                self.has_ended = true;
                return Ok(());
            }
        };
        let Some(data) = frame.data_ref() else { return Ok(()) };
        self.read += data.len() as u64;
        if self.read > BODY_MAX {
            return Err(format!("the body is longer than {BODY_MAX} bytes"));
        }
        self.bytes.drain(..self.taken);
        self.taken = 0;
        self.bytes.extend_from_slice(data);
        // Frames are small: a buffer this long has no line feed, or lines that were not taken yet.
        match self.bytes.len() > LINE_MAX && !self.bytes[..LINE_MAX].contains(&b'\n') {
            true => Err(format!("a line is longer than {LINE_MAX} bytes")),
            false => Ok(()),
        }
    }

    /// Leaves out what was not taken.
    fn end(&mut self) {
        self.has_ended = true;
        self.bytes = Vec::new();
        self.taken = 0;
    }
}

impl BatchParameters {
    fn scorer(&self) -> Result<Scorer, ApiError> {
        let defaults = Bm25::default();
        match (self.scorer, self.k1, self.b) {
            (ScorerName::Bm25, k1, b) => {
                Ok(Bm25::new(k1.unwrap_or(defaults.k1), b.unwrap_or(defaults.b))?.into())
            }
            (ScorerName::Dot, None, None) => Ok(Scorer::Dot),
            _ => Err(ApiError::new(ApiErrorKind::Usage, "k1 and b are parameters of bm25 only")),
        }
    }
}

fn hits_of(hits: &Hits) -> Result<Vec<BatchHit>, ApiError> {
    let mut found = Vec::with_capacity(hits.hits.len());
    hits.for_each_id(|hit: SearchHit, id: &str| {
        let SearchHit { score, document, .. } = hit;
        found.push(BatchHit { score, id: id.to_string(), document });
        Ok::<(), tierdex::Error>(())
    })?;
    Ok(found)
}
