//! The log of an evaluation in a segment, which `explain` shows: the strategy, the plan as a tree, and the
//! numbers of blocks decoded and skipped in each list.
//!
//! For each list, `blocks = decoded + by_bound + by_range`. A block counts as *decoded* if its documents or
//! frequencies were decoded at least once; as skipped *by bound* if the evaluation reached it and pruned it
//! because its max score, or that of a window of documents which it overlaps, is below the threshold; as
//! skipped *by range* if none of its documents was requested.

use crate::eval::{SegmentView, StrategyKind};
use crate::query::QueryPlan;
use crate::{
    cursor::BlockCounts, eval::nodes::Node, query::plan_node::PlanNode, schema::Column, schema::Schema,
};
use std::ops::Range;

/// The log of the evaluation of a query in a segment.
#[derive(Clone, Debug, Default)]
pub struct EvaluationLog {
    /// The strategy chosen.
    pub strategy: StrategyKind,
    /// The nodes of the plan as text, each with its depth in the tree; empty for a query of one term.
    pub nodes: Vec<(usize, String)>,
    /// The opened lists, in query order.
    pub lists: Vec<ListUse>,
}

/// What an evaluation did with the posting list of a term.
#[derive(Clone, Debug)]
pub struct ListUse {
    /// The field's name.
    pub field: String,
    /// The term.
    pub term: String,
    /// Document frequency in the segment.
    pub documents: u32,
    /// Weight before scaling. With BM25 it is an upper bound of the scores: inverse document frequency,
    /// times `k1 + 1`, times the boost. With an inner product it is the boost.
    pub weight: f64,
    /// Upper bound of the scores of the list's documents in the segment; `None` if they were not scored.
    pub highest_bound: Option<f32>,
    /// Candidates of other lists that were looked up in this list.
    pub candidates: u64,
    /// How many of `candidates` were kept: for an exclusion those not found in the list, for an optional
    /// clause all, otherwise those found.
    pub kept: u64,
    /// Numbers of decoded and skipped blocks.
    pub blocks: BlockCounts,
    /// The pages of the decoded documents and frequencies in the file of posting lists, in ascending order:
    /// [`ReadCosts::plan`](tierdex_cache::ReadCosts::plan) divides them into reads.
    pub pages: Vec<Range<u64>>,
    /// Bytes of the skip record of the list; an inline list is stored in its skip record.
    pub skips_bytes: u64,
}

impl EvaluationLog {
    /// Lets all lists of a strategy count the blocks that they decode and prune.
    pub(crate) fn start_recording(&mut self, strategy: StrategyKind, root: &mut Node<'_>) {
        self.strategy = strategy;
        root.each_term(&mut |term| term.blocks.start_trace());
    }

    /// Adds the plan as text, and what was done with each list. Nothing if the strategy has not opened any.
    pub(crate) fn finish_recording(&mut self, view: SegmentView<'_>, schema: &Schema, root: &mut Node<'_>) {
        let plan = view.plan;
        let kind = self.strategy;
        if matches!(kind, StrategyKind::Nothing | StrategyKind::Dictionary) {
            return;
        }
        if !matches!(plan.root, PlanNode::Term { .. }) {
            plan.add_lines(&plan.root, schema, 0, &mut self.nodes);
        }
        let mut lists = Vec::new();
        root.each_term(&mut |term| {
            let (leaf, info) = (&plan.leaves[term.leaf], view.term_info(term.leaf));
            let mut blocks = term.blocks.traced_counts();
            if kind == StrategyKind::ImpactOrdered && leaf.is_scored {
                // Every block was checked by its max score or that of its superblock.
                blocks.by_bound += std::mem::take(&mut blocks.by_range);
            }
            let is_scored = kind.is_scored() && leaf.is_scored && leaf.weight > 0.0;
            let (candidates, kept) = term.looked_up;
            let list = ListUse {
                field: schema.fields[leaf.field].name.clone(),
                term: leaf.term.clone(),
                documents: info.map_or(0, |info| info.document_frequency),
                weight: leaf.weight,
                highest_bound: is_scored.then(|| plan.scale.shown(term.list_max_score())),
                candidates,
                kept,
                blocks,
                pages: term.blocks.traced_pages(),
                skips_bytes: info.map_or(0, |info| info.skips.end - info.skips.start),
            };
            lists.push((term.leaf, list));
        });
        lists.sort_by_key(|(leaf, _)| *leaf);
        self.lists = lists.into_iter().map(|(_, list)| list).collect();
    }
}

impl QueryPlan {
    /// Appends a line of text for each node of a tree, with its depth.
    fn add_lines(&self, node: &PlanNode, schema: &Schema, depth: usize, lines: &mut Vec<(usize, String)>) {
        let field = |number: usize| &schema.fields[number].name;
        let term = |leaf: usize| &*self.leaves[leaf].term;
        let text = match node {
            PlanNode::Term { leaf, .. } => {
                format!("term {}:{}", field(self.leaves[*leaf].field), term(*leaf))
            }
            PlanNode::Phrase { field: number, leaves, slop, .. } => {
                let words: Vec<&str> = leaves.iter().map(|(_, leaf)| term(*leaf)).collect();
                let kind = if *slop > 0 { "phrase with slop" } else { "phrase" };
                format!("{kind} {}:\"{}\"", field(*number), words.join(" "))
            }
            PlanNode::Prefix { prefix, .. } => format!("prefix {}:{}*", field(prefix.field), prefix.text),
            PlanNode::Column { clause, .. } => show_column(&schema.columns[clause.column], &clause.ranges),
            PlanNode::All { .. } => "all documents".to_string(),
            PlanNode::Nothing => "nothing".to_string(),
            PlanNode::Group(_) => "group".to_string(),
        };
        lines.push((depth, text));
        let PlanNode::Group(group) = node else { return };
        let any = format!("should, at least {}", group.minimum);
        let lists = [&group.must, &group.filter, &group.should, &group.must_not];
        for (name, clauses) in ["must", "filter", &any, "must not"].into_iter().zip(lists) {
            if !clauses.is_empty() {
                lines.push((depth + 1, name.to_string()));
                clauses.iter().for_each(|clause| self.add_lines(clause, schema, depth + 2, lines));
            }
        }
    }
}

/// Number of ranges of a clause on a column that are shown.
const RANGES_SHOWN_MAX: usize = 8;

fn show_column(column: &Column, ranges: &[(u64, u64)]) -> String {
    let show = |(low, high): &(u64, u64)| {
        let of = |bits, open: bool| match open {
            true => "*".to_string(),
            false => column.values.value_of_bits(bits).to_string(),
        };
        format!("[{} TO {}]", of(*low, *low == 0), of(*high, *high == u64::MAX))
    };
    let shown: Vec<_> = ranges.iter().take(RANGES_SHOWN_MAX).map(show).collect();
    let more = if ranges.len() > shown.len() {
        format!(" and {} more", ranges.len() - shown.len())
    } else {
        String::new()
    };
    format!("column {}:{}{more}", column.name, shown.join(" "))
}
