//! The read-only part of the interface of OpenSearch and Elasticsearch that [`tierdex`] can express, for
//! their clients.
//!
//! 1. [`request`](self::request) reads the body, `search_body` and `query` translate it to a
//!    [`Query`](tierdex::Query) and options. A member, a parameter or a query that is not supported is an
//!    error that names it; what has no effect is named by a header `Warning`.
//! 2. Searches are admitted, evaluated and counted as those of the own interface.
//! 3. The sources of hits are read within the memory of answers, until the deadline of the search or a short
//!    time after its end.
//!
//! Errors of these paths have the form of Elasticsearch, also if no handler was called
//! ([`is_of_es`](self::error::is_of_es)).

mod cat;
mod documents;
pub(crate) mod error;
mod highlight;
mod hits;
mod indices;
mod info;
mod json;
mod members;
mod msearch;
mod query;
mod request;
mod search;
mod search_body;
mod source;
mod stored_source;

use crate::state::ServerState;
use axum::routing::{MethodRouter, get};
use axum::{Router, middleware};
use info::not_supported;
use std::sync::Arc;

/// The paths of this interface.
pub(crate) fn es_routes(state: &Arc<ServerState>) -> Router<Arc<ServerState>> {
    type Routes = MethodRouter<Arc<ServerState>>;
    let search = || -> Routes { get(search::search).post(search::search) };
    let several = || -> Routes { get(msearch::search_several).post(msearch::search_several) };
    let count = || -> Routes { get(search::count).post(search::count) };
    let documents = || -> Routes { get(documents::get_documents).post(documents::get_documents) };
    let read = |read: Routes| -> Routes { read.put(not_supported).post(not_supported).delete(not_supported) };
    Router::new()
        .route("/", get(info::root))
        .route("/_search", search())
        .route("/{index}/_search", search())
        .route("/_msearch", several())
        .route("/{index}/_msearch", several())
        .route("/_count", count())
        .route("/{index}/_count", count())
        .route("/_mget", documents())
        .route("/{index}/_mget", documents())
        .route("/{index}/_doc/{id}", read(get(documents::get_document)))
        .route("/{index}/_source/{id}", get(documents::get_source))
        .route("/{index}", read(get(info::get_index)))
        .route("/_mapping", get(info::get_mapping))
        .route("/{index}/_mapping", read(get(info::get_mapping)))
        .route("/{index}/_analyze", get(info::analyze).post(info::analyze))
        .route("/_cluster/health", get(info::get_health))
        .route("/_cluster/health/{index}", get(info::get_health))
        .route("/_cat/indices", get(cat::list_indices))
        .route("/_cat/indices/{index}", get(cat::list_indices))
        .route_layer(middleware::from_fn_with_state(state.clone(), request::add_client_headers))
}
