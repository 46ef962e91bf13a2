//! Parts of requests as handlers take them, with errors of one shape.

use crate::api_error::{ApiError, ApiErrorKind};
use crate::catalog::ServedIndex;
use crate::connection::{Connection, Phase};
use crate::options::MEMORY_WAIT;
use crate::search::would_wait;
use crate::state::{ServerState, UNIT};
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, RawPathParams, Request};
use axum::http::{HeaderMap, header, request::Parts};
use http_body_util::BodyExt;
use hyper::body::Body as HttpBody;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

/// Bytes of a body that is read as a whole, at most, and those that are reserved first.
const BODY_MAX: usize = 1 << 20;
const BODY_STEP: usize = 16 << 10;

/// Time between two parts of a body.
const BODY_STALL: Duration = Duration::from_secs(5);

/// A JSON body.
pub(crate) struct JsonBody<T>(pub(crate) T);

/// The JSON body of a search, which is rejected before its body is parsed if the server is busy.
pub(crate) struct SearchJson<T>(pub(crate) T);

/// Parameters of the query string.
pub(crate) struct Parameters<T>(pub(crate) T);

/// Parts of the path.
pub(crate) struct PathParts<T>(pub(crate) T);

/// The index that the path names.
pub(crate) struct IndexPath(pub(crate) Arc<ServedIndex>);

impl<T: DeserializeOwned> FromRequest<Arc<ServerState>> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &Arc<ServerState>) -> Result<Self, ApiError> {
        let (bytes, _memory) = read_json(request, state).await?;
        parse(&bytes).map(JsonBody)
    }
}

impl<T: DeserializeOwned> FromRequest<Arc<ServerState>> for SearchJson<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &Arc<ServerState>) -> Result<Self, ApiError> {
        // The body is read first, so that the connection can be used again.
        let (bytes, _memory) = read_json(request, state).await?;
        check_busy(state)?;
        parse(&bytes).map(SearchJson)
    }
}

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Parameters<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let parsed = Query::<T>::try_from_uri(&parts.uri);
        parsed.map(|Query(parsed)| Parameters(parsed)).map_err(|error| {
            let message = error.body_text();
            let reason = message.rsplit_once("query string: ").map_or(&*message, |(_, reason)| reason);
            ApiError::new(ApiErrorKind::Usage, format!("parameters: {reason}"))
        })
    }
}

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for PathParts<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let parsed = Path::<T>::from_request_parts(parts, state).await;
        let wrong =
            |_| ApiError::new(ApiErrorKind::Usage, "the path is not valid UTF-8, or has a wrong number");
        parsed.map(|Path(parsed)| PathParts(parsed)).map_err(wrong)
    }
}

impl FromRequestParts<Arc<ServerState>> for IndexPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<ServerState>) -> Result<Self, ApiError> {
        let all = RawPathParams::from_request_parts(parts, state).await;
        let all = all.map_err(|_| ApiError::new(ApiErrorKind::Usage, "the path is not valid UTF-8"))?;
        let name = all.iter().find(|(name, _)| *name == "index").map_or("", |(_, value)| value);
        let found = state.catalog.index(name).map(IndexPath);
        found.ok_or_else(|| {
            ApiError::new(ApiErrorKind::NotFound, format!("no index has the name `{}`", name.escape_debug()))
        })
    }
}

/// Rejects a search if any would wait for too long.
pub(crate) fn check_busy(state: &ServerState) -> Result<(), ApiError> {
    state.admission.check().map_err(|wait| would_wait(state, wait))
}

async fn read_json(request: Request, state: &ServerState) -> Result<(Bytes, OwnedSemaphorePermit), ApiError> {
    check_media_type(request.headers(), &["application/json"])?;
    read_body(request, state).await
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    let parsed = serde_json::from_slice(bytes);
    parsed.map_err(|error| ApiError::new(ApiErrorKind::Usage, format!("body: {error}")))
}

/// Checks the media type of a body, without its parameters.
pub(crate) fn check_media_type(headers: &HeaderMap, allowed: &[&str]) -> Result<(), ApiError> {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let given = given.split(';').next().unwrap_or_default().trim();
    if allowed.iter().any(|allowed| allowed.eq_ignore_ascii_case(given)) {
        return Ok(());
    }
    let message =
        format!("the body has the type `{}`; expected {}", given.escape_debug(), allowed.join(" or "));
    Err(ApiError::new(ApiErrorKind::MediaType, message))
}

/// Reads a body, with the permit for its memory. Without a length that grows with the part that has arrived.
pub(crate) async fn read_body(
    request: Request,
    state: &ServerState,
) -> Result<(Bytes, OwnedSemaphorePermit), ApiError> {
    let (parts, mut body) = request.into_parts();
    let too_large = || {
        state.metrics.refused.body();
        ApiError::new(ApiErrorKind::TooLarge, format!("the body is longer than {BODY_MAX} bytes"))
    };
    let length = body.size_hint();
    if length.lower() > BODY_MAX as u64 {
        return Err(too_large());
    }
    let connection = parts.extensions.get::<Arc<Connection>>();
    connection.into_iter().for_each(|connection| connection.set_phase(Phase::Body));
    let mut reserved = length.exact().map_or(BODY_STEP, |bytes| bytes as usize);
    let mut memory = body_memory(state, reserved).await?;
    let mut bytes = Vec::with_capacity(reserved);
    loop {
        let frame = tokio::time::timeout(BODY_STALL, body.frame()).await;
        let frame = frame.map_err(|_| {
            state.metrics.refused.body();
            ApiError::new(ApiErrorKind::Timeout, "no part of the body arrived within 5 s")
        })?;
        let Some(frame) = frame else { break };
        let frame = frame.map_err(|_| ApiError::new(ApiErrorKind::Usage, "the body ends early"))?;
        let Some(data) = frame.data_ref() else { continue };
        if bytes.len() + data.len() > BODY_MAX {
            return Err(too_large());
        }
        while bytes.len() + data.len() > reserved {
            memory.merge(body_memory(state, reserved).await?);
            reserved *= 2;
            bytes.reserve_exact(reserved - bytes.len());
        }
        bytes.extend_from_slice(data);
    }
    connection.into_iter().for_each(|connection| connection.set_phase(Phase::Busy));
    Ok((bytes.into(), memory))
}

/// Waits until there is memory for a body.
pub(crate) async fn body_memory(state: &ServerState, bytes: usize) -> Result<OwnedSemaphorePermit, ApiError> {
    let units = (bytes.div_ceil(UNIT) as u32).min(state.bodies.max);
    let permit = state.bodies.units.clone().acquire_many_owned(units);
    match tokio::time::timeout(MEMORY_WAIT, permit).await {
        Ok(Ok(permit)) => Ok(permit),
        _ => {
            state.metrics.refused.bytes();
            Err(ApiError::no_memory("the bodies of other requests take all memory", MEMORY_WAIT))
        }
    }
}
