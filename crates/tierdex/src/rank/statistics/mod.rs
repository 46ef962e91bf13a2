//! The statistics of a collection that the scores of a query depend on, as a value: of one index, or of the
//! whole of several shards.
//!
//! 1. Each shard collects a *part*: what it knows about the terms of the query.
//! 2. [`Statistics::merge`] adds the parts. The result is *complete*, unless a fuzzy word matches more terms
//!    than a shard lists, and document frequencies that are not listed decide which terms are chosen: then it
//!    is a *question*, the terms whose document frequencies are missing.
//! 3. Each shard answers a question as it answers the query, with a new part, and the parts are merged again.
//! 4. With complete statistics each shard scores its documents as one index of all documents would.

mod bytes;
mod words;

use super::bm25::CollectionStats;
use crate::{Error, Result, limits::STATISTICS_TERMS_MAX};
use std::collections::BTreeMap;

pub(crate) use words::WordCandidates;

/// A text in a field: the number of the field in the schema, and a term, a prefix or a word.
type FieldText = (usize, String);

/// The statistics that the scores of one query depend on: of a shard, of the sum of all shards, or the
/// question of [`Statistics::merge`]. The value belongs to the query, the scorer and the schema for which it
/// was collected.
///
/// ```
/// use tierdex::{Engine, EngineOptions, Query, SearchRequest, Statistics};
/// # use tierdex::{IndexWriter, Merge, Schema, WriterOptions};
/// # let temporary = tempfile::tempdir().unwrap();
/// # let dirs = [temporary.path().join("a"), temporary.path().join("b")];
/// # for (number, dir) in dirs.iter().enumerate() {
/// #     let mut writer = IndexWriter::create(dir, Schema::default(), WriterOptions::default())?;
/// #     writer.add(&number.to_string(), [("text", "a solid state disk")])?;
/// #     writer.commit(Merge::Keep)?;
/// # }
///
/// let options = EngineOptions::new();
/// let shards = [Engine::open(&dirs[0], &options)?, Engine::open(&dirs[1], &options)?];
/// let query = Query::parse("disk~1", shards[0].snapshot().schema())?;
/// let mut request = SearchRequest::new(query);
/// loop {
///     let parts = [shards[0].statistics(request.clone())?, shards[1].statistics(request.clone())?];
///     let merged = Statistics::merge(&parts)?;
///     let is_complete = merged.is_complete();
///     request = request.statistics(merged.into());
///     if is_complete {
///         break;
///     }
/// }
/// let hits = [shards[0].search(request.clone())?, shards[1].search(request)?];
/// assert_eq!(hits[0].units, hits[1].units);
/// # Ok::<(), tierdex::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// Checksum of the schema of the shards.
    schema: u32,
    stage: Stage,
    /// Whether scores depend on the largest frequencies of terms ([`Scorer::Dot`](crate::Scorer::Dot)).
    has_frequencies: bool,
    fields: Vec<FieldTotals>,
    terms: BTreeMap<FieldText, TermTotals>,
    /// Prefixes, with whether they stand for whole clusters only, and whether a term begins with them.
    prefixes: BTreeMap<(FieldText, bool), bool>,
    /// Fuzzy words and their distance, with the terms that they may stand for.
    words: BTreeMap<(FieldText, u8), WordCandidates>,
    /// The clusters at the end of phrases, with the terms that begin with them and their document
    /// frequencies; `None` if they are more than a phrase is expanded to.
    clusters: BTreeMap<FieldText, Option<BTreeMap<String, u64>>>,
}

/// What a value of [`Statistics`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Of one shard, or a sum.
    Part,
    /// Names the terms about which each shard is asked.
    Question,
    /// Of all shards.
    Complete,
}

/// Totals of a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct FieldTotals {
    /// Number of documents that have the field.
    documents: u64,
    /// Number of tokens in the field.
    tokens: u64,
}

/// Totals of a term.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TermTotals {
    /// Number of documents that contain the term.
    pub(crate) documents: u64,
    /// The largest frequency of the term in a document; 0 if scores do not depend on it.
    pub(crate) frequency_max: u32,
}

impl TermTotals {
    fn add(&mut self, other: TermTotals) {
        self.documents = self.documents.saturating_add(other.documents);
        self.frequency_max = self.frequency_max.max(other.frequency_max);
    }
}

impl Statistics {
    /// A part without terms. `fields` has, for each field, the number of documents that have it, and the
    /// number of tokens in it.
    pub(crate) fn part(schema: u32, fields: impl IntoIterator<Item = (u64, u64)>) -> Statistics {
        let fields = fields.into_iter().map(|(documents, tokens)| FieldTotals { documents, tokens });
        Statistics {
            schema,
            stage: Stage::Part,
            has_frequencies: false,
            fields: fields.collect(),
            terms: BTreeMap::new(),
            prefixes: BTreeMap::new(),
            words: BTreeMap::new(),
            clusters: BTreeMap::new(),
        }
    }

    /// From now on the totals of terms contain their largest frequencies.
    pub(crate) fn collect_frequencies(&mut self) {
        self.has_frequencies = true;
    }

    pub(crate) fn set_term(&mut self, field: usize, term: &str, totals: TermTotals) {
        self.terms.insert((field, term.to_string()), totals);
    }

    pub(crate) fn set_prefix(&mut self, field: usize, prefix: &str, whole_clusters: bool, has_terms: bool) {
        self.prefixes.insert(((field, prefix.to_string()), whole_clusters), has_terms);
    }

    pub(crate) fn set_word(&mut self, field: usize, word: &str, distance: u8, found: WordCandidates) {
        self.words.insert(((field, word.to_string()), distance), found);
    }

    /// Sets the terms that begin with the cluster at the end of a phrase; `None` if they are too many.
    pub(crate) fn set_cluster(&mut self, field: usize, cluster: &str, terms: Option<BTreeMap<String, u64>>) {
        self.clusters.insert((field, cluster.to_string()), terms);
    }

    /// Adds the parts of all shards, for the same query. The order of the parts does not matter.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is no part, or parts are of other schemas or queries; [`Error::TooLarge`] if
    /// a fuzzy word has more terms of equal rank than shards can tell each other.
    pub fn merge<'p>(parts: impl IntoIterator<Item = &'p Statistics>) -> Result<Statistics> {
        let mut parts = parts.into_iter();
        let first = parts.next().ok_or_else(|| Error::Usage("no statistics were given".to_string()))?;
        let mut sum = first.clone();
        sum.check_part(first)?;
        for part in parts {
            sum.check_part(part)?;
            sum.add(part);
        }
        sum.conclude()
    }

    /// Rejects what is not a part of a shard of the same collection, for the same query.
    fn check_part(&self, part: &Statistics) -> Result<()> {
        let has_same_keys = self.prefixes.keys().eq(part.prefixes.keys())
            && self.words.keys().eq(part.words.keys())
            && self.clusters.keys().eq(part.clusters.keys())
            && self.terms.keys().eq(part.terms.keys());
        let what = match () {
            () if part.stage != Stage::Part => "were merged before",
            () if self.schema != part.schema || self.fields.len() != part.fields.len() => {
                "are of an index with another schema"
            }
            () if !has_same_keys || self.has_frequencies != part.has_frequencies => "are of another query",
            () => return Ok(()),
        };
        Err(Error::Usage(format!("statistics of a shard {what}; collect those of all shards again")))
    }

    fn add(&mut self, part: &Statistics) {
        for (sum, totals) in self.fields.iter_mut().zip(&part.fields) {
            sum.documents = sum.documents.saturating_add(totals.documents);
            sum.tokens = sum.tokens.saturating_add(totals.tokens);
        }
        for (sum, totals) in self.terms.values_mut().zip(part.terms.values()) {
            sum.add(*totals);
        }
        for (any, has_terms) in self.prefixes.values_mut().zip(part.prefixes.values()) {
            *any |= has_terms;
        }
        for (sum, found) in self.words.values_mut().zip(part.words.values()) {
            sum.add(found);
        }
        for (sum, terms) in self.clusters.values_mut().zip(part.clusters.values()) {
            add_cluster(sum, terms.as_ref());
        }
    }

    /// The sum of all parts as complete statistics, or as the question whose answers are missing.
    fn conclude(mut self) -> Result<Statistics> {
        let best: Option<Vec<_>> = self.words.values().map(WordCandidates::best).collect();
        let Some(best) = best else {
            for word in self.words.values_mut() {
                word.ask()?;
            }
            self.stage = Stage::Question;
            self.check_size()?;
            return Ok(self);
        };
        let words = self.words.iter_mut().zip(best);
        let mut expansions: Vec<(FieldText, u64)> = Vec::new();
        for ((((field, _), _), word), best) in words {
            word.keep(best);
            expansions
                .extend(word.terms.iter().map(|(term, found)| ((*field, term.clone()), found.documents)));
        }
        for ((field, _), terms) in &self.clusters {
            expansions
                .extend(terms.iter().flatten().map(|(term, documents)| ((*field, term.clone()), *documents)));
        }
        let asks = self.has_frequencies && expansions.iter().any(|(term, _)| !self.terms.contains_key(term));
        for (term, documents) in expansions {
            self.terms.entry(term).or_insert(TermTotals { documents, frequency_max: 0 });
        }
        self.stage = if asks { Stage::Question } else { Stage::Complete };
        self.check_size()?;
        Ok(self)
    }

    fn check_size(&self) -> Result<()> {
        let clusters = self.clusters.values().flatten().map(BTreeMap::len);
        let words = self.words.values().map(WordCandidates::len);
        let terms = self.terms.len() + clusters.chain(words).sum::<usize>();
        if terms > STATISTICS_TERMS_MAX {
            return Err(Error::TooLarge(format!(
                "the fuzzy words of the query have {terms} candidates that the shards must count; at most \
                 {STATISTICS_TERMS_MAX} are counted: give more letters or a smaller distance"
            )));
        }
        Ok(())
    }

    /// Whether each shard can score by these statistics. Otherwise they are those of one shard, or a question
    /// that each shard answers by statistics that are merged again.
    pub fn is_complete(&self) -> bool {
        self.stage == Stage::Complete
    }

    /// Rejects statistics by which no shard can score.
    pub(crate) fn check_complete(&self) -> Result<()> {
        if self.is_complete() {
            return Ok(());
        }
        let what = "the statistics are not those of all shards: merge the statistics of all shards, and ask \
                    them again while the result is not complete";
        Err(Error::Usage(what.to_string()))
    }

    /// Rejects statistics of an index with another schema.
    pub(crate) fn check_schema(&self, other: &Statistics) -> Result<()> {
        if self.schema == other.schema && self.fields.len() == other.fields.len() {
            return Ok(());
        }
        Err(Error::Usage("the statistics are of an index with another schema".to_string()))
    }

    /// Bytes of memory, approximately.
    pub(crate) fn memory(&self) -> usize {
        let text = |text: &String| size_of::<(FieldText, TermTotals)>() + text.capacity();
        let clusters = self.clusters.values().flatten().flat_map(BTreeMap::keys);
        let texts = self.terms.keys().chain(self.prefixes.keys().map(|(text, _)| text));
        let texts = texts.chain(self.words.keys().map(|(text, _)| text)).chain(self.clusters.keys());
        let texts = texts.map(|(_, text)| text).chain(clusters).map(text);
        let words = self.words.values().map(WordCandidates::memory);
        size_of_val(&self.fields[..]) + texts.chain(words).sum::<usize>()
    }

    /// Totals of a term, if they are known.
    pub(crate) fn term(&self, field: usize, term: &str) -> Option<TermTotals> {
        self.terms.get(&(field, term.to_string())).copied()
    }

    /// Whether a term begins with the prefix, if that is known.
    pub(crate) fn has_prefix(&self, field: usize, prefix: &str, whole_clusters: bool) -> Option<bool> {
        self.prefixes.get(&((field, prefix.to_string()), whole_clusters)).copied()
    }

    /// The terms of a fuzzy word: those for which it stands if the statistics are complete, or those about
    /// which a shard is asked.
    pub(crate) fn word(&self, field: usize, word: &str, distance: u8) -> Option<&WordCandidates> {
        self.words.get(&((field, word.to_string()), distance))
    }

    /// The terms that begin with the cluster at the end of a phrase, if that is known: `Some(None)` if they
    /// are too many.
    pub(crate) fn cluster(&self, field: usize, cluster: &str) -> Option<Option<&BTreeMap<String, u64>>> {
        self.clusters.get(&(field, cluster.to_string())).map(Option::as_ref)
    }

    /// The fields and texts of all terms whose totals a shard is asked for, or that are known.
    pub(crate) fn terms(&self) -> impl Iterator<Item = (usize, &str)> {
        self.terms.keys().map(|(field, term)| (*field, term.as_str()))
    }

    /// Statistics of a field; if it is unknown, those of a field without documents.
    pub(crate) fn collection(&self, field: usize) -> CollectionStats {
        let FieldTotals { documents, tokens } = self.fields.get(field).copied().unwrap_or_default();
        let average_length = if documents == 0 { 1.0 } else { tokens as f64 / documents as f64 };
        CollectionStats { documents, average_length }
    }
}

/// Adds the terms of a cluster on another shard.
fn add_cluster(sum: &mut Option<BTreeMap<String, u64>>, terms: Option<&BTreeMap<String, u64>>) {
    let (Some(all), Some(terms)) = (sum.as_mut(), terms) else {
        *sum = None;
        return;
    };
    for (term, documents) in terms {
        let total = all.entry(term.clone()).or_default();
        *total = total.saturating_add(*documents);
    }
    if all.len() > crate::limits::PHRASE_EXPANSIONS_MAX {
        *sum = None;
    }
}
