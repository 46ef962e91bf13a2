//! Statistics that scores depend on, apart from the documents: of one snapshot, or of several together.

use super::bm25::Collection;
use std::collections::BTreeMap;

/// Statistics of a collection for the terms of a query: with those of all shards added up, each shard scores
/// its documents as one index of all documents would.
///
/// A fuzzy word matches the terms that are close to it in the shard, so its score may differ between shards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Of each field: documents that have it, and their tokens.
    fields: Vec<(u64, u64)>,
    /// Documents that contain a term of a field.
    terms: BTreeMap<(usize, String), u64>,
}

impl Statistics {
    /// Of `fields`: documents that have each, and their tokens.
    pub(crate) fn new(fields: impl IntoIterator<Item = (u64, u64)>) -> Statistics {
        Statistics { fields: fields.into_iter().collect(), terms: BTreeMap::new() }
    }

    /// Sets the number of documents that contain a term.
    pub(crate) fn set(&mut self, field: usize, term: &str, documents: u64) {
        self.terms.insert((field, term.to_string()), documents);
    }

    /// Adds the statistics of other documents for the same query.
    pub fn add(&mut self, other: &Statistics) {
        self.fields.resize(self.fields.len().max(other.fields.len()), (0, 0));
        for (sum, (documents, tokens)) in self.fields.iter_mut().zip(&other.fields) {
            *sum = (sum.0.saturating_add(*documents), sum.1.saturating_add(*tokens));
        }
        for (term, documents) in &other.terms {
            let sum = self.terms.entry(term.clone()).or_default();
            *sum = sum.saturating_add(*documents);
        }
    }

    /// Bytes of memory that they take, about.
    pub(crate) fn memory(&self) -> usize {
        let entry = size_of::<((usize, String), u64)>();
        let terms = self.terms.keys().map(|(_, term)| entry + term.capacity());
        size_of_val(&self.fields[..]) + terms.sum::<usize>()
    }

    /// Documents that contain a term, if that is known.
    pub(crate) fn containing(&self, field: usize, term: &str) -> Option<u64> {
        self.terms.get(&(field, term.to_string())).copied()
    }

    /// Of a field; as if no document had it where nothing is known.
    pub(crate) fn collection(&self, field: usize) -> Collection {
        let (documents, tokens) = self.fields.get(field).copied().unwrap_or_default();
        let average_length = if documents == 0 { 1.0 } else { tokens as f64 / documents as f64 };
        Collection { documents, average_length }
    }
}
