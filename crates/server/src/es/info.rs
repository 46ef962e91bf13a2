//! What the server and its indexes are, in the form that clients expect.

use super::error::{accepts_page, argument_error, parsing_error, unsupported_request};
use super::indices::{indices_of, one_index};
use super::members::Members;
use super::request::{EsRequest, with_warnings};
use crate::api_error::ApiError;
use crate::catalog::ServedIndex;
use crate::options::Compat;
use crate::page::index_page;
use crate::state::ServerState;
use crate::tokens::tokens_of;
use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::sync::Arc;
use tierdex::schema::Field;

/// The name of the server in answers, and an id for clients that need one.
const NAME: &str = "tierdex";
const CLUSTER_ID: &str = "dGllcmRleC1zZXJ2ZXIgIA";

/// `GET /`: the page for browsers, and for clients what they check before their first request.
pub(super) async fn root(State(state): State<Arc<ServerState>>, headers: HeaderMap) -> Response {
    let mut response = match accepts_page(&headers) {
        true => index_page(&headers),
        false => Json(info(state.options.compat)).into_response(),
    };
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
    response
}

fn info(compat: Compat) -> Value {
    let (product, version) = match compat {
        Compat::Opensearch => (
            "OpenSearch",
            json!({
                "distribution": "opensearch",
                "number": "2.19.0",
                "minimum_wire_compatibility_version": "7.10.0",
                "minimum_index_compatibility_version": "7.0.0",
            }),
        ),
        Compat::Elasticsearch => (
            "Elasticsearch",
            json!({
                "number": "9.1.0",
                "build_flavor": "default",
                "minimum_wire_compatibility_version": "8.19.0",
                "minimum_index_compatibility_version": "8.0.0",
            }),
        ),
    };
    let mut version = version;
    for (name, value) in [
        ("build_type", json!(NAME)),
        ("build_hash", json!("unknown")),
        ("build_date", json!("2026-01-01T00:00:00Z")),
        ("build_snapshot", json!(false)),
        ("lucene_version", json!("10.2.2")),
    ] {
        version[name] = value;
    }
    let tagline = format!(
        "tierdex {}, which answers a read-only subset of the requests of {product}",
        env!("CARGO_PKG_VERSION")
    );
    json!({
        "name": NAME,
        "cluster_name": NAME,
        "cluster_uuid": CLUSTER_ID,
        "version": version,
        "tagline": tagline,
    })
}

/// An index, or all that a pattern stands for.
pub(super) async fn get_index(
    State(state): State<Arc<ServerState>>,
    request: EsRequest,
) -> Result<Response, ApiError> {
    describe(&state, &request, |index| {
        let settings = json!({
            "index": {
                "number_of_shards": "1",
                "number_of_replicas": "0",
                "provided_name": index.name,
                "uuid": index.name,
            }
        });
        json!({ "aliases": {}, "mappings": mappings_of(index), "settings": settings })
    })
}

/// `_mapping`
pub(super) async fn get_mapping(
    State(state): State<Arc<ServerState>>,
    request: EsRequest,
) -> Result<Response, ApiError> {
    describe(&state, &request, |index| json!({ "mappings": mappings_of(index) }))
}

fn describe(
    state: &ServerState,
    request: &EsRequest,
    of_index: impl Fn(&ServedIndex) -> Value,
) -> Result<Response, ApiError> {
    let warnings = take_parameters(request, &["include_defaults", "features"])?;
    let indexes = indices_of(state, request.index())?;
    let all = indexes.iter().map(|index| (index.name.clone(), of_index(index)));
    let all: serde_json::Map<String, Value> = all.collect();
    Ok(with_warnings(Json(all).into_response(), &warnings))
}

fn take_parameters(request: &EsRequest, others: &[&'static str]) -> Result<Vec<String>, ApiError> {
    let (url, mut warnings) = (Members::of_url(&request.parameters, "request"), Vec::new());
    url.finish_ignoring(others, &mut warnings)?;
    request.without_body()?;
    Ok(warnings)
}

/// The fields that can be searched.
fn mappings_of(index: &ServedIndex) -> Value {
    let property = |field: &Field| {
        let options = if field.positions { "positions" } else { "freqs" };
        (field.name.clone(), json!({ "type": "text", "index_options": options }))
    };
    let snapshot = index.snapshot();
    let properties: serde_json::Map<String, Value> = snapshot.schema().fields.iter().map(property).collect();
    json!({ "properties": properties })
}

/// `_cluster/health`
pub(super) async fn get_health(
    State(state): State<Arc<ServerState>>,
    request: EsRequest,
) -> Result<Response, ApiError> {
    let others = ["wait_for_status", "timeout", "level", "wait_for_no_relocating_shards"];
    let warnings = take_parameters(&request, &others)?;
    let indexes = indices_of(&state, request.index())?;
    let is_stale = indexes.iter().any(|index| index.stale().is_some());
    let answer = json!({
        "cluster_name": NAME,
        "status": if is_stale { "yellow" } else { "green" },
        "timed_out": false,
        "number_of_nodes": 1,
        "number_of_data_nodes": 1,
        "active_primary_shards": indexes.len(),
        "active_shards": indexes.len(),
        "relocating_shards": 0,
        "initializing_shards": 0,
        "unassigned_shards": 0,
        "delayed_unassigned_shards": 0,
        "number_of_pending_tasks": 0,
        "number_of_in_flight_fetch": 0,
        "task_max_waiting_in_queue_millis": 0,
        "active_shards_percent_as_number": 100.0,
    });
    Ok(with_warnings(Json(answer).into_response(), &warnings))
}

/// `_analyze`
pub(super) async fn analyze(
    State(state): State<Arc<ServerState>>,
    request: EsRequest,
) -> Result<Response, ApiError> {
    let index = one_index(&state, request.index())?;
    let (body, snapshot) = (request.json()?, index.snapshot());
    let (mut members, mut url) =
        (Members::of(&body, "analyze")?, Members::of_url(&request.parameters, "analyze"));
    let mut warnings = Vec::new();
    let given = members.take("text").or_else(|| url.take("text"));
    let given = given.map(|given| given.as_array().map_or(std::slice::from_ref(given), Vec::as_slice));
    let Some([Value::String(text)]) = given else {
        return Err(parsing_error("[text] of [analyze] must be one text"));
    };
    let text = text.clone();
    let field = match members.text("field")?.or(url.text("field")?) {
        None => 0,
        Some(name) => snapshot
            .schema()
            .field(&name)
            .ok_or_else(|| argument_error(format!("the index has no field [{}]", name.escape_debug())))?,
    };
    members.finish()?;
    url.finish_ignoring(&[], &mut warnings)?;
    // Offsets are in UTF-16 code units, as clients count them.
    let (mut at, mut units) = (0, 0);
    let mut units_to = move |text: &str, end: usize| {
        // Tokens of text without blanks overlap.
        if end < at {
            (at, units) = (0, 0);
        }
        units += text[at..end].encode_utf16().count();
        at = end;
        units
    };
    let of_token = move |text: &str, token: tierdex::analysis::Token<'_>| {
        let (start, end) = (units_to(text, token.start), units_to(text, token.end));
        let (term, position) = (token.term, token.position);
        json!({ "token": term, "start_offset": start, "end_offset": end, "type": "word", "position": position })
    };
    let (tokens, memory) = tokens_of(&state, snapshot, field, text, of_token).await?;
    Ok(with_warnings(memory.with(Json(json!({ "tokens": tokens }))), &warnings))
}

/// The requests of clients that this server does not answer.
pub(super) async fn not_supported(request: Request) -> ApiError {
    unsupported_request(request.method(), request.uri().path())
}
