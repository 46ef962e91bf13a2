//! Compares pruned evaluation with exhaustive evaluation and with the naive engine: the same hits in the same
//! order with the same score bits, and the same totals where matches are counted; over long lists, for random
//! queries of many terms, any k, any scorer, any division into segments, and any number of threads.
//!
//! `TIERDEX_TEST_EVALUATIONS` is the number of random queries over the large index, by default [`QUERIES`].

use crate::support::corpus::{SchemaOptions, TestDocument, random_documents_in_bursts, vocabulary_word};
use crate::support::{
    AnswerOptions, all_tunings, equal_cuts, exhaustive_search, index_in_memory, model::Model, on_two_threads,
    queries, random::Random, requests::documents_and_score_bits,
};
use std::{collections::BTreeMap, ops::Range, sync::OnceLock};
use tierdex::explain::{SearchResult, StrategyKind};
use tierdex::schema::{NormKind, Schema};
use tierdex::{Bm25, Error, Index, Query, Scorer, SearchOptions};

/// Number of random queries over the large index.
const QUERIES: usize = 700;

/// Number of documents of the large index.
const DOCUMENTS: usize = 200_000;

/// Numbers of segments of equal size into which the same documents are divided.
const SEGMENTS: [usize; 4] = [1, 2, 8, 64];

const K_VALUES: [usize; 10] = [1, 2, 3, 10, 10, 64, 100, 300, 1000, 2000];

const K_MAX: usize = 2000;

const SCORERS: [Scorer; 5] = [
    Scorer::Bm25(Bm25 { k1: 1.2, b: 0.75 }),
    Scorer::Bm25(Bm25 { k1: 0.9, b: 0.4 }),
    Scorer::Bm25(Bm25 { k1: 2.0, b: 0.0 }),
    Scorer::Bm25(Bm25 { k1: 1000.0, b: 0.75 }),
    Scorer::Dot,
];

fn schema() -> Schema {
    SchemaOptions { stored: false, ..SchemaOptions::default() }.schema()
}

fn index_with_segments(docs: &[TestDocument], segments: usize) -> Index {
    let index = index_in_memory(&schema(), docs, &equal_cuts(docs.len(), segments));
    assert_eq!(index.segments().len(), segments);
    // With resident skip data, an initial threshold is computed before any segment is searched.
    if [1, 64].contains(&segments) {
        crate::support::load_into_region(&index, tierdex::io::RegionKind::Dram).unwrap();
    }
    index
}

/// The same documents, divided into different numbers of segments.
fn large_indexes() -> &'static [Index] {
    static INDEXES: OnceLock<Vec<Index>> = OnceLock::new();
    INDEXES.get_or_init(|| {
        let docs = random_documents_in_bursts(1, DOCUMENTS);
        on_two_threads(SEGMENTS.len(), |number| index_with_segments(&docs, SEGMENTS[number]))
    })
}

/// Parses a query; `None` if the product of its boosts is too large.
fn parse_if_valid(text: &str, schema: &Schema) -> Option<Query> {
    match Query::parse(text, schema) {
        Ok(query) => Some(query),
        Err(Error::Query { .. } | Error::Usage(_)) => None,
        Err(error) => panic!("{text}: {error}"),
    }
}

/// Compares a result with the best of `all` matches. If matches are not counted, the total must be exact if
/// there are fewer than k hits, and else any value from the number of hits to the exact total. `what` names
/// the query.
fn check_result(
    found: &SearchResult,
    all: &SearchResult,
    options: &SearchOptions,
    what: impl Fn() -> String,
) {
    let (found_rows, mut expected) =
        (documents_and_score_bits(&found.hits), documents_and_score_bits(&all.hits));
    expected.truncate(options.k);
    if found_rows != expected {
        let place = (0..).find(|at| found_rows.get(*at) != expected.get(*at)).unwrap_or(0);
        panic!(
            "{} with {options:?}: hit {place} of {} is {:?}, and should be {:?} of {}",
            what(),
            found_rows.len(),
            found.hits.get(place),
            all.hits.get(place),
            expected.len()
        );
    }
    if options.is_exact(found.hits.len()) {
        assert_eq!(found.total, all.total, "{} with {options:?}", what());
    } else {
        let possible = found.hits.len() as u64..=all.total;
        assert!(
            possible.contains(&found.total),
            "{} with {options:?}: {} of {possible:?}",
            what(),
            found.total
        );
    }
}

fn query_count() -> usize {
    std::env::var("TIERDEX_TEST_EVALUATIONS").ok().and_then(|count| count.parse().ok()).unwrap_or(QUERIES)
}

/// Evaluates each random query exhaustively over one division into segments, and then with pruning, with and
/// without counting, over all divisions. As scores use the statistics of the whole index, results must be
/// equal bit by bit.
#[test]
fn pruning_counting_segments_and_threads_change_no_result() {
    let (indexes, schema, wanted) = (large_indexes(), schema(), query_count());
    let searchers: Vec<_> = indexes.iter().map(Index::searcher).collect();
    // Strategies chosen, and the number of results.
    let run = |number: usize| {
        let mut random = Random::new(number as u64);
        let mut strategies: BTreeMap<String, usize> = BTreeMap::new();
        let (mut matching, mut unreadable) = (0, 0);
        while matching < wanted / 2 {
            let text = queries::random_query_text(&mut random, &schema);
            let Some(query) = parse_if_valid(&text, &schema) else {
                unreadable += 1;
                continue;
            };
            let scorer = *random.pick(&SCORERS);
            let first = random.below(searchers.len());
            let all = searchers[first].search(&query, &exhaustive_search(K_MAX, scorer)).unwrap();
            matching += usize::from(all.total > 0);
            for (searcher, segments) in searchers.iter().zip(SEGMENTS) {
                for count in [false, true] {
                    let k = *random.pick(&K_VALUES);
                    let tuning = *random.pick(&all_tunings());
                    let options = SearchOptions { k, scorer, count, tuning, ..SearchOptions::default() };
                    let found = searcher.search(&query, &options).unwrap();
                    check_result(&found, &all, &options, || format!("{text} in {segments} segments"));
                    // Where a search can be divided depends on the sets of prefixes that are kept, and so
                    // on the other thread. The queries that follow must not.
                    let mut cuts = Random::new(random.next());
                    let often = *random.pick(&[2, 5, 50]);
                    let cut = |rest: Range<u32>| {
                        cuts.one_in(often).then(|| rest.start + cuts.below(rest.len().max(1)) as u32)
                    };
                    let divided = searcher.search_divided(&query, &options, cut).unwrap();
                    let what = || format!("{text}, divided, in {segments} segments");
                    check_result(&divided, &all, &options, what);
                }
            }
            let options = SearchOptions {
                k: *random.pick(&[0, 0, 1, 10, 100]),
                scorer,
                count: random.one_in(2),
                exhaustive: random.one_in(6),
                tuning: *random.pick(&all_tunings()),
                ..SearchOptions::default()
            };
            let options = SearchOptions { count: options.count || options.k == 0, ..options };
            let number = random.below(searchers.len());
            let explained = searchers[number].explain(&query, &options, None).unwrap();
            let what = || format!("{text} explained in {} segments", SEGMENTS[number]);
            check_result(&explained.result, &all, &options, what);
            for segment in &explained.segments {
                *strategies.entry(format!("{:?}", segment.evaluation.strategy)).or_default() += 1;
            }
        }
        assert!(unreadable < wanted / 10, "{unreadable} queries cannot be read");
        strategies
    };
    let mut strategies: BTreeMap<String, usize> = BTreeMap::new();
    for of in on_two_threads(2, run) {
        of.into_iter().for_each(|(strategy, times)| *strategies.entry(strategy).or_default() += times);
    }
    for strategy in [
        StrategyKind::Nothing,
        StrategyKind::Dictionary,
        StrategyKind::ImpactOrdered,
        StrategyKind::Conjunction,
        StrategyKind::Windows,
        StrategyKind::CountBits,
        StrategyKind::CountBlocks,
        StrategyKind::CountDifference,
    ] {
        let is_chosen = strategies.contains_key(&format!("{strategy:?}"));
        assert!(is_chosen, "{strategy:?} is not among {strategies:?}");
    }
}

/// If a clause without matches has nearly all of the weight of a query, matches of the other clauses have the
/// smallest scores, and must still be hits.
#[test]
fn terms_of_negligible_weight_have_hits() {
    let (indexes, schema) = (large_indexes(), schema());
    for (index, segments) in indexes.iter().zip(SEGMENTS) {
        let searcher = index.searcher();
        for (scorer, weight) in
            SCORERS.iter().flat_map(|scorer| [1e-3, 1e-5, 1e-7, 1e-9].map(|w| (*scorer, w)))
        {
            for rank in [0, 3, 12] {
                let text = format!("{}^{weight:.9} nowhere", vocabulary_word(rank));
                let query = Query::parse(&text, &schema).unwrap();
                let all = searcher.search(&query, &exhaustive_search(100, scorer)).unwrap();
                assert!(all.total > 0, "{text}");
                let counted = SearchOptions { scorer, count: true, ..SearchOptions::default() };
                let ks = [1, 10, 100].into_iter();
                for (k, tuning) in ks.flat_map(|k| all_tunings().map(|tuning| (k, tuning))) {
                    let options = SearchOptions { k, tuning, ..counted };
                    let found = searcher.search(&query, &options).unwrap();
                    check_result(&found, &all, &options, || format!("{text} in {segments} segments"));
                }
            }
        }
    }
}

/// With resident skip records, queries of frequent terms have an initial threshold, and no hit scores less.
#[test]
fn an_initial_threshold_is_at_most_the_score_of_the_last_hit() {
    let (index, schema) = (&large_indexes()[0], schema());
    let mut known = 0;
    for (rank, scorer) in (0..40).flat_map(|rank| SCORERS.map(|scorer| (rank, scorer))) {
        let tuning = all_tunings()[rank % 2];
        for text in
            [vocabulary_word(rank), format!("{} {}", vocabulary_word(rank), vocabulary_word(rank + 1))]
        {
            let query = Query::parse(&text, &schema).unwrap();
            let options = SearchOptions { k: 10, scorer, count: true, tuning, ..SearchOptions::default() };
            let explained = index.searcher().explain(&query, &options, None).unwrap();
            let last = explained.result.hits.last().filter(|_| explained.result.hits.len() == 10);
            let Some(initial) = explained.segments[0].threshold_before else { continue };
            known += 1;
            assert!(last.is_some_and(|last| initial <= last.score), "{text} {scorer:?}: {initial} {last:?}");
        }
    }
    assert!(known > 40, "{known} of 320");
}

/// Compares results over few documents with those of the naive engine, with and without counting and pruning,
/// over all divisions into segments.
#[test]
fn results_equal_those_of_the_naive_engine() {
    let (schema, queries) = (schema(), query_count().min(1 << 14) / 5);
    let run = |number: usize| {
        let docs = random_documents_in_bursts(2 + number as u64, [6000, 2000][number]);
        let model = Model::new(&schema, &docs);
        let indexes = SEGMENTS.map(|segments| index_with_segments(&docs, segments));
        let mut random = Random::new(100 + number as u64);
        for _ in 0..queries {
            let text = queries::random_query_text(&mut random, &schema);
            let Some(query) = parse_if_valid(&text, &schema) else { continue };
            let scorer = *random.pick(&SCORERS);
            let expected =
                model.answer(&query, AnswerOptions { scorer, shown: 0, ..AnswerOptions::default() });
            for (index, segments) in indexes.iter().zip(SEGMENTS) {
                for (count, exhaustive) in [(false, false), (true, false), (true, true)] {
                    let k = *random.pick(&K_VALUES);
                    let tuning = *random.pick(&all_tunings());
                    let options =
                        SearchOptions { k, scorer, count, exhaustive, tuning, ..SearchOptions::default() };
                    let found = index.searcher().search(&query, &options).unwrap();
                    let what = || format!("{text} in {segments} segments with {options:?}");
                    let hits: Vec<_> =
                        expected.hits.iter().take(k).map(|row| (row.document, row.score_bits)).collect();
                    assert_eq!(documents_and_score_bits(&found.hits), hits, "{}", what());
                    let possible = if count { expected.total } else { hits.len() as u64 }..=expected.total;
                    assert!(possible.contains(&found.total), "{}: {} of {possible:?}", what(), found.total);
                }
            }
        }
    };
    on_two_threads(2, run);
}

/// A phrase of ten terms with slop matches in a document in ten intervals, which share the only occurrence of
/// its first term: the sum of their ten weights of a tenth must not exceed 1, the frequency of that term,
/// from which the upper bound of the score is computed. Another document scores exactly that bound, which is
/// then the threshold.
#[test]
fn a_sloppy_frequency_is_at_most_that_of_the_rarest_term() {
    const TERMS: usize = 10;
    const TERM_DISTANCE: usize = 12;
    let name = |term: usize| if term == 0 { "once".to_string() } else { format!("t{term}") };
    let phrase = Query::Phrase {
        field: 0,
        terms: (0..TERMS).map(|term| ((term * TERM_DISTANCE) as u32, name(term))).collect(),
        slop: TERMS as u32 - 1,
        open_end: false,
        boost: 1.0,
    };
    let text = |length: usize, places: &[(usize, usize)]| {
        let mut words = vec!["filler".to_string(); length];
        places.iter().for_each(|(term, place)| words[term * TERM_DISTANCE + place] = name(*term));
        words.join(" ")
    };
    // Each term but the first is ten positions before its exact position relative to the first.
    let shared =
        |term: usize| if term == 0 { vec![(0, TERMS)] } else { vec![(term, term), (term, term + TERMS)] };
    let shared: Vec<_> = (0..TERMS).flat_map(shared).collect();
    let in_line = |times| -> Vec<_> {
        (0..times)
            .flat_map(|time| (0..TERMS).map(move |term| (term, TERMS + time * (TERM_DISTANCE * TERMS + 22))))
            .collect()
    };
    // The first document contains the phrase `times` times and is `times` as long, so its score is that of a
    // document with one occurrence.
    let none: String = (0..TERMS).rev().map(|term| name(term) + " ").collect();
    let schema =
        SchemaOptions { norms: NormKind::Exact, stored: false, title: false, ..SchemaOptions::default() }
            .schema();
    for (length, times) in [(397, 3), (398, 3), (400, 7), (402, 3), (408, 5), (413, 5), (480, 1)] {
        let texts = std::iter::once(text(length * times, &in_line(times)));
        let texts = texts.chain((0..300).map(|_| none.clone()));
        let texts = texts.chain([text(length, &shared), "y y y".to_string()]);
        let index = index_in_memory(&schema, &TestDocument::of_texts(texts), &[]);
        let scorer = Scorer::Bm25(Bm25 { k1: 1.2, b: 1.0 });
        let options = exhaustive_search(2, scorer);
        let all = index.searcher().search(&phrase, &options).unwrap();
        assert_eq!(all.total, 2, "{length} words, {times} times");
        for (k, tuning) in [1, 2].into_iter().flat_map(|k| all_tunings().map(|tuning| (k, tuning))) {
            let options = SearchOptions { k, exhaustive: false, count: false, tuning, ..options };
            let found = index.searcher().search(&phrase, &options).unwrap();
            check_result(&found, &all, &options, || format!("{length} words, {times} times"));
        }
    }
}

/// Of equal scores the smaller document is the better hit, across segments, also if more than k documents
/// reach the initial threshold.
#[test]
fn ties_are_broken_by_the_smaller_document() {
    // Every 50th document scores more than the others. In the second round the others are longer in each
    // following segment, so that the average lengths differ.
    for growth in [0, 3] {
        let text = |number: usize| {
            let times = if number.is_multiple_of(50) { 2 } else { 1 };
            "same ".repeat(times) + &"filler ".repeat(4 - times + growth * number / 1000)
        };
        let doc = |number| TestDocument::new("", "", text(number));
        let docs: Vec<TestDocument> = (0..16_000).map(doc).collect();
        for segments in SEGMENTS {
            let index = index_with_segments(&docs, segments);
            for (query, scorer) in ["same", "same filler", "+same +filler", "+same -none"]
                .iter()
                .flat_map(|query| SCORERS.map(|scorer| (query, scorer)))
            {
                let query = Query::parse(query, index.schema()).unwrap();
                let all = index.searcher().search(&query, &exhaustive_search(1000, scorer)).unwrap();
                let ks = [1, 3, 10, 40, 60, 400].into_iter();
                for (k, tuning) in ks.flat_map(|k| all_tunings().map(|tuning| (k, tuning))) {
                    let options =
                        SearchOptions { k, scorer, count: false, tuning, ..SearchOptions::default() };
                    let found = index.searcher().search(&query, &options).unwrap();
                    check_result(&found, &all, &options, || format!("{query:?} in {segments} segments"));
                    let explained = index.searcher().explain(&query, &options, None).unwrap();
                    check_result(&explained.result, &all, &options, || format!("{query:?} explained"));
                }
            }
        }
    }
}

/// Tests the test itself: a lost hit makes the comparison fail.
#[test]
#[should_panic(expected = "hit 3 of 9")]
fn a_lost_hit_is_detected() {
    let docs = random_documents_in_bursts(7, 300);
    let index = index_with_segments(&docs, 2);
    let query = Query::parse("w0 w2", index.schema()).unwrap();
    let options = SearchOptions { count: true, ..SearchOptions::default() };
    let all = index.searcher().search(&query, &options).unwrap();
    let mut found = all.clone();
    found.hits.remove(3);
    check_result(&found, &all, &options, || "one less".to_string());
}
