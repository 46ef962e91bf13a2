//! Sets of documents that do not depend on scores: all documents of a segment, those that contain a term with
//! a prefix, or those with some values in a column.

use crate::eval::nodes::{ColumnSet, PrefixSet};
use crate::eval::state::{Bits, CandidateBatch, DocRange, Refine, Refinement, positions_within};
use crate::{Result, cursor::NO_DOCUMENT};

/// A set of documents of a segment.
pub enum DocumentSet<'a> {
    /// All documents below this one.
    All(u32),
    /// Few documents, ascending.
    Sorted(Vec<u32>),
    Prefix(Box<PrefixSet<'a>>),
    /// Those with some values in a column.
    Column(Box<ColumnSet<'a>>),
}

/// A set as a node: each of its documents has the same score.
pub struct SetNode<'a> {
    documents: DocumentSet<'a>,
    pub(crate) score: u32,
    pub(crate) cost: u64,
}

impl<'a> SetNode<'a> {
    /// A set with at most `cost` documents.
    pub(crate) fn new(documents: DocumentSet<'a>, score: u32, cost: u64) -> SetNode<'a> {
        SetNode { documents, score, cost }
    }

    pub(crate) fn next_lower_bound(&self, from: u32) -> u32 {
        let next = match &self.documents {
            DocumentSet::All(end) => Some(from).filter(|from| from < end),
            DocumentSet::Sorted(sorted) => {
                sorted.get(sorted.partition_point(|document| *document < from)).copied()
            }
            DocumentSet::Prefix(set) => set.next_lower_bound(from),
            DocumentSet::Column(set) => Some(set.next_lower_bound(from)),
        };
        next.unwrap_or(NO_DOCUMENT)
    }

    pub(crate) fn max_score(&self, range: DocRange) -> Option<u32> {
        (self.next_lower_bound(range.first) <= range.last).then_some(self.score)
    }

    pub(crate) fn mark_matches(&mut self, bits: &mut Bits) -> Result<()> {
        match &mut self.documents {
            DocumentSet::All(_) => bits.add_all(),
            DocumentSet::Sorted(sorted) => bits.add(&sorted[positions_within(sorted, bits.range())]),
            DocumentSet::Prefix(set) => {
                set.fill(bits.range())?;
                bits.add_bytes(0, set.bits());
            }
            DocumentSet::Column(set) => set.mark_matches(bits)?,
        }
        Ok(())
    }

    pub(crate) fn refine_batch(&mut self, batch: &mut CandidateBatch, refinement: Refinement) -> Result<()> {
        let Refinement { how, included_bound, min_score } = refinement;
        let (mut kept, keeps_others) = (0, matches!(how, Refine::Exclude | Refine::Optional));
        if let (DocumentSet::Prefix(set), Some(range)) = (&mut self.documents, batch.range()) {
            set.fill_for(range, batch.len())?;
        }
        for at in 0..batch.len() {
            let document = batch.documents[at];
            let is_in = match &mut self.documents {
                DocumentSet::All(end) => document < *end,
                DocumentSet::Sorted(sorted) => sorted.binary_search(&document).is_ok(),
                DocumentSet::Prefix(set) => set.contains(document)?,
                DocumentSet::Column(set) => set.contains(document)?,
            };
            let added = if is_in && how.is_scored() { self.score } else { 0 };
            let keeps = if is_in { how != Refine::Exclude } else { keeps_others };
            batch.documents[kept] = document;
            batch.scores[kept] = batch.scores[at] - included_bound + added;
            kept += usize::from(keeps);
        }
        batch.truncate(kept);
        batch.retain_at_least(min_score);
        Ok(())
    }

    pub(crate) fn close(self) {
        if let DocumentSet::Prefix(set) = self.documents {
            set.close();
        }
    }
}
