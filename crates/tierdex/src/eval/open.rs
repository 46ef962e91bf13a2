//! Opens the clauses of a strategy in one segment.

use crate::cursor::{ListsAhead, PostingsCursor};
use crate::eval::nodes::{Alignments, DocumentSet, Node, OpenTerm, Phrase, SetNode, ShareBounds, Term};
use crate::eval::{Demand, SegmentView, Strategy, StrategyKind, Tuning};
use crate::query::plan_node::{Leaf, PlanNode, PrefixClause};
use crate::query::{Clauses, Prefix, starting_with};
use crate::segment::read::{BlockSource, RecordPart, Segment, TermInfo};
use crate::{Result, eval::state::Scratch, rank::TermScorer};

/// How a list is used, which decides what is read of its skip record.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordUse {
    /// The only list, in impact order: of a long record few entries are used.
    Alone,
    /// Its postings are selected by impacts.
    Selects,
    /// Others propose the candidates, or it is summed.
    Summed,
}

impl Strategy<PlanNode> {
    /// Opens the lists of the clauses. Bytes that are not resident are read from `source`.
    pub fn open<'a>(
        &self,
        view: SegmentView<'a>,
        source: &'a dyn BlockSource,
        demand: &Demand,
        scratch: &mut Scratch,
    ) -> Result<Strategy<Node<'a>>> {
        let use_of_required = self.use_of_required(source.prefetches());
        let mut opener = Opener { view, source, tuning: demand.tuning, scratch };
        if source.prefetches() {
            self.each_leaf(use_of_required, &mut |leaf, how| opener.prefetch_record(leaf, how));
        }
        let clauses = opener.clauses(&self.clauses, use_of_required)?;
        let Strategy { kind, known, counts, candidates, always_scores, offers_zero_scores, .. } = *self;
        Ok(Strategy { kind, clauses, known, counts, candidates, always_scores, offers_zero_scores })
    }

    /// How the lists of required clauses are used.
    pub(super) fn use_of_required(&self, prefetches: bool) -> RecordUse {
        let refines = !(self.clauses.filter.is_empty() && self.clauses.must_not.is_empty());
        match self.kind {
            StrategyKind::ImpactOrdered if prefetches && !refines => RecordUse::Alone,
            StrategyKind::ImpactOrdered | StrategyKind::Conjunction => RecordUse::Selects,
            _ => RecordUse::Summed,
        }
    }

    /// Calls `body` with each term, by its index in the plan.
    pub(super) fn each_leaf(&self, use_of_required: RecordUse, body: &mut dyn FnMut(usize, RecordUse)) {
        each_leaf_of(&self.clauses, use_of_required, body);
    }
}

fn each_leaf_of(
    clauses: &Clauses<PlanNode>,
    use_of_required: RecordUse,
    body: &mut dyn FnMut(usize, RecordUse),
) {
    let mut each = |nodes: &[PlanNode], how| {
        for node in nodes {
            match node {
                PlanNode::Term { leaf, .. } => body(*leaf, how),
                PlanNode::Phrase { leaves, .. } => leaves.iter().for_each(|(_, leaf)| body(*leaf, how)),
                PlanNode::Group(group) => each_leaf_of(group, how, body),
                PlanNode::Prefix { .. } | PlanNode::All { .. } | PlanNode::Nothing => {}
            }
        }
    };
    each(&clauses.must, use_of_required);
    [&clauses.filter, &clauses.should, &clauses.must_not]
        .into_iter()
        .for_each(|nodes| each(nodes, RecordUse::Summed));
}

struct Opener<'a, 's> {
    view: SegmentView<'a>,
    source: &'a dyn BlockSource,
    tuning: Tuning,
    scratch: &'s mut Scratch,
}

impl<'a> Opener<'a, '_> {
    fn clauses(
        &mut self,
        clauses: &Clauses<PlanNode>,
        use_of_required: RecordUse,
    ) -> Result<Clauses<Node<'a>>> {
        Ok(Clauses {
            must: self.nodes(&clauses.must, use_of_required)?,
            filter: self.nodes(&clauses.filter, RecordUse::Summed)?,
            should: self.nodes(&clauses.should, RecordUse::Summed)?,
            must_not: self.nodes(&clauses.must_not, RecordUse::Summed)?,
            minimum: clauses.minimum,
        })
    }

    fn nodes(&mut self, nodes: &[PlanNode], how: RecordUse) -> Result<Vec<Node<'a>>> {
        let mut opened = Vec::with_capacity(nodes.len());
        for node in nodes {
            opened.push(self.node(node, how)?);
        }
        Ok(opened)
    }

    fn node(&mut self, node: &PlanNode, how: RecordUse) -> Result<Node<'a>> {
        let SegmentView { plan, segment, .. } = self.view;
        // That of the plan, so that the memory of the evaluation is known before.
        let cost = self.view.cost(node);
        match node {
            PlanNode::Term { leaf, .. } => {
                Ok(Node::Term(self.term(*leaf, &plan.leaves[*leaf].scorer, how)?))
            }
            PlanNode::Phrase { field, leaves, phrase, slop, .. } => {
                let scorer = &plan.phrases[*phrase];
                let mut terms = Vec::with_capacity(leaves.len());
                for (distance, leaf) in &leaves[..] {
                    terms.push((*distance, self.term(*leaf, scorer, how)?));
                }
                let names = leaves.iter().map(|(distance, leaf)| (*distance, &plan.leaves[*leaf].term));
                let alignments = Alignments::new(&names.collect::<Vec<_>>(), *slop);
                let phrase = Phrase::new(terms, segment.field(*field), self.source, scorer, alignments)?;
                Ok(Node::Phrase(Box::new(phrase)))
            }
            PlanNode::Prefix { prefix, weight } => {
                let documents = documents_with_prefix(segment, prefix, self.source)?;
                Ok(Node::Set(SetNode::new(documents, plan.scale.constant(*weight), cost)))
            }
            PlanNode::All { weight } => {
                let all = DocumentSet::All(segment.documents());
                Ok(Node::Set(SetNode::new(all, plan.scale.constant(*weight), cost)))
            }
            PlanNode::Group(group) => Ok(Node::Group(Box::new(self.clauses(group, how)?))),
            PlanNode::Nothing => Ok(Node::Set(SetNode::new(DocumentSet::All(0), 0, cost))),
        }
    }

    fn term(&mut self, leaf: usize, scorer: &'a TermScorer, how: RecordUse) -> Result<Box<Term<'a>>> {
        let info = self.view.info(leaf).expect("clauses of terms that a segment lacks were removed");
        let (leaf, segment) = (&self.view.plan.leaves[leaf], self.view.segment);
        let bounds = leaf.share_bounds(segment);
        let list = OpenTerm {
            field: segment.field(leaf.field),
            leaf: leaf.number,
            info,
            scorer,
            bounds,
            part: record_part(info, bounds.as_ref(), how, &self.tuning),
        };
        Term::open(list, self.source, self.scratch).map(Box::new)
    }

    /// Prefetches the skip record of a term, unless it is resident.
    fn prefetch_record(&self, leaf: usize, how: RecordUse) {
        let (info, leaf) = (self.view.info(leaf), &self.view.plan.leaves[leaf]);
        let field = self.view.segment.field(leaf.field);
        if let Some(info) = info
            && field.skips().resident().is_none()
        {
            let bounds = leaf.share_bounds(self.view.segment);
            let part = record_part(info, bounds.as_ref(), how, &self.tuning);
            self.source.prefetch(field.skips(), field.record_range(info, part));
        }
    }
}

impl Leaf {
    /// Converts the max shares stored in a segment to upper bounds for this ranking; `None` if they do not
    /// bound its shares.
    pub fn share_bounds(&self, segment: &Segment) -> Option<ShareBounds> {
        let lengths = self.scorer.lengths()?;
        Some(ShareBounds::new(segment.average_length(self.field), lengths))
    }
}

/// The part of a skip record that is read from disk. Impacts are read if max shares do not bound the scores
/// of the list, or if its postings are selected by impacts and the record is not so long that reading it
/// costs more than scoring whole blocks. If the term is evaluated alone and its bounds are tight, few entries
/// of a long record are used.
pub(super) fn record_part(
    info: &TermInfo,
    bounds: Option<&ShareBounds>,
    how: RecordUse,
    tuning: &Tuning,
) -> RecordPart {
    let record = info.skips.end - info.skips.start;
    let is_long = record > tuning.head_record_bytes_min;
    match (bounds, how) {
        (None, _) => RecordPart::Whole,
        (Some(bounds), RecordUse::Alone) if bounds.is_tight && is_long => RecordPart::Head,
        (Some(_), RecordUse::Alone | RecordUse::Selects) if record <= tuning.impact_record_bytes_max => {
            RecordPart::Whole
        }
        _ => RecordPart::WithoutImpacts,
    }
}

/// The documents of a segment that contain a term with a prefix.
fn documents_with_prefix(
    segment: &Segment,
    clause: &PrefixClause,
    source: &dyn BlockSource,
) -> Result<DocumentSet> {
    let field = segment.field(clause.field);
    let prefix = Prefix { text: &clause.text, whole_clusters: clause.whole_clusters };
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
