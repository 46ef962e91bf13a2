//! Relations between the results of several queries, which must hold whatever the correct results are.

use crate::support::corpus::{SchemaOptions, TestDocument, WORD_EVERYWHERE, random_documents};
use crate::support::grown::GrownCase;
use crate::support::requests::{assert_same_hits, engine_options, parse_query};
use crate::support::{
    AddMethod, Answer, AnswerOptions, answer_text, build, matching_documents, queries, random::Random, schema,
};
use std::sync::Arc;
use tierdex::internal::engine::MetaTier;
use tierdex::io::{Disk, MemDisk, RegionKind};
use tierdex::schema::NormKind;
use tierdex::{
    Bm25, Engine, Index, Merge, OpenMode, Scorer, SearchOptions, SearchRequest, TotalHits, ciff::export,
};

const CORPUS_COUNT: u64 = 6;
const QUERY_PAIRS: usize = 60;

fn build_new(docs: &[TestDocument], cuts: &[usize], growth: AddMethod, last: Merge) -> Arc<dyn Disk> {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    build(&disk, &schema(), docs, cuts, growth, last);
    disk
}

fn answer_all(index: &Index, text: &str) -> Answer {
    answer_text(index, text, AnswerOptions::default()).unwrap()
}

/// Calls `body` with indexes of several corpora and pairs of queries, each in parentheses.
fn for_each_query_pair(mut body: impl FnMut(&Index, &str, &str)) {
    for seed in 0..CORPUS_COUNT {
        let docs = random_documents(seed, 400);
        let index = Index::open_on(build_new(&docs, &[50, 300], AddMethod::Commits, Merge::None)).unwrap();
        let mut random = Random::new(seed);
        for _ in 0..QUERY_PAIRS {
            let mut text = || format!("({})", queries::random_query(&mut random, &schema()).text());
            let (a, b) = (text(), text());
            body(&index, &a, &b);
        }
    }
}

#[test]
fn a_query_twice_finds_the_same_documents() {
    for_each_query_pair(|index, a, _| {
        let once = matching_documents(index, a);
        assert_eq!(matching_documents(index, &format!("{a} AND {a}")), once, "{a}");
        assert_eq!(matching_documents(index, &format!("{a} OR {a}")), once, "{a}");
    });
}

#[test]
fn a_query_and_its_exclusion_partition_the_documents() {
    for_each_query_pair(|index, a, b| {
        let (with_a, with_b) = (matching_documents(index, a), matching_documents(index, b));
        let (without_a, both) = (
            matching_documents(index, &format!("NOT {a}")),
            matching_documents(index, &format!("{a} AND {b}")),
        );
        let any = matching_documents(index, &format!("{a} OR {b}"));
        assert!(without_a.is_disjoint(&with_a), "{a}");
        assert_eq!(with_a.len() as u64 + without_a.len() as u64, index.documents(), "{a}");
        assert_eq!(any, &with_a | &with_b, "{a} OR {b}");
        assert_eq!(both, &with_a & &with_b, "{a} AND {b}");
        assert_eq!(matching_documents(index, &format!("{a} NOT {b}")), &with_a - &with_b, "{a} NOT {b}");
        assert_eq!(matching_documents(index, &format!("+{a} {b}")), with_a, "+{a} {b}");
        assert_eq!(
            matching_documents(index, &format!("{a} OR NOT {b}")),
            &with_a | &matching_documents(index, &format!("NOT {b}"))
        );
    });
}

#[test]
fn fewer_hits_are_the_first_of_more() {
    for_each_query_pair(|index, a, _| {
        let every = answer_all(index, a);
        for k in [0, 1, 10, 100] {
            let few = answer_text(index, a, AnswerOptions { k, ..AnswerOptions::default() }).unwrap();
            assert_eq!(few.total, every.total);
            assert_eq!(few.hits[..], every.hits[..k.min(every.hits.len())], "{a}, k {k}");
        }
    });
}

#[test]
fn phrases_are_found_among_conjunctions() {
    let (mut found, mut random) = (0, Random::new(3));
    let docs = random_documents(77, 600);
    let index = Index::open_on(build_new(&docs, &[], AddMethod::Commits, Merge::One)).unwrap();
    for _ in 0..400 {
        let mut word = || crate::support::corpus::vocabulary_word(random.skewed(12));
        let (a, b) = (word(), word());
        let phrase = matching_documents(&index, &format!("\"{a} {b}\""));
        assert!(phrase.is_subset(&matching_documents(&index, &format!("{a} AND {b}"))), "{a} {b}");
        found += phrase.len();
    }
    assert!(found > 500, "{found}");
}

/// Merges, new readers, and the division of documents into commits and batches change no result.
#[test]
fn commits_batches_and_merges_change_no_result() {
    for seed in 0..CORPUS_COUNT {
        let docs = random_documents(seed, 350);
        let grown = [
            build_new(&docs, &[], AddMethod::Commits, Merge::None),
            build_new(&docs, &[1, 2, 100, 200, 349], AddMethod::Writers, Merge::None),
            build_new(&docs, &[120, 240], AddMethod::Commits, Merge::One),
            build_new(&docs, &[33], AddMethod::Batches(10), Merge::None),
            build_new(
                &docs,
                &(1..100).map(|cut| 3 * cut).collect::<Vec<_>>(),
                AddMethod::Commits,
                Merge::One,
            ),
        ];
        let indexes =
            grown.map(|disk| (Index::open_on(disk.clone()).unwrap(), Index::open_on(disk).unwrap()));
        let mut random = Random::new(seed);
        for _ in 0..QUERY_PAIRS {
            let text = queries::random_query(&mut random, &schema()).text();
            let expected = answer_all(&indexes[0].0, &text);
            for (index, again) in &indexes {
                assert_eq!(answer_all(index, &text), expected, "{text}");
                assert_eq!(answer_all(again, &text), expected, "{text}");
            }
        }
    }
}

/// An index whose older segments lack a field gives the results of a new one in which their documents have no
/// value of it.
#[test]
fn a_field_that_is_added_gives_the_results_of_a_new_index() {
    for seed in 0..CORPUS_COUNT {
        let norms = if seed % 2 == 0 { NormKind::Byte } else { NormKind::Exact };
        let options = SchemaOptions { norms, positions: seed % 3 > 0, ..SchemaOptions::default() };
        let count = if seed == 0 { 3000 } else { 350 };
        let case = GrownCase::new(options, random_documents(seed, count), count / 2);
        let open = |disk: MemDisk| {
            crate::support::assert_sound(&disk);
            Index::open_on(Arc::new(disk)).unwrap()
        };
        let fresh = open(case.build_fresh(Merge::None));
        let grown = [Merge::None, Merge::One].map(|last| open(case.build_in_steps(last)));
        let fields = |index: &Index| -> Vec<usize> {
            index.manifest().segments.iter().map(|segment| segment.fields.len()).collect()
        };
        assert_eq!(grown.each_ref().map(fields), [vec![1, 1, 2, 2], vec![2]]);
        for index in &grown {
            assert_same_answers(index, &fresh, seed);
            assert_same_statistics(index, &fresh);
        }
    }
}

/// Compares what is told about the field beside hits: terms, statistics for shards, and exports.
fn assert_same_statistics(index: &Index, fresh: &Index) {
    let engines = [index, fresh].map(|index| Engine::new(index, &engine_options(2000, 1)).unwrap());
    for (number, field) in fresh.schema().fields.iter().enumerate() {
        let terms = engines.each_ref().map(|engine| engine.snapshot().terms(number, "", None, 50).unwrap());
        assert!(terms[0] == terms[1] && terms[0].len() > 20, "{}", field.name);
        let text = format!("{0}:w0 {0}:w* {0}:w1~1 {0}:absent", field.name);
        let statistics = [0, 1].map(|at| {
            let index = [index, fresh][at];
            engines[at].statistics(SearchRequest::new(parse_query(index, &text))).unwrap()
        });
        assert!(statistics[0] == statistics[1], "{}", field.name);
        let exports = [index, fresh].map(|index| {
            let mut bytes = Vec::new();
            export(index, &field.name, "", &mut bytes).unwrap();
            bytes
        });
        assert!(exports[0] == exports[1], "{}", field.name);
    }
}

/// Compares the results of random queries, with and without pruning, and those of engines.
fn assert_same_answers(index: &Index, fresh: &Index, seed: u64) {
    let tiers = [MetaTier::Disk, MetaTier::Terms, MetaTier::Index(RegionKind::Dram)];
    let engines = tiers.map(|tier| Engine::new(index, &engine_options(2000, 2).meta_tier(tier)).unwrap());
    let mut random = Random::new(seed);
    let schema = fresh.schema();
    for number in 0..2 * QUERY_PAIRS {
        let text = match number {
            0 => "title:w*".to_string(),
            1 => "NOT title:w0".to_string(),
            _ => queries::random_query(&mut random, schema).text(),
        };
        for (k, exhaustive) in [(10, false), (usize::MAX, false), (usize::MAX, true)] {
            for scorer in [Scorer::default(), Scorer::Dot] {
                let look = AnswerOptions { k, scorer, exhaustive, shown: 2 };
                let expected = answer_text(fresh, &text, look).unwrap();
                assert_eq!(answer_text(index, &text, look).unwrap(), expected, "{text} {look:?}");
            }
        }
        let search = SearchOptions { k: 10, count: true, ..SearchOptions::default() };
        let expected = fresh.searcher().search(&parse_query(fresh, &text), &search).unwrap();
        for engine in &engines {
            let request = SearchRequest::new(parse_query(index, &text)).options(search);
            let found = engine.search(request).unwrap();
            assert_same_hits(&found.hits, &expected.hits, &text);
            assert_eq!(found.total, TotalHits::Exact(expected.total), "{text}");
        }
        let explained = index.searcher().explain(&parse_query(index, &text), &search, None).unwrap();
        assert_same_hits(&explained.result.hits, &expected.hits, &text);
    }
}

/// Without length normalization, another document without the term changes only the weight of the term, so
/// that all scores change by the same factor.
#[test]
fn another_document_changes_only_the_weight() {
    let docs = random_documents(9, 300);
    let disk = build_new(&docs, &[], AddMethod::Commits, Merge::None);
    let look =
        AnswerOptions { scorer: Bm25 { k1: 1.2, b: 0.0 }.into(), shown: 0, ..AnswerOptions::default() };
    let before = Index::open_on(disk.clone()).unwrap();
    let mut writer = crate::support::open_writer(&disk, &schema(), OpenMode::Append);
    writer.add("new", [("title", "nothing"), ("text", "of what is asked for")]).unwrap();
    writer.commit(Merge::None).unwrap();
    let after = Index::open_on(disk).unwrap();
    for text in [WORD_EVERYWHERE, "w0", "über1", "\"w0 w0\"", "title:w0"] {
        let (old, new) =
            (answer_text(&before, text, look).unwrap(), answer_text(&after, text, look).unwrap());
        assert!(old.total > 1 && old.total == new.total, "{text}");
        let factor = hit_score(&new, 0) / hit_score(&old, 0);
        assert!(factor > 1.0, "{text}: a rarer term weighs more");
        for place in 0..old.hits.len() {
            assert_eq!(new.hits[place].document, old.hits[place].document, "{text}");
            assert!((hit_score(&new, place) / hit_score(&old, place) / factor - 1.0).abs() < 1e-5, "{text}");
        }
    }
}

fn hit_score(answer: &Answer, place: usize) -> f64 {
    f64::from(f32::from_bits(answer.hits[place].score_bits))
}

/// A clause without matches does not reduce the precision of scores, whatever its boost.
#[test]
fn clauses_that_cannot_match_do_not_change_scores() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let docs = ["cat", "dog", "cat dog", "cat bird cat", "dog bird bird"];
    let docs = docs.into_iter().enumerate().map(|(number, text)| TestDocument {
        id: number.to_string(),
        title: String::new(),
        text: text.to_string(),
    });
    let docs: Vec<TestDocument> = docs.collect();
    build(
        &disk,
        &SchemaOptions { positions: true, ..SchemaOptions::default() }.schema(),
        &docs,
        &[2],
        AddMethod::Commits,
        Merge::None,
    );
    let index = Index::open_on(disk).unwrap();
    let query = "cat^0.01 dog^0.03";
    for scorer in [Scorer::default(), Scorer::Dot] {
        let look = AnswerOptions { scorer, ..AnswerOptions::default() };
        let expected = answer_text(&index, query, look).unwrap();
        let texts = "\
            typo; \"cat typo\"; typo*; typotypo~1; (+cat +typo); (+typo dog*); (cat typo typos)~2; \
            (#typo bird)";
        for absent in texts.split("; ") {
            let with = answer_text(&index, &format!("{query} {absent}^1000000000"), look).unwrap();
            assert_eq!(with, expected, "{absent} {scorer:?}");
        }
    }
}
