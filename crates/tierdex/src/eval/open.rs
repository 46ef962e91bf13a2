//! Opens the lists of a strategy in one segment: its clauses become nodes, which read blocks.

use crate::eval::nodes::prefix_set::few_documents;
use crate::eval::nodes::{
    Alignments, AllOf, AnyOf, ColumnSet, DocumentSet, Node, Phrase, PrefixSet, RefiningClause, SetNode,
    ShareBounds, Term,
};
use crate::eval::strategy::has_positive_scores;
use crate::eval::{EvaluationOptions, SegmentView, Strategy, StrategyKind, Tuning};
use crate::limits::{BLOCK, SUPERBLOCK};
use crate::query::{Clauses, plan_node::Leaf, plan_node::PlanNode};
use crate::schema::NormKind;
use crate::segment::read::{BlockSource, RecordPart, Segment, TermInfo};
use crate::{Result, eval::state::Refine, eval::state::Scratch, rank::TermScorer};
use std::sync::atomic::Ordering;

/// What the evaluation of a list uses of its skip record, which decides what is read ([`record_part`]).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SkipDataUse {
    /// The entries of the superblocks with the highest max scores, about as many as there are hits: the only
    /// list of the query, in impact order.
    BestEntries {
        /// Expected number of candidates.
        candidates: usize,
    },
    /// Impacts, by which postings of a block are selected before they are scored.
    Impacts,
    /// Max shares of blocks only: whole blocks are scored, or candidates of other lists are looked up.
    MaxShares,
}

impl Strategy {
    /// Opens the lists of the clauses, as one node. Bytes that are not resident are read from `source`.
    pub fn open<'a>(
        &self,
        view: SegmentView<'a>,
        source: &'a dyn BlockSource,
        options: &EvaluationOptions,
        scratch: &mut Scratch,
    ) -> Result<Node<'a>> {
        let required_use = self.required_use(source.prefetches());
        let visits_all = self.counts_matches || options.exhaustive;
        let mut opener = ListOpener { view, source, tuning: options.tuning, visits_all, scratch };
        if source.prefetches() {
            self.for_each_leaf(required_use, &mut |leaf, data_use| opener.prefetch_record(leaf, data_use));
        }
        opener.open_group(&self.clauses, required_use)
    }

    /// What the chosen algorithm uses of the skip records of required clauses; of other clauses it uses
    /// [`SkipDataUse::MaxShares`]. `prefetches`: lists are read from disk.
    pub(super) fn required_use(&self, prefetches: bool) -> SkipDataUse {
        let refines = !(self.clauses.filter.is_empty() && self.clauses.must_not.is_empty());
        match self.kind {
            StrategyKind::ImpactOrdered if prefetches && !refines => {
                SkipDataUse::BestEntries { candidates: self.expected_candidates as usize }
            }
            StrategyKind::ImpactOrdered | StrategyKind::Conjunction => SkipDataUse::Impacts,
            _ => SkipDataUse::MaxShares,
        }
    }

    /// Calls `body` with the index in the plan of each term, and what is used of its skip record.
    pub(super) fn for_each_leaf(&self, required_use: SkipDataUse, body: &mut dyn FnMut(usize, SkipDataUse)) {
        for_each_leaf_of(&self.clauses, required_use, body);
    }
}

fn for_each_leaf_of(
    clauses: &Clauses<PlanNode>,
    required_use: SkipDataUse,
    body: &mut dyn FnMut(usize, SkipDataUse),
) {
    let mut each = |nodes: &[PlanNode], data_use| {
        for node in nodes {
            match node {
                PlanNode::Term { leaf, .. } => body(*leaf, data_use),
                PlanNode::Phrase { leaves, .. } => leaves.iter().for_each(|(_, leaf)| body(*leaf, data_use)),
                PlanNode::Group(group) => for_each_leaf_of(group, data_use, body),
                PlanNode::Prefix { .. }
                | PlanNode::Column { .. }
                | PlanNode::All { .. }
                | PlanNode::Nothing => {}
            }
        }
    };
    each(&clauses.must, required_use);
    [&clauses.filter, &clauses.should, &clauses.must_not]
        .into_iter()
        .for_each(|nodes| each(nodes, SkipDataUse::MaxShares));
}

/// Opens the nodes of the plan in `view`, with buffers from `scratch`.
struct ListOpener<'a, 's> {
    view: SegmentView<'a>,
    source: &'a dyn BlockSource,
    tuning: Tuning,
    /// Whether all matches are counted or scored.
    visits_all: bool,
    scratch: &'s mut Scratch,
}

impl<'a> ListOpener<'a, '_> {
    /// Opens a group, or its only clause unless that is a term, its required clauses for this use of their
    /// skip records.
    fn open_group(&mut self, group: &Clauses<PlanNode>, data_use: SkipDataUse) -> Result<Node<'a>> {
        if let Some(node) = group.only_clause().filter(|node| !matches!(node, PlanNode::Term { .. })) {
            return self.open_node(node, data_use);
        }
        if group.minimum > 0 {
            let mut nodes = Vec::with_capacity(group.should.len());
            for node in &group.should {
                nodes.push(self.open_node(node, SkipDataUse::MaxShares)?);
            }
            let has_positive_scores = group.should.iter().all(has_positive_scores);
            let documents = self.view.segment.documents();
            let any = AnyOf::new(nodes, group.minimum, has_positive_scores, documents);
            return Ok(Node::AnyOf(Box::new(any)));
        }
        let mut clauses = Vec::with_capacity(group.all().count());
        for (node, how) in self.view.refining_clauses(group) {
            let data_use = if how == Refine::Require { data_use } else { SkipDataUse::MaxShares };
            let node = self.open_node(node, data_use)?;
            clauses.push(RefiningClause { node, how, included_bound: 0, found_unscored: false });
        }
        Ok(Node::AllOf(Box::new(AllOf::new(clauses))))
    }

    fn open_node(&mut self, node: &PlanNode, data_use: SkipDataUse) -> Result<Node<'a>> {
        let SegmentView { plan, segment, .. } = self.view;
        // By document frequencies, as when memory was reserved for it, not by the opened lists.
        let cost = self.view.cost(node);
        match node {
            PlanNode::Term { leaf, .. } => {
                Ok(Node::Term(Box::new(self.open_term(*leaf, &plan.leaves[*leaf].scorer, data_use)?)))
            }
            PlanNode::Phrase { field, leaves, phrase, slop, .. } => {
                let scorer = &plan.phrases[*phrase];
                let mut terms = Vec::with_capacity(leaves.len());
                for (distance, leaf) in &leaves[..] {
                    terms.push((*distance, Box::new(self.open_term(*leaf, scorer, data_use)?)));
                }
                let names = leaves.iter().map(|(distance, leaf)| (*distance, &plan.leaves[*leaf].term));
                let alignments = Alignments::new(&names.collect::<Vec<_>>(), *slop);
                let phrase =
                    Phrase::new(terms, segment.field_of_term(*field), self.source, scorer, alignments)?;
                Ok(Node::Phrase(Box::new(phrase)))
            }
            PlanNode::Prefix { prefix, weight } => {
                let (number, source) = (self.view.number, self.source);
                let documents = match few_documents(prefix, segment, number, source)? {
                    Some(documents) => DocumentSet::Sorted(documents),
                    None => {
                        let whole = self.visits_all || prefix.is_used_again.load(Ordering::Relaxed);
                        let set = PrefixSet::open(prefix, segment, number, source, whole)?;
                        DocumentSet::Prefix(Box::new(set))
                    }
                };
                Ok(Node::Set(SetNode::new(documents, plan.scale.constant(*weight), cost)))
            }
            PlanNode::Column { clause, weight } => {
                let column = segment.column(clause.column);
                let column = column.expect("clauses on columns that a segment lacks were removed");
                let documents = DocumentSet::Column(Box::new(ColumnSet::open(column, clause, self.source)?));
                let documents_max = clause.matches[self.view.number].documents_max;
                Ok(Node::Set(SetNode::new(documents, plan.scale.constant(*weight), documents_max)))
            }
            PlanNode::All { weight } => {
                let all = DocumentSet::All(segment.documents());
                Ok(Node::Set(SetNode::new(all, plan.scale.constant(*weight), cost)))
            }
            PlanNode::Group(group) => self.open_group(group, data_use),
            PlanNode::Nothing => Ok(Node::Set(SetNode::new(DocumentSet::All(0), 0, cost))),
        }
    }

    fn open_term(&mut self, leaf: usize, scorer: &'a TermScorer, data_use: SkipDataUse) -> Result<Term<'a>> {
        let info = self.view.term_info(leaf).expect("clauses of terms that a segment lacks were removed");
        let (leaf, segment) = (&self.view.plan.leaves[leaf], self.view.segment);
        let part = record_part(info, leaf, segment, data_use, &self.tuning);
        Term::open(leaf, scorer, info, part, segment, self.source, self.scratch)
    }

    /// Prefetches the skip record of a term, unless it is resident.
    fn prefetch_record(&self, leaf: usize, data_use: SkipDataUse) {
        let (info, leaf) = (self.view.term_info(leaf), &self.view.plan.leaves[leaf]);
        let Some(info) = info else { return };
        let field = self.view.segment.field_of_term(leaf.field);
        if field.skips_file().resident().is_none() {
            let part = record_part(info, leaf, self.view.segment, data_use, &self.tuning);
            self.source.prefetch(field.skips_file(), field.record_range(info, part));
        }
    }
}

impl Leaf {
    /// How the max shares that are stored in a segment bound the shares of this ranking ([`ShareBounds`]);
    /// `None` with [`Scorer::Dot`](crate::rank::Scorer::Dot), whose bounds follow from impacts.
    pub fn share_bounds(&self, segment: &Segment) -> Option<ShareBounds> {
        let lengths = self.scorer.lengths()?;
        Some(ShareBounds::new(segment.average_length(self.field), lengths))
    }
}

/// The part of a skip record that is read from disk.
///
/// - All of it, with impacts: if there are no bounds from max shares; or if postings are selected by impacts,
///   unless the record is so long that reading it takes longer than scoring whole blocks.
/// - The head, and later the entries that are needed: if few entries of a long record are used, bounds are
///   tight, so that impacts are not needed, and max shares guarantee scores, which raise the threshold. If
///   many are used, all are read at once, without impacts.
/// - All of it without impacts otherwise.
pub(super) fn record_part(
    info: &TermInfo,
    leaf: &Leaf,
    segment: &Segment,
    data_use: SkipDataUse,
    tuning: &Tuning,
) -> RecordPart {
    use SkipDataUse::{BestEntries, Impacts};
    let superblocks = (info.document_frequency as usize).div_ceil(BLOCK * SUPERBLOCK);
    let record = info.skips.end - info.skips.start;
    let is_long = record > tuning.head_record_bytes_min;
    let guarantees_scores = segment.field_of_term(leaf.field).field().norms == NormKind::Byte;
    match (leaf.share_bounds(segment), data_use) {
        (None, _) => RecordPart::Whole,
        (Some(bounds), BestEntries { candidates }) if bounds.is_tight && guarantees_scores && is_long => {
            let is_few = candidates.saturating_mul(tuning.head_superblocks_per_candidate) <= superblocks;
            if is_few { RecordPart::Head } else { RecordPart::WithoutImpacts }
        }
        (Some(_), BestEntries { .. } | Impacts) if record <= tuning.impact_record_bytes_max => {
            RecordPart::Whole
        }
        _ => RecordPart::WithoutImpacts,
    }
}
