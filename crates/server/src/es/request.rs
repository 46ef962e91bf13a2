//! A request of a client of Elasticsearch: its path, parameters and body, and the media types of both sides.

use super::error::argument_error;
use super::json::parse_json;
use crate::api_error::{ApiError, ApiErrorKind};
use crate::extract::{check_media_type, read_body};
use crate::options::Compat;
use crate::state::ServerState;
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Query, RawPathParams, Request, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use serde_json::{Map, Value};
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;

/// Media types of bodies.
const JSON: &str = "application/json";
const ES_JSON: &str = "application/vnd.elasticsearch+json";
const BODY_TYPES: [&str; 4] =
    [JSON, ES_JSON, "application/x-ndjson", "application/vnd.elasticsearch+x-ndjson"];

/// Versions of the interface that a media type may name.
const VERSIONS: [&str; 3] = ["7", "8", "9"];

/// Parameters of all requests that change neither hits nor their form.
pub(super) const COMMON_PARAMETERS: [&str; 14] = [
    "pretty",
    "human",
    "error_trace",
    "preference",
    "routing",
    "ignore_unavailable",
    "ignore_throttled",
    "allow_no_indices",
    "expand_wildcards",
    "lenient",
    "local",
    "master_timeout",
    "cluster_manager_timeout",
    "flat_settings",
];

/// A request whose body has been read.
pub(super) struct EsRequest {
    path: Vec<(String, String)>,
    pub(super) parameters: Map<String, Value>,
    pub(super) body: Bytes,
    _memory: OwnedSemaphorePermit,
}

impl EsRequest {
    /// The index or pattern of indexes in the path.
    pub(super) fn index(&self) -> Option<&str> {
        self.part("index")
    }

    /// A part of the path.
    pub(super) fn part(&self, name: &str) -> Option<&str> {
        self.path.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// The body as JSON, an object without members if it is empty.
    pub(super) fn json(&self) -> Result<Value, ApiError> {
        if self.body.trim_ascii().is_empty() {
            return Ok(Value::Object(Map::new()));
        }
        parse_json(&self.body)
    }

    /// Rejects a body.
    pub(super) fn without_body(&self) -> Result<(), ApiError> {
        match self.body.is_empty() {
            true => Ok(()),
            false => Err(argument_error("the request must not have a body")),
        }
    }
}

impl FromRequest<Arc<ServerState>> for EsRequest {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &Arc<ServerState>) -> Result<EsRequest, ApiError> {
        let (mut parts, body) = request.into_parts();
        let path = RawPathParams::from_request_parts(&mut parts, state).await;
        let path = path.map_err(|_| argument_error("the path is not valid UTF-8"))?;
        let path: Vec<(String, String)> =
            path.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let pairs = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri);
        let Query(pairs) = pairs.map_err(|_| argument_error("the parameters are not valid"))?;
        let mut parameters = Map::new();
        for (name, value) in pairs {
            // Some clients repeat a part of the path.
            if path.contains(&(name.clone(), value.clone())) {
                continue;
            }
            if parameters.contains_key(&name) {
                let message = format!("the parameter [{}] is given twice", name.escape_debug());
                return Err(argument_error(message));
            }
            parameters.insert(name, Value::String(value));
        }
        let headers = parts.headers.clone();
        let (body, memory) = read_body(Request::from_parts(parts, body), state).await?;
        if !body.is_empty() {
            check_body_type(&headers)?;
        }
        Ok(EsRequest { path, parameters, body, _memory: memory })
    }
}

fn check_body_type(headers: &HeaderMap) -> Result<(), ApiError> {
    check_media_type(headers, &BODY_TYPES)?;
    match headers.get(header::CONTENT_TYPE).and_then(version_of) {
        Some(version) if !VERSIONS.contains(&version) => {
            let message =
                format!("compatible-with={} is not supported; 7, 8 and 9 are", version.escape_debug());
            Err(ApiError::new(ApiErrorKind::MediaType, message))
        }
        _ => Ok(()),
    }
}

/// The version that a media type names.
fn version_of(value: &HeaderValue) -> Option<&str> {
    let (_, version) = value.to_str().ok()?.split_once("compatible-with=")?;
    Some(version.split([',', ';', ' ']).next().unwrap_or(version).trim_matches('"'))
}

/// Adds to the answers of this interface what clients check: the media type that they accept, and the name of
/// the product.
pub(super) async fn add_client_headers(
    State(state): State<Arc<ServerState>>,
    request: Request,
    next: Next,
) -> Response {
    let accepted = request
        .headers()
        .get(header::ACCEPT)
        .filter(|accepted| accepted.to_str().is_ok_and(|text| text.trim_start().starts_with(ES_JSON)));
    let version = accepted.and_then(version_of).and_then(|asked| VERSIONS.into_iter().find(|v| *v == asked));
    let mut response = next.run(request).await;
    let is_success = response.status().is_success();
    let headers = response.headers_mut();
    let is_json = headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes() == JSON.as_bytes());
    if let Some(version) = version.filter(|_| is_json) {
        let kind = HeaderValue::from_str(&format!("{ES_JSON};compatible-with={version}"));
        kind.into_iter().for_each(|kind| drop(headers.insert(header::CONTENT_TYPE, kind)));
    }
    if is_success && state.options.compat == Compat::Elasticsearch {
        headers.insert("x-elastic-product", HeaderValue::from_static("Elasticsearch"));
    }
    response
}

/// Adds a header for each part of a request that had no effect.
pub(super) fn with_warnings(mut response: Response, warnings: &[String]) -> Response {
    for warning in warnings {
        let value = HeaderValue::from_str(&format!("299 tierdex \"{warning}\""));
        if let Ok(value) = value {
            response.headers_mut().append(header::WARNING, value);
        }
    }
    response
}
