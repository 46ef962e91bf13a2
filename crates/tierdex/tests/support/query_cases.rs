//! Random queries to an index, with the results that are expected wherever its posting lists are.

use super::corpus::{SchemaOptions, random_documents, random_documents_in_bursts};
use super::{
    AddMethod, all_tunings, build, equal_cuts, queries::random_query_text, random::Random,
    requests::documents_and_score_bits,
};
use std::sync::Arc;
use tierdex::io::{Disk, MemDisk};
use tierdex::{
    Bm25, Index, Merge, Query, SearchOptions, codec::Codec, explain::SearchResult, internal::index::Tuning,
};

/// Number of queries of a case.
const QUERY_COUNT: usize = 90;

/// The number of matches, 0 if they were not counted, and documents and score bits of the hits.
type CaseAnswer = (u64, Vec<(u32, u32)>);

fn to_case_answer(found: &SearchResult, count: bool) -> CaseAnswer {
    // A lower bound of the number of matches depends on the strategy.
    (found.total * u64::from(count), documents_and_score_bits(&found.hits))
}

/// An index, queries, search options, and the expected results.
#[derive(Clone)]
pub struct QueryCase {
    pub index: Index,
    pub texts: Vec<String>,
    pub queries: Vec<Query>,
    pub search: SearchOptions,
    pub expected: Vec<CaseAnswer>,
}

impl QueryCase {
    /// Random queries to an index; the expected results are those of a searcher over files.
    pub fn new(disk: &Arc<dyn Disk>, seed: u64, search: SearchOptions) -> QueryCase {
        let index = Index::open_on(disk.clone()).unwrap();
        let mut random = Random::new(seed);
        let (mut texts, mut queries) = (Vec::new(), Vec::new());
        while queries.len() < QUERY_COUNT {
            let text = random_query_text(&mut random, index.schema());
            if let Ok(query) = Query::parse(&text, index.schema()) {
                texts.push(text);
                queries.push(query);
            }
        }
        let searcher = index.searcher();
        let default = SearchOptions { tuning: Tuning::default(), ..search };
        let found = queries.iter().map(|query| searcher.search(query, &default).unwrap());
        let expected = found.map(|found| to_case_answer(&found, search.count)).collect();
        QueryCase { index, texts, queries, search, expected }
    }

    /// Compares an answer with the expected one.
    pub fn check(&self, number: usize, found: &SearchResult, how: &str) {
        let found = to_case_answer(found, self.search.count);
        assert_eq!(found, self.expected[number], "{how}: {} with {:?}", self.texts[number], self.search);
    }
}

/// Search options with and without pruning and counting, and with all tunings.
pub fn search_option_cases() -> Vec<SearchOptions> {
    let default = SearchOptions { k: 20, count: true, ..SearchOptions::default() };
    let searches = [
        SearchOptions { count: false, ..default },
        SearchOptions { count: false, k: 400, scorer: Bm25 { k1: 0.9, b: 0.4 }.into(), ..default },
        SearchOptions { count: false, exhaustive: true, ..default },
        SearchOptions { k: 3, ..default },
    ];
    searches
        .into_iter()
        .flat_map(|search| all_tunings().map(|tuning| SearchOptions { tuning, ..search }))
        .collect()
}

/// Writes an index of `count` documents in this number of segments.
pub fn write_documents(count: usize, segments: usize, codec: Codec, disk: Arc<dyn Disk>) -> Arc<dyn Disk> {
    // With few documents all lists are inline.
    let docs = if count < 250 { random_documents(3, count) } else { random_documents_in_bursts(3, count) };
    let cuts = equal_cuts(docs.len(), segments);
    let schema = SchemaOptions { stored: false, codec, ..SchemaOptions::default() }.schema();
    build(&disk, &schema, &docs, &cuts, AddMethod::Commits, Merge::None);
    disk
}

/// A disk in memory.
pub fn memory_disk() -> Arc<dyn Disk> {
    Arc::new(MemDisk::new())
}
