//! The indexes of a server.

use crate::api_error::{ApiError, ErrorBody};
use crate::catalog::{ServedIndex, Stale};
use crate::extract::IndexPath;
use crate::state::ServerState;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use std::sync::Arc;
use tierdex::schema::Stored;
use utoipa::ToSchema;

/// The indexes of a server.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct IndexList {
    /// Folders in which new indexes are found.
    folders: Vec<String>,
    indexes: Vec<IndexBody>,
}

/// An index.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct IndexBody {
    name: String,
    /// Number of the commit that is served.
    generation: u64,
    /// Documents that are not deleted.
    documents: u64,
    /// Deleted documents whose postings are still in segments.
    deleted: u64,
    segments: usize,
    /// Bytes of all files of segments.
    bytes: u64,
    fields: Vec<FieldBody>,
    /// Whether documents are found by their ids.
    updatable: bool,
    /// Whether titles and texts of documents are stored.
    stores_text: bool,
    /// Why an older commit than the newest is served.
    stale: Option<StaleBody>,
}

/// A text field.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FieldBody {
    name: String,
    /// Documents with a token in the field.
    documents: u64,
    tokens: u64,
    /// Whether phrases can be searched.
    positions: bool,
}

/// Why an older commit than the newest is served.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StaleBody {
    /// Date and time (RFC 3339).
    since: String,
    reason: String,
}

/// All indexes
#[utoipa::path(
    get,
    path = "/indexes",
    responses((status = 200, body = IndexList), (status = "4XX", body = ErrorBody), (status = "5XX", body = ErrorBody)),
    tag = "indexes"
)]
pub(crate) async fn list_indexes(State(state): State<Arc<ServerState>>) -> Json<IndexList> {
    let folders = state.catalog.folders().iter().map(|folder| folder.display().to_string()).collect();
    let indexes = state.catalog.indexes().iter().map(|index| body_of(index)).collect();
    Json(IndexList { folders, indexes })
}

/// An index
#[utoipa::path(
    get,
    path = "/indexes/{index}",
    params(("index" = String, Path, description = "Name of the index")),
    responses((status = 200, body = IndexBody), (status = "4XX", body = ErrorBody), (status = "5XX", body = ErrorBody)),
    tag = "indexes"
)]
pub(crate) async fn get_index(IndexPath(index): IndexPath) -> Result<Json<IndexBody>, ApiError> {
    Ok(Json(body_of(&index)))
}

fn body_of(served: &ServedIndex) -> IndexBody {
    let snapshot = served.snapshot();
    let (index, manifest) = (snapshot.index(), snapshot.index().manifest());
    let fields = manifest.schema.fields.iter().enumerate().map(|(number, field)| {
        let stats = manifest.segments.iter().map(|segment| segment.stats(number));
        let (documents, tokens) = stats.fold((0, 0), |(documents, tokens), stats| {
            (documents + u64::from(stats.documents), tokens + stats.tokens)
        });
        FieldBody { name: field.name.clone(), documents, tokens, positions: field.positions }
    });
    IndexBody {
        name: served.name.clone(),
        generation: manifest.generation,
        documents: manifest.live_documents(),
        deleted: manifest.documents() - manifest.live_documents(),
        segments: manifest.segments.len(),
        bytes: manifest.named_files().map(|file| file.seal.len).sum(),
        fields: fields.collect(),
        updatable: index.is_updatable(),
        stores_text: manifest.schema.stored != Stored::Nothing,
        stale: served.stale().map(|Stale { since, reason, .. }| StaleBody {
            since: humantime::format_rfc3339_seconds(since).to_string(),
            reason,
        }),
    }
}
