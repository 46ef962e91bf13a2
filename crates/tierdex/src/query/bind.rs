//! Binds a query to the segments of a commit: looks up its terms in every segment, expands prefixes and fuzzy
//! words, and computes the weight of each clause, before scaling.

mod phrases;

use super::collection::{RankingInputs, SegmentLists};
use super::column_clause::{ColumnClause, ColumnMatches};
use super::expand::{ExpandedTerm, clause_of_prefix, fuzzy_matches, similarity};
use super::plan_node::{InfoBySegment, Leaf, PlanNode, TermPrefix};
use super::{analyse::no_positions_error, check::last_distance, clauses::Clauses, tree::Query};
use crate::limits::{BOOST_MAX, POSITION_GAP};
use crate::rank::{ScoreScale, Scorer, TermScorer, idf};
use crate::segment::read::{OpenSegment, TermInfo};
use crate::{Error, Result, cursor::frequency_max, schema::Schema};
use std::sync::Arc;

/// A query with its terms looked up, before it is rewritten.
pub(super) struct BoundQuery {
    pub(super) root: PlanNode,
    pub(super) leaves: Vec<Leaf>,
    /// Scorer of each phrase, still without a weight.
    pub(super) phrases: Vec<TermScorer>,
}

/// Looks up and weights the terms of a query.
pub(super) struct Binder<'a> {
    schema: &'a Schema,
    lists: SegmentLists<'a>,
    ranking: RankingInputs<'a>,
    /// Whether hits are requested.
    ranks: bool,
    /// Number of terms that the prefixes bound so far stand for.
    prefix_terms: usize,
    /// Whether the clause that is being bound is inside an exclusion.
    in_exclusion: bool,
    leaves: Vec<Leaf>,
    phrases: Vec<TermScorer>,
}

/// A phrase as it is in the query.
#[derive(Clone, Copy)]
struct WrittenPhrase<'q> {
    field: usize,
    /// Terms with their distances from the first.
    terms: &'q [(u32, String)],
    slop: u32,
    boost: f64,
}

impl<'a> Binder<'a> {
    /// Binds `query`. A clause without matches in the segments or the statistics is [`PlanNode::Nothing`].
    pub(super) fn bind(
        query: &Query,
        schema: &'a Schema,
        lists: SegmentLists<'a>,
        ranking: RankingInputs<'a>,
        ranks: bool,
    ) -> Result<BoundQuery> {
        let (leaves, phrases) = (Vec::new(), Vec::new());
        let mut binder =
            Binder { schema, lists, ranking, ranks, prefix_terms: 0, in_exclusion: false, leaves, phrases };
        let root = binder.bind_node(query)?;
        Ok(BoundQuery { root, leaves: binder.leaves, phrases: binder.phrases })
    }

    fn bind_node(&mut self, query: &Query) -> Result<PlanNode> {
        check_boost(query)?;
        match query {
            Query::Term { field, term, boost } => self.bind_term(*field, term, *boost),
            Query::Phrase { field, .. } if !self.schema.fields[*field].positions => {
                Err(no_positions_error(self.schema, *field))
            }
            Query::Phrase { field, terms, slop, open_end, boost } => {
                // A wider match would cross from one value of a document to another.
                let slop = (*slop).min(POSITION_GAP.saturating_sub(last_distance(terms)));
                let phrase = WrittenPhrase { field: *field, terms, slop, boost: *boost };
                match terms.split_last() {
                    Some((last, fixed)) if *open_end => {
                        self.bind_open_phrase(WrittenPhrase { terms: fixed, ..phrase }, last)
                    }
                    _ => self.bind_phrase(phrase),
                }
            }
            Query::Prefix { field, prefix, whole_clusters, boost } => {
                self.bind_prefix(*field, TermPrefix { text: prefix, whole_clusters: *whole_clusters }, *boost)
            }
            Query::Fuzzy { field, word, distance, boost } => self.bind_fuzzy(*field, word, *distance, *boost),
            Query::Column { column, ranges, boost } => self.bind_column(*column, ranges, *boost),
            Query::All { boost } => Ok(PlanNode::All { weight: *boost }),
            Query::Bool { must, filter, should, must_not, minimum } => {
                should.iter().try_for_each(check_boost)?;
                // Without ranking, optional terms are not looked up.
                let optional = *minimum == 0 && !(must.is_empty() && filter.is_empty());
                let looks_up = self.ranks || !optional;
                let (must, filter) = (self.bind_nodes(must, |_| true)?, self.bind_nodes(filter, |_| true)?);
                let is_bound = |query: &Query| looks_up || !matches!(query, Query::Term { .. });
                let should = self.bind_nodes(should, is_bound)?;
                let outer = std::mem::replace(&mut self.in_exclusion, true);
                let must_not = self.bind_nodes(must_not, |_| true)?;
                self.in_exclusion = outer;
                let minimum = *minimum as usize;
                Ok(PlanNode::Group(Box::new(Clauses { must, filter, should, must_not, minimum })))
            }
            Query::Nothing => Ok(PlanNode::Nothing),
        }
    }

    fn bind_nodes(&mut self, queries: &[Query], binds: impl Fn(&Query) -> bool) -> Result<Vec<PlanNode>> {
        let mut nodes = Vec::with_capacity(queries.len());
        for query in queries.iter().filter(|query| binds(query)) {
            nodes.push(self.bind_node(query)?);
        }
        Ok(nodes)
    }

    fn bind_term(&mut self, field: usize, term: &str, boost: f64) -> Result<PlanNode> {
        let infos = self.look_up_term(field, term)?;
        let document_frequency = self.document_frequency(field, term, &infos);
        let weight = self.weight(self.idf(field, document_frequency), boost);
        let leaf = self.add_leaf(field, term.to_string(), infos, weight)?;
        Ok(if document_frequency > 0 { PlanNode::Term { leaf, weight } } else { PlanNode::Nothing })
    }

    fn bind_prefix(&mut self, field: usize, prefix: TermPrefix<'_>, weight: f64) -> Result<PlanNode> {
        let before = if prefix.whole_clusters { 0 } else { self.prefix_terms };
        let given = self.ranking.statistics;
        let known = given.and_then(|given| given.has_prefix(field, prefix.text, prefix.whole_clusters));
        let prefix = clause_of_prefix(self.lists, field, prefix, before)?;
        // A prefix without terms here may have some on another shard: then it counts in the scale of scores.
        if !known.unwrap_or(prefix.terms > 0) {
            return Ok(PlanNode::Nothing);
        }
        if !prefix.whole_clusters {
            self.prefix_terms += prefix.terms;
        }
        Ok(PlanNode::Prefix { prefix, weight })
    }

    fn bind_column(&self, column: usize, ranges: &[(u64, u64)], weight: f64) -> Result<PlanNode> {
        let in_segment = |segment: &OpenSegment| match segment.column(column) {
            Some(reader) => ColumnMatches::of(reader, ranges),
            None => Ok(ColumnMatches::default()),
        };
        let matches = self.lists.segments.iter().map(in_segment).collect::<Result<_>>()?;
        let clause = ColumnClause { column, ranges: ranges.to_vec(), matches };
        Ok(PlanNode::Column { clause: Arc::new(clause), weight })
    }

    /// The terms that a fuzzy word stands for, all weighted by the largest of their document frequencies.
    fn bind_fuzzy(&mut self, field: usize, word: &str, distance: u8, boost: f64) -> Result<PlanNode> {
        let given = self.ranking.statistics.and_then(|given| given.word(field, word, distance));
        let matches = match given {
            Some(given) => {
                let with_similarity = |(term, distance)| (term, similarity(word, term, distance));
                self.look_up_all(field, given.ranked().map(with_similarity))?
            }
            None => fuzzy_matches(self.lists, field, word, distance)?,
        };
        let idf = self.idf(field, self.largest_document_frequency(field, &matches));
        let mut should = Vec::with_capacity(matches.len());
        for ExpandedTerm { term, similarity, infos } in matches {
            let weight = self.weight(idf, boost * similarity);
            let leaf = self.add_leaf(field, term, infos, weight)?;
            should.push(PlanNode::Term { leaf, weight });
        }
        Ok(any_of(should))
    }

    /// Looks up terms for which a word or a cluster stands, with their similarities.
    fn look_up_all<'t>(
        &self,
        field: usize,
        terms: impl Iterator<Item = (&'t str, f64)>,
    ) -> Result<Vec<ExpandedTerm>> {
        let look_up = |(term, similarity): (&str, f64)| {
            let infos = self.look_up_term(field, term)?;
            Ok(ExpandedTerm { term: term.to_string(), similarity, infos })
        };
        terms.map(look_up).collect()
    }

    /// The dictionary entry of a term in each segment.
    fn look_up_term(&self, field: usize, term: &str) -> Result<InfoBySegment> {
        let look_up = |segment: &OpenSegment| {
            let Some(reader) = segment.field(field) else { return Ok(None) };
            let info = reader.terms().get(term.as_bytes(), self.lists.source)?;
            let info = info.and_then(|info| segment.with_deletes(field, term.as_bytes(), info));
            info.iter().for_each(|info| reader.prefetch_to_cpu(info));
            Ok(info)
        };
        self.lists.segments.iter().map(look_up).collect()
    }

    /// Document frequency of a term in the statistics of the ranking if they have it, else in the segments.
    fn document_frequency(&self, field: usize, term: &str, infos: &[Option<TermInfo>]) -> u64 {
        let in_segments = || infos.iter().flatten().map(|info| u64::from(info.live_documents())).sum();
        let given = self.ranking.statistics.and_then(|given| given.term(field, term));
        given.map_or_else(in_segments, |totals| totals.documents)
    }

    /// Document frequency of the most frequent of these terms.
    fn largest_document_frequency(&self, field: usize, terms: &[ExpandedTerm]) -> u64 {
        let frequencies = terms.iter().map(|found| self.document_frequency(field, &found.term, &found.infos));
        frequencies.max().unwrap_or(0)
    }

    fn idf(&self, field: usize, document_frequency: u64) -> f64 {
        // Statistics given by the caller may have fewer documents than the term.
        idf(self.ranking.collections[field].documents.max(document_frequency), document_frequency)
    }

    fn weight(&self, idf: f64, boost: f64) -> f64 {
        match self.ranking.scorer {
            Scorer::Bm25(bm25) => idf * (bm25.k1 + 1.0) * boost,
            Scorer::Dot => boost,
        }
    }

    /// A scorer, still without a weight, for terms of a field with frequencies up to `frequency_max`.
    fn new_scorer(&self, field: usize, frequency_max: u32) -> TermScorer {
        match self.ranking.scorer {
            Scorer::Bm25(_) => TermScorer::new(self.ranking.lengths[field].clone(), 0.0, ScoreScale::of(0.0)),
            Scorer::Dot => TermScorer::dot(frequency_max, 0.0, ScoreScale::of(0.0)),
        }
    }

    /// The largest frequency of a term, if scores depend on it.
    fn frequency_max(&self, field: usize, term: &str, infos: &[Option<TermInfo>]) -> Result<u32> {
        let mut max = 0;
        if self.ranking.scorer == Scorer::Dot {
            if let Some(given) = self.ranking.statistics.and_then(|given| given.term(field, term)) {
                return Ok(given.frequency_max);
            }
            for (segment, info) in self.lists.segments.iter().zip(infos) {
                let Some(info) = info else { continue };
                max = max.max(frequency_max(segment.field_of_term(field), info, self.lists.source)?);
            }
        }
        Ok(max)
    }

    fn add_leaf(&mut self, field: usize, term: String, infos: InfoBySegment, weight: f64) -> Result<usize> {
        let scorer = self.new_scorer(field, self.frequency_max(field, &term, &infos)?);
        let number = self.leaves.len();
        self.leaves.push(Leaf { number, field, term, infos, scorer, weight, is_scored: false });
        Ok(number)
    }
}

/// A group of these alternatives; nothing if there are none.
fn any_of(should: Vec<PlanNode>) -> PlanNode {
    if should.is_empty() { PlanNode::Nothing } else { PlanNode::Group(Box::new(Clauses::any(should))) }
}

/// Rejects boosts outside the range of the query language, so that no score is infinite, negative or NaN.
fn check_boost(query: &Query) -> Result<()> {
    match query.boost() {
        Some(boost) if !(0.0..=BOOST_MAX).contains(&boost) => {
            Err(Error::Usage(format!("a boost of {boost}; it must lie between 0 and {BOOST_MAX}")))
        }
        _ => Ok(()),
    }
}
