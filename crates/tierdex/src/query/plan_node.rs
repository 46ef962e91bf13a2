//! The plan of a query as a tree of nodes, and the terms that they refer to.

use super::clauses::Clauses;
use super::column_clause::ColumnClause;
use crate::{
    limits::{PREFIX_LONG_LISTS_MAX, PREFIX_SHORT_LISTS_MAX},
    rank::TermScorer,
    segment::read::TermInfo,
};
use std::sync::{Arc, OnceLock, atomic::AtomicBool};

/// A clause of a plan. A term is an index into the leaves of the plan. A weight is the factor of the share of
/// a posting in the score, before scores are scaled to integers.
#[derive(Clone, Default)]
pub enum PlanNode {
    Term {
        leaf: usize,
        weight: f64,
    },
    Phrase {
        field: usize,
        /// Distances from the first term in positions, and terms.
        leaves: Arc<[(u32, usize)]>,
        /// Index of the scorer of the phrase in the plan.
        phrase: usize,
        /// Total number of positions by which the terms may be displaced.
        slop: u32,
        weight: f64,
    },
    Prefix {
        prefix: Arc<PrefixClause>,
        /// Score of each match.
        weight: f64,
    },
    Column {
        clause: Arc<ColumnClause>,
        /// Score of each match.
        weight: f64,
    },
    All {
        /// Score of each match.
        weight: f64,
    },
    Group(Box<Clauses<PlanNode>>),
    #[default]
    Nothing,
}

/// A prefix of terms.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct TermPrefix<'a> {
    pub(crate) text: &'a str,
    /// Whether the prefix stands only for terms in which a grapheme cluster ends where the prefix ends.
    pub(crate) whole_clusters: bool,
}

/// The set of a prefix is a sorted list, not a bitset, if the bitset has more than this number of bytes for
/// each posting. Bitsets only: 2.3 times the time for ten hits of a prefix of ten rare terms among 4.4
/// million documents.
const SORTED_BYTES_RATIO: u64 = 256;

/// A prefix, and the number of the terms and postings that it stands for.
pub struct PrefixClause {
    pub(crate) field: usize,
    pub(crate) text: String,
    /// Whether the prefix stands only for terms in which a grapheme cluster ends where the prefix ends.
    pub(crate) whole_clusters: bool,
    /// Number of terms with this prefix.
    pub(crate) terms: usize,
    /// For each segment, the sum of the document frequencies of the terms with this prefix.
    pub(crate) postings: Vec<u64>,
    /// For each segment, the lists of the terms; `None` if there are too many to keep.
    pub(crate) lists: Option<Vec<PrefixLists>>,
    /// For each segment, the bitset of the documents that contain one of the terms, once an evaluation has
    /// filled it; empty if the clause is not kept for later queries.
    pub(crate) sets: Vec<OnceLock<Vec<u8>>>,
    /// Whether a second query uses the clause: its sets are then filled whole, for others that follow.
    pub(crate) is_used_again: AtomicBool,
}

/// The lists of the terms with a prefix in a segment.
#[derive(Clone, Default)]
pub(crate) struct PrefixLists {
    /// The lists without blocks: all of them if [`PrefixClause::has_short_lists`].
    short: Vec<ShortList>,
    /// The dictionary entries of the lists with blocks.
    long: Vec<TermInfo>,
}

/// What is kept of the dictionary entry of a list without blocks.
#[derive(Clone, Copy)]
struct ShortList {
    record_start: u64,
    record_bytes: u32,
    documents: u32,
}

/// The dictionary entry of a term in each segment that contains it, by the number of the segment.
pub(crate) type InfoBySegment = Vec<Option<TermInfo>>;

/// A term of a query that was looked up.
pub struct Leaf {
    /// Index of this leaf in the leaves of the plan.
    pub(crate) number: usize,
    pub(crate) field: usize,
    pub(crate) term: String,
    pub(crate) infos: InfoBySegment,
    pub(crate) scorer: TermScorer,
    /// Weight before scaling. With BM25 it is the inverse document frequency, times `k1 + 1`, times the
    /// boost, an upper bound of the scores; with an inner product it is the boost. For merged clauses it is
    /// the sum.
    pub(crate) weight: f64,
    /// Whether the postings of the term add to scores.
    pub(crate) is_scored: bool,
}

impl PrefixClause {
    /// A prefix of no terms, over this number of segments.
    pub(crate) fn new(field: usize, prefix: TermPrefix<'_>, segments: usize) -> PrefixClause {
        PrefixClause {
            field,
            text: prefix.text.to_string(),
            whole_clusters: prefix.whole_clusters,
            terms: 0,
            postings: vec![0; segments],
            lists: Some(vec![PrefixLists::default(); segments]),
            sets: Vec::new(),
            is_used_again: AtomicBool::new(false),
        }
    }

    pub(crate) fn prefix(&self) -> TermPrefix<'_> {
        TermPrefix { text: &self.text, whole_clusters: self.whole_clusters }
    }

    /// Adds a term, with its dictionary entry in each segment.
    pub(crate) fn add_term<'a>(&mut self, infos: impl Iterator<Item = Option<&'a TermInfo>>) {
        self.terms += 1;
        let has_short_lists = self.has_short_lists();
        let mut all_kept = true;
        for (number, info) in infos.enumerate() {
            let Some(info) = info else { continue };
            self.postings[number] += u64::from(info.document_frequency);
            if let Some(lists) = &mut self.lists {
                all_kept &= lists[number].add_list(info, has_short_lists);
            }
        }
        self.lists.take_if(|_| !all_kept);
    }

    /// Whether [`PrefixLists::short`] has all lists without blocks.
    fn has_short_lists(&self) -> bool {
        self.terms <= PREFIX_SHORT_LISTS_MAX
    }

    /// The dictionary entries of the lists without blocks in a segment, as far as documents are read by them;
    /// `None` if they are not known.
    pub(crate) fn short_lists(&self, number: usize) -> Option<impl Iterator<Item = TermInfo>> {
        let lists = &self.lists.as_ref().filter(|_| self.has_short_lists())?[number];
        Some(lists.short.iter().map(|ShortList { record_start, record_bytes, documents }| TermInfo {
            document_frequency: *documents,
            occurrences: 0,
            skips: *record_start..record_start + u64::from(*record_bytes),
            blocks: None,
            deleted: 0,
        }))
    }

    /// The dictionary entries of the lists with blocks in a segment; `None` if they are not known.
    pub(crate) fn long_lists(&self, number: usize) -> Option<&[TermInfo]> {
        self.lists.as_ref().map(|lists| &lists[number].long[..])
    }

    /// Whether the documents of the segment with this number, which has `documents` documents, are so few
    /// that their set is a sorted list, which is not kept.
    pub(crate) fn has_few_documents(&self, number: usize, documents: u32) -> bool {
        self.postings[number] < PrefixClause::set_bytes(documents) as u64 / SORTED_BYTES_RATIO
    }

    /// Bytes of the bitset of a segment.
    pub(crate) fn set_bytes(documents: u32) -> usize {
        8 * documents.div_ceil(u64::BITS) as usize
    }

    /// The bitset of the segment with this number, if an evaluation has filled it.
    pub(crate) fn kept_set(&self, number: usize) -> Option<&[u8]> {
        self.sets.get(number)?.get().map(Vec::as_slice)
    }

    /// Leaves a filled bitset to later queries.
    pub(crate) fn keep_set(&self, number: usize, bits: Vec<u8>) {
        if let Some(set) = self.sets.get(number) {
            set.get_or_init(|| bits);
        }
    }

    /// Bytes of the dictionary entries.
    pub(crate) fn memory(&self) -> usize {
        let lists = self.lists.iter().flatten().map(|PrefixLists { short, long, .. }| {
            let entries = short.capacity() * size_of::<ShortList>() + long.capacity() * size_of::<TermInfo>();
            size_of::<PrefixLists>() + entries
        });
        lists.sum()
    }
}

impl PrefixLists {
    /// Adds a list, or frees the short lists if these are too many. False if the long ones are too many.
    fn add_list(&mut self, info: &TermInfo, has_short_lists: bool) -> bool {
        let TermInfo { document_frequency: documents, skips, blocks, .. } = info;
        if blocks.is_some() {
            self.long.push(info.clone());
        } else if has_short_lists {
            let record_bytes = u32::try_from(skips.end.saturating_sub(skips.start)).unwrap_or(u32::MAX);
            self.short.push(ShortList { record_start: skips.start, record_bytes, documents: *documents });
        } else {
            self.short = Vec::new();
        }
        self.long.len() <= PREFIX_LONG_LISTS_MAX
    }
}

impl Leaf {
    /// Number of postings in all segments.
    pub(crate) fn postings(&self) -> u64 {
        self.infos.iter().flatten().map(|info| u64::from(info.document_frequency)).sum()
    }
}

impl PlanNode {
    /// The weight of a clause that is not a group; 0 for a group.
    pub(super) fn weight(&self) -> f64 {
        match self {
            PlanNode::Term { weight, .. }
            | PlanNode::Phrase { weight, .. }
            | PlanNode::Prefix { weight, .. }
            | PlanNode::Column { weight, .. }
            | PlanNode::All { weight } => *weight,
            PlanNode::Group(_) | PlanNode::Nothing => 0.0,
        }
    }

    /// Adds to the weight of a clause that is not a group.
    pub(super) fn add_weight(&mut self, added: f64) {
        match self {
            PlanNode::Term { weight, .. }
            | PlanNode::Phrase { weight, .. }
            | PlanNode::Prefix { weight, .. }
            | PlanNode::Column { weight, .. }
            | PlanNode::All { weight } => *weight += added,
            PlanNode::Group(_) | PlanNode::Nothing => {}
        }
    }

    /// Whether every match scores 0: all scored clauses have weight 0.
    pub(super) fn has_weight_zero(&self) -> bool {
        match self {
            PlanNode::Group(group) => group.must.iter().chain(&group.should).all(PlanNode::has_weight_zero),
            leaf => leaf.weight() == 0.0,
        }
    }
}

/// A plan in the signs of the query language. `term` returns the text of a leaf, and `boost` the text after a
/// term or phrase of these leaves with this weight.
#[cfg(test)]
pub(crate) fn show_plan(
    node: &PlanNode,
    term: &dyn Fn(usize) -> String,
    boost: &dyn Fn(&[usize], f64) -> String,
) -> String {
    let all = |sign: &str, nodes: &[PlanNode]| -> Vec<String> {
        nodes.iter().map(|node| format!("{sign}{}", show_plan(node, term, boost))).collect()
    };
    match node {
        PlanNode::Term { leaf, weight } => format!("{}{}", term(*leaf), boost(&[*leaf], *weight)),
        PlanNode::Phrase { leaves, slop, weight, .. } => {
            let words: Vec<_> = leaves.iter().map(|(at, leaf)| format!("{}@{at}", term(*leaf))).collect();
            let leaves: Vec<usize> = leaves.iter().map(|(_, leaf)| *leaf).collect();
            format!("\"{}\"~{slop}{}", words.join(" "), boost(&leaves, *weight))
        }
        PlanNode::Prefix { prefix, weight } => format!("{}*^{weight}", prefix.text),
        PlanNode::Column { clause, weight } => format!("{}:{:?}^{weight}", clause.column, clause.ranges),
        PlanNode::All { weight } => format!("*:*^{weight}"),
        PlanNode::Nothing => "nothing".to_string(),
        PlanNode::Group(group) => {
            let Clauses { must, filter, should, must_not, minimum } = &**group;
            let clauses = [all("+", must), all("#", filter), all("", should), all("-", must_not)].concat();
            let minimum = if *minimum > 0 { format!("~{minimum}") } else { String::new() };
            format!("({}){minimum}", clauses.join(" "))
        }
    }
}
