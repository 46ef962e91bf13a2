//! One request and its answer: checks before any handler runs, the request id, errors as JSON, and the
//! record of each request in logs and metrics, also if its client goes away.

use crate::api_error::{ApiError, ApiErrorKind, ErrorBody, cut};
use crate::connection::{AnswerEnd, Connection};
use crate::es::error::{EsErrorBody, is_of_es, unsupported_request};
use crate::keys::{KeyUse, Role};
use crate::metrics::RouteLabels;
use crate::options::{MEMORY_WAIT, RESERVED_CONNECTIONS};
use crate::record::{AnswerMemory, LOGGED_QUERY_BYTES, SearchRecord};
use crate::state::ServerState;
use axum::Router;
use axum::body::Body;
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use serde::Serialize;
use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tower_service::Service;

/// The header with the id of a request.
const REQUEST_ID: &str = "x-request-id";

/// Time between two attempts to close another connection.
const CONNECTION_PAUSE: Duration = Duration::from_millis(20);

/// Characters of a request id that a client gives, at most.
const REQUEST_ID_MAX: usize = 64;

/// Status in the log of a request whose client has gone away before its answer was written.
const CLIENT_CLOSED: u16 = 499;

/// A request in progress. When it is dropped, the request is logged.
struct RequestRecord {
    state: Arc<ServerState>,
    connection: Arc<Connection>,
    /// Number of the request on its connection.
    number: u64,
    id: String,
    /// Its key, if there are keys.
    key: Option<KeyUse>,
    method: Method,
    /// Whether errors have the form of Elasticsearch.
    is_of_es: bool,
    route: String,
    /// 499 until the answer was written.
    status: u16,
    began: Instant,
    search: Option<SearchRecord>,
    memory: Option<AnswerMemory>,
}

/// Answers a request of a connection.
pub(crate) async fn answer(
    state: Arc<ServerState>,
    connection: Arc<Connection>,
    router: Router,
    request: hyper::Request<Incoming>,
) -> Result<Response, Infallible> {
    let number = connection.begin();
    let mut request = request.map(Body::new);
    request.extensions_mut().insert(connection.clone());
    let mut record = RequestRecord::new(&state, &connection, number, &request);
    let has_body = !request.body().is_end_stream();
    let mut checked = check(&state, &request);
    if checked.is_ok() && !is_health(&request) {
        let role = if is_monitoring(&request) { Role::Monitor } else { Role::Read };
        checked = state.keys.check(request.headers(), role).map(|used| record.key = used);
        if let Err(error) = &checked
            && error.kind == ApiErrorKind::Overloaded
        {
            state.metrics.refused.quota();
        }
    }
    if checked.is_ok() && !is_check(&request) {
        checked = admit_connection(&state, &connection).await;
    }
    let answered = match checked {
        Err(error) => error.into_response(),
        Ok(()) => {
            // Nothing that a panicking handler borrowed is used again.
            let answered = AssertUnwindSafe(route(router, request)).catch_unwind().await;
            answered.unwrap_or_else(|_| {
                ApiError::new(
                    ApiErrorKind::Internal,
                    "the request failed by an error of the server; report it",
                )
                .into_response()
            })
        }
    };
    let mut response = record.finish(answered);
    if has_body && !response.status().is_success() {
        connection.leave_body();
    }
    if state.is_stopping() {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    let status = response.status().as_u16();
    let recorded = |body| RecordedBody { body, record: Some(record), status, has_ended: false };
    Ok(response.map(|body| Body::new(recorded(body))))
}

async fn route(mut router: Router, request: Request) -> Response {
    router.call(request).await.unwrap_or_else(|never| match never {})
}

/// Adds the route to the answer, for logs and metrics.
pub(crate) async fn record_route(request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let mut response = next.run(request).await;
    route.into_iter().for_each(|route| drop(response.extensions_mut().insert(route)));
    response
}

/// Whether a request is a health check, which needs no key. Other paths may begin as these.
fn is_health(request: &Request) -> bool {
    matches!(request.uri().path(), "/health/live" | "/health/ready")
}

/// Whether a request is for metrics or statistics of the server.
fn is_monitoring(request: &Request) -> bool {
    let path = request.uri().path();
    path == "/metrics" || path == "/api/v1/stats" || path == "/api/v1/stats/history"
}

/// Whether a request is a health check, or for metrics: they are answered by a server that is busy or stops.
fn is_check(request: &Request) -> bool {
    is_health(request) || request.uri().path() == "/metrics"
}

/// Waits until another connection can be closed for this one, if there are too many.
async fn admit_connection(state: &ServerState, connection: &Connection) -> Result<(), ApiError> {
    if state.connections.admits(connection) {
        return Ok(());
    }
    if let Some(_waiting) = state.connections.wait(RESERVED_CONNECTIONS) {
        let began = Instant::now();
        while began.elapsed() < MEMORY_WAIT {
            tokio::time::sleep(CONNECTION_PAUSE).await;
            if state.connections.admits(connection) {
                return Ok(());
            }
        }
    }
    state.metrics.refused.connections();
    Err(ApiError::overloaded("all connections are busy", MEMORY_WAIT))
}

/// Rejects requests before any work is done for them.
fn check(state: &ServerState, request: &Request) -> Result<(), ApiError> {
    if request.headers().contains_key(header::CONTENT_ENCODING) {
        return Err(ApiError::new(ApiErrorKind::MediaType, "bodies with an encoding are not supported"));
    }
    if is_check(request) { Ok(()) } else { check_host(state, request) }
}

/// Rejects requests for other hosts: a page of another site that a browser shows could send them.
fn check_host(state: &ServerState, request: &Request) -> Result<(), ApiError> {
    let (listen, allowed) = (state.options.listen, &state.options.allowed_hosts);
    let Some(host) = request.headers().get(header::HOST) else { return Ok(()) };
    let wrong_host = || {
        let message = "the header `Host` names another host; start the server with --allow-host";
        ApiError::new(ApiErrorKind::Forbidden, message)
    };
    let host = host.to_str().map_err(|_| wrong_host())?;
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let is_listed = |listed: &String| listed.eq_ignore_ascii_case(host) || listed.eq_ignore_ascii_case(name);
    let is_local = name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip == listen.ip())
        || name.eq_ignore_ascii_case("localhost")
        || name.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    let is_open = !listen.ip().is_loopback() && allowed.is_empty();
    if is_open || is_local || allowed.iter().any(is_listed) {
        return Ok(());
    }
    Err(wrong_host())
}

impl RequestRecord {
    fn new(
        state: &Arc<ServerState>,
        connection: &Arc<Connection>,
        number: u64,
        request: &Request,
    ) -> RequestRecord {
        let is_valid = |id: &&str| {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            (1..=REQUEST_ID_MAX).contains(&id.len()) && id.chars().all(is_plain)
        };
        let given = request.headers().get(REQUEST_ID).and_then(|id| id.to_str().ok()).filter(is_valid);
        RequestRecord {
            state: state.clone(),
            connection: connection.clone(),
            number,
            id: given.map_or_else(next_request_id, str::to_string),
            key: None,
            method: request.method().clone(),
            is_of_es: is_of_es(request.uri().path(), request.headers()),
            route: "other".to_string(),
            status: CLIENT_CLOSED,
            began: Instant::now(),
            search: None,
            memory: None,
        }
    }

    /// Takes what a handler has added to its answer, and writes its error.
    fn finish(&mut self, mut response: Response) -> Response {
        let extensions = response.extensions_mut();
        if let Some(route) = extensions.remove::<MatchedPath>() {
            self.route = route.as_str().to_string();
        }
        self.search = extensions.remove::<SearchRecord>();
        self.memory = extensions.remove::<AnswerMemory>();
        if let Some(mut error) = extensions.remove::<ApiError>() {
            error.request_id.clone_from(&self.id);
            let text = match self.is_of_es {
                true => serde_json::to_string(&EsErrorBody::new(&error)),
                false => serde_json::to_string(&ErrorBody { error }),
            };
            let text = text.unwrap_or_default();
            response.headers_mut().insert(header::CONTENT_TYPE, json_type());
            // HEAD has the headers of GET.
            response.headers_mut().remove(header::CONTENT_LENGTH);
            *response.body_mut() = if self.method == Method::HEAD { Body::empty() } else { Body::from(text) };
        }
        let headers = response.headers_mut();
        if let Ok(id) = HeaderValue::from_str(&self.id) {
            headers.insert(REQUEST_ID, id);
        }
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
        response
    }

    fn log(&self, took: Duration) {
        let options = &self.state.options;
        let searched = self.search.as_ref().map_or(took, |search| search.took);
        let is_slow = self.search.is_some() && searched >= options.slow;
        // Under overload, lines about rejected requests would be most of the work.
        let is_logged = options.log_requests && self.status != StatusCode::TOO_MANY_REQUESTS.as_u16();
        if !is_slow && !is_logged {
            return;
        }
        let search = self.search.as_ref();
        self.state.log.write(&RequestLine {
            request: &self.id,
            key: self.key.as_ref().map(KeyUse::name),
            method: self.method.as_str(),
            route: &self.route,
            status: self.status,
            took_us: took.as_micros() as u64,
            index: search.map(|search| &*search.index),
            queued_us: search.map(|search| search.queued.as_micros() as u64),
            pages_read: search.map(|search| search.pages_read),
            slow: search.filter(|_| is_slow).map(|search| SlowSearch::new(search, options.log_queries)),
        });
    }
}

/// A line of the log.
#[derive(Serialize)]
struct RequestLine<'r> {
    request: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'r str>,
    method: &'r str,
    route: &'r str,
    status: u16,
    took_us: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queued_us: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pages_read: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    slow: Option<SlowSearch<'r>>,
}

/// What the line of a slow search has beside.
#[derive(Serialize)]
struct SlowSearch<'r> {
    memory_bytes: u64,
    pages: u64,
    read_bytes: u64,
    parts: usize,
    timed_out: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    query: Option<&'r str>,
}

impl SlowSearch<'_> {
    fn new(search: &SearchRecord, log_queries: bool) -> SlowSearch<'_> {
        SlowSearch {
            memory_bytes: search.memory,
            pages: search.pages,
            read_bytes: search.pages_read * tierdex::io::PAGE,
            parts: search.parts,
            timed_out: search.timed_out,
            query: log_queries.then(|| cut(&search.query, LOGGED_QUERY_BYTES)),
        }
    }
}

impl Drop for RequestRecord {
    fn drop(&mut self) {
        let took = self.began.elapsed();
        let metrics = &self.state.metrics;
        if self.status == CLIENT_CLOSED {
            metrics.cancelled.fetch_add(1, Ordering::Relaxed);
        }
        let labels = RouteLabels { route: self.route.clone(), status: self.status };
        metrics.requests.get_or_create(&labels).inc();
        self.log(took);
        self.connection.end(self.number);
    }
}

/// The body of an answer. When it was handed over as a whole, the request ends when its bytes were written.
struct RecordedBody {
    body: Body,
    /// `None` at the end.
    record: Option<RequestRecord>,
    status: u16,
    has_ended: bool,
}

/// A request whose answer is being written.
struct WrittenAnswer {
    record: RequestRecord,
    status: u16,
}

impl AnswerEnd for WrittenAnswer {
    fn written(self: Box<Self>) {
        let WrittenAnswer { mut record, status } = *self;
        record.status = status;
    }
}

impl HttpBody for RecordedBody {
    type Data = hyper::body::Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let frame = self.body.frame().poll_unpin(context);
        self.has_ended |= matches!(frame, Poll::Ready(None));
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for RecordedBody {
    fn drop(&mut self) {
        let Some(mut record) = self.record.take().filter(|_| self.has_ended || self.body.is_end_stream())
        else {
            return;
        };
        // Before the client has the answer, and sends its next request.
        record.key.iter_mut().for_each(KeyUse::end);
        let connection = record.connection.clone();
        connection.keep_until_written(Box::new(WrittenAnswer { record, status: self.status }));
    }
}

/// An id that no other request of this server has.
fn next_request_id() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("{:x}-{:x}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

fn json_type() -> HeaderValue {
    HeaderValue::from_static("application/json")
}

/// The answer of a path that does not exist.
pub(crate) async fn not_found(request: Request) -> ApiError {
    if is_of_es(request.uri().path(), request.headers()) {
        return unsupported_request(request.method(), request.uri().path());
    }
    ApiError::new(ApiErrorKind::NotFound, "no such path; /openapi.json lists all")
}

/// The answer of a path that does not have the method.
pub(crate) async fn method_not_allowed() -> ApiError {
    ApiError::new(
        ApiErrorKind::Method,
        "the path does not have this method; the header `Allow` lists those it has",
    )
}
