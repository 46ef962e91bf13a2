//! Compares results of the engine with those of the naive engine: the same hits in the same order with the
//! same score bits, and the same total, for any division into segments, codec, norms, fields and k.

use crate::support::corpus::{SchemaOptions, TestDocument, random_documents};
use crate::support::{
    AddMethod, AnswerOptions, answer_query, checked_index, model::Model, queries, random::Random,
};
use proptest::prelude::*;
use tierdex::schema::{NormKind, Tokenizer};
use tierdex::{Bm25, Index, Merge, Query, Scorer, codec::Codec};

const DELTA_CODECS: [Codec; 3] = [Codec::VByteDelta, Codec::Pfor256Delta, Codec::Raw];

/// What a test case varies.
#[derive(Clone, Copy, Debug)]
struct OracleCase {
    seed: u64,
    documents: usize,
    segments: usize,
    growth: AddMethod,
    last: Merge,
    shape: SchemaOptions,
    scorer: Scorer,
}

fn schema_options() -> impl Strategy<Value = SchemaOptions> {
    let codec = prop_oneof![prop::sample::select(&DELTA_CODECS[..]), prop::sample::select(Codec::ALL)];
    let norms = prop_oneof![Just(NormKind::Byte), Just(NormKind::Exact)];
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), 0u8..6);
    (codec, norms, flags).prop_map(|(codec, norms, (positions, stop_words, title, stored, tokenizer))| {
        SchemaOptions {
            codec,
            positions,
            norms,
            stop_words,
            tokenizer: if tokenizer == 0 { Tokenizer::Whitespace } else { Tokenizer::Alphanumeric },
            title,
            stored,
            columns: stored,
        }
    })
}

fn oracle_cases() -> impl Strategy<Value = OracleCase> {
    let growth = prop_oneof![
        Just(AddMethod::Commits),
        Just(AddMethod::Writers),
        (1usize..60).prop_map(AddMethod::Batches)
    ];
    let last = prop_oneof![Just(Merge::None), Just(Merge::One)];
    let documents = prop_oneof![0usize..40, 200usize..700, 500usize..1500];
    let scorer = prop_oneof![
        Just(Scorer::default()),
        Just(Bm25 { k1: 0.9, b: 0.4 }.into()),
        Just(Bm25 { k1: 0.0, b: 1.0 }.into()),
        Just(Scorer::Dot)
    ];
    (any::<u64>(), documents, 1usize..=5, growth, last, schema_options(), scorer).prop_map(
        |(seed, documents, segments, growth, last, shape, scorer)| OracleCase {
            seed,
            documents,
            segments,
            growth,
            last,
            shape,
            scorer,
        },
    )
}

/// The first difference between the results of engine and model for a query, for several k.
fn find_difference(index: &Index, model: &Model, query: &Query, scorer: Scorer) -> Option<String> {
    let ways = [1, 10, 100, usize::MAX].into_iter().flat_map(|k| [(k, false), (k, true)]);
    ways.into_iter().find_map(|(k, exhaustive)| {
        let look = AnswerOptions { k, scorer, exhaustive, shown: 2 };
        let (found, expected) = (answer_query(index, query, look).unwrap(), model.answer(query, look));
        (found != expected).then(|| {
            let place = found.hits.iter().zip(&expected.hits).position(|(found, expected)| found != expected);
            format!(
                "k {k}, exhaustive {exhaustive}: totals {} and {}, hits {} and {}, first difference {:?}",
                found.total,
                expected.total,
                found.hits.len(),
                expected.hits.len(),
                place.map(|at| (at, &found.hits[at], &expected.hits[at])),
            )
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 160, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn results_equal_those_of_the_naive_engine(case in oracle_cases()) {
        let mut random = Random::new(case.seed);
        let docs = random_documents(case.seed, case.documents);
        let schema = case.shape.schema();
        let mut cuts: Vec<usize> = (1..case.segments).map(|_| random.below(case.documents + 1)).collect();
        cuts.sort_unstable();
        let index = checked_index(&schema, &docs, &cuts, case.growth, case.last);
        let most = if case.last == Merge::One { 1 } else { case.segments };
        prop_assert!(index.segments().len() <= most);
        let model = Model::new(&schema, &docs);
        for _ in 0..25 {
            let ast = queries::random_query(&mut random, &schema);
            let text = ast.text();
            let query = Query::parse(&text, &schema).unwrap();
            prop_assert_eq!(&query, &ast.to_query(&schema), "{} is read differently", text);
            let difference = find_difference(&index, &model, &query, case.scorer);
            prop_assert!(difference.is_none(), "{text}: {}", difference.unwrap_or_default());
        }
    }
}

/// Lists of more than three superblocks (32 blocks of 256 documents each), lists of one block and of one
/// document.
#[test]
fn long_lists_give_the_results_of_the_naive_engine() {
    let mut random = Random::new(8192);
    let mut docs: Vec<TestDocument> =
        (0..27_000).map(|number| long_list_document(number, &mut random)).collect();
    docs[26_999].text.push_str(" last");
    for (codec, last) in
        [(Codec::Pfor256Delta, Merge::One), (Codec::VByteDelta, Merge::None), (Codec::Raw, Merge::One)]
    {
        let schema =
            SchemaOptions { codec, title: false, stored: false, ..SchemaOptions::default() }.schema();
        let model = Model::new(&schema, &docs);
        assert!(model.containing(0, "every") == 27_000 && model.containing(0, "most") > 3 * 8192);
        let index = checked_index(&schema, &docs, &[300, 26_000], AddMethod::Commits, last);
        let texts = "\
            every; most; half; tenth; rare; last; every AND last; most AND rare; half AND tenth; \
            half OR tenth rare; +every -most; NOT most; \"most half\"; \"half tenth\" rare; \
            last rare absent; \"every every\"; (half OR last) AND (tenth OR rare); \
            every most half tenth rare burst; +burst tenth; block; bur*; +half #tenth; \
            #(half tenth) most; (half tenth rare last)~2; +every (half tenth rare last)~3; \
            tenht~1^2 most; mist~; \"most tenth\"~1; \"half every\"~4; half^0 tenth^0; \
            +rare^0 +every^0; *:*^3 last; -*:*; h* OR r*^2";
        for text in texts.split("; ") {
            let query = Query::parse(text, &schema).unwrap();
            let difference = find_difference(&index, &model, &query, Scorer::default());
            assert!(
                difference.is_none(),
                "{} {last:?}, {text}: {}",
                codec.name(),
                difference.unwrap_or_default()
            );
        }
    }
}

fn long_list_document(number: usize, random: &mut Random) -> TestDocument {
    let mut text = "every".to_string();
    let mut push = |word: &str, wanted: bool| {
        if wanted {
            text.push(' ');
            text.push_str(word);
        }
    };
    push("most", !random.one_in(40));
    push("half", random.one_in(2));
    push("tenth", random.one_in(10));
    push("rare", random.one_in(900));
    push("burst", (9000..9700).contains(&number));
    push("block", number < 256);
    push("every", random.one_in(50));
    TestDocument::new(number, "", text)
}

/// Tests the test itself: a lost posting makes the comparison fail.
#[test]
fn a_lost_posting_is_detected() {
    let docs = random_documents(5, 300);
    let schema = SchemaOptions::default().schema();
    let index = checked_index(&schema, &docs, &[100], AddMethod::Commits, Merge::None);
    let mut model = Model::new(&schema, &docs);
    let query = Query::parse("all", &schema).unwrap();
    assert!(find_difference(&index, &model, &query, Scorer::default()).is_none());
    assert!(model.remove_posting(0, "all"));
    assert!(find_difference(&index, &model, &query, Scorer::default()).is_some());
}

/// Queries that are not parsed, but built as [`Query::Bool`], follow its documentation.
#[test]
fn clauses_follow_their_documentation() {
    let docs = random_documents(6, 50);
    let schema = SchemaOptions::default().schema();
    let index = checked_index(&schema, &docs, &[20], AddMethod::Commits, Merge::None);
    let model = Model::new(&schema, &docs);
    let term = |term: &str| Query::Term { field: 0, term: term.to_string(), boost: 1.5 };
    let boolean = Query::clauses;
    let with_minimum = |must, should, minimum| Query::Bool {
        must,
        filter: vec![term("w3")],
        should,
        must_not: Vec::new(),
        minimum,
    };
    for query in [
        Query::Nothing,
        boolean(vec![Query::Nothing], vec![term("all")], vec![]),
        boolean(vec![], vec![Query::Nothing, term("all")], vec![]),
        boolean(vec![term("all")], vec![], vec![Query::Nothing]),
        boolean(vec![], vec![], vec![term("all")]),
        boolean(vec![], vec![], vec![]),
        boolean(vec![], vec![boolean(vec![], vec![term("w3"), term("w4")], vec![]), term("w3")], vec![]),
        with_minimum(vec![], vec![], 0),
        with_minimum(vec![], vec![term("w0"), term("w4")], 0),
        with_minimum(vec![], vec![term("w0"), term("w4")], 1),
        with_minimum(vec![], vec![term("w0"), term("w0")], 2),
        with_minimum(vec![], vec![term("w0")], 2),
        with_minimum(vec![term("all")], vec![term("w0"), term("w4"), term("w9")], 2),
        boolean(vec![], vec![with_minimum(vec![], vec![], 7), Query::All { boost: 2.0 }], vec![]),
        Query::All { boost: 0.0 },
    ] {
        let difference = find_difference(&index, &model, &query, Scorer::default());
        assert!(difference.is_none(), "{query:?}: {}", difference.unwrap_or_default());
    }
}
