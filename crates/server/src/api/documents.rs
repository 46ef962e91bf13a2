//! Stored documents.

use super::search::other_generation;
use crate::api_error::{ApiError, ApiErrorKind, ErrorBody};
use crate::extract::{IndexPath, Parameters, PathParts};
use crate::search::{answer_memory, blocking};
use crate::state::ServerState;
use crate::stored::{DOCUMENT_BYTES, document_of_id};
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::Arc;
use tierdex::{SearchHit, Snapshot, StoredDocument};
use utoipa::{IntoParams, ToSchema};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct DocumentParameters {
    /// If it is given, the path has the number of a document of this commit, in place of an id.
    generation: Option<u64>,
}

/// A stored document.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DocumentBody {
    id: String,
    /// Number of the document in this commit.
    document: u32,
    generation: u64,
    /// The title, that is the first value of the member that the schema names; empty without one.
    title: String,
    /// The values of each member that is stored.
    members: BTreeMap<String, Vec<String>>,
    /// The other members of the JSON object that was indexed, if they are stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Object)]
    others: Option<Box<RawValue>>,
    /// Whether the document is longer than 512 KiB, and its end is left out.
    cut: bool,
}

/// A document by its id
///
/// Or by its number in a commit, if `generation` is given.
#[utoipa::path(
    get,
    path = "/indexes/{index}/documents/{id}",
    params(
        ("index" = String, Path, description = "Name of the index"),
        ("id" = String, Path, description = "Id of the document"),
        DocumentParameters,
    ),
    responses(
        (status = 200, body = DocumentBody),
        (status = "4XX", body = ErrorBody),
        (status = "5XX", body = ErrorBody),
    ),
    tag = "documents"
)]
pub(crate) async fn get_document(
    State(state): State<Arc<ServerState>>,
    IndexPath(index): IndexPath,
    PathParts((_, id)): PathParts<(String, String)>,
    Parameters(parameters): Parameters<DocumentParameters>,
) -> Result<Response, ApiError> {
    let snapshot = index.snapshot();
    // The document as values and as text.
    let memory = answer_memory(&state, 4 * DOCUMENT_BYTES).await?;
    let body = blocking(&state, move || read_document(&snapshot, &id, parameters.generation)).await?;
    Ok(memory.with(Json(body)))
}

fn read_document(snapshot: &Snapshot, id: &str, generation: Option<u64>) -> Result<DocumentBody, ApiError> {
    let served = snapshot.index().generation();
    let missing =
        || ApiError::new(ApiErrorKind::NotFound, format!("no document has the id `{}`", id.escape_debug()));
    let document = match generation {
        Some(asked) if asked != served => return Err(other_generation(asked, served)),
        Some(_) => id.parse().map_err(|_| missing())?,
        None => document_of_id(snapshot, id)?.ok_or_else(missing)?,
    };
    let stored = match snapshot.stored_within(document, DOCUMENT_BYTES) {
        Err(tierdex::Error::Usage(message)) => return Err(ApiError::new(ApiErrorKind::NotFound, message)),
        stored => stored?.unwrap_or_default(),
    };
    let id = match generation {
        Some(_) => snapshot.ids(&[SearchHit { document, ..SearchHit::default() }])?.remove(0),
        None => id.to_string(),
    };
    Ok(DocumentBody {
        id,
        document,
        generation: served,
        title: stored.title().to_string(),
        members: members_of(&stored),
        others: RawValue::from_string(stored.others().to_string()).ok(),
        cut: stored.is_cut(),
    })
}

fn members_of(stored: &StoredDocument) -> BTreeMap<String, Vec<String>> {
    let members = stored.members().filter(|(_, values)| !values.is_empty());
    members.map(|(name, values)| (name.to_string(), values.to_vec())).collect()
}
