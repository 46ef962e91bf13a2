//! Errors as clients see them: a status, and a JSON object of one shape.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use std::time::Duration;
use utoipa::ToSchema;

/// Bytes of a message, at most.
const MESSAGE_BYTES: usize = 400;

/// The type of an error of memory that others take, for clients of Elasticsearch.
const NO_MEMORY: &str = "circuit_breaking_exception";

/// The beginning of a text.
pub(crate) fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ApiErrorKind {
    /// The query has a syntax error, or is larger than a query may be.
    Query,
    /// A parameter or the body is not valid.
    Usage,
    /// A limit of the server or of its memory budget; the request would fail again.
    Limit,
    /// The server is busy: repeat the request after the number of seconds in `Retry-After`.
    Overloaded,
    /// The server is stopping.
    Draining,
    /// There is no such index, document or path.
    NotFound,
    /// The commit that the request names is not open any more.
    Generation,
    /// The request has no key, or one that is not known.
    Unauthorized,
    /// The request has another host or comes from another site than is allowed.
    Forbidden,
    /// The path has no such method.
    Method,
    /// The body is larger than allowed.
    TooLarge,
    /// The media type or the encoding of the body is not supported.
    MediaType,
    /// The client took too long to send its request.
    Timeout,
    /// A file of the index is damaged or cannot be read.
    Storage,
    /// An error of the server.
    Internal,
}

/// The body of an error.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ErrorBody {
    pub(crate) error: ApiError,
}

/// An error.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ApiError {
    pub(crate) kind: ApiErrorKind,
    /// One line: what happened, where, and what to do.
    pub(crate) message: String,
    /// Byte offset of the fault in the query, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) position: Option<usize>,
    /// Seconds after which the request may succeed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) retry_after_s: Option<u64>,
    /// The value of the header `X-Request-Id` of the answer; without it in lines of a batch.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) request_id: String,
    /// The type of the error for clients of Elasticsearch, unless it follows from the kind.
    #[serde(skip)]
    pub(crate) exception: Option<&'static str>,
}

impl ApiError {
    pub(crate) fn new(kind: ApiErrorKind, message: impl Into<String>) -> ApiError {
        let mut message = message.into();
        // It may contain a part of the request.
        message.truncate(cut(&message, MESSAGE_BYTES).len());
        let request_id = String::new();
        ApiError { kind, message, position: None, retry_after_s: None, request_id, exception: None }
    }

    /// The server is busy; the request may succeed after a time.
    pub(crate) fn overloaded(message: impl Into<String>, wait: Duration) -> ApiError {
        let seconds = (wait.as_secs_f64().ceil() as u64).max(1);
        ApiError { retry_after_s: Some(seconds), ..ApiError::new(ApiErrorKind::Overloaded, message) }
    }

    /// Other requests take the memory that the request needs; it may succeed after a time.
    pub(crate) fn no_memory(message: impl Into<String>, wait: Duration) -> ApiError {
        ApiError { exception: Some(NO_MEMORY), ..ApiError::overloaded(message, wait) }
    }

    /// Whether other requests took the memory that the request needed.
    pub(crate) fn is_no_memory(&self) -> bool {
        self.exception == Some(NO_MEMORY)
    }

    pub(crate) fn status(&self) -> StatusCode {
        match self.kind {
            ApiErrorKind::Query | ApiErrorKind::Usage | ApiErrorKind::Limit => StatusCode::BAD_REQUEST,
            ApiErrorKind::Overloaded => StatusCode::TOO_MANY_REQUESTS,
            ApiErrorKind::Draining => StatusCode::SERVICE_UNAVAILABLE,
            ApiErrorKind::NotFound => StatusCode::NOT_FOUND,
            ApiErrorKind::Generation => StatusCode::CONFLICT,
            ApiErrorKind::Unauthorized => StatusCode::UNAUTHORIZED,
            ApiErrorKind::Forbidden => StatusCode::FORBIDDEN,
            ApiErrorKind::Method => StatusCode::METHOD_NOT_ALLOWED,
            ApiErrorKind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            ApiErrorKind::MediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            ApiErrorKind::Timeout => StatusCode::REQUEST_TIMEOUT,
            ApiErrorKind::Storage | ApiErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl From<tierdex::Error> for ApiError {
    fn from(error: tierdex::Error) -> ApiError {
        use tierdex::Error;
        let message = error.to_string();
        match error {
            Error::Query { at, message } => {
                ApiError { position: at, ..ApiError::new(ApiErrorKind::Query, message) }
            }
            Error::Usage(_) => ApiError::new(ApiErrorKind::Usage, message),
            Error::TooLarge(_) => ApiError::new(ApiErrorKind::Limit, message),
            Error::Overloaded { retry_after, .. } => ApiError::overloaded(message, retry_after),
            Error::Expired { queued } => ApiError::overloaded(message, queued),
            Error::Storage(_) => ApiError::new(ApiErrorKind::Storage, message),
            Error::Cancelled => ApiError::new(ApiErrorKind::Draining, "the server is stopping"),
            _ => ApiError::new(ApiErrorKind::Internal, message),
        }
    }
}

impl IntoResponse for ApiError {
    /// The answer without a body: the request id is known where the body is written.
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        if let Some(seconds) = self.retry_after_s {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.kind == ApiErrorKind::Unauthorized {
            // A browser asks for a user and a password, which is the key.
            let basic = HeaderValue::from_static("Basic realm=\"tierdex\", charset=\"UTF-8\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, basic);
        }
        response.extensions_mut().insert(self);
        response
    }
}
