//! An explanation has the result of a search, and its numbers of blocks add up. A search whose documents are
//! divided into ranges has the same result.

use crate::support::corpus::{SchemaOptions, TestDocument, random_documents};
use crate::support::requests::engine_options;
use crate::support::{
    SMALL_TUNING, all_tunings, equal_cuts, index_in_memory, lists::total_and_hits, random::Random,
};
use proptest::prelude::*;
use tierdex::explain::{Explanation, ListUse, SegmentExplanation, StrategyKind};
use tierdex::internal::index::Tuning;
use tierdex::{Bm25, Engine, Index, Query, Scorer, SearchOptions, SearchRequest};

fn index_documents(docs: &[TestDocument], shape: SchemaOptions, segments: usize) -> Index {
    index_in_memory(&shape.schema(), docs, &equal_cuts(docs.len(), segments))
}

fn explain_query(index: &Index, text: &str, options: &SearchOptions) -> Explanation {
    index.searcher().explain(&Query::parse(text, index.schema()).unwrap(), options, None).unwrap()
}

/// Queries, separated by semicolons.
const QUERIES: &str = "\
    all; w0; w9; nowhere; +w0 +w5; +all +w0 +w5; +w0 +nowhere; w0 w5; all w0 w5 w9; w100 w105; all^0; \
    -w0; +w0 -w5; w0 #w5; (all w0 w5)~2; \"all w0\"; \"w0 w0 w5\"~3; w1*; w10~1; *:*; \
    +w0 w5 (w9 -w10); w0 nowhere; \"all nowhere\"; +w0 +w1* \"all w5\"";

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn counts_add_up_and_the_answer_is_that_of_a_search(
        seed in any::<u64>(),
        count in 1usize..4000,
        segments in 1usize..4,
        tuning in prop::sample::select(all_tunings().to_vec()),
        scorer in prop_oneof![Just(Scorer::default()), (0.0f64..3.0, 0.0f64..=1.0).prop_map(|(k1, b)| Bm25 { k1, b }.into()), Just(Scorer::Dot)],
    ) {
        let index = index_documents(&random_documents(seed, count), SchemaOptions::default(), segments);
        for text in QUERIES.split("; ") {
            for (k, exhaustive, counted) in [(0, false, true), (3, false, true), (3, false, false), (3, true, true), (400, false, false)] {
                let options = SearchOptions { k, scorer, exhaustive, count: counted, tuning, ..SearchOptions::default() };
                let explained = explain_query(&index, text, &options);
                let query = Query::parse(text, index.schema()).unwrap();
                let found = index.searcher().search(&query, &options).unwrap();
                prop_assert_eq!(total_and_hits(&explained.result), total_and_hits(&found), "{} k {}", text, k);
                prop_assert_eq!(explained.segments.len(), index.segments().len());
                for segment in &explained.segments {
                    check_counts(segment, exhaustive, text);
                    let within = |list: &ListUse| {
                        list.highest_bound.is_none_or(|bound| f64::from(bound) <= list.weight * 1.001)
                    };
                    let all = segment.evaluation.lists.iter().all(within);
                    prop_assert!(scorer == Scorer::Dot || all, "{text}: {:?}", segment.evaluation.lists);
                }
            }
        }
    }

    #[test]
    fn parts_have_the_hits_of_the_whole_index(seed in any::<u64>(), count in 6usize..3000, segments in 1usize..6, tuning in prop::sample::select(all_tunings().to_vec())) {
        // A fifteenth of the documents are copies of others, so that scores tie across segments.
        let index = index_documents(&random_documents(seed, count), SchemaOptions::default(), segments);
        let searcher = index.searcher();
        for text in QUERIES.split("; ") {
            let query = Query::parse(text, index.schema()).unwrap();
            for (k, exhaustive) in [(0, false), (1, false), (10, false), (10, true), (usize::MAX, false)] {
                let options = SearchOptions { k, exhaustive, count: true, tuning, ..SearchOptions::default() };
                let alone = searcher.search(&query, &options).unwrap();
                for parts in [2, 3, 5, 64] {
                    let cut = |rest: std::ops::Range<u32>| Some(rest.end - rest.len() as u32 / parts);
                    let divided = searcher.search_divided(&query, &options, cut).unwrap();
                    prop_assert_eq!(total_and_hits(&divided), total_and_hits(&alone), "{} k {} in {}", text, k, parts);
                }
            }
        }
    }
}

fn check_counts(segment: &SegmentExplanation, exhaustive: bool, text: &str) {
    let strategy = segment.evaluation.strategy;
    for list in &segment.evaluation.lists {
        let of = &list.blocks;
        let what = format!("{text}: {list:?}");
        assert_eq!(of.blocks, u64::from(list.documents).div_ceil(256), "{what}");
        assert_eq!(of.decoded + of.by_bound + of.by_range, of.blocks, "{what}");
        assert!(of.documents.max(of.frequencies) <= of.decoded, "{what}");
        assert!(of.decoded <= of.documents + of.frequencies, "{what}");
        assert!(of.docs_decoded <= of.docs_bytes && of.freqs_decoded <= of.freqs_bytes, "{what}");
        match strategy {
            StrategyKind::ImpactOrdered if list.highest_bound.is_some() => {
                assert_eq!(of.by_range, 0, "{what}")
            }
            _ => {}
        }
    }
    // Of a conjunction only blocks with candidates are decoded, and of a phrase those of the rarest term.
    let is_plain = |line: &str| !["must", "filter", "phrase"].iter().any(|word| line.starts_with(word));
    let is_disjunction = segment.evaluation.nodes.iter().all(|(_, line)| is_plain(line));
    if exhaustive && is_disjunction && strategy == StrategyKind::Windows {
        let lists = &segment.evaluation.lists;
        assert!(lists.iter().all(|list| list.blocks.decoded == list.blocks.blocks), "{text}");
    }
}

/// Documents of which half contain the term `half`, mostly once; some adjacent ones contain it often.
fn documents_half_with_term(count: usize) -> Vec<TestDocument> {
    let mut random = Random::new(11);
    let text = |number: usize| {
        let mut text = "filler ".repeat(1 + random.below(12));
        if random.one_in(2) {
            let often = (1000..1200).contains(&number);
            let times = if often { 3 + random.below(6) } else { 1 };
            text.push_str(&"half ".repeat(times));
        }
        text
    };
    TestDocument::of_texts((0..count).map(text))
}

#[test]
fn a_term_in_half_of_the_documents_decodes_a_twentieth() {
    let shape = SchemaOptions { stored: false, positions: false, title: false, ..SchemaOptions::default() };
    let docs = documents_half_with_term(200_000);
    let index = index_documents(&docs, shape, 1);
    let options = SearchOptions { count: true, ..SearchOptions::default() };
    let [explained, small] = [Tuning::default(), SMALL_TUNING]
        .map(|tuning| explain_query(&index, "half", &SearchOptions { tuning, ..options }));
    assert_eq!(total_and_hits(&explained.result), total_and_hits(&small.result));
    let blocks = &small.segments[0].evaluation.lists[0].blocks;
    assert!(blocks.decoded > 0 && blocks.decoded * 20 < blocks.blocks, "{blocks:?}");
    let segment = &explained.segments[0];
    let list = &segment.evaluation.lists[0];
    let of = &list.blocks;
    assert_eq!((segment.evaluation.strategy, of.by_range), (StrategyKind::ImpactOrdered, 0));
    assert!((95_000..105_000).contains(&list.documents), "{list:?}");
    assert!(of.decoded > 0 && of.decoded * 20 < of.blocks, "{list:?}");
    assert!(segment.files.iter().all(|file| file.reads > 0 && file.bytes > 0));
    assert_eq!(explained.threshold, explained.result.hits.last().map(|hit| hit.score));
    let all = explain_query(
        &index,
        "half",
        &SearchOptions { exhaustive: true, count: true, ..SearchOptions::default() },
    );
    let of = &all.segments[0].evaluation.lists[0].blocks;
    assert_eq!(of.decoded, of.blocks);
    assert_eq!(total_and_hits(&all.result), total_and_hits(&explained.result));
}

/// An engine explains a request with its hits: the same matches and lists as a searcher, read through its
/// cache.
#[test]
fn an_engine_explains_requests() {
    let docs = random_documents(12, 3000);
    let index = index_documents(&docs, SchemaOptions::default(), 3);
    let engine = Engine::new(&index, &engine_options(400, 2)).unwrap();
    let reads = || {
        let files = index.segments().iter().flat_map(|segment| segment.files());
        files.map(|file| file.reads()).sum::<u64>()
    };
    let (mut lists, mut used) = (0, 0);
    for text in ["all", "w0 w1 -w2", "+all +w0", "\"all w0\"", "w1~1 w4", "w1* w9", "absent", "title:w2"] {
        let query = Query::parse(text, index.schema()).unwrap();
        let options = SearchOptions { k: 7, count: true, ids: true, ..SearchOptions::default() };
        let request = || SearchRequest::new(query.clone()).options(options);
        let expected = engine.search(request()).unwrap();
        assert!(expected.explanation.is_none(), "not requested");
        let alone = index.searcher().explain(&query, &options, None).unwrap();
        engine.search(request().explain(true)).unwrap();
        let before = reads();
        let found = engine.search(request().explain(true)).unwrap();
        assert_eq!(reads(), before, "{text}: all reads go through the cache");
        assert_eq!((&found.hits, found.total), (&expected.hits, expected.total), "{text}");
        assert_eq!(found.ids().unwrap(), expected.ids().unwrap());
        let explained = found.explanation.expect("requested");
        assert_eq!(total_and_hits(&explained.result), total_and_hits(&alone.result), "{text}");
        assert_eq!((explained.threshold, found.parts), (alone.threshold, 1), "{text}");
        for (of, alone) in explained.segments.iter().zip(&alone.segments) {
            assert_eq!(
                (of.id, of.documents, of.matches),
                (alone.id, alone.documents, alone.matches),
                "{text}"
            );
            let terms = |of: &SegmentExplanation| {
                let lists = of.evaluation.lists.iter();
                lists.map(|list| (list.field.clone(), list.term.clone(), list.documents)).collect::<Vec<_>>()
            };
            assert_eq!(terms(of), terms(alone), "{text}");
            lists += of.evaluation.lists.len();
            used += of.files.len();
        }
    }
    assert!(lists > 20 && used > 20, "{lists} {used}");
    let late = SearchRequest::new(Query::parse("all", index.schema()).unwrap()).explain(true);
    match engine.search(late.deadline(std::time::Instant::now() + std::time::Duration::from_micros(30))) {
        Err(error) => assert!(matches!(error, tierdex::Error::Expired { .. }), "{error}"),
        Ok(found) => assert_eq!(found.timed_out, found.explanation.is_none()),
    }
}
