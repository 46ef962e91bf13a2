//! An index with deleted documents answers as a new index of the live documents, bit for bit.

use crate::support::corpus::{SchemaOptions, TestDocument, random_documents, random_documents_in_bursts};
use crate::support::deleted::updatable_writer;
use crate::support::queries::random_query_text;
use crate::support::requests::{documents_and_score_bits, engine_options};
use crate::support::{add_documents, all_tunings, assert_sound, index_in_memory, random::Random};
use std::{collections::BTreeSet, sync::Arc};
use tierdex::explain::SearchResult;
use tierdex::internal::engine::MetaTier;
use tierdex::internal::segment::read::FILES;
use tierdex::io::{Disk, MemDisk, RegionKind};
use tierdex::schema::NormKind;
use tierdex::{
    Engine, Index, Merge, OpenMode, Query, Schema, Scorer, SearchOptions, SearchRequest, Statistics,
};

/// Hits as they are compared, with documents numbered among the live ones.
type ComparedHits = Vec<(u32, u32)>;

/// An index with deleted documents, and a new index of the others.
struct DeleteCase {
    deleted: Index,
    fresh: Index,
    /// The documents of the first that are not deleted.
    live: Vec<u32>,
    what: String,
}

impl DeleteCase {
    /// Deletes documents, by their numbers in `docs`, of an index of which each part is a segment.
    fn new(
        schema: &Schema,
        docs: &[TestDocument],
        cuts: &[usize],
        deletes: &BTreeSet<u32>,
        what: &str,
    ) -> DeleteCase {
        let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
        let mut writer = updatable_writer(&disk, schema, OpenMode::New).unwrap();
        let starts = [0].into_iter().chain(cuts.iter().copied());
        for (start, end) in starts.zip(cuts.iter().copied().chain([docs.len()])) {
            add_documents(&mut writer, &docs[start..end]);
            writer.commit(Merge::None).unwrap();
        }
        // A few documents last, so that there are two layers of statistics.
        for is_last in [false, true] {
            for (number, _) in deletes.iter().zip(0..).filter(|(_, at)| (at % 20 == 7) == is_last) {
                writer.delete(&docs[*number as usize].id).unwrap();
            }
            writer.commit(Merge::None).unwrap();
        }
        assert_sound(disk.as_ref());
        let deleted = Index::open_on(disk).unwrap();
        let is_live = |number: &usize| !deletes.contains(&(*number as u32));
        let live: Vec<_> = (0..docs.len()).filter(is_live).map(|number| docs[number].clone()).collect();
        let fresh = index_in_memory(schema, &live, &[live.len() / 3]);
        let live = live_documents(&deleted);
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

/// The documents of an index that are not deleted.
fn live_documents(index: &Index) -> Vec<u32> {
    let (mut base, mut live) = (0, Vec::new());
    for segment in index.segments() {
        let is_live = |document: &u32| !segment.deleted().is_some_and(|deleted| deleted.contains(*document));
        live.extend((0..segment.documents()).filter(is_live).map(|document| base + document));
        base += segment.documents();
    }
    live
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
    let sets = delete_sets(&index_in_memory(schema, docs, cuts), &mut Random::new(seed));
    let layers = crate::support::on_two_threads(sets.len(), |number| {
        let (what, set) = &sets[number];
        let case = DeleteCase::new(schema, docs, cuts, set, what);
        case.check(seed + number as u64, queries);
        case.check_engines(seed, queries / 4);
        let deletes = case.deleted.segments().iter().filter_map(|segment| segment.deletes());
        deletes.map(|deletes| deletes.layers().len()).max().unwrap_or(0)
    });
    assert!(layers.contains(&2), "{layers:?}");
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
    let set = (0..3000).filter(|number| number % 7 == 3).collect();
    let case = DeleteCase::new(&SchemaOptions::one_field().schema(), &docs, &[1000], &set, "in memory");
    crate::support::load_into_region(&case.deleted, RegionKind::Dram).unwrap();
    case.check(4, 60);
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
    let best = (OF_SEGMENT..2 * OF_SEGMENT).filter(|number| number % 64 == 0).collect();
    let case = DeleteCase::new(&schema, &docs, &[OF_SEGMENT as usize], &best, "the best of each block");
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
        let case = DeleteCase::new(&schema, &docs, &[1500], &set, &what);
        let (searcher, fresh) = (case.deleted.searcher(), case.fresh.searcher());
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
    let (schema, cuts) = (SchemaOptions::default().schema(), [100, 101, 350]);
    for (what, set) in delete_sets(&index_in_memory(&schema, &docs, &cuts), &mut Random::new(5)) {
        let case = DeleteCase::new(&schema, &docs, &cuts, &set, &what);
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
