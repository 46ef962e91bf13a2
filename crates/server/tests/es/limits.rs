//! Requests of clients of Elasticsearch that take much: long texts, many names, deep documents, little time.

use crate::support::library::{DOCUMENTS, serve_library, source_of};
use crate::support::{TestServer, options};
use serde_json::{Value, json};
use std::path::Path;
use tierdex::schema::{Field, Stored, Synonyms};
use tierdex::{Document, IndexWriter, Merge, Schema, WriterOptions};
use tierdex_server::Compat;

const SEARCH: &str = "/library/_search";

/// Bytes of a body without the text in it, at most.
const BODY_BYTES: usize = 1 << 20;

fn write_documents(dir: &Path, synonyms: &str, documents: Vec<Document>) {
    let mut field = Field::new("text", &["text"]);
    field.positions = true;
    field.synonyms = Synonyms::parse(synonyms).unwrap();
    let mut schema = Schema::of(vec![field]);
    schema.stored = Stored::All;
    let options = WriterOptions { memory: 16 << 20, updatable: true, ..WriterOptions::default() };
    let mut writer = IndexWriter::create(dir, schema, options).unwrap();
    writer.add_all(documents, 1).unwrap();
    writer.commit(Merge::One).unwrap();
}

fn reason(answer: &Value) -> &str {
    answer["error"]["reason"].as_str().unwrap()
}

#[test]
fn a_search_that_ends_by_its_time_has_sources() {
    let (_folder, server, _) = serve_library(Compat::Opensearch);
    let mut client = server.connect();
    let mut most = 0;
    for _ in 0..20 {
        let body = json!({ "query": { "match": { "text": "solid n1" } }, "size": 1000, "timeout": "1ms" });
        let answer = client.post(SEARCH, &body);
        if answer.status != 200 {
            // No thread had time for it.
            assert_eq!(answer.status, 429);
            continue;
        }
        let answer = answer.json();
        let hits = answer["hits"]["hits"].as_array().unwrap();
        for hit in hits {
            let number = hit["_id"].as_str().unwrap()[1..].parse().unwrap();
            assert_eq!(hit["_source"], source_of(number));
        }
        most = most.max(hits.len());
    }
    assert!(most > 100, "{most}");
}

#[test]
fn synonyms_of_several_words_count_once_towards_a_minimum() {
    let folder = tempfile::tempdir().unwrap();
    let texts = ["solid state disk", "ssd disk", "solid disk", "ssd cache", "memory"];
    let document = |(number, text): (usize, &&str)| Document::new(format!("d{number}")).with("text", *text);
    let documents = texts.iter().enumerate().map(document).collect();
    write_documents(&folder.path().join("library"), "solid state, ssd", documents);
    let server = TestServer::start(options(&[folder.path()]));
    let found = |minimum: Value| {
        let words = json!({ "query": "solid state disk", "minimum_should_match": minimum });
        let answer = server.post(SEARCH, &json!({ "query": { "match": { "text": words } } })).json();
        let hits = answer["hits"]["hits"].as_array().unwrap().clone();
        let mut ids: Vec<String> = hits.iter().map(|hit| hit["_id"].as_str().unwrap().to_string()).collect();
        ids.sort();
        ids
    };
    assert_eq!(found(json!("100%")), ["d0", "d1"]);
    assert_eq!(found(json!(2)), ["d0", "d1"]);
    assert_eq!(found(json!(1)), ["d0", "d1", "d2", "d3"]);
}

#[test]
fn deep_documents_are_whole_or_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let nested = |open: &str, close: &str, levels: usize| {
        format!("{{\"deep\":{}1{}}}", open.repeat(levels), close.repeat(levels))
    };
    let others = [nested("[", "]", 20_000), nested("{\"a\":", "}", 20_000), nested("[", "]", 100)];
    let documents = others.iter().enumerate().map(|(number, others)| {
        let mut document = Document::new(format!("d{number}")).with("text", "solid");
        document.others.clone_from(others);
        document
    });
    write_documents(&folder.path().join("library"), "", documents.collect());
    let server = TestServer::start(options(&[folder.path()]));
    for (number, others) in others.iter().enumerate() {
        let whole = server.get(&format!("/library/_source/d{number}"));
        assert_eq!((whole.status, whole.text()), (200, format!("{{\"text\":\"solid\",{}", &others[1..])));
        let filtered = server.get(&format!("/library/_source/d{number}?_source_excludes=other"));
        assert_eq!(filtered.status, if number < 2 { 400 } else { 200 });
        if number < 2 {
            assert!(reason(&filtered.json()).contains("100 levels"), "{}", filtered.text());
        }
    }
    let body = json!({ "_source": ["deep.a.b"] });
    assert!(reason(&server.post(SEARCH, &body).json()).contains("levels"));
    let long = json!({ "_source": { "excludes": ["*.a"] } });
    assert!(reason(&server.post(SEARCH, &long).json()).contains("levels"));
}

#[test]
fn long_texts_are_rejected_before_they_are_analysed() {
    let (_folder, server, _) = serve_library(Compat::Opensearch);
    let mut client = server.connect();
    let long = "ab ".repeat((BODY_BYTES - 1000) / 3);
    let shorter = "ab ".repeat(20_000);
    for (text, part) in [(&long, "at most 65536"), (&shorter, "1024 clauses")] {
        for query in [
            json!({ "match": { "text": { "query": text, "fuzziness": "AUTO" } } }),
            json!({ "multi_match": { "query": text, "fields": ["text"], "fuzziness": 1 } }),
            json!({ "query_string": { "query": text, "default_field": "text" } }),
            json!({ "simple_query_string": { "query": text } }),
        ] {
            let answer = client.post(SEARCH, &json!({ "query": query }));
            assert_eq!(answer.status, 400);
            assert!(reason(&answer.json()).contains(part), "{}", answer.text());
        }
    }
    let answer = client.post(SEARCH, &json!({ "query": { "term": { "text": long } } }));
    assert!(reason(&answer.json()).contains("[term]"), "{}", answer.text());
}

#[test]
fn documents_share_the_patterns_of_a_request() {
    let (_folder, server, _) = serve_library(Compat::Opensearch);
    let mut client = server.connect();
    let ids: Vec<String> = (0..1000).map(|number| format!("d{}", number % DOCUMENTS)).collect();
    let patterns = |count: usize| vec!["*.a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*"; count - 1].join(",");
    let path = |count: usize| format!("/library/_mget?_source_includes=title,{}", patterns(count));
    let answer = client.post(&path(128), &json!({ "ids": ids }));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let docs = answer.json()["docs"].as_array().unwrap().clone();
    assert_eq!(docs.len(), 1000);
    for (doc, id) in docs.iter().zip(&ids) {
        let title = source_of(id[1..].parse().unwrap())["title"].clone();
        assert_eq!((&doc["_id"], &doc["_source"]), (&json!(id), &json!({ "title": title })));
    }
    let answer = client.post(&path(129), &json!({ "ids": ids }));
    assert_eq!(answer.status, 400);
    assert!(reason(&answer.json()).contains("128 names"));
    let names = vec!["library"; 129].join(",");
    let answer = client.get(&format!("/{names}/_search"));
    assert!(reason(&answer.json()).contains("[index] has more than 128 names"), "{}", answer.text());
}

#[test]
fn warnings_are_few_and_distinct() {
    let (_folder, server, _) = serve_library(Compat::Opensearch);
    let lenient = json!({ "match": { "text": { "query": "solid", "lenient": true } } });
    let highlight = json!({ "number_of_fragments": 3, "fields": { "text": { "number_of_fragments": 2 } } });
    let body = json!({ "query": { "bool": { "should": vec![lenient; 50] } }, "highlight": highlight });
    let answer = server.post(SEARCH, &body);
    let warnings: Vec<&str> =
        answer.headers.iter().filter(|(name, _)| name == "warning").map(|(_, value)| &**value).collect();
    assert_eq!(
        warnings,
        [
            "299 tierdex \"[lenient] has no effect\"",
            "299 tierdex \"[number_of_fragments] above 1 has no effect\""
        ]
    );
}
