//! Opens the nodes of a plan in one segment.

use super::bounds::ShareBounds;
use super::document_set::{DocumentSet, SetNode};
use super::group::GroupNode;
use super::node::Node;
use super::phrase::Phrase;
use super::scratch::Scratch;
use super::slop::Alignments;
use super::term::Term;
use super::tuning::Tuning;
use crate::cursor::{ListsAhead, PostingsCursor};
use crate::error::Result;
use crate::query::plan::{Leaf, PlanGroup, PlanNode, QueryPlan};
use crate::query::{Prefix, starting_with};
use crate::rank::TermScorer;
use crate::segment::read::{BlockSource, RecordPart, Segment, TermInfo};

/// What decides which parts of skip records are read ([`Leaf::record_part`]).
#[derive(Clone, Copy)]
pub(super) struct RecordReads {
    /// Whether hits are ranked.
    pub ranked: bool,
    /// Whether the plan is one term that is evaluated in impact order.
    pub alone: bool,
    pub tuning: Tuning,
}

/// How the nodes of a plan are evaluated.
pub struct OpenOptions {
    /// Whether hits are ranked: without, no impacts are read.
    pub ranked: bool,
    /// Whether matches may be pruned: then only the head of a long skip record is read for a query of one
    /// term.
    pub pruned: bool,
    /// Sizes of long lists.
    pub tuning: Tuning,
}

/// Opens the lists of a node of a plan in a segment; `None` if no document can match. Bytes that are not
/// resident are read from `source`.
pub fn open<'a>(
    (plan, node): (&'a QueryPlan, &'a PlanNode),
    options: &OpenOptions,
    source: &'a dyn BlockSource,
    (number, segment): (usize, &'a Segment),
    scratch: &mut Scratch,
) -> Result<Option<Node<'a>>> {
    let OpenOptions { ranked, pruned, tuning } = *options;
    let alone = ranked && pruned && source.prefetches() && matches!(node, PlanNode::Term(_));
    let reads = RecordReads { ranked, alone, tuning };
    let mut opener = Opener { plan, source, number, segment, scratch, reads };
    if source.prefetches() {
        opener.prefetch_records(node);
    }
    opener.node(node)
}

struct Opener<'a, 's> {
    plan: &'a QueryPlan,
    source: &'a dyn BlockSource,
    number: usize,
    segment: &'a Segment,
    scratch: &'s mut Scratch,
    reads: RecordReads,
}

impl<'a> Opener<'a, '_> {
    fn node(&mut self, node: &'a PlanNode) -> Result<Option<Node<'a>>> {
        match node {
            PlanNode::Term(leaf) => {
                let leaf = &self.plan.leaves[*leaf];
                Ok(self.term(leaf, &leaf.scorer)?.map(Node::Term))
            }
            PlanNode::Phrase { field, leaves, phrase, slop } => {
                let scorer = &self.plan.phrases[*phrase];
                let all = || leaves.iter().map(|(_, leaf)| &self.plan.leaves[*leaf]);
                if all().any(|leaf| leaf.infos[self.number].is_none()) {
                    return Ok(None);
                }
                let mut terms = Vec::with_capacity(leaves.len());
                for (distance, leaf) in leaves {
                    let term = self.term(&self.plan.leaves[*leaf], scorer)?;
                    terms.extend(term.map(|term| (*distance, term)));
                }
                let names =
                    || leaves.iter().map(|(distance, leaf)| (*distance, &self.plan.leaves[*leaf].term));
                let alignments = Alignments::new(&names().collect::<Vec<_>>(), *slop);
                let phrase =
                    Phrase::new(terms, (self.segment.field(*field), self.source), scorer, alignments)?;
                Ok(Some(Node::Phrase(Box::new(phrase))))
            }
            PlanNode::Prefix { field, prefix, whole_clusters, weight, .. } => {
                let prefix = Prefix { text: prefix, whole_clusters: *whole_clusters };
                let documents = documents_with_prefix((self.segment, self.source), *field, prefix)?;
                let set = SetNode::new(documents, self.plan.scale.constant(*weight));
                Ok((set.cost > 0).then_some(Node::Set(set)))
            }
            PlanNode::All { weight } => {
                let all = DocumentSet::All(self.segment.documents());
                let score = self.plan.scale.constant(*weight);
                Ok(Some(Node::Set(SetNode::new(all, score))))
            }
            PlanNode::Group(group) => self.group(group),
            PlanNode::Nothing => Ok(None),
        }
    }

    fn term(&mut self, leaf: &'a Leaf, scorer: &'a TermScorer) -> Result<Option<Box<Term<'a>>>> {
        let Some(info) = &leaf.infos[self.number] else { return Ok(None) };
        let field = self.segment.field(leaf.field);
        let bounds = leaf.share_bounds(self.segment);
        let part = leaf.record_part(info, bounds.as_ref(), &self.reads);
        Term::open(field, (leaf.number, info), (scorer, self.source), (bounds, part), self.scratch)
            .map(|term| Some(Box::new(term)))
    }

    /// Prefetches the skip records of the terms of a node that are not resident.
    fn prefetch_records(&self, node: &PlanNode) {
        match node {
            PlanNode::Term(leaf) => self.prefetch_record(*leaf),
            PlanNode::Phrase { leaves, .. } => {
                leaves.iter().for_each(|(_, leaf)| self.prefetch_record(*leaf));
            }
            PlanNode::Group(group) => group.nodes().for_each(|node| self.prefetch_records(node)),
            PlanNode::Prefix { .. } | PlanNode::All { .. } | PlanNode::Nothing => {}
        }
    }

    fn prefetch_record(&self, leaf: usize) {
        let leaf = &self.plan.leaves[leaf];
        let field = self.segment.field(leaf.field);
        if let Some(info) = &leaf.infos[self.number]
            && field.skips().resident().is_none()
        {
            let bounds = leaf.share_bounds(self.segment);
            let part = leaf.record_part(info, bounds.as_ref(), &self.reads);
            self.source.prefetch(field.skips(), field.record_range(info, part));
        }
    }

    fn group(&mut self, group: &'a PlanGroup) -> Result<Option<Node<'a>>> {
        let documents = self.segment.documents();
        let matches_all = |node: &Node<'_>| match node {
            Node::Term(term) => term.documents == documents,
            Node::Set(set) => set.is_all(documents),
            _ => false,
        };
        let (mut must, mut filter) = (Vec::new(), Vec::new());
        for (from, to) in [(&group.must, &mut must), (&group.filter, &mut filter)] {
            for node in from {
                let Some(node) = self.node(node)? else { return Ok(None) };
                to.push(node);
            }
        }
        // Remove filters that all documents pass, unless nothing else is required.
        let mut required = must.len() + filter.len();
        filter.retain(|node| {
            let keeps = required == 1 || !matches_all(node);
            required -= usize::from(!keeps);
            keeps
        });
        let mut should = Vec::with_capacity(group.should.len());
        for node in &group.should {
            should.extend(self.node(node)?);
        }
        let mut must_not = Vec::with_capacity(group.must_not.len());
        for node in &group.must_not {
            must_not.extend(self.node(node)?);
        }
        if should.len() < group.minimum || must_not.iter().any(matches_all) {
            return Ok(None);
        }
        must.sort_by_key(Node::cost);
        filter.sort_by_key(Node::cost);
        if must_not.is_empty() {
            match (must.len(), filter.len(), should.len(), group.minimum) {
                (1, 0, 0, 0) => return Ok(must.pop()),
                (0, 0, 1, 1) => return Ok(should.pop()),
                _ => {}
            }
        }
        let minimum = group.minimum;
        Ok(Some(Node::Group(Box::new(GroupNode { must, filter, should, must_not, minimum }))))
    }
}

impl Leaf {
    /// Converts the max shares stored in a segment to upper bounds for this ranking; `None` if they do not
    /// bound its shares.
    pub fn share_bounds(&self, segment: &Segment) -> Option<ShareBounds> {
        let lengths = self.scorer.lengths()?;
        Some(ShareBounds::new(segment.average_length(self.field), lengths))
    }

    /// The part of a skip record that is read from disk. Impacts are read if max shares do not bound the
    /// scores of the list, or if its postings are selected by impacts and the record is not so long that
    /// reading it costs more than scoring whole blocks. If the term is evaluated alone and its bounds are
    /// tight, few entries of a long record are used.
    pub(super) fn record_part(
        &self,
        info: &TermInfo,
        bounds: Option<&ShareBounds>,
        reads: &RecordReads,
    ) -> RecordPart {
        let RecordReads { ranked, alone, tuning } = *reads;
        let record = info.skips.end - info.skips.start;
        let is_long = record > tuning.head_record_bytes_min;
        match bounds {
            None => RecordPart::Whole,
            Some(bounds) if alone && bounds.is_tight && is_long => RecordPart::Head,
            Some(_) if ranked && self.selects_by_impacts && record <= tuning.impact_record_bytes_max => {
                RecordPart::Whole
            }
            Some(_) => RecordPart::WithoutImpacts,
        }
    }
}

/// The documents of a segment that contain a term with `prefix`.
fn documents_with_prefix(
    (segment, source): (&Segment, &dyn BlockSource),
    field: usize,
    prefix: Prefix<'_>,
) -> Result<DocumentSet> {
    let field = segment.field(field);
    let infos = starting_with(field, prefix, source)?;
    let postings = infos.iter().map(|info| u64::from(info.documents)).sum();
    let mut documents = DocumentSet::with_capacity(postings, segment.documents());
    let mut ahead = ListsAhead::new(source);
    for info in infos {
        source.checkpoint(0..0)?;
        let record = ahead.record(field, &info)?;
        let mut cursor = PostingsCursor::with_record(field, record, source)?;
        cursor.advance(0)?;
        loop {
            let (block, _) = cursor.rest_of_block()?;
            let count = block.len();
            if count == 0 {
                break;
            }
            documents.add(block);
            cursor.skip(count)?;
        }
    }
    Ok(documents.finish())
}
