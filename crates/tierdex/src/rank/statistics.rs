//! The statistics of a collection that the scores of a query depend on: of one index, or the sum of several
//! shards.

use super::bm25::CollectionStats;
use std::collections::BTreeMap;

/// The statistics of a collection that the scores of a query depend on. With the sum of the statistics of all
/// shards, each shard scores its documents as one index of all documents would.
///
/// A fuzzy word expands to terms of the shard, so its score may differ between shards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// For each field: number of documents that have it, and number of tokens in it.
    fields: Vec<(u64, u64)>,
    /// Document frequency of each term of each field.
    terms: BTreeMap<(usize, String), u64>,
}

impl Statistics {
    /// Statistics without terms. `fields` has, for each field, the number of documents that have it, and the
    /// number of tokens in it.
    pub(crate) fn new(fields: impl IntoIterator<Item = (u64, u64)>) -> Statistics {
        Statistics { fields: fields.into_iter().collect(), terms: BTreeMap::new() }
    }

    /// Sets the document frequency of a term.
    pub(crate) fn set_document_frequency(&mut self, field: usize, term: &str, frequency: u64) {
        self.terms.insert((field, term.to_string()), frequency);
    }

    /// Adds the statistics of another shard for the same query.
    pub fn add(&mut self, other: &Statistics) {
        self.fields.resize(self.fields.len().max(other.fields.len()), (0, 0));
        for (sum, (documents, tokens)) in self.fields.iter_mut().zip(&other.fields) {
            *sum = (sum.0.saturating_add(*documents), sum.1.saturating_add(*tokens));
        }
        for (term, frequency) in &other.terms {
            let sum = self.terms.entry(term.clone()).or_default();
            *sum = sum.saturating_add(*frequency);
        }
    }

    /// Bytes of memory, approximately.
    pub(crate) fn memory(&self) -> usize {
        let entry = size_of::<((usize, String), u64)>();
        let terms = self.terms.keys().map(|(_, term)| entry + term.capacity());
        size_of_val(&self.fields[..]) + terms.sum::<usize>()
    }

    /// Document frequency of a term, if it was set.
    pub(crate) fn document_frequency(&self, field: usize, term: &str) -> Option<u64> {
        self.terms.get(&(field, term.to_string())).copied()
    }

    /// Statistics of a field; if it is unknown, those of a field without documents.
    pub(crate) fn collection(&self, field: usize) -> CollectionStats {
        let (documents, tokens) = self.fields.get(field).copied().unwrap_or_default();
        let average_length = if documents == 0 { 1.0 } else { tokens as f64 / documents as f64 };
        CollectionStats { documents, average_length }
    }
}
