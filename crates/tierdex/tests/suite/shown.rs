//! What is shown with hits: previews of titles and texts, and external ids of any length.

use crate::support::requests::{engine_options, parse_query};
use crate::support::{corpus::SchemaOptions, open_writer, random::Random};
use std::sync::Arc;
use tierdex::internal::{index::PreviewBytes, segment::read::FILES};
use tierdex::io::{Disk, MemDisk};
use tierdex::limits::{ID_BYTES_MAX, PREVIEW_TEXT_BYTES, PREVIEW_TITLE_BYTES};
use tierdex::schema::{Field, Schema};
use tierdex::{Engine, Error, Index, Merge, OpenMode, Query, SearchHit, SearchRequest, explain::HitIds};

/// The longest prefix of at most `bytes` bytes.
fn longest_prefix(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or(0)]
}

fn index_documents(docs: &[(String, String, String)], cuts: usize) -> Index {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let mut writer = open_writer(&disk, &SchemaOptions::default().schema(), OpenMode::New);
    for docs in docs.chunks(docs.len().div_ceil(cuts)) {
        docs.iter().for_each(|(id, title, text)| writer.add(id, [("title", title), ("text", text)]).unwrap());
        writer.commit(Merge::None).unwrap();
    }
    Index::open_on(disk).unwrap()
}

#[test]
fn previews_are_the_beginnings_of_titles_and_texts() {
    let mut random = Random::new(1);
    let mut words = |bytes: usize| {
        let mut text = String::new();
        while text.len() < bytes {
            text.push_str(random.pick::<&str>(&["a ", "é", "漢字 ", "word ", "🦀", "\n", "and so on "]));
        }
        text
    };
    let title_bytes = [0, 5, PREVIEW_TITLE_BYTES - 1, PREVIEW_TITLE_BYTES, PREVIEW_TITLE_BYTES + 1, 300_000];
    let text_bytes = [0, 20, 16 << 10, PREVIEW_TEXT_BYTES - 2, PREVIEW_TEXT_BYTES + 3, 3 << 20];
    let mut docs = Vec::new();
    for title in title_bytes {
        for text in text_bytes {
            docs.push((docs.len().to_string(), words(title), words(text)));
        }
    }
    // Random text cannot be compressed much, so that the compressed block is read in several pieces.
    let noise: String = (0..2 << 20).map(|_| char::from(b'!' + random.below(90) as u8)).collect();
    docs.push(("noise".to_string(), noise.clone(), noise));
    let index = index_documents(&docs, 2);
    let searcher = index.searcher();
    for (document, (_, title, text)) in docs.iter().enumerate() {
        let preview = searcher.preview(document as u32, &[0], PreviewBytes::MAX, &FILES).unwrap().unwrap();
        assert!(preview.title() == longest_prefix(title, PREVIEW_TITLE_BYTES), "title of {document}");
        assert!(preview.value("text") == longest_prefix(text, PREVIEW_TEXT_BYTES), "text of {document}");
        let stored = searcher.stored(document as u32).unwrap().unwrap();
        assert!(stored.title() == *title && stored.value("text") == *text, "{document}");
    }
    assert!(searcher.preview(docs.len() as u32, &[0], PreviewBytes::MAX, &FILES).is_err());
}

/// The title and the snippet, with its marks in brackets, of the only document of an index.
fn shown(schema: &Schema, values: &[(&str, &str)], query: &str) -> (String, String) {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let mut writer = open_writer(&disk, schema, OpenMode::New);
    writer.add("1", values.iter().copied()).unwrap();
    writer.commit(Merge::None).unwrap();
    let snapshot = Engine::new(&Index::open_on(disk).unwrap(), &engine_options(20, 1)).unwrap().snapshot();
    let query = Query::parse(query, schema).unwrap();
    let preview = snapshot.highlighter(&query).unwrap().preview(0, 40).unwrap().unwrap();
    let mut text = preview.snippet.text;
    for mark in preview.snippet.marks.iter().rev() {
        text.replace_range(mark.clone(), &format!("[{}]", &text[mark.clone()]));
    }
    (preview.title, text)
}

#[test]
fn each_member_of_a_field_is_in_snippets() {
    let long = "filler ".repeat(PREVIEW_TEXT_BYTES / 4);
    let schema = Schema::of(vec![Field::new("all", &["notes", "body", "title"]), Field::new("to", &["to"])]);
    let values =
        [("title", "word"), ("notes", long.as_str()), ("to", "a word"), ("body", "the word of the body")];
    let (title, text) = shown(&schema, &values, "word");
    assert_eq!(title, "word");
    assert!(text.ends_with("[word] of the body"), "{text}");
    assert_eq!(shown(&schema, &values, "to:word").1, "a [word]");
}

#[test]
fn a_field_of_the_title_alone_is_in_snippets_if_there_is_no_other() {
    let values = [("title", "A word"), ("body", "The body")];
    let title = || Field::new("title", &["title"]);
    let schema = Schema::of(vec![title(), Field::new("body", &["body"])]);
    assert_eq!(shown(&schema, &values, "word"), ("A word".into(), "The body".into()));
    let schema = Schema::new(&["body".to_string()], Some("title"), vec![title()]);
    assert_eq!(shown(&schema, &values, "word"), ("A word".into(), "A [word]".into()));
    assert_eq!(shown(&schema, &values, "*").1, "A word");
}

#[test]
fn ids_are_in_the_order_of_the_hits() {
    let mut random = Random::new(2);
    for longest in [3, 300, ID_BYTES_MAX] {
        let id =
            |number: usize, random: &mut Random| format!("{number}{}", "x".repeat(random.below(longest - 2)));
        let docs: Vec<_> = (0..2_000)
            .map(|number| (id(number % 10, &mut random), String::new(), "all".to_string()))
            .collect();
        let index = index_documents(&docs, 3);
        let searcher = index.searcher();
        for count in [0, 1, 2, 63, 700, 3_000] {
            let hits: Vec<SearchHit> = (0..count)
                .map(|_| SearchHit { document: random.below(docs.len()) as u32, ..SearchHit::default() })
                .collect();
            let mut found = Vec::new();
            let each = searcher.for_each_id(&hits, &HitIds::default(), |hit, id| {
                found.push((hit.document, id.to_string()));
                Ok::<(), Error>(())
            });
            each.unwrap();
            let expected = hits.iter().map(|hit| (hit.document, docs[hit.document as usize].0.clone()));
            assert!(found.into_iter().eq(expected), "{count} ids of up to {longest} bytes");
        }
        let mut calls = 0;
        let hits = [SearchHit { document: 5, ..SearchHit::default() }; 9];
        let ended = searcher.for_each_id(&hits, &HitIds::default(), |_, _| {
            calls += 1;
            if calls < 4 { Ok(()) } else { Err(Error::Interrupted) }
        });
        assert!(matches!(ended, Err(Error::Interrupted)) && calls == 4);
    }
}

#[test]
fn an_engine_reads_ids_with_the_hits() {
    let mut random = Random::new(3);
    for longest in [3, 66, ID_BYTES_MAX] {
        let docs: Vec<_> = (0..3_000)
            .map(|number| {
                let id = format!("{number}{}", "é".repeat(random.below(longest / 2)));
                let id = if id.len() <= ID_BYTES_MAX { id } else { number.to_string() };
                (id, String::new(), "all ".repeat(1 + random.below(9)))
            })
            .collect();
        let index = index_documents(&docs, 3);
        for (pages, threads) in [(2, 1), (20, 1), (64, 2), (4_000, 2)] {
            let engine = Engine::new(&index, &engine_options(pages, threads)).unwrap();
            for k in [0, 1, 10, 700, 3_000] {
                let request = |ids| SearchRequest::new(parse_query(&index, "all")).k(k).ids(ids);
                let (found, without) =
                    (engine.search(request(true)).unwrap(), engine.search(request(false)).unwrap());
                let expected = found.hits.iter().map(|hit| docs[hit.document as usize].0.clone());
                let before = index.bytes_read();
                assert!(found.ids().unwrap().into_iter().eq(expected), "{k} ids of up to {longest} bytes");
                if longest < ID_BYTES_MAX {
                    assert_eq!(index.bytes_read(), before, "{k} ids of up to {longest} bytes");
                }
                assert_eq!((without.ids().unwrap(), &without.hits), (found.ids().unwrap(), &found.hits));
                assert!(k == 0 || index.bytes_read() > before);
            }
        }
    }
}

/// Hits belong to the caller, which may rank them again, or keep some of them.
#[test]
fn hits_that_a_caller_reorders_keep_their_ids() {
    let docs: Vec<_> = (0..500)
        .map(|number| (format!("id-{number}"), String::new(), "all ".repeat(1 + number * 7 % 9)))
        .collect();
    let index = index_documents(&docs, 2);
    let engine = Engine::new(&index, &engine_options(64, 1)).unwrap();
    let mut found = engine.search(SearchRequest::new(parse_query(&index, "all")).k(100)).unwrap();
    let changes: [fn(&mut Vec<SearchHit>); 3] = [
        |hits| hits.reverse(),
        |hits| hits.retain(|hit| hit.document % 3 > 0),
        |hits| hits.extend_from_within(..5),
    ];
    for change in changes {
        change(&mut found.hits);
        let expected = found.hits.iter().map(|hit| docs[hit.document as usize].0.clone());
        assert_eq!(found.ids().unwrap(), expected.collect::<Vec<_>>());
    }
}

#[test]
fn each_page_of_ids_is_requested_once() {
    let docs: Vec<_> = (0..20_000)
        .map(|number| (format!("{number:020}"), String::new(), "all ".repeat(1 + number * 7 % 9)))
        .collect();
    let index = index_documents(&docs, 2);
    let files = index.segments().iter().map(|segment| segment.ids().file());
    let pages: u64 = files.map(|file| file.payload().end.div_ceil(4096)).sum();
    let engine = Engine::new(&index, &engine_options(4_000, 1)).unwrap();
    let requested = |k, ids| {
        let before = engine.stats();
        engine.search(SearchRequest::new(parse_query(&index, "all")).k(k).ids(ids)).unwrap();
        let after = engine.stats();
        after.hits + after.misses - before.hits - before.misses
    };
    for k in [1, 30, 1_000] {
        requested(k, true);
        let more = requested(k, true) - requested(k, false);
        // A page of the index of each segment, and pages of ids.
        assert!(more > 1 && more <= pages.min(2 + k as u64), "{k} ids request {more} of {pages} pages");
    }
}

#[test]
fn ids_that_an_engine_has_not_read_are_read_about_once() {
    let id = |number: usize| format!("{number:06}{}", "abcdefghij".repeat(20));
    let docs: Vec<_> = (0..5_000).map(|number| (id(number), String::new(), "all".to_string())).collect();
    let index = index_documents(&docs, 1);
    let searcher = index.searcher();
    // Of documents far from each other, so that few of those read at a time are on one page.
    let hits: Vec<_> =
        (0..5_000).map(|at| SearchHit { document: at * 1_999 % 5_000, ..SearchHit::default() }).collect();
    let (before, mut found) = (index.bytes_read(), 0);
    let each = searcher.for_each_id(&hits, &HitIds::default(), |hit, id| {
        assert_eq!(id, docs[hit.document as usize].0);
        found += 1;
        Ok::<(), Error>(())
    });
    each.unwrap();
    assert_eq!(found, hits.len());
    let pages = (index.bytes_read() - before) / 4096;
    assert!(pages <= hits.len() as u64, "{pages} pages are read for {found} ids");
}

#[test]
fn a_damaged_page_of_ids_is_an_error_of_the_ids_on_it() {
    let disk = Arc::new(MemDisk::new());
    let shared: Arc<dyn Disk> = disk.clone();
    let mut writer = open_writer(&shared, &SchemaOptions::default().schema(), OpenMode::New);
    let word = |number: usize| if number < 10 { "all first" } else { "all" };
    (0..20_000).for_each(|number| writer.add(&format!("{number:040}"), [("text", word(number))]).unwrap());
    writer.commit(Merge::None).unwrap();
    let name = shared.list().unwrap().into_iter().find(|name| name.ends_with(".ids")).unwrap();
    disk.corrupt(&name, |bytes| bytes[2 * 4096 + 100] ^= 1);
    for pages in [2, 20, 4_000] {
        let index = Index::open_on(shared.clone()).unwrap();
        let engine = Engine::new(&index, &engine_options(pages, 1)).unwrap();
        let search = |text| engine.search(SearchRequest::new(parse_query(&index, text)).k(1_000)).unwrap();
        let first = search("first");
        assert_eq!((first.hits.len(), first.ids().unwrap()[9].as_str()), (10, &*format!("{:040}", 9)));
        let all = search("all");
        assert_eq!(all.hits.len(), 1_000);
        let error = all.ids().unwrap_err();
        assert!(matches!(error, Error::Storage(_)) && error.to_string().contains(&name), "{error}");
        assert_eq!(search("first").ids().unwrap().len(), 10);
    }
}
