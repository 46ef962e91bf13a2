//! Binds a query to segments: looks up its terms in every segment, expands prefixes and fuzzy words, and
//! computes the unscaled weight of each clause.

mod phrases;

use super::collection::{Lists, Ranking};
use super::expand::{FuzzyMatch, Prefix, count_terms_with_prefix, fuzzy_matches};
use super::plan_node::{Leaf, PlanNode, PrefixClause};
use super::{clauses::Clauses, tree::Query};
use crate::rank::{ScoreScale, Scorer, TermScorer, idf};
use crate::segment::read::{Segment, TermInfo};
use crate::{Error, Result, cursor::frequency_max, limits::BOOST_MAX, schema::Schema};
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
    lists: Lists<'a>,
    ranking: Ranking<'a>,
    /// Whether hits are requested.
    ranks: bool,
    /// Number of terms that the prefixes so far expand to.
    prefixed: usize,
    /// Whether the clause is in an exclusion.
    excludes: bool,
    leaves: Vec<Leaf>,
    phrases: Vec<TermScorer>,
}

/// A phrase of a query.
#[derive(Clone, Copy)]
struct WrittenPhrase<'q> {
    field: usize,
    /// Terms with their distances from the first.
    terms: &'q [(u32, String)],
    slop: u32,
    boost: f64,
}

/// A term, with its dictionary entry in each segment.
struct BoundTerm {
    term: String,
    infos: Vec<Option<TermInfo>>,
    /// Document frequency by which it is weighted.
    containing: u64,
}

impl<'a> Binder<'a> {
    /// Binds `query`. A clause that cannot match, in these segments or in those of the given statistics, is
    /// [`PlanNode::Nothing`].
    pub(super) fn bind(
        query: &Query,
        schema: &'a Schema,
        lists: Lists<'a>,
        ranking: Ranking<'a>,
        ranks: bool,
    ) -> Result<BoundQuery> {
        let (leaves, phrases) = (Vec::new(), Vec::new());
        let mut binder =
            Binder { schema, lists, ranking, ranks, prefixed: 0, excludes: false, leaves, phrases };
        let root = binder.node(query)?;
        Ok(BoundQuery { root, leaves: binder.leaves, phrases: binder.phrases })
    }

    fn node(&mut self, query: &Query) -> Result<PlanNode> {
        check_boost(query)?;
        match query {
            Query::Term { field, term, boost } => self.term(*field, term, *boost),
            Query::Phrase { field, terms, slop, open_end, boost } => {
                let phrase = WrittenPhrase { field: *field, terms, slop: *slop, boost: *boost };
                match terms.split_last() {
                    Some((last, fixed)) if *open_end => {
                        self.open_phrase(WrittenPhrase { terms: fixed, ..phrase }, last)
                    }
                    _ => self.phrase(phrase),
                }
            }
            Query::Prefix { field, prefix, whole_clusters, boost } => {
                self.prefix(*field, Prefix { text: prefix, whole_clusters: *whole_clusters }, *boost)
            }
            Query::Fuzzy { field, word, distance, boost } => self.fuzzy(*field, word, *distance, *boost),
            Query::All { boost } => Ok(PlanNode::All { weight: *boost }),
            Query::Bool { must, filter, should, must_not, minimum } => {
                should.iter().try_for_each(check_boost)?;
                // Without ranking, optional terms are not looked up.
                let optional = *minimum == 0 && !(must.is_empty() && filter.is_empty());
                let looks_up = self.ranks || !optional;
                let kept = |query: &&Query| looks_up || !matches!(query, Query::Term { .. });
                Ok(PlanNode::Group(Box::new(Clauses {
                    must: self.nodes(must)?,
                    filter: self.nodes(filter)?,
                    should: self.nodes(should.iter().filter(kept))?,
                    must_not: self.excluded(must_not)?,
                    minimum: *minimum as usize,
                })))
            }
            Query::Nothing => Ok(PlanNode::Nothing),
        }
    }

    fn nodes<'q>(&mut self, queries: impl IntoIterator<Item = &'q Query>) -> Result<Vec<PlanNode>> {
        queries.into_iter().map(|query| self.node(query)).collect()
    }

    fn excluded(&mut self, queries: &[Query]) -> Result<Vec<PlanNode>> {
        let outer = std::mem::replace(&mut self.excludes, true);
        let nodes = self.nodes(queries);
        self.excludes = outer;
        nodes
    }

    fn term(&mut self, field: usize, term: &str, boost: f64) -> Result<PlanNode> {
        let term = self.look_up(field, term)?;
        let (is_possible, weight) =
            (term.containing > 0, self.weight(self.idf(field, term.containing), boost));
        let leaf = self.leaf(field, term, weight)?;
        Ok(if is_possible { PlanNode::Term { leaf, weight } } else { PlanNode::Nothing })
    }

    fn prefix(&mut self, field: usize, prefix: Prefix<'_>, weight: f64) -> Result<PlanNode> {
        let before = if prefix.whole_clusters { 0 } else { self.prefixed };
        let counts = count_terms_with_prefix(self.lists, field, prefix, before)?;
        if counts.terms == 0 {
            return Ok(PlanNode::Nothing);
        }
        if !prefix.whole_clusters {
            self.prefixed += counts.terms;
        }
        let prefix = PrefixClause {
            field,
            text: prefix.text.to_string(),
            whole_clusters: prefix.whole_clusters,
            terms: counts.terms,
            postings: counts.postings,
        };
        Ok(PlanNode::Prefix { prefix: Arc::new(prefix), weight })
    }

    /// The expansions of a fuzzy word, each with the document frequency of the most frequent of them.
    fn fuzzy(&mut self, field: usize, word: &str, distance: u8, boost: f64) -> Result<PlanNode> {
        let matches = fuzzy_matches(self.lists, field, word, distance)?;
        let documents = |found: &FuzzyMatch| self.containing(field, &found.term, found.documents);
        let containing = matches.iter().map(documents).max().unwrap_or(0);
        let mut should = Vec::with_capacity(matches.len());
        for FuzzyMatch { term, similarity, infos, .. } in matches {
            let weight = self.weight(self.idf(field, containing), boost * similarity);
            let leaf = self.leaf(field, BoundTerm { term, infos, containing }, weight)?;
            should.push(PlanNode::Term { leaf, weight });
        }
        Ok(any(should))
    }

    /// Looks up a term in each segment.
    fn look_up(&self, field: usize, term: &str) -> Result<BoundTerm> {
        let look_up = |segment: &Arc<Segment>| {
            let field = segment.field(field);
            let info = field.terms().get(term.as_bytes(), self.lists.source)?;
            info.iter().for_each(|info| field.load_lines(info));
            Ok(info)
        };
        let infos = self.lists.segments.iter().map(look_up).collect::<Result<Vec<_>>>()?;
        let containing = infos.iter().flatten().map(|info| u64::from(info.documents)).sum();
        let containing = self.containing(field, term, containing);
        Ok(BoundTerm { term: term.to_string(), infos, containing })
    }

    /// Document frequency of a term: from the given statistics, else `own`, that of these segments.
    fn containing(&self, field: usize, term: &str, own: u64) -> u64 {
        self.ranking.statistics.and_then(|statistics| statistics.containing(field, term)).unwrap_or(own)
    }

    fn idf(&self, field: usize, containing: u64) -> f64 {
        // External statistics may not cover these documents.
        idf(self.ranking.collections[field].documents.max(containing), containing)
    }

    fn weight(&self, idf: f64, boost: f64) -> f64 {
        match self.ranking.scorer {
            Scorer::Bm25(bm25) => idf * (bm25.k1 + 1.0) * boost,
            Scorer::Dot => boost,
        }
    }

    /// A scorer, still without a weight, for terms of a field with frequencies up to `frequency_max`.
    fn scorer(&self, field: usize, frequency_max: u32) -> TermScorer {
        match self.ranking.scorer {
            Scorer::Bm25(_) => TermScorer::new(self.ranking.lengths[field].clone(), 0.0, ScoreScale::of(0.0)),
            Scorer::Dot => TermScorer::dot(frequency_max, 0.0, ScoreScale::of(0.0)),
        }
    }

    /// The largest frequency of a term, if scores depend on it.
    fn frequency_max(&self, field: usize, infos: &[Option<TermInfo>]) -> Result<u32> {
        let mut max = 0;
        if self.ranking.scorer == Scorer::Dot {
            for (segment, info) in self.lists.segments.iter().zip(infos) {
                let Some(info) = info else { continue };
                max = max.max(frequency_max(segment.field(field), info, self.lists.source)?);
            }
        }
        Ok(max)
    }

    fn leaf(&mut self, field: usize, term: BoundTerm, weight: f64) -> Result<usize> {
        let scorer = self.scorer(field, self.frequency_max(field, &term.infos)?);
        let BoundTerm { term, infos, .. } = term;
        let number = self.leaves.len();
        self.leaves.push(Leaf { number, field, term, infos, scorer, weight, is_scored: false });
        Ok(number)
    }
}

/// Alternatives; nothing if there are none.
fn any(should: Vec<PlanNode>) -> PlanNode {
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
