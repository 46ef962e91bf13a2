//! Collects the statistics that the scores of a query depend on, from the segments of a shard.
//!
//! What is collected is what [`super::bind`] looks up: document frequencies, the terms of fuzzy words and of
//! clusters at the end of phrases, and whether a term begins with a prefix. Posting lists are not read,
//! except the skip data for the largest frequencies of [`Scorer::Dot`].

use super::expand::{ExpandedTerm, MergedWalk, candidates_of_word, terms_with_prefix};
use super::{collection::SegmentLists, plan_node::TermPrefix, tree::Query};
use crate::limits::{PHRASE_EXPANSIONS_MAX, TERM_BYTES_MAX};
use crate::rank::{Scorer, Statistics, TermTotals, WordCandidates};
use crate::{Result, cursor::frequency_max};

/// Adds to `part` what the segments know about the terms of `query`, and about those of `question`.
pub(crate) fn collect_statistics(
    query: &Query,
    lists: SegmentLists<'_>,
    scorer: Scorer,
    mut part: Statistics,
    question: Option<&Statistics>,
) -> Result<Statistics> {
    let has_frequencies = scorer == Scorer::Dot;
    if has_frequencies {
        part.collect_frequencies();
    }
    let mut collector = StatisticsCollector { lists, has_frequencies, question, part };
    collector.add_query(query)?;
    for (field, term) in question.into_iter().flat_map(Statistics::terms) {
        collector.add_term(field, term)?;
    }
    Ok(collector.part)
}

/// Bytes of memory that [`collect_statistics`] needs, approximately, at most, beside those of the query.
pub(crate) fn collecting_bytes(query: &Query, question: Option<&Statistics>) -> usize {
    match query {
        Query::Fuzzy { field, word, distance, .. } => {
            let asked = question.and_then(|question| question.word(*field, word, *distance));
            WordCandidates::collecting_bytes(word, asked)
        }
        Query::Phrase { open_end: true, .. } => PHRASE_EXPANSIONS_MAX * size_of::<ExpandedTerm>() * 2,
        Query::Bool { must, filter, should, must_not, .. } => {
            let inner = [must, filter, should, must_not].into_iter().flatten();
            inner.map(|query| collecting_bytes(query, question)).sum()
        }
        _ => 0,
    }
}

struct StatisticsCollector<'a> {
    lists: SegmentLists<'a>,
    /// Whether the largest frequencies of terms are collected.
    has_frequencies: bool,
    question: Option<&'a Statistics>,
    part: Statistics,
}

impl StatisticsCollector<'_> {
    fn add_query(&mut self, query: &Query) -> Result<()> {
        match query {
            Query::Term { field, term, .. } => self.add_term(*field, term),
            Query::Phrase { field, terms, open_end, .. } => {
                let (fixed, cluster) = match terms.split_last() {
                    Some(((_, cluster), fixed)) if *open_end => (fixed, Some(cluster)),
                    _ => (&terms[..], None),
                };
                fixed.iter().try_for_each(|(_, term)| self.add_term(*field, term))?;
                cluster.map_or(Ok(()), |cluster| self.add_cluster(*field, cluster))
            }
            Query::Prefix { field, prefix, whole_clusters, .. } => {
                self.add_prefix(*field, TermPrefix { text: prefix, whole_clusters: *whole_clusters })
            }
            Query::Fuzzy { field, word, distance, .. } => {
                let asked = self.question.and_then(|question| question.word(*field, word, *distance));
                let found = candidates_of_word(self.lists, *field, word, *distance, asked)?;
                self.part.set_word(*field, word, *distance, found);
                Ok(())
            }
            Query::Bool { must, filter, should, must_not, .. } => {
                let mut inner = [must, filter, should, must_not].into_iter().flatten();
                inner.try_for_each(|query| self.add_query(query))
            }
            Query::Column { .. } | Query::All { .. } | Query::Nothing => Ok(()),
        }
    }

    fn add_term(&mut self, field: usize, term: &str) -> Result<()> {
        // No index has a longer term.
        if term.len() > TERM_BYTES_MAX || self.part.term(field, term).is_some() {
            return Ok(());
        }
        let mut totals = TermTotals::default();
        for segment in self.lists.segments {
            let Some(reader) = segment.field(field) else { continue };
            let info = reader.terms().get(term.as_bytes(), self.lists.source)?;
            let info = info.and_then(|info| segment.with_deletes(field, term.as_bytes(), info));
            let Some(info) = info else { continue };
            totals.documents += u64::from(info.live_documents());
            if self.has_frequencies {
                totals.frequency_max =
                    totals.frequency_max.max(frequency_max(reader, &info, self.lists.source)?);
            }
        }
        self.part.set_term(field, term, totals);
        Ok(())
    }

    fn add_prefix(&mut self, field: usize, prefix: TermPrefix<'_>) -> Result<()> {
        let TermPrefix { text, whole_clusters } = prefix;
        if text.len() > TERM_BYTES_MAX {
            return Ok(());
        }
        let mut walks = MergedWalk::open(self.lists, field, || prefix.automaton())?;
        let mut has_terms = false;
        while !has_terms && walks.next()?.is_some() {
            has_terms = prefix.stands_for(walks.term());
        }
        self.part.set_prefix(field, text, whole_clusters, has_terms);
        Ok(())
    }

    fn add_cluster(&mut self, field: usize, cluster: &str) -> Result<()> {
        if cluster.len() > TERM_BYTES_MAX {
            return Ok(());
        }
        let prefix = TermPrefix { text: cluster, whole_clusters: true };
        let terms = terms_with_prefix(self.lists, field, prefix, PHRASE_EXPANSIONS_MAX)?;
        let has_terms = terms.as_ref().is_none_or(|terms| !terms.is_empty());
        let counted = |found: ExpandedTerm| {
            let documents = found.documents();
            (found.term, documents)
        };
        let terms = terms.map(|terms| terms.into_iter().map(counted).collect());
        self.part.set_cluster(field, cluster, terms);
        // For a phrase whose cluster begins too many terms.
        self.part.set_prefix(field, cluster, true, has_terms);
        Ok(())
    }
}
