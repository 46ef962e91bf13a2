//! The answer to a search.

use super::highlight::HighlightedTexts;
use super::search_body::{EsSearch, TotalKind};
use super::stored_source::SourceReader;
use crate::api_error::ApiError;
use serde::Serialize;
use serde_json::value::RawValue;
use tierdex::{Hits, SearchHit, TotalHits};

/// The answer to a search.
#[derive(Debug, Serialize)]
pub(super) struct EsSearchAnswer {
    took: u64,
    timed_out: bool,
    _shards: EsShards,
    hits: EsHits,
}

/// The shards of an index: one, which is never skipped.
#[derive(Debug, Serialize)]
pub(super) struct EsShards {
    total: u32,
    successful: u32,
    skipped: u32,
    failed: u32,
}

impl EsShards {
    pub(super) const ONE: EsShards = EsShards { total: 1, successful: 1, skipped: 0, failed: 0 };
}

/// The hits of a search.
#[derive(Debug, Serialize)]
struct EsHits {
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<EsTotal>,
    max_score: Option<f32>,
    hits: Vec<EsHit>,
}

/// Number of documents that match.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum EsTotal {
    Number(u64),
    Object { value: u64, relation: &'static str },
}

/// A document that matches.
#[derive(Debug, Serialize)]
struct EsHit {
    _index: String,
    _id: String,
    _score: f32,
    #[serde(skip_serializing_if = "Option::is_none")]
    _source: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    highlight: Option<HighlightedTexts>,
}

impl EsSearchAnswer {
    /// The answer of `hits`, which are those of the search without an offset. Reads sources by `reader`; if
    /// the time is over, the hits that were read are the answer.
    pub(super) fn new(
        search: &EsSearch,
        index: &str,
        hits: &Hits,
        mut reader: Option<&mut SourceReader>,
    ) -> Result<EsSearchAnswer, ApiError> {
        let is_shown = |hit: &SearchHit| search.min_score.is_none_or(|minimum| hit.score >= minimum as f32);
        let found = hits.hits.iter().take_while(|hit| is_shown(hit)).count();
        let (mut shown, mut rank, mut is_late) = (Vec::new(), 0, false);
        hits.for_each_id(|hit: SearchHit, id: &str| {
            rank += 1;
            if rank <= search.from || rank > found || is_late {
                return Ok(());
            }
            let source = match &mut reader {
                Some(reader) if reader.is_late() => {
                    is_late = true;
                    return Ok(());
                }
                Some(reader) => match reader.read(&hits.snapshot, hit.document, &search.source) {
                    Err(_) if reader.is_late() => {
                        is_late = true;
                        return Ok(());
                    }
                    source => source?,
                },
                None => None,
            };
            let preview = hits.previews.get(rank - 1);
            let highlight = search.highlight.as_ref().zip(preview);
            shown.push(EsHit {
                _index: index.to_string(),
                _id: id.to_string(),
                _score: hit.score,
                _source: source,
                highlight: highlight.and_then(|(options, preview)| options.texts_of(&preview.snippet)),
            });
            Ok::<(), ApiError>(())
        })?;
        let max_score = hits.hits.first().filter(|_| found > 0 && search.size > 0).map(|hit| hit.score);
        Ok(EsSearchAnswer {
            took: hits.took.as_millis() as u64,
            timed_out: hits.timed_out || is_late,
            _shards: EsShards::ONE,
            hits: EsHits { total: total_of(search, hits, found), max_score, hits: shown },
        })
    }
}

/// The number of matches, of which `found` were returned. It is exact if matches were counted, or if fewer
/// than requested were found.
fn total_of(search: &EsSearch, hits: &Hits, found: usize) -> Option<EsTotal> {
    if search.total == TotalKind::Hidden {
        return None;
    }
    let are_all = !hits.timed_out && search.size > 0 && found < search.from + search.size;
    let (value, is_exact) = match hits.total {
        _ if search.min_score.is_some() || are_all => (found as u64, are_all),
        TotalHits::Exact(value) => (value, true),
        TotalHits::AtLeast(value) => (value, false),
    };
    let relation = if is_exact { "eq" } else { "gte" };
    Some(match search.total_as_number {
        true => EsTotal::Number(value),
        false => EsTotal::Object { value, relation },
    })
}
