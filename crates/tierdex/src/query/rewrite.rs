//! Rewrites a plan into a simpler one that matches the same documents.
//!
//! The score of a document is defined by the plan that is rewritten for the collection. Only the rule for
//! equal clauses changes scores, by rounding: a clause with the sum of the weights has one rounded score,
//! while two clauses would add two rounded ones. Scores are integers, so no order of summation matters.
//!
//! | plan | rewritten to |
//! |---|---|
//! | a required clause that cannot match | nothing |
//! | an alternative or exclusion that cannot match | removed |
//! | an exclusion that all documents match | nothing |
//! | fewer alternatives than must match | nothing |
//! | as many alternatives as must match | required clauses |
//! | alternatives beside required clauses or exclusions | a required group of the alternatives |
//! | only exclusions | all documents, with these exclusions |
//! | required clauses in a required group | required clauses of the outer group |
//! | alternatives in alternatives, if one or none must match | alternatives of the outer group |
//! | an exclusion of alternatives | an exclusion of each |
//! | equal clauses | one clause with the sum of their weights |
//! | a filter that is also required, or that all documents pass | removed, unless nothing else is required |
//! | clauses that score 0 | filters; optional ones are removed |
//! | a group of one clause | the clause |
//!
//! Without scoring, required clauses become filters and optional clauses are removed.
//!
//! A query is rewritten by its document frequencies in the whole collection, so that scores do not depend on
//! the division into segments. In each segment the result is rewritten again by what the segment contains:
//! then equal clauses stay as they are, and scores are exactly those of the plan of the collection.

use super::clauses::Clauses;
use super::plan_node::{Leaf, PlanNode};
use std::{collections::HashMap, mem::take};

/// Up to this number of clauses, equal ones are found by comparing all pairs, beyond it with a hash table.
const PAIRWISE_CLAUSES_MAX: usize = 12;

/// The segment for which a plan is rewritten: its number in the commit, and its number of documents.
#[derive(Clone, Copy)]
struct RewrittenSegment {
    number: usize,
    documents: u32,
}

/// Rewrites plans by the document frequencies of their terms: in the whole collection, or in one segment.
#[derive(Clone, Copy)]
pub(crate) struct PlanRewriter<'a> {
    leaves: &'a [Leaf],
    segment: Option<RewrittenSegment>,
    scored: bool,
}

/// What two equal clauses have in common: everything except the weight.
#[derive(PartialEq, Eq, Hash)]
enum ClauseKey<'a> {
    Term(usize, &'a str),
    Phrase(usize, u32, Vec<(u32, &'a str)>),
    Prefix(usize, &'a str, bool),
    Column(usize, &'a [(u64, u64)]),
    All,
}

impl<'a> PlanRewriter<'a> {
    /// Rewrites by the whole collection; `scored` if hits are requested.
    pub(super) fn of_collection(leaves: &'a [Leaf], scored: bool) -> PlanRewriter<'a> {
        PlanRewriter { leaves, segment: None, scored }
    }

    /// Rewrites by the segment with this number and number of documents.
    pub(crate) fn of_segment(leaves: &'a [Leaf], number: usize, documents: u32, scored: bool) -> Self {
        PlanRewriter { leaves, segment: Some(RewrittenSegment { number, documents }), scored }
    }

    /// Rewrites the root of a plan.
    pub(crate) fn rewrite_root(self, root: PlanNode) -> PlanNode {
        if self.segment.is_some() && self.is_unchanged(&root) {
            return root;
        }
        let root = self.rewrite_node(root);
        if self.scored { filter_if_unscored(root) } else { root }
    }

    /// Whether all clauses can match, and no filter or exclusion matches all documents: no rule applies.
    fn is_unchanged(self, node: &PlanNode) -> bool {
        let PlanNode::Group(group) = node else { return self.can_match(node) };
        let mut selective = group.filter.iter().chain(&group.must_not);
        group.all().all(|node| self.is_unchanged(node)) && !selective.any(|node| self.matches_all(node))
    }

    fn can_match(self, node: &PlanNode) -> bool {
        let Some(RewrittenSegment { number, .. }) = self.segment else {
            return !matches!(node, PlanNode::Nothing);
        };
        let has = |leaf: &usize| self.leaves[*leaf].infos[number].is_some();
        match node {
            PlanNode::Term { leaf, .. } => has(leaf),
            PlanNode::Phrase { leaves, .. } => leaves.iter().all(|(_, leaf)| has(leaf)),
            PlanNode::Prefix { prefix, .. } => prefix.postings[number] > 0,
            PlanNode::Column { clause, .. } => clause.matches[number].documents > 0,
            PlanNode::All { .. } | PlanNode::Group(_) => true,
            PlanNode::Nothing => false,
        }
    }

    fn matches_all(self, node: &PlanNode) -> bool {
        match (node, self.segment) {
            (PlanNode::All { .. }, _) => true,
            (PlanNode::Term { leaf, .. }, Some(RewrittenSegment { number, documents })) => self.leaves[*leaf]
                .infos[number]
                .as_ref()
                .is_some_and(|info| info.document_frequency == documents),
            (PlanNode::Column { clause, .. }, Some(RewrittenSegment { number, documents })) => {
                let matches = clause.matches[number];
                matches.is_exact && matches.documents == u64::from(documents)
            }
            _ => false,
        }
    }

    fn rewrite_node(self, node: PlanNode) -> PlanNode {
        match node {
            PlanNode::Group(group) => self.rewrite_group(*group),
            mut leaf if self.can_match(&leaf) => {
                // As part of a filter it does not score; a large weight would overflow sums of max scores.
                match &mut leaf {
                    PlanNode::Prefix { weight, .. }
                    | PlanNode::Column { weight, .. }
                    | PlanNode::All { weight }
                        if !self.scored =>
                    {
                        *weight = 0.0
                    }
                    _ => {}
                }
                leaf
            }
            _ => PlanNode::Nothing,
        }
    }

    fn rewrite_group(self, mut group: Clauses<PlanNode>) -> PlanNode {
        if !group.requires() && group.should.is_empty() {
            group.filter.push(PlanNode::All { weight: 0.0 });
        }
        let unscored = PlanRewriter { scored: false, ..self };
        self.rewrite_all(&mut group.must);
        unscored.rewrite_all(&mut group.filter);
        self.rewrite_all(&mut group.should);
        unscored.rewrite_all(&mut group.must_not);
        group.should.retain(|node| !is_nothing(node));
        group.must_not.retain(|node| !is_nothing(node));
        if !group.requires() {
            group.minimum = group.minimum.max(1);
        }
        if group.must.iter().chain(&group.filter).any(is_nothing) || group.minimum > group.should.len() {
            return PlanNode::Nothing;
        }
        group.require_if_all_must_match();
        group.inline_groups();
        if group.must_not.iter().any(|node| self.matches_all(node)) {
            return PlanNode::Nothing;
        }
        self.merge_alternatives(&mut group);
        group.require_alternatives();
        self.merge_required(&mut group);
        self.unwrap_single_clause(group)
    }

    fn rewrite_all(self, nodes: &mut [PlanNode]) {
        for node in nodes {
            *node = self.rewrite_node(take(node));
        }
    }

    /// Merges equal alternatives, unless two or more must match: then each counts by itself. Removes optional
    /// clauses that score 0.
    fn merge_alternatives(self, group: &mut Clauses<PlanNode>) {
        if group.minimum == 0 {
            group.should.retain(|node| self.scored && !node.has_weight_zero());
        }
        if group.minimum <= 1 {
            self.merge_equal(&[], &mut group.should);
            group.require_if_all_must_match();
        }
        if self.scored {
            for node in &mut group.should {
                *node = filter_if_unscored(take(node));
            }
        }
    }

    /// Makes required clauses that score 0 filters, merges equal ones, drops filters that all documents pass.
    fn merge_required(self, group: &mut Clauses<PlanNode>) {
        group.filter.extend(group.must.extract_if(.., |node| !self.scored || node.has_weight_zero()));
        self.merge_equal(&[], &mut group.must);
        let unscored = PlanRewriter { scored: false, ..self };
        unscored.merge_equal(&group.must, &mut group.filter);
        let selects = |node: &PlanNode| !self.matches_all(node);
        if !group.must.is_empty() || group.minimum > 0 || group.filter.iter().any(selects) {
            group.filter.retain(selects);
        } else {
            group.filter.truncate(1);
        }
    }

    /// Removes each of `clauses` that is equal to one of `others`, or to an earlier one of them, whose weight
    /// is increased by its own. Does nothing in a segment.
    fn merge_equal(self, others: &[PlanNode], clauses: &mut Vec<PlanNode>) {
        if self.segment.is_some() || others.len() + clauses.len() < 2 {
            return;
        }
        let Some(firsts) = self.first_equal(others, clauses) else { return };
        let before = others.len();
        for (at, first) in firsts.iter().enumerate().skip(before) {
            if self.scored && (before..at).contains(first) {
                let added = clauses[at - before].weight();
                clauses[first - before].add_weight(added);
            }
        }
        let mut positions = firsts.iter().enumerate().skip(before);
        clauses.retain(|_| positions.next().is_some_and(|(at, first)| at == *first));
    }

    /// For each clause of `others` followed by `clauses`, the position of the first clause that is equal to
    /// it; `None` if no two are equal.
    fn first_equal(self, others: &[PlanNode], clauses: &[PlanNode]) -> Option<Vec<usize>> {
        let all: Vec<&PlanNode> = others.iter().chain(clauses).collect();
        let is_first = |at: usize| {
            let key = self.clause_key(all[at]);
            key.is_none() || all[..at].iter().all(|other| self.clause_key(other) != key)
        };
        if all.len() <= PAIRWISE_CLAUSES_MAX && (others.len()..all.len()).all(is_first) {
            return None;
        }
        let mut positions = HashMap::new();
        let first = |(at, node)| self.clause_key(node).map_or(at, |key| *positions.entry(key).or_insert(at));
        Some(all.into_iter().enumerate().map(first).collect())
    }

    fn clause_key<'n>(self, node: &'n PlanNode) -> Option<ClauseKey<'n>>
    where
        'a: 'n,
    {
        let leaf = |leaf: usize| &self.leaves[leaf];
        Some(match node {
            PlanNode::Term { leaf: of, .. } => ClauseKey::Term(leaf(*of).field, &leaf(*of).term),
            PlanNode::Phrase { field, leaves, slop, .. } => {
                let terms = leaves.iter().map(|(distance, of)| (*distance, &*leaf(*of).term));
                ClauseKey::Phrase(*field, *slop, terms.collect())
            }
            PlanNode::Prefix { prefix, .. } => {
                ClauseKey::Prefix(prefix.field, &prefix.text, prefix.whole_clusters)
            }
            PlanNode::Column { clause, .. } => ClauseKey::Column(clause.column, &clause.ranges),
            PlanNode::All { .. } => ClauseKey::All,
            PlanNode::Group(_) | PlanNode::Nothing => return None,
        })
    }

    /// Replaces a group of one clause by the clause. If hits are requested, a group of one filter stays,
    /// because the clause alone would be scored.
    fn unwrap_single_clause(self, mut group: Clauses<PlanNode>) -> PlanNode {
        match (group.must.len(), group.filter.len(), group.should.len(), group.must_not.len()) {
            (1, 0, 0, 0) => group.must.remove(0),
            (0, 1, 0, 0) if !self.scored => group.filter.remove(0),
            _ => PlanNode::Group(Box::new(group)),
        }
    }
}

impl Clauses<PlanNode> {
    /// Makes alternatives required clauses if all of them must match.
    fn require_if_all_must_match(&mut self) {
        if self.minimum == self.should.len() {
            self.must.append(&mut self.should);
            self.minimum = 0;
        }
    }

    /// Makes alternatives beside other clauses a required group: a group is a conjunction or a disjunction.
    pub(crate) fn require_alternatives(&mut self) {
        if self.minimum > 0 && (self.requires() || !self.must_not.is_empty()) {
            let (should, minimum) = (take(&mut self.should), take(&mut self.minimum));
            self.must.push(PlanNode::Group(Box::new(Clauses { should, minimum, ..Clauses::default() })));
        }
    }

    /// Moves the clauses of nested groups to this group where that is equivalent.
    fn inline_groups(&mut self) {
        if !self.all().any(|node| matches!(node, PlanNode::Group(_))) {
            return;
        }
        for node in take(&mut self.must) {
            match node {
                PlanNode::Group(inner)
                    if inner.minimum == 0 && (self.minimum == 0 || inner.should.is_empty()) =>
                {
                    self.must.extend(inner.must);
                    self.filter.extend(inner.filter);
                    self.should.extend(inner.should);
                    self.must_not.extend(inner.must_not);
                }
                other => self.must.push(other),
            }
        }
        for node in take(&mut self.filter) {
            match node {
                PlanNode::Group(inner) if inner.minimum == 0 && inner.should.is_empty() => {
                    self.filter.extend(inner.must.into_iter().chain(inner.filter));
                    self.must_not.extend(inner.must_not);
                }
                other => self.filter.push(other),
            }
        }
        if self.minimum <= 1 {
            inline_alternatives(&mut self.should);
        }
        inline_alternatives(&mut self.must_not);
    }
}

/// Replaces groups of alternatives by their alternatives.
fn inline_alternatives(nodes: &mut Vec<PlanNode>) {
    for node in take(nodes) {
        match node {
            PlanNode::Group(inner) if inner.are_alternatives() => nodes.extend(inner.should),
            other => nodes.push(other),
        }
    }
}

/// Makes a term or phrase of weight 0 a group of one filter: as a scored clause its matches would score 1.
fn filter_if_unscored(node: PlanNode) -> PlanNode {
    match node {
        PlanNode::Term { .. } | PlanNode::Phrase { .. } if node.has_weight_zero() => {
            PlanNode::Group(Box::new(Clauses { filter: vec![node], ..Clauses::default() }))
        }
        other => other,
    }
}

fn is_nothing(node: &PlanNode) -> bool {
    matches!(node, PlanNode::Nothing)
}

#[cfg(test)]
mod tests;
