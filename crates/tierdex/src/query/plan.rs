//! What a query needs of an index: its terms looked up in every segment, weighed by all segments together.

use super::analyse::no_positions;
use super::expand::{close_terms, count_terms_with_prefix, documents_with_prefix};
use super::explain::Evaluation;
use super::near::{Known, Want};
use super::ops::{Alignments, BoolOp, ConstantOp, Documents, Op, PhraseOp, TermOp};
use super::prune::{
    Bounds, Scored, Scratch, Way, are_frequent, best_of_all, best_of_any, best_of_both, best_of_few,
    best_of_term, count_any, count_frequent, few,
};
use super::tree::Query;
use crate::cursor::{BUFFER_MIN, NearList, PostingsCursor, Reading};
use crate::error::{Error, Result};
use crate::limits::BOOST_MAX;
use crate::rank::{Bm25, Collection, Lengths, TermScorer, TopK, idf};
use crate::schema::Schema;
use crate::segment::read::{Segment, TermInfo};
use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;

/// A query ready to run over each segment.
pub struct Plan<'q> {
    pub(super) root: Node<'q>,
    /// Of each segment, where lists come near one after the other.
    pub(super) known: Vec<Known>,
}

pub(super) enum Node<'q> {
    Term(Leaf<'q>),
    Phrase(Vec<(u32, Leaf<'q>)>, Arc<TermScorer>, usize, Option<Alignments>),
    /// Field, beginning, score, and how many terms begin so.
    Prefix(usize, String, f32, usize),
    /// Score.
    All(f32),
    Bool {
        must: Vec<Node<'q>>,
        filter: Vec<Node<'q>>,
        should: Vec<Node<'q>>,
        must_not: Vec<Node<'q>>,
        minimum: u32,
    },
    Nothing,
}

/// A term with its entry in the dictionary of each segment.
pub(super) struct Leaf<'q> {
    pub(super) field: usize,
    pub(super) term: Cow<'q, str>,
    pub(super) infos: Vec<Option<TermInfo>>,
    /// The average length of documents with which the bounds that a segment stores are those of this ranking.
    stored_average: Option<f64>,
    pub(super) scorer: Arc<TermScorer>,
    idf: f64,
    /// Its list in each segment, where a cache has brought it near.
    pub(super) near: Vec<Option<NearList>>,
    /// What of that is to come near first.
    pub(super) wants: Vec<Want>,
    /// Bytes of each part of a list that are buffered, at most.
    pub(super) buffer: usize,
}

/// What answering may take where there is no budget: as much as it pays to read ahead in a few lists.
const WORKING_MEMORY: u64 = 16 << 20;

/// Looks up and weighs.
struct Planner<'a> {
    schema: &'a Schema,
    segments: &'a [Segment],
    collections: &'a [Collection],
    bm25: Bm25,
    /// What lengths do to scores, in each field.
    lengths: &'a [Arc<Lengths>],
    /// Terms that the prefixes so far stand for.
    prefixed: Cell<usize>,
}

impl<'q> Plan<'q> {
    /// Plans `query` over `segments`; `collections` holds the statistics of each field, and `lengths` what follows from
    /// them for `bm25`.
    pub fn new(
        query: &'q Query,
        schema: &Schema,
        segments: &[Segment],
        (collections, lengths): (&[Collection], &[Arc<Lengths>]),
        bm25: Bm25,
    ) -> Result<Plan<'q>> {
        let planner = Planner { schema, segments, collections, bm25, lengths, prefixed: Cell::new(0) };
        let mut plan = Plan { root: planner.node(query)?, known: Vec::new() };
        plan.keep_within(segments, WORKING_MEMORY);
        Ok(plan)
    }

    /// Offers the best hits of the segment of that number to `top`, numbered from `base` on, without looking at all,
    /// and returns the number of matches, or of those that were met if they are not to be counted; `None` if there is
    /// no such way for this kind of query. With `exhaustive` the way is the same, and all is looked at and scored. What became of the lists is written to `notes`, if somebody asks.
    pub fn prune(
        &self,
        number: usize,
        segment: &Segment,
        base: u32,
        (exhaustive, count): (bool, bool),
        (scratch, top): (&mut Scratch, &mut TopK),
        mut notes: Option<&mut Evaluation>,
    ) -> Result<Option<u64>> {
        if !self.root.can_be_pruned() {
            return Ok(None);
        }
        let (leaves, all) = match &self.root {
            Node::Term(_) => (leaves(std::slice::from_ref(&self.root)), true),
            Node::Bool { must, should, must_not, .. } if must_not.is_empty() && should.is_empty() => {
                (leaves(must), true)
            }
            Node::Bool { must, should, must_not, .. } if must_not.is_empty() && must.is_empty() => {
                (leaves(should), false)
            }
            _ => (None, false),
        };
        let Some(leaves) = leaves else { return Ok(None) };
        if let ([leaf], 0) = (&leaves[..], top.k()) {
            if let Some(notes) = notes {
                notes.way = Way::Dictionary;
            }
            // The dictionary knows the number of matches.
            return Ok(Some(leaf.infos[number].as_ref().map_or(0, |info| u64::from(info.documents))));
        }
        if all && leaves.iter().any(|leaf| leaf.infos[number].is_none()) {
            // Nothing has them all, and nothing is read.
            return Ok(Some(0));
        }
        let mut lists = Vec::with_capacity(leaves.len());
        for leaf in &leaves {
            lists.extend(leaf.scored(number, segment, (top.k() > 0, exhaustive), scratch)?);
        }
        let documents = segment.documents();
        let count = count || exhaustive;
        let candidates = self.known.get(number).and_then(Known::candidates);
        let candidates = candidates.filter(|candidates| !count && top.k() <= candidates.k());
        let way = match candidates {
            Some(_) => Way::Candidates,
            None => choose(&lists, all, top.k(), documents),
        };
        if let Some(notes) = notes.as_deref_mut() {
            notes.begin(segment, way, &mut lists, count, top)?;
        }
        let matches = match candidates {
            Some(candidates) => candidates.offer(&mut lists, base, scratch, top),
            None => run(&mut lists, way, documents, (base, count), scratch, top),
        };
        if let Some(notes) = notes {
            let there = leaves.iter().filter(|leaf| leaf.infos[number].is_some());
            notes.end(segment, number, there.copied().zip(&lists));
        }
        lists.into_iter().for_each(|list| list.close(scratch));
        matches.map(Some)
    }

    /// The same plan, for as long as one likes.
    pub fn into_owned(self) -> Plan<'static> {
        Plan { root: self.root.into_owned(), known: self.known }
    }

    /// The operators for the segment of that number.
    pub fn ops<'a>(&'a self, number: usize, segment: &'a Segment) -> Result<Op<'a>> {
        self.root.op(number, segment)
    }
}

impl Planner<'_> {
    fn node<'q>(&self, query: &'q Query) -> Result<Node<'q>> {
        let all =
            |clauses: &'q [Query]| clauses.iter().map(|clause| self.node(clause)).collect::<Result<Vec<_>>>();
        check_boost(query)?;
        match query {
            Query::Term { field, term, boost } => Ok(Node::Term(self.leaf(*field, term, *boost)?)),
            Query::Phrase { field, terms, slop, boost } => self.phrase(*field, terms, *slop, *boost),
            Query::Prefix { field, prefix, boost } => {
                let mut count = self.prefixed.get();
                count_terms_with_prefix(self.segments, *field, prefix, &mut count)?;
                let terms = count - self.prefixed.replace(count);
                Ok(Node::Prefix(*field, prefix.clone(), *boost as f32, terms))
            }
            Query::Fuzzy { field, word, distance, boost } => self.fuzzy(*field, word, *distance, *boost),
            Query::All { boost } => Ok(Node::All(*boost as f32)),
            Query::Bool { must, filter, should, must_not, minimum } => Ok(Node::Bool {
                must: all(must)?,
                filter: all(filter)?,
                should: all(should)?,
                must_not: all(must_not)?,
                minimum: *minimum,
            }),
            Query::Nothing => Ok(Node::Nothing),
        }
    }

    /// The terms close to a word, each as if it stood in as many documents as the most frequent of them.
    fn fuzzy<'q>(&self, field: usize, word: &str, distance: u8, boost: f64) -> Result<Node<'q>> {
        let close = close_terms(self.segments, field, word, distance)?;
        let containing = close.iter().map(|term| term.documents).max().unwrap_or(0);
        let leaves = close.into_iter().map(|close| {
            let (term, boost) = (Cow::Owned(close.term), boost * close.similarity);
            Node::Term(self.leaf_of(field, term, close.infos, containing, boost))
        });
        let should: Vec<Node> = leaves.collect();
        if should.is_empty() {
            return Ok(Node::Nothing);
        }
        Ok(Node::Bool { must: vec![], filter: vec![], should, must_not: vec![], minimum: 0 })
    }

    fn leaf<'q>(&self, field: usize, term: &'q str, boost: f64) -> Result<Leaf<'q>> {
        let infos = self.segments.iter().map(|segment| segment.field(field).terms().get(term.as_bytes()));
        let infos = infos.collect::<Result<Vec<_>>>()?;
        let containing = infos.iter().flatten().map(|info| u64::from(info.documents)).sum();
        Ok(self.leaf_of(field, Cow::Borrowed(term), infos, containing, boost))
    }

    /// A term that weighs as one in `containing` documents.
    fn leaf_of<'q>(
        &self,
        field: usize,
        term: Cow<'q, str>,
        infos: Vec<Option<TermInfo>>,
        containing: u64,
        boost: f64,
    ) -> Leaf<'q> {
        let collection = self.collections[field];
        let idf = idf(collection.documents, containing);
        let scorer = Arc::new(TermScorer::new(self.lengths[field].clone(), idf, boost));
        let stored_average = (self.bm25 == Bm25::default()).then_some(collection.average_length);
        let near = infos.iter().map(|_| None).collect();
        let wants = vec![Want::Whole; infos.len()];
        Leaf { field, term, infos, stored_average, scorer, idf, near, wants, buffer: BUFFER_MIN }
    }

    /// A phrase weighs as much as its terms together.
    fn phrase<'q>(
        &self,
        field: usize,
        terms: &'q [(u32, String)],
        slop: u32,
        boost: f64,
    ) -> Result<Node<'q>> {
        if !self.schema.fields[field].positions {
            return Err(no_positions(self.schema, field));
        }
        let leaves = terms.iter().map(|(distance, term)| Ok((*distance, self.leaf(field, term, 1.0)?)));
        let leaves = leaves.collect::<Result<Vec<_>>>()?;
        let idf = leaves.iter().map(|(_, leaf)| leaf.idf).sum();
        let scorer = Arc::new(TermScorer::new(self.lengths[field].clone(), idf, boost));
        let sloppy = (slop > 0).then(|| Alignments::new(terms, slop));
        Ok(Node::Phrase(leaves, scorer, field, sloppy))
    }
}

/// Refuses what the query language cannot say, so that no score is infinite, negative or no number.
fn check_boost(query: &Query) -> Result<()> {
    match query.boost() {
        // Equal clauses add up.
        Some(boost) if !(0.0..=1e4 * BOOST_MAX).contains(&boost) => {
            Err(Error::Usage(format!("a boost of {boost}; it must lie between 0 and {BOOST_MAX}")))
        }
        _ => Ok(()),
    }
}

/// Chooses how to find the documents of all or of any of the lists.
fn choose(lists: &[Scored<'_>], all: bool, k: usize, documents: u32) -> Way {
    let postings: u64 = lists.iter().map(|list| list.postings()).sum();
    match lists {
        [] => Way::Nothing,
        [_] if k == 0 => Way::Dictionary,
        [_] => Way::OneTerm,
        _ if all && k == 0 && are_frequent(lists, documents) => Way::CountFrequent,
        _ if all => Way::All,
        _ if k == 0 => Way::CountAny,
        _ if few(lists.len(), postings, documents) => Way::Few,
        _ => Way::Any,
    }
}

/// Finds the documents that way.
fn run(
    lists: &mut [Scored<'_>],
    way: Way,
    documents: u32,
    (base, count): (u32, bool),
    scratch: &mut Scratch,
    top: &mut TopK,
) -> Result<u64> {
    let postings = lists.first().map_or(0, |list| list.postings());
    match (way, lists) {
        (Way::OneTerm, [list]) => best_of_term(list, base, scratch, top).map(|()| postings),
        (Way::All, [one, other]) if top.k() > 0 && !count => best_of_both([one, other], base, scratch, top),
        (Way::All, lists) => best_of_all(lists, count, base, scratch, top),
        (Way::CountAny, lists) => count_any(lists, documents, scratch),
        (Way::CountFrequent, lists) => count_frequent(lists, documents, scratch),
        (Way::Few, lists) => best_of_few(lists, base, scratch, top),
        (Way::Any, lists) => best_of_any(lists, documents, count, base, scratch, top),
        _ => Ok(postings),
    }
}

/// The terms of clauses, if there are some and they are nothing but terms that add to scores.
fn leaves<'a, 'q>(clauses: &'a [Node<'q>]) -> Option<Vec<&'a Leaf<'q>>> {
    fn leaf<'a, 'q>(node: &'a Node<'q>) -> Option<&'a Leaf<'q>> {
        match node {
            Node::Term(leaf) => Some(leaf),
            _ => None,
        }
    }
    clauses.iter().map(leaf).collect::<Option<Vec<_>>>().filter(|leaves| !leaves.is_empty())
}

impl Node<'_> {
    /// Whether what it asks for is nothing but terms and which of them must match, as far as that is known here.
    pub(super) fn can_be_pruned(&self) -> bool {
        match self {
            Node::Term(leaf) => leaf.scorer.has_bounds(),
            Node::Bool { must, filter, should, minimum: 0, .. } => {
                let plain = |node: &Node| matches!(node, Node::Term(leaf) if leaf.scorer.has_bounds());
                filter.is_empty() && must.iter().chain(should).all(plain)
            }
            _ => false,
        }
    }

    /// Calls `body` with each term that is looked up.
    pub(super) fn for_each_leaf(&mut self, body: &mut dyn FnMut(&mut Leaf<'_>) -> Result<()>) -> Result<()> {
        match self {
            Node::Term(leaf) => body(leaf),
            Node::Phrase(leaves, ..) => leaves.iter_mut().try_for_each(|(_, leaf)| body(leaf)),
            Node::Bool { must, filter, should, must_not, .. } => {
                let mut parts = [must, filter, should, must_not].into_iter().flatten();
                parts.try_for_each(|node| node.for_each_leaf(body))
            }
            Node::Prefix(..) | Node::All(_) | Node::Nothing => Ok(()),
        }
    }

    fn into_owned(self) -> Node<'static> {
        let all = |nodes: Vec<Node<'_>>| nodes.into_iter().map(Node::into_owned).collect();
        match self {
            Node::Term(leaf) => Node::Term(leaf.into_owned()),
            Node::Phrase(leaves, scorer, field, sloppy) => {
                let leaves = leaves.into_iter().map(|(distance, leaf)| (distance, leaf.into_owned()));
                Node::Phrase(leaves.collect(), scorer, field, sloppy)
            }
            Node::Prefix(field, prefix, score, terms) => Node::Prefix(field, prefix, score, terms),
            Node::All(score) => Node::All(score),
            Node::Bool { must, filter, should, must_not, minimum } => Node::Bool {
                must: all(must),
                filter: all(filter),
                should: all(should),
                must_not: all(must_not),
                minimum,
            },
            Node::Nothing => Node::Nothing,
        }
    }

    fn op<'a>(&'a self, number: usize, segment: &'a Segment) -> Result<Op<'a>> {
        let all = |nodes: &'a [Node]| nodes.iter().map(|n| n.op(number, segment)).collect::<Result<Vec<_>>>();
        match self {
            Node::Term(leaf) => match leaf.cursor(number, segment)? {
                Some(cursor) => {
                    let norms = segment.field(leaf.field).norms()?;
                    Ok(Op::Term(Box::new(TermOp::new(cursor, norms, leaf.scorer.clone()))))
                }
                None => Ok(Op::Nothing),
            },
            Node::Phrase(leaves, scorer, field, sloppy) => {
                let mut cursors = Vec::with_capacity(leaves.len());
                if leaves.iter().any(|(_, leaf)| leaf.infos[number].is_none()) {
                    return Ok(Op::Nothing);
                }
                for (distance, leaf) in leaves {
                    cursors.extend(leaf.cursor(number, segment)?.map(|cursor| (*distance, cursor)));
                }
                let norms = segment.field(*field).norms()?;
                Ok(Op::Phrase(PhraseOp::new(cursors, sloppy.clone(), norms, scorer.clone())))
            }
            Node::Prefix(field, prefix, score, _) => {
                let documents = documents_with_prefix(segment, *field, prefix)?;
                Ok(Op::Constant(ConstantOp::new(documents, *score)))
            }
            Node::All(score) => {
                Ok(Op::Constant(ConstantOp::new(Documents::All(segment.documents()), *score)))
            }
            Node::Bool { must, filter, should, must_not, minimum } => {
                let (required, should) = ((all(must)?, all(filter)?), (all(should)?, *minimum));
                Ok(Op::Bool(BoolOp::new(required, should, all(must_not)?, segment.documents())))
            }
            Node::Nothing => Ok(Op::Nothing),
        }
    }
}

impl Leaf<'_> {
    fn into_owned(self) -> Leaf<'static> {
        let Leaf { field, term, infos, stored_average, scorer, idf, near, wants, buffer } = self;
        let term = Cow::Owned(term.into_owned());
        Leaf { field, term, infos, stored_average, scorer, idf, near, wants, buffer }
    }

    /// How its list in the segment of that number is read.
    pub(super) fn reading(&self, number: usize) -> Reading<'_> {
        Reading { near: self.near[number].as_ref(), buffer: self.buffer }
    }

    pub(super) fn bounds(&self, segment: &Segment) -> Bounds {
        let stored = self.stored_average == Some(segment.average_length(self.field));
        if stored { Bounds::Stored } else { Bounds::Impacts }
    }

    /// `None` if the segment does not have the term.
    pub(super) fn scored<'a>(
        &'a self,
        number: usize,
        segment: &'a Segment,
        (scored, exhaustive): (bool, bool),
        scratch: &mut Scratch,
    ) -> Result<Option<Scored<'a>>> {
        let Some(info) = &self.infos[number] else { return Ok(None) };
        let bounds = scored.then(|| if exhaustive { Bounds::None } else { self.bounds(segment) });
        let list = (&*self.scorer, self.reading(number));
        Scored::open(segment.field(self.field), info, list, bounds, scratch).map(Some)
    }

    pub(super) fn cursor<'a>(
        &'a self,
        number: usize,
        segment: &'a Segment,
    ) -> Result<Option<PostingsCursor<'a>>> {
        let (info, reading) = (self.infos[number].clone(), self.reading(number));
        info.map(|info| PostingsCursor::open_near(segment.field(self.field), info, reading)).transpose()
    }
}
