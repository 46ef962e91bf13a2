//! Search in an index.

use crate::api_error::{ApiError, ApiErrorKind, ErrorBody};
use crate::catalog::ServedIndex;
use crate::explain::ExplainedQuery;
use crate::extract::{IndexPath, Parameters, SearchJson, check_busy};
use crate::search::{
    DEADLINE_MS, DEADLINE_MS_MAX, Found, HITS_MAX, PreparedSearch, SNIPPET_BYTES_MAX, Syntax, answer_bytes,
    checked_shape, engine_of, evaluate, parse_query, record_search,
};
use crate::state::ServerState;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use tierdex::{Bm25, Hits, PreviewOptions, Scorer, SearchHit, SearchRequest, TotalHits};
use utoipa::{IntoParams, ToSchema};

/// Bytes of a title, at most.
const TITLE_BYTES: usize = 512;

/// Bytes of the text in which a snippet is searched, at most.
const TEXT_BYTES_MAX: usize = 256 << 10;

/// A search.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchBody {
    /// The query.
    #[schema(min_length = 1, example = "+solid +state disk")]
    query: String,
    /// How the query is read.
    #[serde(default)]
    syntax: Syntax,
    /// Hits, at most; 0 only counts.
    #[serde(default = "default_k")]
    #[schema(maximum = 1000, default = 10)]
    k: usize,
    /// Hits to leave out at the beginning. With `k` at most 1,000.
    #[serde(default)]
    #[schema(maximum = 1000)]
    offset: usize,
    /// Whether all matches are counted, which takes longer.
    #[serde(default)]
    count: bool,
    /// How documents are scored; BM25 by default.
    #[serde(default)]
    scorer: ScorerBody,
    /// What hits show beside id and score.
    #[serde(default)]
    hits: ShownBody,
    /// Milliseconds until the search ends with the best hits found so far.
    #[serde(default = "default_deadline")]
    #[schema(minimum = 1, maximum = 30000, default = 2000)]
    deadline_ms: u64,
    /// The commit to search; an error if it is not the one that is served. The newest by default.
    #[serde(default)]
    generation: Option<u64>,
    /// Whether the answer says how the query was evaluated.
    #[serde(default)]
    explain: bool,
}

fn default_k() -> usize {
    10
}

fn default_deadline() -> u64 {
    DEADLINE_MS
}

/// How documents are scored.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum ScorerBody {
    /// BM25 with these parameters.
    Bm25 {
        /// Saturation of the term frequency, 0 to 1000.
        #[schema(minimum = 0, maximum = 1000)]
        k1: f64,
        /// Normalization by document length, 0 to 1.
        #[schema(minimum = 0, maximum = 1)]
        b: f64,
    },
    /// The sum of boost times frequency.
    Dot,
}

impl Default for ScorerBody {
    fn default() -> ScorerBody {
        let Bm25 { k1, b, .. } = Bm25::default();
        ScorerBody::Bm25 { k1, b }
    }
}

/// What hits show beside id and score.
#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShownBody {
    /// Whether hits have titles.
    #[serde(default)]
    title: bool,
    /// The part of the text that contains the most words of the query; none by default.
    #[serde(default)]
    snippet: Option<SnippetBody>,
}

/// A snippet.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SnippetBody {
    /// Bytes of a snippet, approximately.
    #[serde(default = "default_snippet")]
    #[schema(maximum = 2048, default = 180)]
    bytes: usize,
    /// Bytes from the beginning of each text in which it is searched.
    #[serde(default = "default_text")]
    #[schema(maximum = 262_144, default = 16384)]
    text_bytes: usize,
}

fn default_snippet() -> usize {
    180
}

fn default_text() -> usize {
    PreviewOptions::default().text
}

/// A search by the parameters of the query string.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SearchParameters {
    /// The query.
    #[param(min_length = 1, example = "disk")]
    q: String,
    /// How the query is read.
    #[serde(default)]
    #[param(inline)]
    syntax: Syntax,
    /// Hits, at most.
    #[serde(default = "default_k")]
    #[param(maximum = 1000, default = 10)]
    k: usize,
    /// Hits to leave out at the beginning.
    #[serde(default)]
    #[param(maximum = 1000)]
    offset: usize,
    /// Whether all matches are counted.
    #[serde(default)]
    count: bool,
    /// Whether the answer says how the query was evaluated.
    #[serde(default)]
    explain: bool,
}

/// The result of a search.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SearchAnswer {
    /// Microseconds from the arrival of the request to its result.
    took_us: u64,
    /// Those in which it waited for a thread.
    queued_us: u64,
    /// The commit that was searched.
    generation: u64,
    /// Whether the deadline passed: hits are the best of the documents that were evaluated until then.
    timed_out: bool,
    total: Total,
    /// Parts of the query that were ignored or read as text.
    warnings: Vec<String>,
    hits: Vec<HitBody>,
    cost: CostBody,
    /// How the query was evaluated, if that was requested and the deadline has not passed.
    explanation: Option<ExplainedQuery>,
}

/// Number of documents that match.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Total {
    value: u64,
    relation: Relation,
}

impl Total {
    pub(super) fn of(hits: &Hits) -> Total {
        let relation = if matches!(hits.total, TotalHits::Exact(_)) { Relation::Eq } else { Relation::Gte };
        Total { value: hits.total.value(), relation }
    }
}

/// How a number relates to the exact number of matches.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Relation {
    /// It is exact.
    Eq,
    /// There are as many or more.
    Gte,
}

/// A document that matches.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HitBody {
    /// From 1.
    rank: usize,
    score: f32,
    id: String,
    /// Number of the document in this commit.
    document: u32,
    /// The title, if titles were requested and are stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    title: Option<String>,
    /// The snippet, if snippets were requested and texts are stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    snippet: Option<SnippetAnswer>,
}

/// A part of a text.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SnippetAnswer {
    text: String,
    /// Start and end of each word of the query, in Unicode code points of `text`.
    marks: Vec<[usize; 2]>,
}

/// What a search took beside time.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CostBody {
    /// Bytes of memory that an evaluation reserved.
    memory_bytes: u64,
    /// Pages of 4 KiB that were requested from the cache.
    pages: u64,
    /// Those that were not cached.
    pages_read: u64,
    /// Evaluations, each of one range of documents.
    parts: usize,
}

/// Search
#[utoipa::path(
    post,
    path = "/indexes/{index}/search",
    params(("index" = String, Path, description = "Name of the index")),
    request_body = SearchBody,
    responses(
        (status = 200, body = SearchAnswer),
        (status = "4XX", body = ErrorBody),
        (status = "5XX", body = ErrorBody),
    ),
    tag = "search"
)]
pub(crate) async fn search(
    State(state): State<Arc<ServerState>>,
    IndexPath(index): IndexPath,
    SearchJson(body): SearchJson<SearchBody>,
) -> Result<Response, ApiError> {
    run(&state, &index, body).await
}

/// Search by parameters
///
/// As `POST`, for people and caches. Hits have titles and snippets.
#[utoipa::path(
    get,
    path = "/indexes/{index}/search",
    params(("index" = String, Path, description = "Name of the index"), SearchParameters),
    responses(
        (status = 200, body = SearchAnswer),
        (status = "4XX", body = ErrorBody),
        (status = "5XX", body = ErrorBody),
    ),
    tag = "search"
)]
pub(crate) async fn search_by_parameters(
    State(state): State<Arc<ServerState>>,
    IndexPath(index): IndexPath,
    Parameters(parameters): Parameters<SearchParameters>,
) -> Result<Response, ApiError> {
    check_busy(&state)?;
    let SearchParameters { q, syntax, k, offset, count, explain } = parameters;
    let snippet = SnippetBody { bytes: default_snippet(), text_bytes: default_text() };
    let body = SearchBody {
        query: q,
        syntax,
        k,
        offset,
        count,
        scorer: ScorerBody::default(),
        hits: ShownBody { title: true, snippet: Some(snippet) },
        deadline_ms: DEADLINE_MS,
        generation: None,
        explain,
    };
    run(&state, &index, body).await
}

async fn run(state: &ServerState, index: &ServedIndex, body: SearchBody) -> Result<Response, ApiError> {
    check_body(&body)?;
    let snapshot = index.snapshot();
    let generation = snapshot.index().generation();
    if let Some(asked) = body.generation.filter(|asked| *asked != generation) {
        return Err(other_generation(asked, generation));
    }
    let (query, warnings) = parse_query(&body.query, body.syntax, snapshot.schema())?;
    // Without hits all matches are counted, also with an offset.
    let all = if body.k == 0 { 0 } else { body.k + body.offset };
    let shape = checked_shape(&query, all, body.count)?;
    let scorer = match body.scorer {
        ScorerBody::Bm25 { k1, b } => Bm25::new(k1, b)?.into(),
        ScorerBody::Dot => Scorer::Dot,
    };
    let shown = body.hits;
    let previews = (shown.title || shown.snippet.is_some()).then(|| shown.options());
    let request = SearchRequest::new(query).snapshot(snapshot).k(all).count(body.count).scorer(scorer);
    let request =
        previews.iter().fold(request.explain(body.explain), |request, shown| request.previews(*shown));
    let deadline = Duration::from_millis(body.deadline_ms);
    let answer_bytes = answer_bytes(all, previews, body.explain);
    let search = PreparedSearch { request, shape, deadline, answer_bytes };
    let Found { hits, memory } = evaluate(state, engine_of(state)?, search).await?;
    let record = record_search(state, &index.name, body.query, &hits);
    let answer = answer_of(hits, warnings, body.offset, shown)?;
    let mut response = Json(answer).into_response();
    response.extensions_mut().insert(record);
    response.extensions_mut().insert(memory);
    Ok(response)
}

/// The error of a request for a commit that is not served.
pub(super) fn other_generation(asked: u64, served: u64) -> ApiError {
    let message = format!("commit {asked} is not open; commit {served} is");
    ApiError::new(ApiErrorKind::Generation, message)
}

fn check_body(body: &SearchBody) -> Result<(), ApiError> {
    let limit = |name: &str, value: u64, most: u64| match value > most {
        true => {
            Err(ApiError::new(ApiErrorKind::Limit, format!("{name} is {value}; at most {most} is allowed")))
        }
        false => Ok(()),
    };
    limit("k + offset", body.k.saturating_add(body.offset) as u64, HITS_MAX as u64)?;
    limit("deadline_ms", body.deadline_ms, DEADLINE_MS_MAX)?;
    if body.deadline_ms == 0 {
        return Err(ApiError::new(ApiErrorKind::Usage, "deadline_ms must be at least 1"));
    }
    if let Some(snippet) = body.hits.snippet {
        limit("hits.snippet.bytes", snippet.bytes as u64, SNIPPET_BYTES_MAX as u64)?;
        limit("hits.snippet.text_bytes", snippet.text_bytes as u64, TEXT_BYTES_MAX as u64)?;
    }
    Ok(())
}

impl ShownBody {
    fn options(self) -> PreviewOptions {
        let mut options = PreviewOptions::default();
        (options.snippet, options.text) =
            self.snippet.map_or((0, 0), |shown| (shown.bytes, shown.text_bytes));
        options.title = if self.title { TITLE_BYTES } else { 0 };
        options
    }
}

fn answer_of(
    hits: Hits,
    warnings: Vec<String>,
    offset: usize,
    shown: ShownBody,
) -> Result<SearchAnswer, ApiError> {
    let counted = matches!(hits.total, TotalHits::Exact(_));
    let mut shown_hits = Vec::with_capacity(hits.hits.len().saturating_sub(offset));
    let mut previews = hits.previews.iter();
    hits.for_each_id(|hit: SearchHit, id: &str| {
        let preview = previews.next();
        let rank = shown_hits.len() + 1;
        let title = preview.filter(|_| shown.title).map(|preview| preview.title.clone());
        let snippet = preview.filter(|_| shown.snippet.is_some());
        let snippet = snippet.map(|preview| SnippetAnswer {
            text: preview.snippet.text.clone(),
            marks: code_points(&preview.snippet.text, &preview.snippet.marks),
        });
        let SearchHit { score, document, .. } = hit;
        shown_hits.push(HitBody { rank, score, id: id.to_string(), document, title, snippet });
        Ok::<(), tierdex::Error>(())
    })?;
    Ok(SearchAnswer {
        took_us: hits.took.as_micros() as u64,
        queued_us: hits.queued.as_micros() as u64,
        generation: hits.snapshot.index().generation(),
        timed_out: hits.timed_out,
        total: Total::of(&hits),
        warnings,
        hits: shown_hits.split_off(offset.min(shown_hits.len())),
        cost: CostBody {
            memory_bytes: hits.cost.memory,
            pages: hits.cost.pages,
            pages_read: hits.cost.pages_missed,
            parts: hits.parts,
        },
        explanation: hits.explanation.as_ref().map(|explained| ExplainedQuery::new(explained, counted)),
    })
}

/// Byte ranges of a text in code points.
fn code_points(text: &str, marks: &[std::ops::Range<usize>]) -> Vec<[usize; 2]> {
    let (mut at, mut count) = (0, 0);
    let mut points = |end: usize| {
        count += text[at..end].chars().count();
        at = end;
        count
    };
    marks.iter().map(|mark| [points(mark.start), points(mark.end)]).collect()
}
