//! Stored documents by their ids.

use super::error::{EsErrorBody, parsing_error};
use super::indices::one_index;
use super::members::Members;
use super::request::{EsRequest, with_warnings};
use super::source::SourceFilter;
use super::stored_source::{READER_BYTES, SourceReader};
use crate::api_error::{ApiError, ApiErrorKind, cut};
use crate::catalog::ServedIndex;
use crate::record::AnswerMemory;
use crate::search::{DEADLINE_MS, answer_memory};
use crate::state::ServerState;
use crate::stored::document_of_id;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Documents of a request, at most.
const DOCUMENTS_MAX: usize = 1000;

/// Bytes of an item of an answer without its source and its id, and of the name of an index that does not
/// exist.
const ITEM_BYTES: usize = 2 << 10;
const INDEX_NAME_BYTES: usize = 128;

/// Parameters without effect: there is no newer state of a document than that of the commit.
const PARAMETERS: [&str; 3] = ["realtime", "refresh", "version_type"];

/// A document, or that there is none with its id.
#[derive(Debug, Serialize)]
struct EsDocument {
    _index: String,
    _id: String,
    found: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    _source: Option<Box<RawValue>>,
}

/// A document of several, or why it cannot be read.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum EsDocumentItem {
    Read(EsDocument),
    Failed {
        _index: String,
        _id: String,
        #[serde(flatten)]
        error: EsErrorBody,
    },
}

#[derive(Debug, Serialize)]
struct EsDocuments {
    docs: Vec<EsDocumentItem>,
}

/// A document that is asked for.
struct WantedDocument {
    index: Result<Arc<ServedIndex>, (String, ApiError)>,
    id: String,
    filter: Arc<SourceFilter>,
}

/// `_doc`
pub(super) async fn get_document(
    State(state): State<Arc<ServerState>>,
    request: EsRequest,
) -> Result<Response, ApiError> {
    let (document, warnings, memory) = read_one(&state, &request).await?;
    let status = if document.found { StatusCode::OK } else { StatusCode::NOT_FOUND };
    Ok(with_warnings(memory.with((status, Json(document))), &warnings))
}

/// `_source`
pub(super) async fn get_source(
    State(state): State<Arc<ServerState>>,
    request: EsRequest,
) -> Result<Response, ApiError> {
    let (document, warnings, memory) = read_one(&state, &request).await?;
    let Some(source) = document._source else {
        let message = format!("document not found [{}]/[{}]", document._index, document._id.escape_debug());
        return Err(ApiError::new(ApiErrorKind::NotFound, message));
    };
    Ok(with_warnings(memory.with(Json(source)), &warnings))
}

/// The document that a path names.
async fn read_one(
    state: &Arc<ServerState>,
    request: &EsRequest,
) -> Result<(EsDocument, Vec<String>, AnswerMemory), ApiError> {
    request.without_body()?;
    let index = one_index(state, request.index())?;
    let (filter, warnings) = take_parameters(request)?;
    let id = request.part("id").unwrap_or_default().to_string();
    let read = move |reader: &mut SourceReader| read_document(reader, &index, &id, &filter);
    let mut memory = answer_memory(state, READER_BYTES).await?;
    let (document, more) = SourceReader::run(state, deadline(), read).await?;
    more.into_iter().for_each(|more| memory.add(more));
    Ok((document, warnings, memory))
}

/// `_mget`
pub(super) async fn get_documents(
    State(state): State<Arc<ServerState>>,
    request: EsRequest,
) -> Result<Response, ApiError> {
    let (filter, warnings) = take_parameters(&request)?;
    let body = request.json()?;
    let wanted = wanted_documents(&state, request.index(), &body, &Arc::new(filter))?;
    let bytes = READER_BYTES + wanted.len() * ITEM_BYTES + request.body.len();
    drop((request, body));
    let mut memory = answer_memory(&state, bytes).await?;
    let read = move |reader: &mut SourceReader| {
        let mut docs = Vec::with_capacity(wanted.len());
        for WantedDocument { index, id, filter } in wanted {
            let failed = |_index: String, error: &ApiError| EsDocumentItem::Failed {
                _index,
                _id: id.clone(),
                error: EsErrorBody::new(error),
            };
            docs.push(match index {
                Err((name, error)) => failed(name, &error),
                Ok(index) => match read_document(reader, &index, &id, &filter) {
                    Ok(document) => EsDocumentItem::Read(document),
                    // Other documents would not fit either.
                    Err(error) if error.kind == ApiErrorKind::Overloaded => return Err(error),
                    Err(error) => failed(index.name.clone(), &error),
                },
            });
        }
        Ok(EsDocuments { docs })
    };
    let (documents, more) = SourceReader::run(&state, deadline(), read).await?;
    more.into_iter().for_each(|more| memory.add(more));
    Ok(with_warnings(memory.with(Json(documents)), &warnings))
}

fn deadline() -> Instant {
    Instant::now() + Duration::from_millis(DEADLINE_MS)
}

fn take_parameters(request: &EsRequest) -> Result<(SourceFilter, Vec<String>), ApiError> {
    let (mut url, mut warnings) = (Members::of_url(&request.parameters, "get"), Vec::new());
    let filter = SourceFilter::take(None, &mut url)?;
    url.finish_ignoring(&PARAMETERS, &mut warnings)?;
    Ok((filter, warnings))
}

fn read_document(
    reader: &mut SourceReader,
    index: &ServedIndex,
    id: &str,
    filter: &SourceFilter,
) -> Result<EsDocument, ApiError> {
    if reader.is_late() {
        let message = format!("the documents could not be read within {DEADLINE_MS} ms");
        return Err(ApiError::overloaded(message, Duration::from_secs(1)));
    }
    let snapshot = index.snapshot();
    let found = document_of_id(&snapshot, id)?;
    let source = match found {
        Some(document) if !filter.is_off => reader.read(&snapshot, document, filter)?,
        _ => None,
    };
    let (_index, _id) = (index.name.clone(), id.to_string());
    Ok(EsDocument { _index, _id, found: found.is_some(), _source: source })
}

/// The documents that the body of `_mget` names.
fn wanted_documents(
    state: &ServerState,
    index: Option<&str>,
    body: &Value,
    filter: &Arc<SourceFilter>,
) -> Result<Vec<WantedDocument>, ApiError> {
    let mut members = Members::of(body, "mget")?;
    let lists = [members.take("docs"), members.take("ids")];
    members.finish()?;
    let list = match lists {
        [Some(list), None] | [None, Some(list)] => list.as_array(),
        _ => None,
    };
    let list = list.ok_or_else(|| parsing_error("[mget] needs a list, either [docs] or [ids]"))?;
    if list.len() > DOCUMENTS_MAX {
        let message = format!("[mget] names {} documents; at most {DOCUMENTS_MAX} are allowed", list.len());
        return Err(ApiError::new(ApiErrorKind::Limit, message));
    }
    let wanted = |item: &Value| -> Result<WantedDocument, ApiError> {
        let (mut own_index, mut filter, id) = (None, filter.clone(), item.as_str());
        let id = match id {
            Some(id) if lists[1].is_some() => id.to_string(),
            _ => {
                let mut members = Members::of(item, "docs")?;
                own_index = members.text("_index")?;
                if let Some(value) = members.take("_source") {
                    filter = Arc::new(SourceFilter::of_value(value)?);
                }
                let id = members.text("_id")?;
                members.finish()?;
                id.ok_or_else(|| parsing_error("a document of [docs] needs [_id]"))?
            }
        };
        let name = own_index.as_deref().or(index);
        let shown = || cut(name.unwrap_or_default(), INDEX_NAME_BYTES).to_string();
        Ok(WantedDocument { index: one_index(state, name).map_err(|error| (shown(), error)), id, filter })
    };
    list.iter().map(wanted).collect()
}
