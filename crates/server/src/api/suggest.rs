//! Suggestions for a text that is being typed.

use super::inspect::field_number;
use crate::api_error::{ApiError, ErrorBody};
use crate::extract::{IndexPath, Parameters};
use crate::search::{answer_memory, blocking};
use crate::state::ServerState;
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tierdex::Suggestions;
use utoipa::{IntoParams, ToSchema};

/// Completions of an answer.
const COMPLETIONS: usize = 6;

/// Bytes of memory for the terms of a prefix.
const TERMS_BYTES: usize = 2 << 20;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SuggestParameters {
    /// The text that is being typed.
    #[param(example = "solit di")]
    q: String,
    /// Name of the field; the first one by default.
    field: Option<String>,
}

/// What a user may mean by a text.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SuggestAnswer {
    /// Completions of the last word, those in most documents first.
    completions: Vec<CompletionBody>,
    /// The text with other words in place of those that no document contains.
    correction: Option<String>,
}

/// A completion.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CompletionBody {
    word: String,
    /// Documents that contain the word.
    documents: u64,
    /// The text with the word in place of its last one.
    text: String,
}

/// Completions of the last word, and a correction
#[utoipa::path(
    get,
    path = "/indexes/{index}/suggest",
    params(("index" = String, Path, description = "Name of the index"), SuggestParameters),
    responses(
        (status = 200, body = SuggestAnswer),
        (status = "4XX", body = ErrorBody),
        (status = "5XX", body = ErrorBody),
    ),
    tag = "search"
)]
pub(crate) async fn suggest(
    State(state): State<Arc<ServerState>>,
    IndexPath(index): IndexPath,
    Parameters(parameters): Parameters<SuggestParameters>,
) -> Result<Response, ApiError> {
    let SuggestParameters { q, field } = parameters;
    let snapshot = index.snapshot();
    let field = field_number(snapshot.schema(), field.as_deref())?;
    let memory = answer_memory(&state, TERMS_BYTES + (2 + COMPLETIONS) * q.len()).await?;
    let answer = blocking(&state, move || {
        let found = snapshot.suggest(field, &q, COMPLETIONS)?;
        Ok(answer_of(&q, found))
    });
    Ok(memory.with(Json(answer.await?)))
}

fn answer_of(text: &str, found: Suggestions) -> SuggestAnswer {
    let range = found.completed;
    let completions = found.completions.into_iter().map(|term| {
        let text = [&text[..range.start], &term.term, &text[range.end..]].concat();
        CompletionBody { word: term.term, documents: term.documents, text }
    });
    SuggestAnswer { completions: completions.collect(), correction: found.correction }
}
