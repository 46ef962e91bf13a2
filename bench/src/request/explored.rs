//! Postings that queries explore: those in blocks that evaluation decodes, which skip data does not skip
//! (thesis, figure 8.8).

use crate::request::{draw::DrawRequest, experiment::ExperimentRequest};
use crate::{Error, Result};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tierdex::internal::engine::{MetaTier, MetadataLocation, load_metadata};
use tierdex::{SearchOptions, StopSignal, explain::ListUse, io::RegionKind};

/// Queries that are answered over an index in memory, every matching document scored.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct ExploredRequest(pub(crate) DrawRequest);

/// Hits of a query.
const HITS: usize = 1024;

/// How many postings an index has, and how many of them queries explore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ExploredPostings {
    /// Postings of the index.
    index: u64,
    /// Explored postings over all queries, repetitions included.
    total: u64,
    /// Explored postings, each list once: as many as the query explores that explores most of it.
    unique: u64,
}

impl ExploredRequest {
    fn count_explored(&self, stop: &StopSignal) -> Result<ExploredPostings> {
        let index = self.0.open_index()?;
        load_metadata(index.segments(), &MetadataLocation::of(MetaTier::Index(RegionKind::Dram), None))?;
        let (field, queries) = self.0.draw(&index)?;
        let options = SearchOptions { k: HITS, exhaustive: true, count: true, ..SearchOptions::default() };
        let searcher = index.searcher();
        let mut most: BTreeMap<(u64, String), u64> = BTreeMap::new();
        let mut explored = ExploredPostings::default();
        for segment in index.segments() {
            explored.index += segment.meta().fields[field].postings;
        }
        for words in &queries.terms {
            stop.check().map_err(|_| Error::Interrupted)?;
            let found = searcher.explain(&self.0.shape.query(field, words), &options, None)?;
            for segment in found.segments {
                for list in segment.evaluation.lists {
                    let postings = decoded_postings(&list);
                    explored.total += postings;
                    let most = most.entry((segment.id, list.term)).or_default();
                    *most = postings.max(*most);
                }
            }
        }
        explored.unique = most.values().sum();
        Ok(explored)
    }
}

impl ExperimentRequest for ExploredRequest {
    /// One row: the `postings` of the index, the explored ones in percent of them, with and without
    /// repetitions, and the share of those without.
    fn answer(&self, stop: &StopSignal) -> Result<Value> {
        let found = self.count_explored(stop)?;
        let percent = |postings: u64| 100.0 * postings as f64 / found.index.max(1) as f64;
        Ok(json!({ "rows": [{
            "postings": found.index,
            "total_percent": percent(found.total),
            "unique_percent": percent(found.unique),
            "unique_share": found.unique as f64 / found.total.max(1) as f64,
        }] }))
    }
}

/// Postings in the decoded blocks of a list. An inline list has no blocks and is decoded as a whole.
fn decoded_postings(list: &ListUse) -> u64 {
    let (documents, blocks) = (u64::from(list.documents), list.blocks);
    (documents * blocks.decoded).checked_div(blocks.blocks).unwrap_or(documents)
}
