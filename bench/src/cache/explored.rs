//! Postings that queries explore: those in blocks that evaluation decodes, which skip data does not skip.

use crate::{Error, Result, cache::flags::Flags, cache::queries::QueryWorkload, cache::queries::TermPools};
use std::{collections::BTreeMap, sync::Arc};
use tierdex::internal::engine::{MetaTier, MetadataLocation, load_metadata};
use tierdex::{Index, SearchOptions, StopSignal, explain::ListUse, io::PosixDisk, io::RegionKind};

/// How many postings an index has, and how many of them queries explore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExploredPostings {
    /// Postings of the index.
    pub index: u64,
    /// Explored postings over all queries, repetitions included.
    pub total: u64,
    /// Explored postings, each list once: as many as the query explores that explores most of it.
    pub unique: u64,
}

/// Counts the postings that the queries of the flags explore, over the index in memory. If the flags select
/// several workloads, only the first one is evaluated.
///
/// # Errors
/// If the flags are invalid, or the index cannot be read or has too few terms; [`Error::Interrupted`] if
/// `stop` is raised.
pub fn count_explored(flags: &Flags, stop: &StopSignal) -> Result<ExploredPostings> {
    flags.check()?;
    let workload = QueryWorkload::all(flags).first().copied();
    let workload = workload.ok_or_else(|| Error::Usage("the flags select no queries".to_string()))?;
    let index = Index::open_on(Arc::new(PosixDisk::open(&flags.index)?))?;
    load_metadata(index.segments(), &MetadataLocation::of(MetaTier::Index(RegionKind::Dram), None))?;
    let terms = TermPools::read(&index, &flags.classes)?;
    let queries = terms.draw(workload, flags.count, flags.seed)?;
    let exhaustive = flags.exhaustive;
    let options = SearchOptions { k: flags.k, exhaustive, count: exhaustive, ..SearchOptions::default() };
    let searcher = index.searcher();
    let mut most: BTreeMap<(u64, String), u64> = BTreeMap::new();
    let mut explored = ExploredPostings::default();
    for segment in index.segments() {
        explored.index += segment.meta().fields[terms.field].postings;
    }
    for words in &queries.terms {
        stop.check().map_err(|_| Error::Interrupted)?;
        let found = searcher.explain(&workload.shape.query(terms.field, words), &options)?;
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

/// Postings in the decoded blocks of a list. An inline list has no blocks and is decoded as a whole.
fn decoded_postings(list: &ListUse) -> u64 {
    let (documents, blocks) = (u64::from(list.documents), list.blocks);
    (documents * blocks.decoded).checked_div(blocks.blocks).unwrap_or(documents)
}
