//! Sets of documents that are known before a strategy runs: all documents of a segment, or those that contain
//! a term with a prefix.

use crate::cursor::NO_DOCUMENT;
use crate::eval::state::{
    Bits, CandidateBatch, DocRange, Refine, Refinement, ScoreWindow, Scratch, positions_within,
};
use crate::eval::tuning::SORTED_BYTES_RATIO;

/// A set of documents of a segment.
pub enum DocumentSet {
    /// All documents below this one.
    All(u32),
    /// A list in ascending order.
    Sorted(Vec<u32>),
    /// A bitset: document `i` is bit `i mod 8` of byte `i div 8`.
    Bitset(Vec<u8>),
}

impl DocumentSet {
    /// An empty set for up to `postings` additions, among `documents` documents: a list if sorting it takes
    /// less time than clearing a bitset.
    pub fn with_capacity(postings: u64, documents: u32) -> DocumentSet {
        let bytes = documents.div_ceil(8) as usize;
        if postings < bytes as u64 / SORTED_BYTES_RATIO {
            DocumentSet::Sorted(Vec::with_capacity(postings as usize))
        } else {
            DocumentSet::Bitset(vec![0; bytes])
        }
    }

    /// Adds documents of the segment, in any order.
    pub fn add(&mut self, documents: &[u32]) {
        match self {
            DocumentSet::All(_) => {}
            DocumentSet::Sorted(sorted) => sorted.extend_from_slice(documents),
            DocumentSet::Bitset(bits) => {
                for document in documents {
                    bits[(document / 8) as usize] |= 1 << (document % 8);
                }
            }
        }
    }

    /// Sorts a list and removes duplicates. Must be called after the last addition.
    #[must_use]
    pub fn finish(mut self) -> DocumentSet {
        if let DocumentSet::Sorted(sorted) = &mut self {
            sorted.sort_unstable();
            sorted.dedup();
        }
        self
    }

    /// The first document from `from` on.
    fn next_from(&self, from: u32) -> Option<u32> {
        match self {
            DocumentSet::All(end) => Some(from).filter(|from| from < end),
            DocumentSet::Sorted(sorted) => {
                sorted.get(sorted.partition_point(|document| *document < from)).copied()
            }
            DocumentSet::Bitset(bits) => {
                let first = (from / 8) as usize;
                let rest = bits.get(first)? & (u8::MAX << (from % 8));
                let bytes = std::iter::once(rest).chain(bits[first + 1..].iter().copied());
                let (number, byte) = bytes.enumerate().find(|(_, byte)| *byte != 0)?;
                Some((first + number) as u32 * 8 + byte.trailing_zeros())
            }
        }
    }

    fn contains(&self, document: u32) -> bool {
        match self {
            DocumentSet::All(end) => document < *end,
            DocumentSet::Sorted(sorted) => sorted.binary_search(&document).is_ok(),
            DocumentSet::Bitset(bits) => {
                bits.get((document / 8) as usize).is_some_and(|byte| byte >> (document % 8) & 1 == 1)
            }
        }
    }
}

/// A set as a node: each of its documents has the same score.
pub struct SetNode {
    documents: DocumentSet,
    score: u32,
    pub(crate) cost: u64,
}

impl SetNode {
    /// A set with at most `cost` documents.
    pub(crate) fn new(documents: DocumentSet, score: u32, cost: u64) -> SetNode {
        SetNode { documents, score, cost }
    }

    pub(crate) fn next_lower_bound(&self, from: u32) -> u32 {
        self.documents.next_from(from).unwrap_or(NO_DOCUMENT)
    }

    pub(crate) fn max_score(&self, range: DocRange) -> Option<u32> {
        (self.next_lower_bound(range.first) <= range.last).then_some(self.score)
    }

    pub(crate) fn collect(
        &self,
        range: DocRange,
        min_score: u32,
        batch: &mut CandidateBatch,
        scratch: &mut Scratch,
    ) {
        if self.score < min_score {
            return;
        }
        let mut bits = scratch.take_bits();
        bits.restart(range);
        self.mark_matches(&mut bits);
        batch.extend_unscored(bits.documents());
        batch.raise_scores(self.score);
        scratch.give_bits(bits);
    }

    pub(crate) fn mark_matches(&self, bits: &mut Bits) {
        match &self.documents {
            DocumentSet::All(_) => bits.add_all(),
            DocumentSet::Sorted(sorted) => bits.add(&sorted[positions_within(sorted, bits.range())]),
            DocumentSet::Bitset(bytes) => bits.add_bytes(0, bytes),
        }
    }

    pub(crate) fn add_scores(&self, window: &mut ScoreWindow, spare: &mut Bits) {
        if self.score == 0 {
            return self.mark_matches(&mut window.unscored);
        }
        let (range, first, score) = (window.range(), window.origin(), self.score);
        spare.restart(range);
        self.mark_matches(spare);
        let sums = window.sums();
        spare.documents().for_each(|document| sums[(document - first) as usize] += score);
    }

    pub(crate) fn refine_batch(&self, batch: &mut CandidateBatch, refinement: Refinement) {
        let Refinement { how, included_bound, min_score } = refinement;
        let (mut kept, keeps_others) = (0, matches!(how, Refine::Exclude | Refine::Optional));
        for at in 0..batch.len() {
            let document = batch.documents[at];
            let is_in = self.documents.contains(document);
            let added = if is_in && how.is_scored() { self.score } else { 0 };
            let keeps = if is_in { how != Refine::Exclude } else { keeps_others };
            batch.documents[kept] = document;
            batch.scores[kept] = batch.scores[at] - included_bound + added;
            kept += usize::from(keeps);
        }
        batch.truncate(kept);
        batch.retain_at_least(min_score);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn both_forms_hold_the_same(mut documents in prop::collection::vec(0u32..1000, 0..200), from in 0u32..1100) {
            let sorted = DocumentSet::Sorted(Vec::new());
            let bitset = DocumentSet::with_capacity(u64::MAX / 4, 1000);
            prop_assert!(matches!(bitset, DocumentSet::Bitset(_)));
            let [sorted, bitset] = [sorted, bitset].map(|mut set| {
                documents.chunks(7).for_each(|some| set.add(some));
                set.finish()
            });
            documents.sort_unstable();
            let expected = documents.iter().copied().find(|document| *document >= from);
            prop_assert_eq!(sorted.next_from(from), expected);
            prop_assert_eq!(bitset.next_from(from), expected);
            prop_assert_eq!(sorted.contains(from), documents.contains(&from));
            prop_assert_eq!(bitset.contains(from), documents.contains(&from));
        }
    }
}
