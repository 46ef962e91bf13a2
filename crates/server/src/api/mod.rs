//! The JSON API: one file for each group of paths. The OpenAPI document is made of its types.

mod batch;
mod documents;
mod health;
mod indexes;
mod inspect;
mod search;
mod stats;
mod suggest;

use crate::es::es_routes;
use crate::exchange::{method_not_allowed, not_found, record_route};
use crate::page::page_routes;
use crate::state::ServerState;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::{Router, middleware, routing::get};
use std::sync::Arc;
use utoipa::OpenApi;
use utoipa_axum::{router::OpenApiRouter, routes};

#[derive(OpenApi)]
#[openapi(info(
    title = "tierdex",
    description = "Full-text search within a memory budget. Errors have one shape; a busy server answers 429 \
                   with Retry-After before it does any work."
))]
struct Api;

/// All paths of a server.
pub(crate) fn router(state: &Arc<ServerState>) -> Router {
    let api = OpenApiRouter::new()
        .routes(routes!(indexes::list_indexes))
        .routes(routes!(indexes::get_index))
        .routes(routes!(search::search, search::search_by_parameters))
        .routes(routes!(batch::search_batch))
        .routes(routes!(documents::get_document))
        .routes(routes!(inspect::analyze))
        .routes(routes!(inspect::list_terms))
        .routes(routes!(suggest::suggest))
        .routes(routes!(stats::get_stats))
        .routes(routes!(stats::get_history));
    let (router, openapi) = OpenApiRouter::with_openapi(Api::openapi())
        .nest("/api/v1", api)
        .routes(routes!(health::is_live))
        .routes(routes!(health::is_ready))
        .routes(routes!(health::get_metrics))
        .split_for_parts();
    let openapi: Arc<str> = openapi.to_json().unwrap_or_default().into();
    router
        .route("/openapi.json", get(move || async move { json_text(&openapi) }))
        .merge(page_routes())
        .merge(es_routes(state))
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .route_layer(middleware::from_fn(record_route))
        .with_state(state.clone())
}

fn json_text(text: &str) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text.to_string()).into_response()
}
