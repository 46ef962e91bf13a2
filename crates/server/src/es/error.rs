//! Errors in the form of Elasticsearch, and which requests get them.

use crate::api_error::{ApiError, ApiErrorKind};
use crate::page::is_page;
use axum::http::{HeaderMap, Method, header};
use serde::Serialize;

/// The body of an error, and an item of several that failed.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct EsErrorBody {
    error: EsError,
    status: u16,
}

/// An error with its causes, of which there is one.
#[derive(Clone, Debug, Serialize)]
struct EsError {
    root_cause: [EsCause; 1],
    #[serde(flatten)]
    cause: EsCause,
}

/// The type of an error, and what happened.
#[derive(Clone, Debug, Serialize)]
struct EsCause {
    r#type: &'static str,
    reason: String,
}

impl EsErrorBody {
    pub(crate) fn new(error: &ApiError) -> EsErrorBody {
        let reason = match error.position {
            Some(at) => format!("{} (at byte {at} of the query)", error.message),
            None => error.message.clone(),
        };
        let r#type = error.exception.unwrap_or_else(|| exception_of(error.kind));
        let cause = EsCause { r#type, reason };
        EsErrorBody { error: EsError { root_cause: [cause.clone()], cause }, status: error.status().as_u16() }
    }
}

/// The type of an error that has none of its own.
fn exception_of(kind: ApiErrorKind) -> &'static str {
    match kind {
        ApiErrorKind::Query => "parsing_exception",
        ApiErrorKind::Usage | ApiErrorKind::Limit => "illegal_argument_exception",
        ApiErrorKind::Overloaded => "es_rejected_execution_exception",
        ApiErrorKind::Draining => "node_closed_exception",
        ApiErrorKind::NotFound => "resource_not_found_exception",
        ApiErrorKind::Generation => "version_conflict_engine_exception",
        ApiErrorKind::Unauthorized | ApiErrorKind::Forbidden => "security_exception",
        ApiErrorKind::Method => "method_not_allowed_exception",
        ApiErrorKind::TooLarge => "content_too_long_exception",
        ApiErrorKind::MediaType => "media_type_header_exception",
        ApiErrorKind::Timeout => "timeout_exception",
        ApiErrorKind::Storage => "corrupt_index_exception",
        ApiErrorKind::Internal => "exception",
    }
}

/// A part of a body that is not valid or not supported.
pub(super) fn parsing_error(message: impl Into<String>) -> ApiError {
    let error = ApiError::new(ApiErrorKind::Usage, message);
    ApiError { exception: Some("parsing_exception"), ..error }
}

/// A parameter or a request that is not valid or not supported.
pub(super) fn argument_error(message: impl Into<String>) -> ApiError {
    ApiError::new(ApiErrorKind::Usage, message)
}

/// An index that does not exist.
pub(super) fn no_such_index(name: &str) -> ApiError {
    let error = ApiError::new(ApiErrorKind::NotFound, format!("no such index [{}]", name.escape_debug()));
    ApiError { exception: Some("index_not_found_exception"), ..error }
}

/// A request of a client of Elasticsearch that this server does not answer.
pub(crate) fn unsupported_request(method: &Method, path: &str) -> ApiError {
    argument_error(format!(
        "{method} [{}] is not supported: this server reads indexes, and does not write them",
        path.escape_debug()
    ))
}

/// Whether the path of a request, or of `GET /` the header `Accept`, is that of a client of Elasticsearch.
pub(crate) fn is_of_es(path: &str, headers: &HeaderMap) -> bool {
    let is_own = path.starts_with("/api/")
        || ["/health/live", "/health/ready", "/metrics", "/openapi.json"].contains(&path);
    match path {
        "/" => !accepts_page(headers),
        path => !is_own && !is_page(path),
    }
}

/// Whether a browser asks for a page.
pub(super) fn accepts_page(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.into_iter().any(|value| value.contains("text/html"))
}
