//! Postings that queries explore: those in blocks that evaluation decodes, which skip data does not skip
//! (thesis, figure 8.8).

use crate::request::{draw::DrawRequest, experiment::ExperimentRequest};
use crate::{Result, held_index::load_index, held_index::open_index};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tierdex::{SearchOptions, StopSignal, explain::ListUse, io::RegionKind};

/// Queries that are answered over an index in memory, every matching document scored.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct ExploredRequest(pub(crate) DrawRequest);

/// Hits of a query.
const HITS: usize = 1024;

impl ExperimentRequest for ExploredRequest {
    /// One row: the `postings` of the index, the explored ones in percent of them, with repetitions and
    /// without, and the share of those without. Without repetitions, a list has the explored postings of the
    /// query that explores most of it.
    fn answer(&self, stop: &StopSignal) -> Result<Value> {
        let index = open_index(&self.0.index)?;
        let searcher = load_index(&index, &RegionKind::Dram)?;
        let (field, queries) = self.0.draw(&index)?;
        let options = SearchOptions { k: HITS, exhaustive: true, count: true, ..SearchOptions::default() };
        let mut most: BTreeMap<(u64, String), u64> = BTreeMap::new();
        let mut total = 0;
        for words in &queries.terms {
            stop.check()?;
            let found = searcher.explain(&self.0.shape.query(field, words), &options, None)?;
            for segment in found.segments {
                for list in segment.evaluation.lists {
                    let explored = decoded_postings(&list);
                    total += explored;
                    let most = most.entry((segment.id, list.term)).or_default();
                    *most = explored.max(*most);
                }
            }
        }
        let segments = index.segments().iter();
        let postings: u64 = segments.map(|segment| segment.meta().stats(field).postings).sum();
        let unique: u64 = most.values().sum();
        let percent = |explored: u64| 100.0 * explored as f64 / postings.max(1) as f64;
        Ok(json!({ "rows": [{
            "postings": postings,
            "total_percent": percent(total),
            "unique_percent": percent(unique),
            "unique_share": unique as f64 / total.max(1) as f64,
        }] }))
    }
}

/// Postings in the decoded blocks of a list. An inline list has no blocks and is decoded as a whole.
fn decoded_postings(list: &ListUse) -> u64 {
    let (documents, blocks) = (u64::from(list.documents), list.blocks);
    (documents * blocks.decoded).checked_div(blocks.blocks).unwrap_or(documents)
}
