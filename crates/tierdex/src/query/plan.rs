//! The plan of a query over the segments of a commit: its terms are looked up in every segment and weighted
//! by global statistics.

use super::analyse::no_positions;
use super::expand::{
    FuzzyMatch, Prefix, PrefixMatch, count_terms_with_prefix, fuzzy_matches, terms_with_prefix,
};
use super::tree::Query;
use crate::cursor::frequency_max;
use crate::error::{Error, Result};
use crate::limits::{BOOST_MAX, PHRASE_EXPANSIONS_MAX};
use crate::rank::{CollectionStats, LengthNorms, ScoreScale, Scorer, Statistics, TermScorer, idf};
use crate::schema::Schema;
use crate::segment::read::{BlockSource, Segment, TermInfo};
use std::sync::Arc;

/// A query bound to segments, ready for evaluation. Immutable.
pub struct QueryPlan {
    /// Finds and scores the best documents; if no hits are requested, counts the matches.
    pub(crate) root: PlanNode,
    /// An unscored equivalent that is cheaper to count, if both hits and the number of matches are
    /// requested.
    pub(crate) counted: Option<PlanNode>,
    /// The terms of both.
    pub(crate) leaves: Vec<Leaf>,
    /// The scorers of the phrases.
    pub(crate) phrases: Vec<TermScorer>,
    /// Scale of the integer scores.
    pub(crate) scale: ScoreScale,
}

/// A node of a plan. Terms are indexes into [`QueryPlan::leaves`].
#[derive(Clone)]
pub enum PlanNode {
    Term(usize),
    Phrase {
        field: usize,
        /// Terms, with their distances from the first in positions.
        leaves: Vec<(u32, usize)>,
        /// Index of its scorer in [`QueryPlan::phrases`].
        phrase: usize,
        /// Total number of positions by which the terms may be displaced.
        slop: u32,
    },
    Prefix {
        field: usize,
        prefix: String,
        /// Whether a grapheme cluster of its terms ends behind the prefix.
        whole_clusters: bool,
        weight: f64,
        /// Number of terms with this prefix.
        terms: usize,
    },
    All {
        weight: f64,
    },
    Group(Box<PlanGroup>),
    Nothing,
}

/// Documents that match all of `must` and `filter`, `minimum` of `should`, and none of `must_not`.
#[derive(Clone, Default)]
pub struct PlanGroup {
    pub(crate) must: Vec<PlanNode>,
    /// Required clauses that add nothing to the score.
    pub(crate) filter: Vec<PlanNode>,
    pub(crate) should: Vec<PlanNode>,
    pub(crate) must_not: Vec<PlanNode>,
    /// 0 only if there are required clauses.
    pub(crate) minimum: usize,
}

/// A term with its dictionary entry in each segment.
pub struct Leaf {
    /// Its index in [`QueryPlan::leaves`].
    pub(crate) number: usize,
    pub(crate) field: usize,
    pub(crate) term: String,
    pub(crate) infos: Vec<Option<TermInfo>>,
    pub(crate) scorer: TermScorer,
    /// Unscaled weight. With BM25 it is the inverse document frequency, times `k1 + 1`, times the boost, an
    /// upper bound of the scores; with [`Scorer::Dot`] it is the boost.
    pub(crate) weight: f64,
    /// Whether its postings add to scores.
    pub(crate) is_scored: bool,
    /// Whether its postings are selected by impacts if hits are requested: it is required and scored, or the
    /// only scored clause.
    pub(crate) selects_by_impacts: bool,
}

/// Looks up and weights the terms of a query.
struct Planner<'a> {
    schema: &'a Schema,
    segments: &'a [Arc<Segment>],
    /// Source of dictionary pages that are not resident.
    source: &'a dyn BlockSource,
    collections: &'a [CollectionStats],
    /// Document frequencies that replace those of the segments.
    statistics: Option<&'a Statistics>,
    scorer: Scorer,
    /// Whether hits are requested.
    ranks: bool,
    /// Length normalization of each field.
    lengths: &'a [Arc<LengthNorms>],
    /// Number of terms that the prefixes so far expand to.
    prefixed: usize,
    /// Whether the clause is in an exclusion.
    excludes: bool,
    /// Sum of the weights of all clauses that can match, from which the scale is computed.
    weights: f64,
    leaves: Vec<Leaf>,
    /// Scorer, still without a weight, and weight of each phrase.
    phrases: Vec<(TermScorer, f64)>,
}

impl QueryPlan {
    /// Plans `query` over `segments`. `collections` are the statistics of each field, and `lengths` the
    /// length normalizations that follow from them for the parameters of BM25. Document frequencies are
    /// taken from `statistics` if given. Hits are requested if `ranks`, the number of matches if `counts`.
    pub fn new(
        query: &Query,
        schema: &Schema,
        (segments, source): (&[Arc<Segment>], &dyn BlockSource),
        (collections, lengths, statistics): (&[CollectionStats], &[Arc<LengthNorms>], Option<&Statistics>),
        (scorer, ranks, counts): (Scorer, bool, bool),
    ) -> Result<QueryPlan> {
        let mut planner = Planner {
            schema,
            segments,
            source,
            collections,
            statistics,
            scorer,
            ranks,
            lengths,
            prefixed: 0,
            excludes: false,
            weights: 0.0,
            leaves: Vec::new(),
            phrases: Vec::new(),
        };
        let root = planner.node(query, true)?;
        let scale = ScoreScale::of(planner.weights);
        for leaf in &mut planner.leaves {
            leaf.scorer.rescale(if leaf.is_scored { leaf.weight } else { 0.0 }, scale);
        }
        let leaves = &planner.leaves;
        let (root, counted) = match (ranks, counts) {
            (true, true) => (root.clone().ranked(leaves), Some(root.simplified(false, leaves))),
            (true, false) => (root.ranked(leaves), None),
            (false, _) => (root.simplified(false, leaves), None),
        };
        if ranks {
            root.select_by_impacts(&mut planner.leaves);
        }
        let scaled = |(mut scorer, weight): (TermScorer, f64)| {
            scorer.rescale(weight, scale);
            scorer
        };
        let phrases = planner.phrases.into_iter().map(scaled).collect();
        Ok(QueryPlan { root, counted, leaves: planner.leaves, phrases, scale })
    }

    /// Whether the plan is a single term.
    pub fn is_one_term(&self) -> bool {
        matches!(self.root, PlanNode::Term(_))
    }

    /// Number of matches in a segment, if it follows from the dictionary.
    pub fn known_count(&self, number: usize, segment: &Segment) -> Option<u64> {
        match self.counted.as_ref().unwrap_or(&self.root) {
            PlanNode::Term(leaf) => {
                Some(self.leaves[*leaf].infos[number].as_ref().map_or(0, |info| u64::from(info.documents)))
            }
            PlanNode::All { .. } => Some(u64::from(segment.documents())),
            PlanNode::Nothing => Some(0),
            _ => None,
        }
    }
}

impl Planner<'_> {
    /// Plans a node; `scored`: whether it contributes to scores. A node that cannot match, in these segments
    /// or in those of the given statistics, is [`PlanNode::Nothing`] and takes no part in the scale of the
    /// scores.
    fn node(&mut self, query: &Query, scored: bool) -> Result<PlanNode> {
        check_boost(query)?;
        Ok(match query {
            Query::Term { field, term, boost } => self.term(*field, term, *boost, scored)?,
            Query::Phrase { field, terms, slop, open_end, boost } => {
                let (last, fixed) = match terms.split_last() {
                    Some((last, fixed)) if *open_end => (Some(last), fixed),
                    _ => (None, terms.as_slice()),
                };
                self.phrase(*field, fixed, last, *slop, *boost, scored)?
            }
            Query::Prefix { field, prefix, whole_clusters, boost } => {
                let terms = Prefix { text: prefix, whole_clusters: *whole_clusters };
                let mut of_clusters = 0;
                let count = if *whole_clusters { &mut of_clusters } else { &mut self.prefixed };
                let before = *count;
                count_terms_with_prefix((self.segments, self.source), *field, terms, count)?;
                let terms = *count - before;
                if terms == 0 {
                    return Ok(PlanNode::Nothing);
                }
                let weight = if scored { *boost } else { 0.0 };
                self.weights += weight;
                let (prefix, whole_clusters) = (prefix.clone(), *whole_clusters);
                PlanNode::Prefix { field: *field, prefix, whole_clusters, weight, terms }
            }
            Query::Fuzzy { field, word, distance, boost } => {
                self.fuzzy(*field, word, *distance, *boost, scored)?
            }
            Query::All { boost } => {
                let weight = if scored { *boost } else { 0.0 };
                self.weights += weight;
                PlanNode::All { weight }
            }
            Query::Bool { must, filter, should, must_not, minimum } => {
                should.iter().try_for_each(check_boost)?;
                // Without ranking, optional terms are not looked up.
                let optional = *minimum == 0 && !(must.is_empty() && filter.is_empty());
                let looks_up = self.ranks || !optional;
                let kept = |query: &&Query| looks_up || !matches!(query, Query::Term { .. });
                let weights = self.weights;
                let group = PlanGroup {
                    must: self.nodes(must, scored)?,
                    filter: self.nodes(filter, false)?,
                    should: self.nodes(should.iter().filter(kept), scored)?,
                    must_not: self.excluded(must_not)?,
                    minimum: *minimum as usize,
                };
                if group.is_impossible() {
                    self.weights = weights;
                    return Ok(PlanNode::Nothing);
                }
                PlanNode::Group(Box::new(group))
            }
            Query::Nothing => PlanNode::Nothing,
        })
    }

    fn nodes<'q>(
        &mut self,
        queries: impl IntoIterator<Item = &'q Query>,
        scored: bool,
    ) -> Result<Vec<PlanNode>> {
        queries.into_iter().map(|query| self.node(query, scored)).collect()
    }

    fn excluded(&mut self, queries: &[Query]) -> Result<Vec<PlanNode>> {
        let outer = std::mem::replace(&mut self.excludes, true);
        let nodes = self.nodes(queries, false);
        self.excludes = outer;
        nodes
    }

    /// The expansions of a fuzzy word, each with the document frequency of the most frequent of them.
    fn fuzzy(
        &mut self,
        field: usize,
        word: &str,
        distance: u8,
        boost: f64,
        scored: bool,
    ) -> Result<PlanNode> {
        let matches = fuzzy_matches((self.segments, self.source), field, word, distance)?;
        let documents = |found: &FuzzyMatch| self.containing(field, &found.term, found.documents);
        let containing = matches.iter().map(documents).max().unwrap_or(0);
        let mut should = Vec::with_capacity(matches.len());
        for found in matches {
            let weight = self.weight(self.idf(field, containing), boost * found.similarity);
            let leaf = self.leaf(field, found.term, found.infos, weight, scored)?;
            should.push(PlanNode::Term(leaf));
        }
        if should.is_empty() {
            return Ok(PlanNode::Nothing);
        }
        Ok(PlanNode::Group(Box::new(PlanGroup { should, ..PlanGroup::default() })))
    }

    fn term(&mut self, field: usize, term: &str, boost: f64, scored: bool) -> Result<PlanNode> {
        let (infos, containing) = self.look_up(field, term)?;
        let weight = self.weight(self.idf(field, containing), boost);
        let leaf = self.leaf(field, term.to_string(), infos, weight, scored && containing > 0)?;
        Ok(if containing == 0 { PlanNode::Nothing } else { PlanNode::Term(leaf) })
    }

    /// Dictionary entry of a term in each segment, and its document frequency.
    fn look_up(&self, field: usize, term: &str) -> Result<(Vec<Option<TermInfo>>, u64)> {
        let look_up = |segment: &Arc<Segment>| {
            let field = segment.field(field);
            let info = field.terms().get(term.as_bytes(), self.source)?;
            info.iter().for_each(|info| field.load_lines(info));
            Ok(info)
        };
        let infos = self.segments.iter().map(look_up).collect::<Result<Vec<_>>>()?;
        let containing = infos.iter().flatten().map(|info| u64::from(info.documents)).sum();
        Ok((infos, self.containing(field, term, containing)))
    }

    /// Document frequency of a term: from the given statistics, else `own`, that of these segments.
    fn containing(&self, field: usize, term: &str, own: u64) -> u64 {
        self.statistics.and_then(|statistics| statistics.containing(field, term)).unwrap_or(own)
    }

    fn idf(&self, field: usize, containing: u64) -> f64 {
        // External statistics may not cover these documents.
        idf(self.collections[field].documents.max(containing), containing)
    }

    fn weight(&self, idf: f64, boost: f64) -> f64 {
        match self.scorer {
            Scorer::Bm25(bm25) => idf * (bm25.k1 + 1.0) * boost,
            Scorer::Dot => boost,
        }
    }

    /// A scorer, still without a weight, for terms of a field with frequencies up to `frequency_max`.
    fn term_scorer(&self, field: usize, frequency_max: u32) -> TermScorer {
        match self.scorer {
            Scorer::Bm25(_) => TermScorer::new(self.lengths[field].clone(), 0.0, ScoreScale::of(0.0)),
            Scorer::Dot => TermScorer::dot(frequency_max, 0.0, ScoreScale::of(0.0)),
        }
    }

    /// The largest frequency of a term, if scores depend on it.
    fn frequency_max(&self, field: usize, infos: &[Option<TermInfo>]) -> Result<u32> {
        let mut max = 0;
        if self.scorer == Scorer::Dot {
            for (segment, info) in self.segments.iter().zip(infos) {
                let Some(info) = info else { continue };
                max = max.max(frequency_max(segment.field(field), info, self.source)?);
            }
        }
        Ok(max)
    }

    fn leaf(
        &mut self,
        field: usize,
        term: String,
        infos: Vec<Option<TermInfo>>,
        weight: f64,
        scored: bool,
    ) -> Result<usize> {
        let scorer = self.term_scorer(field, self.frequency_max(field, &infos)?);
        self.weights += if scored { weight * f64::from(scorer.share_max()) } else { 0.0 };
        self.leaves.push(Leaf {
            number: self.leaves.len(),
            field,
            term,
            scorer,
            weight,
            is_scored: scored,
            selects_by_impacts: false,
            infos,
        });
        Ok(self.leaves.len() - 1)
    }

    /// Plans a phrase of `fixed` terms; `last`, if any, is a cluster that stands for all terms that begin
    /// with it.
    fn phrase(
        &mut self,
        field: usize,
        fixed: &[(u32, String)],
        last: Option<&(u32, String)>,
        slop: u32,
        boost: f64,
        scored: bool,
    ) -> Result<PlanNode> {
        if !self.schema.fields[field].positions {
            return Err(no_positions(self.schema, field));
        }
        let matches = match last {
            None => None,
            Some((distance, cluster)) => {
                let lists = (self.segments, self.source);
                let prefix = Prefix { text: cluster, whole_clusters: true };
                match terms_with_prefix(lists, field, prefix, PHRASE_EXPANSIONS_MAX)? {
                    Some(matches) => Some((*distance, matches)),
                    None => return self.phrase_and_cluster(field, fixed, cluster, (slop, boost, scored)),
                }
            }
        };
        let mut phrase = PhraseParts { frequency_max: u32::MAX, ..PhraseParts::default() };
        for (distance, term) in fixed {
            let (infos, containing) = self.look_up(field, term)?;
            self.add_to_phrase(&mut phrase, field, (*distance, term), (infos, containing), boost)?;
        }
        match matches {
            None => Ok(self.phrase_node(phrase, field, slop, boost, scored)),
            Some((distance, matches)) => {
                self.phrase_with_any(phrase, field, distance, matches, (slop, boost, scored))
            }
        }
    }

    /// A phrase whose last cluster begins too many terms: the cluster is required at any position.
    fn phrase_and_cluster(
        &mut self,
        field: usize,
        fixed: &[(u32, String)],
        cluster: &str,
        (slop, boost, scored): (u32, f64, bool),
    ) -> Result<PlanNode> {
        if self.excludes {
            return Err(Error::query(format!(
                "`{cluster}` at the end of an excluded phrase begins more than {PHRASE_EXPANSIONS_MAX} terms"
            )));
        }
        let fixed = match fixed {
            [(_, term)] => Query::Term { field, term: term.clone(), boost },
            _ => Query::Phrase { field, terms: fixed.to_vec(), slop, open_end: false, boost },
        };
        let cluster = Query::Prefix { field, prefix: cluster.to_string(), whole_clusters: true, boost };
        let (must, filter) = (vec![fixed], vec![cluster]);
        self.node(&Query::Bool { must, filter, should: vec![], must_not: vec![], minimum: 0 }, scored)
    }

    /// The alternatives of a phrase with each of the last terms. All score with the document frequency of the
    /// most frequent one.
    fn phrase_with_any(
        &mut self,
        phrase: PhraseParts,
        field: usize,
        distance: u32,
        last: Vec<PrefixMatch>,
        (slop, boost, scored): (u32, f64, bool),
    ) -> Result<PlanNode> {
        let containing = |last: &PrefixMatch| {
            let own = last.infos.iter().flatten().map(|info| u64::from(info.documents)).sum();
            self.containing(field, &last.term, own)
        };
        let containing = last.iter().map(containing).max().unwrap_or(0);
        let mut should = Vec::with_capacity(last.len());
        for PrefixMatch { term, infos } in last {
            let mut phrase = phrase.clone();
            self.add_to_phrase(&mut phrase, field, (distance, &term), (infos, containing), boost)?;
            should.push(self.phrase_node(phrase, field, slop, boost, scored));
        }
        let group = PlanGroup { should, minimum: 1, ..PlanGroup::default() };
        Ok(if group.is_impossible() { PlanNode::Nothing } else { PlanNode::Group(Box::new(group)) })
    }

    fn add_to_phrase(
        &mut self,
        phrase: &mut PhraseParts,
        field: usize,
        (distance, term): (u32, &str),
        (infos, containing): (Vec<Option<TermInfo>>, u64),
        boost: f64,
    ) -> Result<()> {
        let idf = self.idf(field, containing);
        phrase.idf += idf;
        phrase.is_impossible |= containing == 0;
        phrase.frequency_max = phrase.frequency_max.min(self.frequency_max(field, &infos)?);
        let leaf = self.leaf(field, term.to_string(), infos, self.weight(idf, boost), false)?;
        phrase.leaves.push((distance, leaf));
        Ok(())
    }

    /// The weight of a phrase is the sum of the weights of its terms with BM25, and its boost with
    /// [`Scorer::Dot`].
    fn phrase_node(
        &mut self,
        phrase: PhraseParts,
        field: usize,
        slop: u32,
        boost: f64,
        scored: bool,
    ) -> PlanNode {
        if phrase.is_impossible {
            return PlanNode::Nothing;
        }
        let weight = if scored { self.weight(phrase.idf, boost) } else { 0.0 };
        let scorer = self.term_scorer(field, phrase.frequency_max);
        self.weights += weight * f64::from(scorer.share_max());
        self.phrases.push((scorer, weight));
        PlanNode::Phrase { field, leaves: phrase.leaves, phrase: self.phrases.len() - 1, slop }
    }
}

/// The terms of a phrase so far.
#[derive(Clone, Default)]
struct PhraseParts {
    /// With their distances from the first.
    leaves: Vec<(u32, usize)>,
    /// Sum of the inverse document frequencies.
    idf: f64,
    frequency_max: u32,
    /// Whether no document has one of the terms.
    is_impossible: bool,
}

/// Rejects boosts outside the range of the query language, so that no score is infinite, negative or NaN.
fn check_boost(query: &Query) -> Result<()> {
    match query.boost() {
        // Boosts of equal clauses are summed, so allow more than one maximum.
        Some(boost) if !(0.0..=1e4 * BOOST_MAX).contains(&boost) => {
            Err(Error::Usage(format!("a boost of {boost}; it must lie between 0 and {BOOST_MAX}")))
        }
        _ => Ok(()),
    }
}

impl PlanNode {
    /// Sets [`Leaf::selects_by_impacts`] of the terms of a scored node.
    fn select_by_impacts(&self, leaves: &mut [Leaf]) {
        match self {
            PlanNode::Term(leaf) => leaves[*leaf].selects_by_impacts = leaves[*leaf].is_scored,
            PlanNode::Phrase { leaves: of_phrase, .. } => {
                of_phrase.iter().for_each(|(_, leaf)| leaves[*leaf].selects_by_impacts = true);
            }
            PlanNode::Group(group) => {
                let only = group.must.is_empty() && group.should.len() == 1;
                let selecting = if only { &group.should } else { &group.must };
                selecting.iter().for_each(|node| node.select_by_impacts(leaves));
            }
            PlanNode::Prefix { .. } | PlanNode::All { .. } | PlanNode::Nothing => {}
        }
    }
}

impl PlanGroup {
    /// Whether a clause that must match cannot.
    fn is_impossible(&self) -> bool {
        let cannot = |node: &PlanNode| matches!(node, PlanNode::Nothing);
        let possible = self.should.iter().filter(|node| !cannot(node)).count();
        // A group without clauses to match is one of exclusions.
        let minimum = match self.must.is_empty() && self.filter.is_empty() && !self.should.is_empty() {
            true => self.minimum.max(1),
            false => self.minimum,
        };
        self.must.iter().chain(&self.filter).any(cannot) || possible < minimum
    }

    /// All clauses: required, filters, alternatives, exclusions.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &PlanNode> {
        self.must.iter().chain(&self.filter).chain(&self.should).chain(&self.must_not)
    }
}
