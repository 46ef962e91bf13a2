//! Rewrites a plan into the simplest one that matches the same documents with the same scores.
//!
//! | plan | rewritten to |
//! |---|---|
//! | a required clause that cannot match | nothing |
//! | an alternative or exclusion that cannot match | removed |
//! | a filter that all documents pass, beside other required clauses | removed |
//! | as many alternatives as must match | required clauses |
//! | only exclusions | all documents, with these exclusions |
//! | nested required clauses | one list |
//! | an exclusion of alternatives | one list of exclusions |
//! | a group of one clause | the clause |
//! | clauses that score 0 | filters; optional ones are removed |
//!
//! Without scoring, required clauses become filters and optional clauses are removed.

use super::plan::{Leaf, PlanGroup, PlanNode};
use std::collections::HashSet;

/// Up to this number, clauses are compared pairwise rather than through a hash table.
const PAIRWISE_CLAUSES_MAX: usize = 12;

impl PlanNode {
    /// Simplifies the node. `leaves` are the terms of the plan.
    pub(super) fn simplified(self, scored: bool, leaves: &[Leaf]) -> PlanNode {
        match self {
            PlanNode::Phrase { leaves: of, .. }
                if of.iter().any(|(_, leaf)| leaves[*leaf].infos.iter().all(Option::is_none)) =>
            {
                PlanNode::Nothing
            }
            PlanNode::Group(group) => group.simplified(scored, leaves),
            other => other,
        }
    }

    /// Simplifies the root of a plan that is ranked.
    pub(super) fn ranked(self, leaves: &[Leaf]) -> PlanNode {
        self.simplified(true, leaves).unscored(leaves)
    }

    /// Wraps a term or phrase that scores 0 as a filter.
    fn unscored(self, leaves: &[Leaf]) -> PlanNode {
        match self {
            PlanNode::Term(_) | PlanNode::Phrase { .. } if self.scores_nothing(leaves) => {
                PlanNode::Group(Box::new(PlanGroup { filter: vec![self], ..PlanGroup::default() }))
            }
            other => other,
        }
    }

    /// Whether every match scores 0.
    fn scores_nothing(&self, leaves: &[Leaf]) -> bool {
        match self {
            PlanNode::Term(leaf) => leaves[*leaf].weight == 0.0,
            PlanNode::Phrase { leaves: of, .. } => of.iter().all(|(_, leaf)| leaves[*leaf].weight == 0.0),
            PlanNode::Prefix { weight, .. } | PlanNode::All { weight } => *weight == 0.0,
            PlanNode::Group(group) => {
                group.must.iter().chain(&group.should).all(|node| node.scores_nothing(leaves))
            }
            PlanNode::Nothing => true,
        }
    }

    fn is_nothing(&self) -> bool {
        matches!(self, PlanNode::Nothing)
    }

    fn is_all(&self) -> bool {
        matches!(self, PlanNode::All { .. })
    }
}

impl PlanGroup {
    fn simplified(self, scored: bool, leaves: &[Leaf]) -> PlanNode {
        let all = |nodes: &mut Vec<PlanNode>, scored| {
            for node in nodes {
                if !matches!(node, PlanNode::Term(_)) {
                    *node = std::mem::replace(node, PlanNode::Nothing).simplified(scored, leaves);
                }
            }
        };
        let mut group = self;
        let no_clause = group.should.is_empty() && group.must.is_empty() && group.filter.is_empty();
        all(&mut group.must, scored);
        all(&mut group.filter, false);
        all(&mut group.should, scored);
        all(&mut group.must_not, false);
        group.should.retain(|node| !node.is_nothing());
        group.must_not.retain(|node| !node.is_nothing());
        if group.must.iter().chain(&group.filter).any(PlanNode::is_nothing)
            || group.must_not.iter().any(PlanNode::is_all)
        {
            return PlanNode::Nothing;
        }
        if no_clause {
            group.filter.push(PlanNode::All { weight: 0.0 });
        }
        if group.must.is_empty() && group.filter.is_empty() {
            group.minimum = group.minimum.max(1);
        }
        if group.minimum > group.should.len() {
            return PlanNode::Nothing;
        }
        if group.minimum == group.should.len() && !group.should.is_empty() {
            group.must.append(&mut group.should);
            group.minimum = 0;
        }
        group.flatten();
        group.unscore(scored, leaves);
        group.drop_equal_filters(leaves);
        group.collapse(scored)
    }

    /// Inlines the clauses of nested groups where that is equivalent.
    fn flatten(&mut self) {
        let is_group = |node: &PlanNode| matches!(node, PlanNode::Group(_));
        if !self.must.iter().chain(&self.filter).chain(&self.must_not).any(is_group) {
            return;
        }
        for node in std::mem::take(&mut self.must) {
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
        for node in std::mem::take(&mut self.filter) {
            match node {
                PlanNode::Group(inner) if inner.minimum == 0 && inner.should.is_empty() => {
                    self.filter.extend(inner.must);
                    self.filter.extend(inner.filter);
                    self.must_not.extend(inner.must_not);
                }
                other => self.filter.push(other),
            }
        }
        for node in std::mem::take(&mut self.must_not) {
            match node {
                PlanNode::Group(inner)
                    if inner.minimum == 1
                        && inner.must.is_empty()
                        && inner.filter.is_empty()
                        && inner.must_not.is_empty() =>
                {
                    self.must_not.extend(inner.should);
                }
                other => self.must_not.push(other),
            }
        }
    }

    /// Turns required clauses that score 0 into filters, and removes optional ones.
    fn unscore(&mut self, scored: bool, leaves: &[Leaf]) {
        let unscored = |node: &mut PlanNode| !scored || node.scores_nothing(leaves);
        self.filter.extend(self.must.extract_if(.., unscored));
        if self.minimum == 0 {
            self.should.retain_mut(|node| !unscored(node));
        } else if scored {
            for node in &mut self.should {
                *node = std::mem::replace(node, PlanNode::Nothing).unscored(leaves);
            }
        }
    }

    /// Removes duplicate filters, and filters that all documents pass unless nothing else is required.
    fn drop_equal_filters(&mut self, leaves: &[Leaf]) {
        let term = |node: &PlanNode| match node {
            PlanNode::Term(leaf) => Some((leaves[*leaf].field, &*leaves[*leaf].term)),
            _ => None,
        };
        if self.filter.len() + self.must.len() > PAIRWISE_CLAUSES_MAX {
            let mut seen: HashSet<(usize, &str)> = self.must.iter().filter_map(term).collect();
            self.filter.retain(|node| term(node).is_none_or(|term| seen.insert(term)));
        } else {
            for at in (0..self.filter.len()).rev() {
                let before = self.must.iter().chain(&self.filter[..at]);
                if let Some(own) = term(&self.filter[at])
                    && before.filter_map(term).any(|other| other == own)
                {
                    self.filter.remove(at);
                }
            }
        }
        if self.filter.iter().chain(&self.must).any(|node| !node.is_all()) {
            self.filter.retain(|node| !node.is_all());
        } else if self.must.is_empty() {
            self.filter.truncate(1);
        }
    }

    /// Replaces a group of one clause by the clause.
    fn collapse(mut self, scored: bool) -> PlanNode {
        let len = |nodes: &Vec<PlanNode>| nodes.len();
        match (len(&self.must), len(&self.filter), len(&self.should), len(&self.must_not)) {
            (1, 0, 0, 0) => self.must.remove(0),
            (0, 1, 0, 0) if !scored => self.filter.remove(0),
            (0, 0, 1, 0) => self.should.remove(0),
            _ => PlanNode::Group(Box::new(self)),
        }
    }
}

#[cfg(test)]
mod tests;
