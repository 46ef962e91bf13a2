//! `_cat/indices`: a table of the indexes as text or JSON.

use super::error::argument_error;
use super::indices::indices_of;
use super::members::{Members, names_of};
use super::request::{EsRequest, with_warnings};
use crate::api_error::ApiError;
use crate::catalog::ServedIndex;
use crate::state::ServerState;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The columns.
const COLUMNS: [&str; 10] = [
    "health",
    "status",
    "index",
    "uuid",
    "pri",
    "rep",
    "docs.count",
    "docs.deleted",
    "store.size",
    "pri.store.size",
];

/// `_cat/indices`
pub(super) async fn list_indices(
    State(state): State<Arc<ServerState>>,
    headers: HeaderMap,
    request: EsRequest,
) -> Result<Response, ApiError> {
    request.without_body()?;
    let (mut url, mut warnings) = (Members::of_url(&request.parameters, "cat"), Vec::new());
    let columns = match url.take("h") {
        Some(names) => names_of(names, "h")?,
        None => COLUMNS.map(str::to_string).into(),
    };
    if let Some(name) = columns.iter().find(|name| !COLUMNS.contains(&name.as_str())) {
        return Err(argument_error(format!("[h] has no column [{}]", name.escape_debug())));
    }
    let has_heading = url.flag("v")?.unwrap_or(false);
    let in_bytes = match url.text("bytes")?.as_deref() {
        None => false,
        Some("b") => true,
        Some(_) => return Err(argument_error("[bytes] must be b")),
    };
    let is_json = match url.text("format")?.as_deref() {
        Some("json") => true,
        Some("text") => false,
        Some(_) => return Err(argument_error("[format] must be json or text")),
        None => accepts_json(&headers),
    };
    url.finish_ignoring(&["time", "include_unloaded_segments"], &mut warnings)?;
    let indexes = indices_of(&state, request.index())?;
    let rows = indexes.iter().map(|index| row_of(index, &columns, in_bytes));
    let response = match is_json {
        true => {
            let object = |row: Vec<String>| -> Map<String, Value> {
                columns.iter().cloned().zip(row.into_iter().map(Value::String)).collect()
            };
            Json(rows.map(object).collect::<Vec<_>>()).into_response()
        }
        false => {
            let heading = has_heading.then(|| columns.clone());
            table_of(heading.into_iter().chain(rows).collect()).into_response()
        }
    };
    Ok(with_warnings(response, &warnings))
}

/// Whether a client asks for JSON, and not for text first.
fn accepts_json(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    ["application/json", "application/vnd.elasticsearch+json"].iter().any(|kind| accepted.starts_with(kind))
}

fn row_of(index: &ServedIndex, columns: &[String], in_bytes: bool) -> Vec<String> {
    let snapshot = index.snapshot();
    let manifest = snapshot.index().manifest();
    let bytes = manifest.named_files().map(|file| file.seal.len).sum();
    let value = |column: &String| match column.as_str() {
        "health" => if index.stale().is_some() { "yellow" } else { "green" }.to_string(),
        "status" => "open".to_string(),
        "index" | "uuid" => index.name.clone(),
        "pri" => "1".to_string(),
        "rep" => "0".to_string(),
        "docs.count" => manifest.live_documents().to_string(),
        "docs.deleted" => (manifest.documents() - manifest.live_documents()).to_string(),
        _ if in_bytes => json!(bytes).to_string(),
        _ => size_text(bytes),
    };
    columns.iter().map(value).collect()
}

/// A number of bytes with a unit.
fn size_text(bytes: u64) -> String {
    let (mut size, mut units) = (bytes as f64, ["kb", "mb", "gb", "tb"].into_iter());
    let mut text = format!("{bytes}b");
    while size >= 1024.0
        && let Some(unit) = units.next()
    {
        size /= 1024.0;
        text = format!("{size:.1}{unit}");
    }
    text
}

/// Rows as text, in columns of equal width.
fn table_of(rows: Vec<Vec<String>>) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        format!("{}\n", cells.collect::<Vec<_>>().join(" ").trim_end())
    };
    rows.iter().map(line).collect()
}
