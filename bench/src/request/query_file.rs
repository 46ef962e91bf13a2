//! Queries of a generated collection, as lines of words.

use crate::request::{draw::check_count, experiment::ExperimentRequest};
use crate::{Random, Result, generate::Collection, generate::Flags};
use serde::Deserialize;
use serde_json::{Value, json};
use tierdex::StopSignal;

/// Queries of two to four terms of a generated collection.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct QueryFileRequest {
    /// Number of documents of the collection.
    pub(crate) docs: u64,
    /// Number of its postings.
    pub(crate) postings: u64,
    /// Number of its terms.
    pub(crate) vocabulary: u64,
    /// Number of queries.
    pub(crate) count: usize,
}

impl QueryFileRequest {
    /// The queries. The frequency of a term falls with its rank, and the logarithm of the rank is uniform
    /// over the most frequent sixteenth of the terms.
    ///
    /// # Errors
    /// If there is no such collection, or the number of queries is out of its range.
    pub(crate) fn lines(&self) -> Result<Vec<String>> {
        check_count(self.count)?;
        let collection = Collection::new(&Flags::with_sizes(self.docs, self.postings, self.vocabulary, 1))?;
        let mut random = Random::new(1);
        let most = f64::from(collection.vocabulary() / 16).max(2.0);
        let line = |_| {
            let count = 2 + random.below(3);
            let terms = (0..count).map(|_| collection.term(most.powf(random.unit()) as u32));
            terms.collect::<Vec<_>>().join(" ")
        };
        Ok((0..self.count).map(line).collect())
    }
}

impl ExperimentRequest for QueryFileRequest {
    fn answer(&self, _: &StopSignal) -> Result<Value> {
        Ok(json!({ "lines": self.lines()? }))
    }
}
