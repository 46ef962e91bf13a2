//! What the analysis makes of a text, and the terms of an index.

use crate::api_error::{ApiError, ApiErrorKind, ErrorBody};
use crate::extract::{IndexPath, JsonBody, Parameters};
use crate::search::{answer_memory, blocking};
use crate::state::ServerState;
use crate::tokens::tokens_of;
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tierdex::analysis::Token;
use tierdex::limits::TERM_BYTES_MAX;
use tierdex::{Schema, TermStats};
use utoipa::{IntoParams, ToSchema};

/// Bytes of a term in an answer, at most.
const TERM_BYTES: usize = 1 << 10;

/// Terms of an answer, by default and at most.
const TERMS: usize = 100;
const TERMS_MAX: usize = 1000;

/// A text.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AnalyzeBody {
    /// The text, at most 16 KiB.
    text: String,
    /// Name of the field; the first one by default.
    #[serde(default)]
    field: Option<String>,
}

/// The tokens of a text.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AnalyzeAnswer {
    tokens: Vec<TokenBody>,
}

/// A token.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TokenBody {
    term: String,
    /// First byte in the text, and the byte after the last.
    start: usize,
    end: usize,
    /// Number of the word in the text.
    position: u32,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct TermsParameters {
    /// Name of the field; the first one by default.
    field: Option<String>,
    /// The beginning of the terms, at most 255 bytes.
    #[serde(default)]
    prefix: String,
    /// Only terms that are greater in the order of bytes, at most 255 bytes.
    after: Option<String>,
    /// Number of terms, at most.
    #[param(maximum = 1000, default = 100)]
    limit: Option<usize>,
}

/// Terms in the order of their bytes.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TermsAnswer {
    terms: Vec<TermBody>,
}

/// A term.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TermBody {
    term: String,
    /// Documents with the term.
    documents: u64,
    /// Occurrences in all documents.
    occurrences: u64,
}

/// The tokens of a text
#[utoipa::path(
    post,
    path = "/indexes/{index}/analyze",
    params(("index" = String, Path, description = "Name of the index")),
    request_body = AnalyzeBody,
    responses(
        (status = 200, body = AnalyzeAnswer),
        (status = "4XX", body = ErrorBody),
        (status = "5XX", body = ErrorBody),
    ),
    tag = "indexes"
)]
pub(crate) async fn analyze(
    State(state): State<Arc<ServerState>>,
    IndexPath(index): IndexPath,
    JsonBody(body): JsonBody<AnalyzeBody>,
) -> Result<Response, ApiError> {
    let snapshot = index.snapshot();
    let field = field_number(snapshot.schema(), body.field.as_deref())?;
    let of_token = |_: &str, token: Token<'_>| {
        let (term, position) = (token.term.to_string(), token.position);
        TokenBody { term, start: token.start, end: token.end, position }
    };
    let (tokens, memory) = tokens_of(&state, snapshot, field, body.text, of_token).await?;
    Ok(memory.with(Json(AnalyzeAnswer { tokens })))
}

/// The terms of a field
#[utoipa::path(
    get,
    path = "/indexes/{index}/terms",
    params(("index" = String, Path, description = "Name of the index"), TermsParameters),
    responses(
        (status = 200, body = TermsAnswer),
        (status = "4XX", body = ErrorBody),
        (status = "5XX", body = ErrorBody),
    ),
    tag = "indexes"
)]
pub(crate) async fn list_terms(
    State(state): State<Arc<ServerState>>,
    IndexPath(index): IndexPath,
    Parameters(parameters): Parameters<TermsParameters>,
) -> Result<Response, ApiError> {
    let TermsParameters { field, prefix, after, limit } = parameters;
    let limit = limit.unwrap_or(TERMS);
    if limit > TERMS_MAX {
        let message = format!("limit is {limit}; at most {TERMS_MAX} is allowed");
        return Err(ApiError::new(ApiErrorKind::Limit, message));
    }
    if prefix.len().max(after.as_ref().map_or(0, String::len)) > TERM_BYTES_MAX {
        let message = format!("prefix and after have at most {TERM_BYTES_MAX} bytes");
        return Err(ApiError::new(ApiErrorKind::Limit, message));
    }
    let snapshot = index.snapshot();
    let field = field_number(snapshot.schema(), field.as_deref())?;
    let memory = answer_memory(&state, limit * TERM_BYTES).await?;
    let answer = blocking(&state, move || {
        let terms = snapshot.terms(field, &prefix, after.as_deref(), limit)?.into_iter();
        let terms = terms.map(|stats| {
            let TermStats { term, documents, occurrences } = stats;
            TermBody { term, documents, occurrences }
        });
        Ok(TermsAnswer { terms: terms.collect() })
    });
    Ok(memory.with(Json(answer.await?)))
}

pub(super) fn field_number(schema: &Schema, name: Option<&str>) -> Result<usize, ApiError> {
    let Some(name) = name else { return Ok(0) };
    schema.field(name).ok_or_else(|| {
        let names: Vec<&str> = schema.fields.iter().map(|field| &*field.name).collect();
        let message =
            format!("the index has no field `{}`; it has {}", name.escape_debug(), names.join(", "));
        ApiError::new(ApiErrorKind::Usage, message)
    })
}
