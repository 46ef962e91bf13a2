//! Pruned evaluation returns the same documents, score bits and order as exhaustive evaluation.

use crate::support::corpus::{SchemaOptions, TestDocument};
use crate::support::{
    AnswerOptions, SMALL_TUNING, all_tunings, answer_text, index_in_memory, random::Random,
    requests::documents_and_score_bits,
};
use proptest::prelude::*;
use tierdex::{
    Bm25, Index, Query, Scorer, SearchOptions, codec::Codec, internal::index::Tuning, schema::NormKind,
};

/// Words of decreasing document frequency: from all documents to one of fifty.
const RARER_WORDS: [&str; 5] = ["everywhere", "often", "half", "some", "seldom"];

/// Number of words `m0`, `m1`, ... that are each in a third of the documents.
const COMMON_WORDS: usize = 40;

/// Documents with words in bursts, so that blocks differ, and duplicates, so that scores tie.
fn documents_in_bursts(seed: u64, count: usize) -> Vec<TestDocument> {
    let mut random = Random::new(seed);
    let mut docs: Vec<TestDocument> = Vec::with_capacity(count);
    let mut burst = 1;
    for number in 0..count {
        if number % 700 == 0 {
            burst = 1 + random.skewed(40);
        }
        let mut text = String::new();
        for (rank, word) in RARER_WORDS.iter().enumerate() {
            if rank == 0 || random.one_in(1 + 2 * rank * rank) {
                let times = if random.one_in(30) { 1 + random.below(burst) } else { 1 };
                text.push_str(&format!("{word} ").repeat(times));
            }
        }
        for many in (0..COMMON_WORDS).filter(|_| random.one_in(3)) {
            text.push_str(&format!("m{many} "));
        }
        text.push_str(&"filler ".repeat(random.skewed(200)));
        if random.one_in(9) && number > 0 {
            text.clone_from(&docs[random.below(number)].text);
        }
        docs.push(TestDocument::new(number, "", text));
    }
    docs
}

fn index_documents(docs: &[TestDocument], cuts: &[usize], codec: Codec, norms: NormKind) -> Index {
    let shape = SchemaOptions {
        codec,
        norms,
        stored: false,
        positions: false,
        title: false,
        ..SchemaOptions::default()
    };
    index_in_memory(&shape.schema(), docs, cuts)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pruned_and_exhaustive_answers_are_equal(
        seed in any::<u64>(),
        count in 300usize..6000,
        cuts in 0usize..3,
        exact in any::<bool>(),
        codec in prop_oneof![4 => Just(Codec::Auto), 1 => Just(Codec::Bitmap), 1 => Just(Codec::Pfor256Delta)],
        scorer in prop_oneof![Just(Scorer::default()), (0.0f64..3.0, 0.0f64..=1.0).prop_map(|(k1, b)| Bm25 { k1, b }.into()), Just(Scorer::Dot)],
    ) {
        let docs = documents_in_bursts(seed, count);
        let cuts: Vec<usize> = (1..=cuts).map(|part| part * count / (cuts + 1)).collect();
        let norms = if exact { NormKind::Exact } else { NormKind::Byte };
        let index = index_documents(&docs, &cuts, codec, norms);
        let many: String = (0..COMMON_WORDS).map(|many| format!("m{many} ")).collect();
        for word in RARER_WORDS.iter().chain(&["nowhere", "filler", "+half +some", "+everywhere +often +seldom", "+often +often +half",
            "+filler +everywhere +often +half +some +seldom", "+half +nowhere", "half some", "everywhere seldom", "everywhere often half some seldom nowhere", "some filler", "+m0 +m1 +m2 +m3", &many,
            "often^2", "half^3 some", "+half^0.5 +often^4", "half^0 some^0", "+half^0 +often^0", "half^1e-40 some^1e-42", "often^1e-42", "ofen~1", "some~ hal~2"]) {
            for k in [0, 1, 10, 100, 1024, usize::MAX] {
                let look = AnswerOptions { k, scorer, shown: 0, exhaustive: false };
                let pruned = answer_text(&index, word, look).unwrap();
                let all = answer_text(&index, word, AnswerOptions { exhaustive: true, ..look }).unwrap();
                prop_assert_eq!(&pruned, &all, "{} k {} {:?}", word, k, scorer);
                let query = Query::parse(word, index.schema()).unwrap();
                for tuning in all_tunings() {
                    let options = SearchOptions { k, scorer, count: false, tuning, ..SearchOptions::default() };
                    let uncounted = index.searcher().search(&query, &options).unwrap();
                    prop_assert!((uncounted.hits.len() as u64..=all.total).contains(&uncounted.total), "{} k {}: {} of {}", word, k, uncounted.total, all.total);
                    let expected: Vec<_> = all.hits.iter().map(|row| (row.document, row.score_bits)).collect();
                    prop_assert_eq!(documents_and_score_bits(&uncounted.hits), expected, "{} k {} {:?}, uncounted", word, k, scorer);
                }
            }
        }
    }
}

/// A block of an essential term may end up to seven documents after the window in which it starts, because
/// windows start at a multiple of eight, up to seven documents before their first document.
#[test]
fn a_block_that_ends_just_after_its_window_is_not_contained_in_it() {
    for shift in 0..8 {
        let (dense, end) = (256 + shift, 10_456 + shift);
        let docs: Vec<TestDocument> = (0..20_000)
            .map(|d: usize| {
                let a = d < dense
                    || (d < end && (d - dense).is_multiple_of(40) && d < dense + 40 * 255)
                    || (d >= end && (d - end).is_multiple_of(16));
                let b = if d.is_multiple_of(10) { "z" } else { "b" };
                let alone = d == end + 4096 || d == end + 8192;
                let text = format!("{} {b} {}", if a { "a" } else { "z" }, if alone { "a" } else { "z" });
                TestDocument::new(d, "", text)
            })
            .collect();
        for codec in [Codec::Auto, Codec::Pfor256Delta] {
            let index = index_documents(&docs, &[], codec, NormKind::Byte);
            let query = Query::parse("a b", index.schema()).unwrap();
            for (k, tuning) in
                [1, 5, 10, 100].into_iter().flat_map(|k| all_tunings().map(|tuning| (k, tuning)))
            {
                let options = SearchOptions { k, count: false, tuning, ..SearchOptions::default() };
                let found = index.searcher().search(&query, &options).unwrap();
                let all =
                    index.searcher().search(&query, &SearchOptions { exhaustive: true, ..options }).unwrap();
                let rows = documents_and_score_bits;
                assert_eq!(rows(&found.hits), rows(&all.hits), "{codec:?}, {shift}, {k}");
            }
        }
    }
}

#[test]
fn the_ten_best_of_many_decode_a_few_blocks() {
    let index = index_documents(&documents_in_bursts(5, 40_000), &[], Codec::Auto, NormKind::Byte);
    let query = Query::parse("often", index.schema()).unwrap();
    let scorers = [Scorer::default(), Bm25 { k1: 0.9, b: 0.4 }.into(), Scorer::Dot].into_iter();
    // The small tuning would not read impacts. Without them more blocks are decoded, unless the parameters
    // are those of the stored max shares.
    let default = Tuning::default();
    let small = Tuning { impact_record_bytes_max: default.impact_record_bytes_max, ..SMALL_TUNING };
    for (scorer, tuning) in scorers.flat_map(|scorer| [(scorer, small), (scorer, default)]) {
        let options = SearchOptions { k: 10, scorer, count: true, tuning, ..SearchOptions::default() };
        let explained = index.searcher().explain(&query, &options, None).unwrap();
        let of = &explained.segments[0].evaluation.lists[0].blocks;
        assert_eq!(explained.result.hits.len(), 10);
        assert!(of.blocks > 50 && of.decoded * 4 < of.blocks, "{of:?} {scorer:?}");
    }
}

/// A searcher reuses its scratch buffers, in which a count must leave nothing.
#[test]
fn a_count_does_not_affect_the_next() {
    let docs = documents_in_bursts(8, 40_000);
    for codec in [Codec::Auto, Codec::Pfor256Delta] {
        let index = index_documents(&docs, &[5000], codec, NormKind::Byte);
        let searcher = index.searcher();
        let queries =
            ["+everywhere +often", "half some seldom", "+m0 +m1 +m2", "often m0", "some seldom", "+half +m1"];
        let queries = queries.map(|text| Query::parse(text, index.schema()).unwrap());
        let count = |query, exhaustive| {
            let options = SearchOptions { k: 0, exhaustive, count: true, ..SearchOptions::default() };
            searcher.search(query, &options).unwrap().total
        };
        let expected = queries.each_ref().map(|query| count(query, true));
        for before in &queries {
            for (query, expected) in queries.iter().zip(&expected) {
                count(before, false);
                assert_eq!(count(query, false), *expected, "{codec:?}, {query:?} after {before:?}");
            }
        }
    }
}

#[test]
fn a_resident_index_reads_nothing() {
    let docs = documents_in_bursts(6, 3000);
    let index = index_documents(&docs, &[1000], Codec::Auto, NormKind::Byte);
    let look = AnswerOptions { k: 100, shown: 0, ..AnswerOptions::default() };
    let queries = ["often", "+half +some", "often seldom", "nowhere"];
    let before: Vec<_> = queries.iter().map(|query| answer_text(&index, query, look).unwrap()).collect();
    crate::support::load_into_region(&index, tierdex::io::RegionKind::Dram).unwrap();
    let read = index.bytes_read();
    for (query, before) in queries.iter().zip(before) {
        assert_eq!(answer_text(&index, query, look).unwrap(), before);
    }
    assert_eq!(index.bytes_read(), read);
}

/// Upper bounds are hundreds of times the scores of hits: in each block some documents contain one of two
/// terms very often, and all documents that contain both terms are long and score nearly the same.
#[test]
fn bounds_far_above_the_hits_lose_none() {
    let mut docs = Vec::new();
    for block in 0..2 {
        docs.extend(
            ["aa ", "bb "].iter().flat_map(|word| [word.repeat(500), word.repeat(500), word.repeat(500)]),
        );
        for place in 0..253 {
            let more = if block == 0 { 300 + 2 * place } else { 1500 - usize::from(place == 99) * 1181 };
            docs.push(format!("aa bb {}", "x ".repeat(more)));
        }
    }
    docs.extend((0..2000).map(|_| "y y".to_string()));
    let doc = |(number, text)| TestDocument::new(number, "", text);
    let docs: Vec<TestDocument> = docs.into_iter().enumerate().map(doc).collect();
    let index = index_documents(&docs, &[], Codec::Auto, NormKind::Exact);
    let mut random = Random::new(11);
    for b in [0.0001, 0.0005, 0.002, 0.75] {
        let scorer = Scorer::Bm25(Bm25 { k1: 1000.0, b });
        for _ in 0..100 {
            let mut boost = || 1.0 + random.below(10_000) as f64 / 2000.0;
            let query = Query::parse(&format!("+aa^{} +bb^{}", boost(), boost()), index.schema()).unwrap();
            for k in [1, 10, 11, 12, 30] {
                let options = SearchOptions { k, scorer, count: false, ..SearchOptions::default() };
                let all = SearchOptions { exhaustive: true, ..options };
                let all = index.searcher().search(&query, &all).unwrap().hits;
                for tuning in all_tunings() {
                    let pruned = index.searcher().search(&query, &SearchOptions { tuning, ..options });
                    assert_eq!(pruned.unwrap().hits, all, "{query:?} k {k}");
                }
            }
        }
    }
}
