//! An index with deleted documents answers as a new index of the documents that are left, bit for bit.

mod support;

use std::collections::BTreeSet;
use support::corpus::{SchemaOptions, TestDocument, random_documents, random_documents_in_bursts};
use support::queries::random_query_text;
use support::requests::{documents_and_score_bits, engine_options};
use support::{all_tunings, index_in_memory, random::Random};
use tierdex::explain::SearchResult;
use tierdex::internal::engine::MetaTier;
use tierdex::internal::segment::deletes::DeletedStatistics;
use tierdex::internal::segment::read::{FILES, OpenSegment};
use tierdex::io::RegionKind;
use tierdex::schema::{NormKind, Stored};
use tierdex::{Engine, Index, Query, Schema, Scorer, SearchOptions, SearchRequest, Statistics};

/// Hits as they are compared, with documents numbered among those that are left.
type ComparedHits = Vec<(u32, u32)>;

/// An index with deleted documents, and a new index of the others.
struct DeleteCase {
    deleted: Index,
    fresh: Index,
    /// The documents that are left.
    live: Vec<u32>,
    what: String,
}

impl DeleteCase {
    fn new(whole: &Index, docs: &[TestDocument], deletes: &BTreeSet<u32>, what: &str) -> DeleteCase {
        let live: Vec<u32> = (0..docs.len() as u32).filter(|number| !deletes.contains(number)).collect();
        let left: Vec<TestDocument> = live.iter().map(|number| docs[*number as usize].clone()).collect();
        let all: Vec<u32> = deletes.iter().copied().collect();
        // In two steps, so that a set extends another, and there are two layers of statistics.
        let (first, others) = all.split_at(all.len() / 2);
        let by_values =
            whole.with_deleted(first, Some(true)).unwrap().with_deleted(others, Some(true)).unwrap();
        let deleted = whole.with_deleted(others, None).unwrap().with_deleted(first, None).unwrap();
        if whole.schema().stored != Stored::Nothing {
            assert_eq!(statistics_of_segments(&by_values), statistics_of_segments(&deleted), "{what}");
        }
        let fresh = index_in_memory(whole.schema(), &left, &[left.len() / 3]);
        DeleteCase { deleted, fresh, live, what: format!("{what}, {} of {}", deletes.len(), docs.len()) }
    }

    fn compared(&self, found: &SearchResult) -> ComparedHits {
        let hits = documents_and_score_bits(&found.hits).into_iter();
        hits.map(|(document, score)| (self.live.binary_search(&document).unwrap() as u32, score)).collect()
    }

    /// Compares the answers to a query, found in all ways.
    fn check_query(&self, query: &Query, text: &str, random: &mut Random) {
        let (searcher, fresh) = (self.deleted.searcher(), self.fresh.searcher());
        for (k, exhaustive) in [(0, false), (1, false), (10, false), (10, true), (100, false), (9999, false)]
        {
            let options = SearchOptions { k, exhaustive, count: true, ..SearchOptions::default() };
            let Ok(expected) = fresh.search(query, &options) else { return };
            let hits = documents_and_score_bits(&expected.hits);
            for tuning in all_tunings() {
                let what = format!("{}: {text}, k {k}, exhaustive {exhaustive}, {tuning:?}", self.what);
                let counted = SearchOptions { tuning, ..options };
                let found = searcher.search(query, &counted).unwrap();
                assert_eq!((self.compared(&found), found.total), (hits.clone(), expected.total), "{what}");
                let explained = searcher.explain(query, &counted, None).unwrap().result;
                assert_eq!(
                    (self.compared(&explained), explained.total),
                    (hits.clone(), expected.total),
                    "{what}"
                );
                let cut = |random: &mut Random, rest: std::ops::Range<u32>| {
                    let at = rest.start + random.below(rest.len().max(1)) as u32;
                    random.one_in(3).then_some(at)
                };
                let divided = searcher.search_divided(query, &counted, |rest| cut(random, rest)).unwrap();
                assert_eq!(
                    (self.compared(&divided), divided.total),
                    (hits.clone(), expected.total),
                    "{what}"
                );

                let uncounted = SearchOptions { count: false, ..counted };
                for found in [
                    searcher.search(query, &uncounted).unwrap(),
                    searcher.search_divided(query, &uncounted, |rest| cut(random, rest)).unwrap(),
                ] {
                    assert_eq!(self.compared(&found), hits, "{what}");
                    assert!(found.total <= expected.total, "{what}: {} > {}", found.total, expected.total);
                    if uncounted.is_exact(found.hits.len()) {
                        assert_eq!(found.total, expected.total, "{what}");
                    }
                }
            }
        }
        let asked = |index: &Index| {
            let statistics = index.searcher().statistics(query, Scorer::default(), None, &FILES);
            statistics.map(|statistics| Statistics::merge(&[statistics]).unwrap()).ok()
        };
        assert_eq!(asked(&self.deleted), asked(&self.fresh), "{}: {text}", self.what);
    }

    /// Compares random queries, and the terms of the dictionaries.
    fn check(&self, seed: u64, queries: usize) {
        let mut random = Random::new(seed);
        assert_eq!(self.deleted.documents(), self.fresh.documents());
        for field in 0..self.fresh.schema().fields.len() {
            let terms = |index: &Index| index.searcher().terms(field, "", None, usize::MAX).unwrap();
            assert_eq!(terms(&self.deleted), terms(&self.fresh), "{}", self.what);
        }
        for _ in 0..queries {
            let text = random_query_text(&mut random, self.fresh.schema());
            let (query, _) = Query::parse_lenient(&text, self.fresh.schema());
            self.check_query(&query, &text, &mut random);
        }
    }

    /// Compares the answers of engines.
    fn check_engines(&self, seed: u64, queries: usize) {
        for (tier, threads) in [(MetaTier::Disk, 1), (MetaTier::Terms, 2), (MetaTier::Dram, 1)] {
            let options = engine_options(60, threads).meta_tier(tier.clone());
            let engine = Engine::new(&self.deleted, &options).unwrap();
            let mut random = Random::new(seed);
            for _ in 0..queries {
                let text = random_query_text(&mut random, self.fresh.schema());
                let (query, _) = Query::parse_lenient(&text, self.fresh.schema());
                let (k, count) = (*random.pick(&[0, 1, 10, 100]), random.one_in(2));
                let options = SearchOptions { k, count, ..SearchOptions::default() };
                let Ok(expected) = self.fresh.searcher().search(&query, &options) else { continue };
                let found = engine.search(SearchRequest::new(query).options(options)).unwrap();
                let hits = documents_and_score_bits(&found.hits).into_iter();
                let hits: ComparedHits = hits
                    .map(|(document, score)| (self.live.binary_search(&document).unwrap() as u32, score))
                    .collect();
                let what = format!("{}: {text}, k {k}, {tier:?}", self.what);
                assert_eq!(hits, documents_and_score_bits(&expected.hits), "{what}");
                if count || k == 0 {
                    assert_eq!(found.total.value(), expected.total, "{what}");
                }
            }
        }
    }
}

/// The sum of the statistics of deleted documents of each segment.
fn statistics_of_segments(index: &Index) -> Vec<Option<DeletedStatistics>> {
    let sum = |segment: &OpenSegment| {
        let layers = segment.deletes()?.layers().iter().map(|layer| &**layer);
        Some(DeletedStatistics::merge(&layers.collect::<Vec<_>>()).unwrap())
    };
    index.segments().iter().map(sum).collect()
}

/// Sets of deleted documents: at random, and hostile ones.
fn delete_sets(index: &Index, random: &mut Random) -> Vec<(String, BTreeSet<u32>)> {
    let documents = index.documents() as u32;
    let all = || 0..documents;
    let mut sets: Vec<(String, BTreeSet<u32>)> = Vec::new();
    for percent in [1, 10, 50, 97] {
        let some = all().filter(|_| random.below(100) < percent).collect();
        sets.push((format!("{percent}% at random"), some));
    }
    let options = |k| SearchOptions { k, ..SearchOptions::default() };
    let hits = |text: &str, k| {
        let query = Query::parse(text, index.schema()).unwrap();
        let found = index.searcher().search(&query, &options(k)).unwrap();
        found.hits.iter().map(|hit| hit.document).collect::<Vec<_>>()
    };
    let best = ["w0", "über1", "prefix2", "w3", "w4", "all", "w8", "w13"].map(|word| hits(word, 150));
    sets.push(("the best of frequent words".to_string(), best.concat().into_iter().collect()));
    sets.push(("all documents of a word".to_string(), hits("w4", usize::MAX).into_iter().collect()));
    sets.push(("all but one of a word".to_string(), hits("w3", usize::MAX).into_iter().skip(1).collect()));
    sets.push(("every second".to_string(), all().step_by(2).collect()));
    sets.push((
        "all but eleven".to_string(),
        all().filter(|number| number % (documents / 11) != 5).collect(),
    ));
    let first = index.segments()[0].documents();
    sets.push(("a whole segment".to_string(), (0..first).collect()));
    let at_ends =
        |number: &u32| matches!(number % 4096, 0 | 4095) || matches!(number % 256, 0 | 63 | 64 | 255);
    sets.push(("first and last of windows".to_string(), all().filter(at_ends).collect()));
    sets.retain(|(_, set)| set.len() < documents as usize);
    sets
}

fn check_corpus(schema: &Schema, docs: &[TestDocument], cuts: &[usize], seed: u64, queries: usize) {
    let whole = index_in_memory(schema, docs, cuts);
    let sets = delete_sets(&whole, &mut Random::new(seed));
    support::on_two_threads(sets.len(), |number| {
        let (what, set) = &sets[number];
        let case = DeleteCase::new(&whole, docs, set, what);
        case.check(seed + number as u64, queries);
        case.check_engines(seed, queries / 4);
    });
}

#[test]
fn deletes_in_small_segments_are_those_of_a_new_index() {
    let docs = random_documents(5, 700);
    let cuts: Vec<usize> = (1..9).map(|cut| cut * cut * 8).collect();
    check_corpus(&SchemaOptions::default().schema(), &docs, &cuts, 100, 60);
}

#[test]
fn deletes_in_large_segments_are_those_of_a_new_index() {
    let docs = random_documents_in_bursts(8, 9000);
    let schema = SchemaOptions { norms: NormKind::Byte, ..SchemaOptions::one_field() }.schema();
    check_corpus(&schema, &docs, &[6000], 200, 40);
}

/// The index in memory is read from blocks that are lent.
#[test]
fn deletes_are_left_out_of_an_index_in_memory() {
    let docs = random_documents_in_bursts(9, 3000);
    let whole = index_in_memory(&SchemaOptions::one_field().schema(), &docs, &[1000]);
    support::load_into_region(&whole, RegionKind::Dram).unwrap();
    let set = (0..3000).filter(|number| number % 7 == 3).collect();
    DeleteCase::new(&whole, &docs, &set, "in memory").check(4, 60);
}

/// The best document of every block of the second segment is deleted, and the first segment alone has enough
/// hits: a threshold from max scores alone would lose those of the second.
#[test]
fn thresholds_do_not_rely_on_deleted_documents() {
    const OF_SEGMENT: u32 = 6000;
    let document = |number: u32| {
        let frequency = match (number / OF_SEGMENT, number % 64) {
            (0, _) => 1,
            (_, 0) => 40,
            (_, rest) => 2 + rest as usize % 5,
        };
        format!("{}{}", "often ".repeat(frequency), "x ".repeat(50 - frequency))
    };
    let docs = TestDocument::of_texts((0..2 * OF_SEGMENT).map(document));
    let schema = SchemaOptions { norms: NormKind::Byte, ..SchemaOptions::one_field() }.schema();
    let whole = index_in_memory(&schema, &docs, &[OF_SEGMENT as usize]);
    let best =
        |segment: u32| (segment * OF_SEGMENT..(segment + 1) * OF_SEGMENT).filter(|number| number % 64 == 0);
    let case = DeleteCase::new(&whole, &docs, &best(1).collect(), "the best of each block");
    let query = Query::parse("often", &schema).unwrap();
    case.check_query(&query, "often", &mut Random::new(1));
    for tier in [MetaTier::Disk, MetaTier::Terms, MetaTier::Dram] {
        let engine = Engine::new(&case.deleted, &engine_options(100, 1).meta_tier(tier.clone())).unwrap();
        for k in [1, 5, 20, 90] {
            for tuning in all_tunings() {
                let options = SearchOptions { k, tuning, ..SearchOptions::default() };
                let expected = case.fresh.searcher().search(&query, &options).unwrap();
                let found = engine.search(SearchRequest::new(query.clone()).options(options)).unwrap();
                let found = SearchResult { hits: found.hits.clone(), ..expected.clone() };
                assert_eq!(
                    case.compared(&found),
                    documents_and_score_bits(&expected.hits),
                    "{tier:?}, k {k}"
                );
            }
        }
    }
}

/// Without the terms of deleted documents scores are approximate; matches and their number are not.
#[test]
fn matches_are_exact_if_terms_of_deleted_documents_are_not_known() {
    let docs = random_documents_in_bursts(12, 4000);
    let schema = SchemaOptions { stored: false, ..SchemaOptions::one_field() }.schema();
    let whole = index_in_memory(&schema, &docs, &[1500]);
    for (what, set) in delete_sets(&whole, &mut Random::new(3)) {
        let case = DeleteCase::new(&whole, &docs, &set, &what);
        let all: Vec<u32> = set.iter().copied().collect();
        let unknown = whole.with_deleted(&all, Some(false)).unwrap();
        let (searcher, fresh) = (unknown.searcher(), case.fresh.searcher());
        let mut random = Random::new(7);
        for _ in 0..60 {
            let text = random_query_text(&mut random, &schema);
            // Terms of deleted documents alone count among the terms for which a fuzzy word stands.
            if text.contains('~') {
                continue;
            }
            let (query, _) = Query::parse_lenient(&text, &schema);
            for tuning in all_tunings() {
                let options = SearchOptions { k: 9999, tuning, ..SearchOptions::default() };
                let Ok(expected) = fresh.search(&query, &options) else { continue };
                let matches =
                    |found: ComparedHits| found.into_iter().map(|hit| hit.0).collect::<BTreeSet<_>>();
                let expected = matches(documents_and_score_bits(&expected.hits));
                let found = searcher.search(&query, &options).unwrap();
                assert_eq!(matches(case.compared(&found)), expected, "{what}: {text}");
                for k in [0, 10] {
                    let options = SearchOptions { k, count: true, ..options };
                    let found = searcher.search(&query, &options).unwrap();
                    assert_eq!(found.total, expected.len() as u64, "{what}: {text}, k {k}");
                    assert_eq!(found.hits.len(), k.min(expected.len()), "{what}: {text}, k {k}");
                }
            }
        }
    }
}

#[test]
fn an_export_is_that_of_a_new_index() {
    let docs = random_documents(6, 500);
    let whole = index_in_memory(&SchemaOptions::default().schema(), &docs, &[100, 101, 350]);
    for (what, set) in delete_sets(&whole, &mut Random::new(5)) {
        let case = DeleteCase::new(&whole, &docs, &set, &what);
        for field in ["text", "title"] {
            let export = |index: &Index| {
                let mut file = Vec::new();
                tierdex::ciff::export(index, field, "by a test", &mut file).unwrap();
                file
            };
            assert!(export(&case.deleted) == export(&case.fresh), "{what}, {field}");
        }
    }
}
