//! Titles and snippets that an engine reads with the hits: equal to those of a highlighter, through the cache
//! of the engine, within its memory and until the deadline.

use crate::support::corpus::{SchemaOptions, TestDocument, random_documents};
use crate::support::requests::{engine_options, parse_query};
use crate::support::{build_in_memory, open_writer};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tierdex::io::{Disk, Effect, FaultDisk, FaultPlan, MemDisk, OpClass, Repeat};
use tierdex::schema::{Schema, Stored};
use tierdex::{Engine, EngineOptions, Error, Hits, Index, OpenMode, Preview, PreviewOptions, SearchRequest};

const QUERY_TEXTS: [&str; 9] =
    ["all", "w0 w1", "+all +w3", "+all -w0", "\"all w0\"", "w3~1 w4", "w1*", "title:w2 w5", "w0 -all"];

/// No documents beyond the limits of previews by default.
const WHOLE: PreviewOptions = PreviewOptions { snippet: 60, title: 16 << 10, text: 256 << 10 };

fn documents() -> Vec<TestDocument> {
    random_documents(3, 4000)
}

fn index() -> Index {
    let schema = SchemaOptions::default().schema();
    Index::open_on(build_in_memory(&schema, &documents(), &[1500, 1700])).unwrap()
}

fn request(index: &Index, text: &str) -> SearchRequest {
    SearchRequest::new(parse_query(index, text)).k(25)
}

fn expected_previews(hits: &Hits, index: &Index, text: &str) -> Vec<Preview> {
    let query = parse_query(index, text);
    let mut highlighter = hits.snapshot.highlighter(&query).unwrap();
    hits.hits.iter().map(|hit| highlighter.preview(hit.document, 60).unwrap().unwrap()).collect()
}

/// Reads of all files of an index that did not go through the cache.
fn reads_of_files(index: &Index) -> u64 {
    index.segments().iter().flat_map(|segment| segment.files()).map(|file| file.reads()).sum()
}

#[test]
fn previews_are_those_of_a_highlighter_and_are_read_through_the_cache() {
    let index = index();
    for (pages, threads) in [(40, 1), (400, 2), (4000, 2)] {
        let engine = Engine::new(&index, &engine_options(pages, threads)).unwrap();
        let find = |text: &str| engine.search(request(&index, text).previews(WHOLE)).unwrap();
        // The second time from the cache.
        let found: Vec<[Hits; 2]> = QUERY_TEXTS.iter().map(|text| [find(text), find(text)]).collect();
        let before = reads_of_files(&index);
        let marks: usize = QUERY_TEXTS
            .iter()
            .zip(&found)
            .map(|(text, found)| {
                let expected = expected_previews(&found[0], &index, text);
                for hits in found {
                    assert_eq!(hits.previews, expected, "{text}, {pages} pages");
                    assert!(!hits.timed_out && hits.hits.len() == expected.len());
                }
                expected.iter().map(|preview| preview.snippet.marks.len()).sum::<usize>()
            })
            .sum();
        assert!(marks > 100);
        assert!(reads_of_files(&index) > before, "a highlighter reads files");
        let before = reads_of_files(&index);
        QUERY_TEXTS.iter().for_each(|text| drop(find(text)));
        if pages > 40 {
            assert_eq!(reads_of_files(&index), before, "{pages} pages");
        }
    }
}

#[test]
fn titles_and_texts_are_read_up_to_their_limits() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let schema = Schema::default();
    let mut writer = open_writer(&disk, &schema, OpenMode::New);
    let long = "x ".repeat(5000);
    writer.add("1", [("title", &long[..]), ("text", &format!("word {long} late"))]).unwrap();
    writer.commit(tierdex::Merge::Keep).unwrap();
    let index = Index::open_on(disk).unwrap();
    let engine = Engine::new(&index, &engine_options(100, 1)).unwrap();
    let preview = |text: &str, options| {
        engine.search(request(&index, text).previews(options)).unwrap().previews.remove(0)
    };
    let short = PreviewOptions { snippet: 30, title: 9, text: 100 };
    assert_eq!(preview("word", short).title, "x x x x x");
    assert_eq!(preview("word", short).snippet.marks.len(), 1);
    assert!(preview("late", short).snippet.marks.is_empty(), "behind the bytes that are read");
    assert_eq!(preview("late", WHOLE).snippet.marks.len(), 1);
    let nothing = preview("word", PreviewOptions { snippet: 0, title: 0, text: 0 });
    assert_eq!((nothing.title.as_str(), nothing.snippet.text.as_str()), ("", ""));
    // More than the limits is the limits.
    let most = PreviewOptions { snippet: usize::MAX, title: usize::MAX, text: usize::MAX };
    assert_eq!(preview("late", most).title.len(), long.len());
}

#[test]
fn an_index_without_values_has_no_previews() {
    let schema = Schema { stored: Stored::Nothing, ..SchemaOptions::default().schema() };
    let index = Index::open_on(build_in_memory(&schema, &documents()[..100], &[])).unwrap();
    let engine = Engine::new(&index, &engine_options(100, 1)).unwrap();
    let found = engine.search(request(&index, "all").previews(WHOLE)).unwrap();
    assert!(found.previews.is_empty() && !found.hits.is_empty() && !found.timed_out);
    let index = self::index();
    let engine = Engine::new(&index, &engine_options(100, 1)).unwrap();
    assert!(engine.search(request(&index, "all")).unwrap().previews.is_empty(), "not requested");
    assert!(engine.search(request(&index, "absent").previews(WHOLE)).unwrap().previews.is_empty());
}

/// Whenever the deadline passes, the previews are those of the first hits.
#[test]
fn a_deadline_leaves_the_previews_of_the_first_hits() {
    let index = index();
    let engine = Engine::new(&index, &engine_options(40, 1)).unwrap();
    let (mut late, mut whole) = (0, 0);
    for turn in 0..400 {
        let deadline = Instant::now() + Duration::from_micros(20 * turn);
        let asked = request(&index, "all").previews(WHOLE).deadline(deadline);
        let found = match engine.search(asked) {
            Err(Error::Expired { .. }) => continue,
            found => found.unwrap(),
        };
        let expected = expected_previews(&found, &index, "all");
        assert!(expected.starts_with(&found.previews));
        match found.timed_out {
            true => late += 1,
            false => {
                assert_eq!(found.previews.len(), found.hits.len());
                whole += 1;
            }
        }
    }
    assert!(late + whole > 0);
    let found = engine.search(request(&index, "all").previews(WHOLE)).unwrap();
    assert_eq!(found.previews, expected_previews(&found, &index, "all"));
}

#[test]
fn previews_are_within_the_memory_budget() {
    let index = index();
    let options = EngineOptions::new().dram(64 << 20).hits_max(1000).threads(1);
    let engine = Engine::new(&index, &options).unwrap();
    let reserved_max = || {
        let all = engine.metrics().reserved_max;
        all.iter().map(|of| of.bytes).collect::<Vec<u64>>()
    };
    engine.search(request(&index, "all")).unwrap();
    let without = reserved_max();
    engine.search(request(&index, "all").previews(WHOLE)).unwrap();
    let with = reserved_max();
    let more = without.iter().zip(&with).map(|(without, with)| with - without);
    assert!(more.sum::<u64>() > 1 << 20, "{without:?}, {with:?}");
    // The titles and snippets of a thousand hits may take more than requests have.
    let error = engine.search(request(&index, "all").k(1000).previews(WHOLE)).err();
    assert!(matches!(error, Some(Error::TooLarge(_))), "{error:?}");
    assert_eq!(engine.search(request(&index, "all").k(1000)).unwrap().hits.len(), 1000);
}

/// Each read that fails is an error of the request, or its previews are right; the next request is answered.
#[test]
fn a_failed_read_fails_one_request() {
    let inner = build_in_memory(&SchemaOptions::default().schema(), &documents()[..1500], &[700]);
    let mut failed = 0;
    for at in 1.. {
        let disk = Arc::new(FaultDisk::new(inner.clone(), FaultPlan::none()));
        let index = Index::open_on(disk.clone()).unwrap();
        let engine = Engine::new(&index, &engine_options(400, 1)).unwrap();
        let find = || engine.search(request(&index, "w3~1 w0").previews(WHOLE));
        disk.arm(FaultPlan { class: OpClass::Read, at, effect: Effect::Error(5), repeat: Repeat::Once });
        let first = find();
        if disk.injected() == 0 {
            break;
        }
        let found = find().unwrap();
        let expected = expected_previews(&found, &index, "w3~1 w0");
        assert_eq!(found.previews, expected, "after read {at}");
        match first {
            // The read was not needed, or was repeated.
            Ok(first) => assert_eq!(first.previews, expected, "read {at}"),
            Err(error) => {
                assert!(matches!(error, Error::Storage(_)), "{error:?}");
                failed += 1;
            }
        }
    }
    assert!(failed > 10, "{failed}");
}
