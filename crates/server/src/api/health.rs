//! Health checks and metrics.

use crate::api_error::{ApiError, ApiErrorKind, ErrorBody};
use crate::metrics_text::{metrics_text, prometheus_text};
use crate::state::ServerState;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa::ToSchema;

/// Media types of metrics.
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Whether a server may get requests.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    status: &'static str,
    /// Of each index whether its newest commit is served.
    indexes: BTreeMap<String, &'static str>,
}

/// Whether the process runs
#[utoipa::path(get, path = "/health/live", responses((status = 200, body = Health)), tag = "health")]
pub(crate) async fn is_live() -> Json<Health> {
    Json(Health { status: "live", indexes: BTreeMap::new() })
}

/// Whether the server accepts requests
#[utoipa::path(
    get,
    path = "/health/ready",
    responses((status = 200, body = Health), (status = 503, body = Health)),
    tag = "health"
)]
pub(crate) async fn is_ready(State(state): State<Arc<ServerState>>) -> Response {
    let indexes = state.catalog.indexes();
    let status_of = |is_stale| if is_stale { "stale" } else { "ready" };
    let indexes =
        indexes.iter().map(|index| (index.name.clone(), status_of(index.stale().is_some()))).collect();
    match state.is_stopping() {
        true => {
            (StatusCode::SERVICE_UNAVAILABLE, Json(Health { status: "stopping", indexes })).into_response()
        }
        false => Json(Health { status: "ready", indexes }).into_response(),
    }
}

/// Metrics
///
/// In the format OpenMetrics if the header `Accept` has it, else in that of Prometheus.
#[utoipa::path(
    get,
    path = "/metrics",
    responses(
        (status = 200, content((String = "text/plain"), (String = "application/openmetrics-text"))),
        (status = "5XX", body = ErrorBody),
    ),
    tag = "health"
)]
pub(crate) async fn get_metrics(
    State(state): State<Arc<ServerState>>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let text =
        metrics_text(&state).map_err(|error| ApiError::new(ApiErrorKind::Internal, error.to_string()))?;
    let mut accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let answer = match accepted.any(|value| value.contains("application/openmetrics-text")) {
        true => ([(header::CONTENT_TYPE, OPEN_METRICS)], text),
        false => ([(header::CONTENT_TYPE, PROMETHEUS)], prometheus_text(&text)),
    };
    Ok(answer.into_response())
}
