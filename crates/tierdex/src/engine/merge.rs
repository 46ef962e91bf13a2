//! Merges the hits of several shards, which were scored by the same statistics.

use super::request::{Hits, TotalHits};
use crate::{Error, Result, index::SearchHit};
use std::cmp::Reverse;

/// The hits of one shard: what [`merge_hits`] needs of [`Hits`].
#[derive(Clone, Debug, PartialEq)]
pub struct ShardHits {
    /// [`Statistics::hash`](crate::Statistics::hash) of the statistics by which the shard has scored; 0 if
    /// these were its own.
    pub statistics: u64,
    /// [`Hits::scale`].
    pub scale: i32,
    /// The best documents of the shard, the best first.
    pub hits: Vec<SearchHit>,
    /// [`Hits::units`].
    pub units: Vec<u32>,
    /// Number of documents of the shard that match.
    pub total: TotalHits,
    /// Whether the deadline passed before the shard had searched all documents.
    pub timed_out: bool,
}

impl Hits {
    /// Hash of the statistics by which the documents were scored; 0 if they were those of the index.
    pub fn statistics_hash(&self) -> u64 {
        self.given.as_ref().map_or(0, |given| given.hash())
    }

    /// The hits as those of a shard.
    pub fn of_shard(&self) -> ShardHits {
        ShardHits {
            statistics: self.statistics_hash(),
            scale: self.scale,
            hits: self.hits.clone(),
            units: self.units.clone(),
            total: self.total,
            timed_out: self.timed_out,
        }
    }
}

/// A hit of one of several shards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MergedHit {
    /// Number of the shard.
    pub shard: usize,
    /// The hit; its document is a number of the shard.
    pub hit: SearchHit,
}

/// The hits of several shards.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MergedHits {
    /// The best documents in order of decreasing score; equal scores in order of shards and documents.
    pub hits: Vec<MergedHit>,
    /// Number of documents that match.
    pub total: TotalHits,
    /// Whether the deadline of a shard passed.
    pub timed_out: bool,
    /// The numbers of the shards without an answer.
    pub missing: Vec<usize>,
}

/// Merges the answers of shards, in the order of the shards; `None` stands for a shard without an answer. The
/// result has the best `k` hits: those of one index with the documents of all shards, with the same scores
/// and in the same order. If `allows_missing`, shards may be missing; [`MergedHits::missing`] tells which.
///
/// # Errors
/// [`Error::Usage`] if the shards have scored by different statistics, by none, or another query;
/// [`Error::Failed`] if a shard is missing and that is not allowed, or if none has answered.
pub fn merge_hits(parts: &[Option<ShardHits>], k: usize, allows_missing: bool) -> Result<MergedHits> {
    let missing: Vec<usize> =
        parts.iter().enumerate().filter(|(_, part)| part.is_none()).map(|(shard, _)| shard).collect();
    let mut answers = parts.iter().enumerate().filter_map(|(shard, part)| Some((shard, part.as_ref()?)));
    let Some((_, first)) = answers.clone().next().filter(|_| allows_missing || missing.is_empty()) else {
        let shards = missing.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        return Err(Error::Failed(format!("no answer of shard {shards}")));
    };
    let has_same_scores = |part: &ShardHits| (part.statistics, part.scale) == (first.statistics, first.scale);
    // A shard whose deadline passed before it had a plan has no scale.
    let is_planned = |part: &ShardHits| !part.hits.is_empty() || !part.timed_out;
    if first.statistics == 0 || answers.clone().any(|(_, part)| part.units.len() != part.hits.len()) {
        return Err(Error::Usage(
            "the shards have scored by their own statistics, not by those of all".into(),
        ));
    }
    if !answers.all(|(_, part)| has_same_scores(part) || !is_planned(part)) {
        return Err(Error::Usage("the shards have scored by different statistics or queries".into()));
    }
    let answers = || parts.iter().enumerate().filter_map(|(shard, part)| Some((shard, part.as_ref()?)));
    let mut hits: Vec<(Reverse<u32>, MergedHit)> = Vec::new();
    for (shard, part) in answers() {
        let merged = part.hits.iter().map(|hit| MergedHit { shard, hit: *hit });
        hits.extend(part.units.iter().map(|units| Reverse(*units)).zip(merged));
    }
    hits.sort_by_key(|(units, MergedHit { shard, hit })| (*units, *shard, hit.document));
    hits.truncate(k);
    let hits = hits.into_iter().map(|(_, hit)| hit).collect();
    let total = answers().map(|(_, part)| part.total.value()).fold(0, u64::saturating_add);
    let is_exact = missing.is_empty() && answers().all(|(_, part)| matches!(part.total, TotalHits::Exact(_)));
    Ok(MergedHits {
        hits,
        total: if is_exact { TotalHits::Exact(total) } else { TotalHits::AtLeast(total) },
        timed_out: answers().any(|(_, part)| part.timed_out),
        missing,
    })
}
