//! The deleted documents of a segment, and what is known about their terms. Both change from commit to
//! commit, while the files of the segment stay as they are. Documents that are not deleted are *live*.

use super::deleted_statistics::{DeletedStatistics, StatisticsCursor, TermDeletes};
use super::layout::FieldStats;
use crate::limits::BLOCK;
use std::{ops::Range, sync::Arc};
use tierdex_codec::copy_marked;

/// Documents in a word of the bitset.
const WORD_DOCS: u32 = u64::BITS;

/// The deleted documents of a segment. Immutable.
#[derive(Clone, PartialEq, Eq)]
pub struct DeletedDocuments {
    /// Number of documents in the segment.
    documents: u32,
    deleted: u32,
    /// Bit `i mod 8` of byte `i div 8` is set unless document `i` is deleted. Whole words; the bits after the
    /// last document are set.
    live: Box<[u8]>,
}

impl DeletedDocuments {
    /// No deleted documents of a segment of `documents` documents.
    pub fn none(documents: u32) -> DeletedDocuments {
        let words = documents.div_ceil(WORD_DOCS) as usize;
        DeletedDocuments { documents, deleted: 0, live: vec![u8::MAX; 8 * words].into_boxed_slice() }
    }

    /// These documents, and `more`, each below the number of documents in the segment. They may repeat.
    pub fn with(&self, more: impl IntoIterator<Item = u32>) -> DeletedDocuments {
        let mut all = self.clone();
        more.into_iter().for_each(|document| all.insert(document));
        all
    }

    /// Adds a document, which is below the number of documents in the segment.
    pub(crate) fn insert(&mut self, document: u32) {
        debug_assert!(document < self.documents);
        self.deleted += u32::from(!self.contains(document));
        self.live[(document / 8) as usize] &= !(1 << (document % 8));
    }

    /// Number of documents in the segment, deleted or not.
    pub fn documents(&self) -> u32 {
        self.documents
    }

    /// Number of deleted documents.
    pub fn len(&self) -> u32 {
        self.deleted
    }

    /// Whether no document is deleted.
    pub fn is_empty(&self) -> bool {
        self.deleted == 0
    }

    /// Whether a document of the segment is deleted.
    #[inline]
    pub fn contains(&self, document: u32) -> bool {
        self.live[(document / 8) as usize] >> (document % 8) & 1 == 0
    }

    /// The deleted documents of each word: document `i` is bit `i mod 64` of word `i div 64`.
    pub fn words(&self) -> impl Iterator<Item = u64> + '_ {
        self.live.as_chunks().0.iter().map(|word| !u64::from_le_bytes(*word))
    }

    /// Word `number` of [`DeletedDocuments::words`].
    #[inline]
    pub fn word(&self, number: usize) -> u64 {
        !u64::from_le_bytes(self.live.as_chunks().0[number])
    }

    /// Those of at most [`BLOCK`] documents that are not deleted, copied to `buffer`.
    pub fn copy_live<'b>(&self, documents: &[u32], buffer: &'b mut [u32; BLOCK]) -> &'b [u32] {
        let live = copy_marked(documents, &self.live, buffer);
        &buffer[..live]
    }

    /// Number of these documents that are not deleted.
    pub fn count_live(&self, documents: &[u32]) -> usize {
        let mut buffer = [0; BLOCK];
        documents.chunks(BLOCK).map(|documents| self.copy_live(documents, &mut buffer).len()).sum()
    }

    /// The bits from that of `first` on, which is a multiple of eight: clear for deleted documents.
    #[inline]
    pub fn live_bits(&self, first: u32) -> &[u8] {
        debug_assert!(first.is_multiple_of(8));
        &self.live[(first / 8) as usize..]
    }

    /// Number of deleted documents in a range of documents of the segment.
    pub fn count_within(&self, range: Range<u32>) -> u32 {
        self.words_within(range).map(|(_, word)| word.count_ones()).sum()
    }

    /// Numbers of the words that contain a range of documents, and the bits of its deleted documents.
    fn words_within(&self, range: Range<u32>) -> impl Iterator<Item = (u32, u64)> + '_ {
        let documents_end = range.end.max(range.start);
        let (first, end) = (range.start / WORD_DOCS, documents_end.div_ceil(WORD_DOCS));
        let words = self.live.as_chunks().0;
        (first..end).map(move |number| {
            let mut bits = !u64::from_le_bytes(words[number as usize]);
            if number == first {
                bits &= u64::MAX << (range.start % WORD_DOCS);
            }
            if number + 1 == end && !documents_end.is_multiple_of(WORD_DOCS) {
                bits &= u64::MAX >> (WORD_DOCS - documents_end % WORD_DOCS);
            }
            (number, bits)
        })
    }

    /// The deleted documents, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.words_within(0..self.documents).flat_map(|(number, word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros())?;
                rest &= rest - 1;
                Some(number * WORD_DOCS + bit)
            })
        })
    }

    /// Bytes of memory.
    pub fn memory(&self) -> usize {
        size_of::<DeletedDocuments>() + self.live.len()
    }
}

/// The deletes of a segment at a commit. Clones share memory.
#[derive(Clone)]
pub struct SegmentDeletes {
    documents: Arc<DeletedDocuments>,
    /// Statistics of the deleted documents: each commit with deletes adds a layer, and each document is in
    /// one of them.
    layers: Vec<Arc<DeletedStatistics>>,
}

impl SegmentDeletes {
    /// Deleted documents, at least one, with the layers of their statistics.
    pub fn new(documents: DeletedDocuments, layers: Vec<Arc<DeletedStatistics>>) -> SegmentDeletes {
        SegmentDeletes { documents: Arc::new(documents), layers }
    }

    /// The deleted documents.
    pub fn documents(&self) -> &DeletedDocuments {
        &self.documents
    }

    /// The layers of statistics, the oldest first.
    pub fn layers(&self) -> &[Arc<DeletedStatistics>] {
        &self.layers
    }

    /// Whether the terms of all deleted documents are known, so that document frequencies are exact.
    pub fn are_terms_known(&self) -> bool {
        self.layers.iter().all(|layer| layer.are_terms_known())
    }

    /// Documents and tokens of a field in the live documents; `all` is that of the segment. If terms
    /// are not known, the number of tokens is approximate.
    pub fn live_stats(&self, field: usize, all: FieldStats) -> FieldStats {
        let (mut documents, mut tokens) = (0_u32, 0_u64);
        for layer in &self.layers {
            let deleted = layer.field(field);
            documents = documents.saturating_add(deleted.documents);
            tokens = tokens.saturating_add(deleted.tokens);
        }
        let documents = all.documents.saturating_sub(documents);
        // A document that has the field has at least one token.
        let tokens = all.tokens.saturating_sub(tokens).max(u64::from(documents));
        FieldStats { documents, tokens: if documents == 0 { 0 } else { tokens }, ..all }
    }

    /// What deleted documents have of a term of a field, as far as it is known.
    pub fn find(&self, field: usize, term: &[u8]) -> TermDeletes {
        let mut known = TermDeletes::default();
        self.layers.iter().for_each(|layer| known.add(layer.find(field, term)));
        known
    }

    /// Looks up terms of a field, in ascending order.
    pub fn cursor(&self, field: usize) -> DeletesCursor<'_> {
        DeletesCursor { cursors: self.layers.iter().map(|layer| layer.cursor(field)).collect() }
    }

    /// Bytes of memory.
    pub fn memory(&self) -> usize {
        self.documents.memory() + self.layers.iter().map(|layer| layer.memory()).sum::<usize>()
    }
}

/// Looks up what deleted documents have of terms of a field, in ascending order of the terms.
pub struct DeletesCursor<'a> {
    cursors: Vec<StatisticsCursor<'a>>,
}

impl DeletesCursor<'_> {
    /// What deleted documents have of a term, not less than the one before, as far as it is known.
    pub fn seek(&mut self, term: &[u8]) -> TermDeletes {
        let mut known = TermDeletes::default();
        self.cursors.iter_mut().for_each(|cursor| known.add(cursor.seek(term)));
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn a_set_of_deleted_documents_is_that_of_a_model(
            documents in 1u32..300, parts in prop::collection::vec(prop::collection::vec(0u32..300, 0..40), 0..3),
            bounds in (0u32..300, 0u32..300),
        ) {
            let (mut set, mut model) = (DeletedDocuments::none(documents), BTreeSet::new());
            for part in &parts {
                let part: Vec<u32> = part.iter().map(|document| document % documents).collect();
                set = set.with(part.iter().copied());
                model.extend(part);
            }
            prop_assert_eq!(set.len() as usize, model.len());
            prop_assert!(set.iter().eq(model.iter().copied()));
            prop_assert!((0..documents).all(|document| set.contains(document) == model.contains(&document)));
            let range = bounds.0.min(documents)..bounds.1.min(documents);
            let within = if range.is_empty() { 0 } else { model.range(range.clone()).count() };
            prop_assert_eq!(set.count_within(range) as usize, within);
        }
    }
}
