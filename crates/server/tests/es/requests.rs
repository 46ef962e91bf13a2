//! The paths of clients of Elasticsearch beside queries: the form of answers, documents, several searches.

use crate::support::library::{DOCUMENTS, others_of, serve_library, source_of, title_of};
use crate::support::{Client, TestServer, options, post_bytes, write_index};
use serde_json::{Value, json};
use tierdex::{IndexWriter, Merge, Schema, WriterOptions};
use tierdex_server::Compat;

const SEARCH: &str = "/library/_search";
const NDJSON: &str = "Content-Type: application/x-ndjson\r\n";

fn search(client: &mut Client, body: &Value) -> Value {
    let answer = client.post(SEARCH, body);
    assert_eq!(answer.status, 200, "{body}: {}", String::from_utf8_lossy(&answer.body));
    answer.json()
}

fn solid() -> Value {
    json!({ "match": { "text": "solid" } })
}

#[test]
fn totals_pages_and_scores_have_the_form_that_clients_parse() {
    let (_folder, server, _) = serve_library(Compat::Opensearch);
    let mut client = server.connect();
    let all = search(&mut client, &json!({ "query": solid(), "size": 1000, "track_total_hits": true }));
    let total = all["hits"]["total"]["value"].as_u64().unwrap();
    assert!(total > 100 && total < DOCUMENTS as u64);
    let hits = all["hits"]["hits"].as_array().unwrap();
    assert_eq!((hits.len() as u64, &all["timed_out"]), (total, &json!(false)));
    assert_eq!(all["_shards"], json!({ "total": 1, "successful": 1, "skipped": 0, "failed": 0 }));
    assert!(all["took"].is_u64());
    for (from, size) in [(0, 3), (3, 7), (total - 1, 5), (total, 5)] {
        let page = search(&mut client, &json!({ "query": solid(), "from": from, "size": size }));
        let expected = &hits[from as usize..(from + size).min(total) as usize];
        assert_eq!(page["hits"]["hits"].as_array().unwrap(), expected);
        assert_eq!(page["hits"]["max_score"], all["hits"]["max_score"]);
        let relation = if from + size > total { "eq" } else { "gte" };
        assert_eq!(page["hits"]["total"]["relation"], relation);
    }
    let path = |parameters: &str| format!("{SEARCH}?q=text:solid&{parameters}");
    let mut total_of = |parameters: &str| client.get(&path(parameters)).json()["hits"]["total"].clone();
    assert_eq!(total_of("size=1&track_total_hits=false"), Value::Null);
    assert_eq!(total_of("size=1&track_total_hits=true"), json!({ "value": total, "relation": "eq" }));
    assert_eq!(total_of("size=1&track_total_hits=true&rest_total_hits_as_int=true"), json!(total));
    // A number is exact.
    assert_eq!(total_of("size=1&rest_total_hits_as_int"), json!(total));
    assert_eq!(total_of("size=0&from=3"), json!({ "value": total, "relation": "eq" }));
    // The parameter takes precedence.
    let body = json!({ "query": solid(), "track_total_hits": true });
    assert_eq!(
        client.post(&format!("{SEARCH}?track_total_hits=false"), &body).json()["hits"]["total"],
        Value::Null
    );
    let score = hits[9]["_score"].clone();
    let above = search(&mut client, &json!({ "query": solid(), "size": 1000, "min_score": score }));
    let count = hits.iter().filter(|hit| hit["_score"].as_f64() >= score.as_f64()).count();
    assert!(count >= 10 && count < hits.len());
    assert_eq!(above["hits"]["total"], json!({ "value": count, "relation": "eq" }));
    assert_eq!(above["hits"]["hits"].as_array().unwrap()[..], hits[..count]);
    let few = search(&mut client, &json!({ "query": solid(), "size": 5, "min_score": score }));
    assert_eq!(few["hits"]["total"], json!({ "value": 5, "relation": "gte" }));
    let empty = search(&mut client, &json!({ "query": solid(), "min_score": 1e6 }));
    assert_eq!((&empty["hits"]["max_score"], &empty["hits"]["hits"]), (&Value::Null, &json!([])));
    let timed = json!({ "query": solid(), "timeout": "500ms", "sort": ["_score"], "docvalue_fields": [] });
    assert_eq!(search(&mut client, &timed)["timed_out"], json!(false));
    let filtered = json!({ "query": solid(), "post_filter": { "term": { "text": "n7" } }, "size": 5 });
    assert!(search(&mut client, &filtered)["hits"]["total"]["value"].as_u64().unwrap() <= 1);
    let counted = client.post("/library/_count", &json!({ "query": solid() })).json();
    assert_eq!(counted["count"], json!(total));
    assert_eq!(client.get("/_count").json()["count"], json!(DOCUMENTS));
    assert_eq!(client.post("/library/_count", &json!({ "size": 1 })).status, 400);
}

#[test]
fn sources_are_filtered() {
    let (_folder, server, _) = serve_library(Compat::Opensearch);
    let mut client = server.connect();
    let mut source = |filter: Value| {
        let body = json!({ "query": { "match": { "text": "n7" } }, "_source": filter });
        search(&mut client, &body)["hits"]["hits"][0].get("_source").cloned()
    };
    assert_eq!(source(json!(true)), Some(source_of(7)));
    assert_eq!(source(json!(false)), None);
    let author = &others_of(7)["author"];
    for (filter, expected) in [
        (json!("title"), json!({ "title": title_of(7) })),
        (json!(["title", "year"]), json!({ "title": title_of(7), "year": 1907 })),
        (json!(["big"]), json!({ "big": 9_007_199_254_740_993u64 })),
        (json!("author.name"), json!({ "author": { "name": "author 7" } })),
        (json!("a*"), json!({ "author": author })),
        (
            json!({ "includes": ["author"], "excludes": ["*.age"] }),
            json!({ "author": { "name": "author 7" } }),
        ),
        (
            json!({ "excludes": ["t*", "notes.b", "big", "author"] }),
            json!({ "year": 1907, "notes": [{ "a": 1 }, { "a": 2 }] }),
        ),
        (json!("notes.b"), json!({ "notes": [{ "b": 7 }] })),
        (json!("none"), json!({})),
    ] {
        assert_eq!(source(filter.clone()), Some(expected), "{filter}");
    }
    let path = format!("{SEARCH}?q=text:n7&_source_includes=title,year&_source_excludes=year");
    assert_eq!(client.get(&path).json()["hits"]["hits"][0]["_source"], json!({ "title": title_of(7) }));
    let answer =
        client.post(SEARCH, &json!({ "query": { "match": { "text": "n7" } }, "stored_fields": "_none_" }));
    assert_eq!(answer.json()["hits"]["hits"][0].get("_source"), None);
}

#[test]
fn long_documents_are_whole_or_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let options_of = WriterOptions { memory: 16 << 20, updatable: true, ..WriterOptions::default() };
    let mut writer = IndexWriter::create(folder.path().join("long"), Schema::default(), options_of).unwrap();
    let text = |words: usize| "solid ".repeat(words).trim_end().to_string();
    for (id, words) in [("short", 10), ("long", 20_000), ("longest", 100_000)] {
        writer.add(id, [("title", id), ("text", text(words).as_str())]).unwrap();
    }
    writer.commit(Merge::Keep).unwrap();
    let server = TestServer::start(options(&[folder.path()]));
    let mut client = server.connect();
    assert_eq!(client.get("/long/_source/long").json()["text"], json!(text(20_000)));
    for path in ["/long/_doc/longest", "/long/_search"] {
        let answer = client.get(path);
        assert_eq!(answer.status, 400, "{path}");
        assert!(answer.json()["error"]["reason"].as_str().unwrap().contains("524288 bytes"), "{path}");
    }
    let docs = client.post("/long/_mget", &json!({ "ids": ["longest", "short"] })).json()["docs"].clone();
    assert_eq!((&docs[0]["status"], &docs[1]["_source"]["text"]), (&json!(400), &json!(text(10))));
    assert_eq!(client.get("/long/_search?_source=false").json()["hits"]["total"]["value"], json!(3));
}

#[test]
fn words_are_highlighted() {
    let (_folder, server, _) = serve_library(Compat::Opensearch);
    let mut client = server.connect();
    let mut highlight = |query: Value, highlight: Value| {
        let body = json!({ "query": query, "highlight": highlight, "size": 5, "_source": "text" });
        let hits = search(&mut client, &body)["hits"]["hits"].as_array().unwrap().clone();
        assert_eq!(hits.len(), 5);
        hits
    };
    for hit in highlight(solid(), json!({ "fields": { "text": {}, "title": {} } })) {
        let fragment = hit["highlight"]["text"][0].as_str().unwrap();
        assert!(fragment.contains("<em>solid</em>") && fragment.len() < 250, "{fragment}");
        assert_eq!(hit["highlight"].as_object().unwrap().len(), 1);
    }
    let whole =
        json!({ "pre_tags": ["["], "post_tags": ["]"], "fields": { "te*": { "number_of_fragments": 0 } } });
    for hit in highlight(solid(), whole) {
        let (fragment, text) =
            (hit["highlight"]["text"][0].as_str().unwrap(), hit["_source"]["text"].as_str().unwrap());
        assert_eq!(fragment.replace(['[', ']'], ""), text);
        assert_eq!(
            fragment.matches("[solid]").count(),
            text.split(' ').filter(|word| *word == "solid").count()
        );
    }
    let several = json!({ "fields": { "text": { "number_of_fragments": 3 } } });
    assert!(highlight(solid(), several).iter().all(|hit| hit["highlight"]["text"][0].is_string()));
    let other = highlight(solid(), json!({ "fields": { "title": {} } }));
    assert!(other.iter().all(|hit| hit.get("highlight").is_none()));
}

#[test]
fn documents_are_found_by_their_ids() {
    let (_folder, server, _) = serve_library(Compat::Opensearch);
    let mut client = server.connect();
    let found = client.get("/library/_doc/d7").json();
    assert_eq!(found, json!({ "_index": "library", "_id": "d7", "found": true, "_source": source_of(7) }));
    let missing = client.get("/library/_doc/none");
    assert_eq!(missing.status, 404);
    assert_eq!(missing.json(), json!({ "_index": "library", "_id": "none", "found": false }));
    assert_eq!(client.get("/library/_source/d7").json(), source_of(7));
    assert_eq!(client.get("/library/_source/none").json()["error"]["type"], "resource_not_found_exception");
    assert_eq!(
        client.get("/library/_doc/d7?_source=title").json()["_source"],
        json!({ "title": title_of(7) })
    );
    for (path, status) in [
        ("/library/_doc/d7", 200),
        ("/library/_doc/none", 404),
        ("/library", 200),
        ("/none", 404),
        ("/", 200),
    ] {
        assert_eq!(client.request("HEAD", path, "", "").status, status, "{path}");
    }
    let docs = json!({ "docs": [
        { "_id": "d1", "_source": ["title"] }, { "_id": "none" }, { "_index": "other", "_id": "d1" },
    ] });
    let several = client.post("/library/_mget", &docs).json();
    assert_eq!(several["docs"][0]["_source"], json!({ "title": title_of(1) }));
    assert_eq!(several["docs"][1], json!({ "_index": "library", "_id": "none", "found": false }));
    assert_eq!(several["docs"][2]["error"]["type"], "index_not_found_exception");
    let ids = client.post("/library/_mget?_source=false", &json!({ "ids": ["d3", "d4"] })).json();
    let without_source = |id: &str| json!({ "_index": "library", "_id": id, "found": true });
    assert_eq!(ids["docs"], json!([without_source("d3"), without_source("d4")]));
    assert_eq!(client.post("/_mget", &json!({ "ids": [1] })).status, 400);
    assert_eq!(client.post("/_mget", &json!({ "ids": vec!["d1"; 1001] })).status, 400);
}

#[test]
fn several_searches_are_answered_in_order_each_with_its_status() {
    let (_folder, server, _) = serve_library(Compat::Opensearch);
    let mut client = server.connect();
    let mut lines = String::new();
    for number in 0..40 {
        let (header, body) = match number % 4 {
            0 => (json!({}), json!({ "query": { "term": { "text": format!("n{number}") } } })),
            1 => (json!({ "index": "other" }), json!({})),
            2 => (json!({ "index": ["library"] }), json!({ "query": { "range": {} } })),
            _ => (json!({ "index": "lib*", "preference": "x" }), json!({ "size": 0 })),
        };
        lines += &format!("{header}\n{body}\n");
    }
    let answer = client.request("POST", "/library/_msearch", NDJSON, &lines);
    assert_eq!(answer.status, 200);
    assert!(answer.header("warning").unwrap().contains("[preference]"));
    let answer = answer.json();
    let responses = answer["responses"].as_array().unwrap();
    assert_eq!(responses.len(), 40);
    for (number, response) in responses.iter().enumerate() {
        let status = [200, 404, 400, 200][number % 4];
        assert_eq!(response["status"], json!(status), "{response}");
        match number % 4 {
            0 => assert_eq!(response["hits"]["hits"][0]["_source"], source_of(number)),
            1 => assert_eq!(response["error"]["type"], "index_not_found_exception"),
            2 => assert!(response["error"]["reason"].as_str().unwrap().contains("[range]")),
            _ => assert_eq!(response["hits"]["total"]["value"], json!(DOCUMENTS)),
        }
    }
    for wrong in ["", "{}\n", "{}\n{}\n{}\n"] {
        assert_eq!(client.request("POST", "/_msearch", NDJSON, wrong).status, 400, "{wrong}");
    }
    // The answers of a thousand searches of a thousand hits would never fit into memory.
    let many = "{}\n{\"size\":1000}\n".repeat(1000);
    let answer = client.request("POST", "/library/_msearch", NDJSON, &many);
    assert_eq!(answer.status, 400);
    assert!(answer.json()["error"]["reason"].as_str().unwrap().contains("memory budget"));
}

#[test]
fn several_searches_are_rejected_together_while_memory_is_taken() {
    let (_folder, server, _) = serve_library(Compat::Opensearch);
    // More than half of the memory of answers, and more than the buffers of a connection.
    let lines = "{}\n{\"size\":400}\n".repeat(4);
    let mut holder = server.connect();
    holder.send(&post_bytes("/library/_msearch", "application/x-ndjson", lines.as_bytes()));
    holder.wait_for_answer();
    let mut client = server.connect();
    let rejected = client.request("POST", "/library/_msearch", NDJSON, &lines);
    assert_eq!(rejected.status, 429);
    assert!(rejected.header("retry-after").is_some());
    assert_eq!(rejected.json()["error"]["type"], "circuit_breaking_exception");
    let held = holder.answer().unwrap();
    assert!(held.body.len() > 600_000, "{}", held.body.len());
    assert_eq!(held.json()["responses"][1]["hits"]["hits"].as_array().unwrap().len(), DOCUMENTS);
    assert_eq!(server.connect().request("POST", "/library/_msearch", NDJSON, &lines).status, 200);
}

#[test]
fn clients_learn_what_the_server_is() {
    let (_folder, server, _) = serve_library(Compat::Opensearch);
    let mut client = server.connect();
    let info = client.get("/").json();
    assert_eq!(info["version"]["distribution"], "opensearch");
    assert!(info["tagline"].as_str().unwrap().starts_with("tierdex"));
    let page = client.request("GET", "/", "Accept: text/html,*/*\r\n", "");
    assert!(page.header("content-type").unwrap().starts_with("text/html"));
    let properties = json!({
        "title": { "type": "text", "index_options": "positions" },
        "text": { "type": "text", "index_options": "positions" },
    });
    assert_eq!(client.get("/library/_mapping").json()["library"]["mappings"]["properties"], properties);
    assert_eq!(client.get("/_mapping").json()["library"]["mappings"]["properties"], properties);
    assert_eq!(client.get("/library").json()["library"]["mappings"]["properties"], properties);
    assert_eq!(client.get("/_cluster/health").json()["status"], "green");
    let rows = client.get("/_cat/indices?format=json").json();
    assert_eq!((&rows[0]["index"], &rows[0]["docs.count"]), (&json!("library"), &json!("400")));
    let text = String::from_utf8(client.get("/_cat/indices?v&h=index,docs.count").body).unwrap();
    assert_eq!(text, "index   docs.count\nlibrary 400\n");
    let body = json!({ "text": "Solid 🙂 disk", "field": "text" });
    let tokens = client.post("/library/_analyze", &body).json()["tokens"].clone();
    let last = json!({ "token": "disk", "start_offset": 9, "end_offset": 13, "type": "word", "position": 1 });
    assert_eq!(tokens[1], last);
    for text in [json!([1]), json!(["a", "b"]), json!([]), json!(1)] {
        assert_eq!(client.post("/library/_analyze", &json!({ "text": text })).status, 400, "{text}");
    }
    let answer = client.get("/library/_search?preference=a&version=true&typed_keys=false&size=0");
    let warnings: Vec<_> = answer.headers.iter().filter(|(name, _)| name == "warning").collect();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
}

#[test]
fn media_types_and_the_product_are_those_of_the_client() {
    let vendor = "application/vnd.elasticsearch+json; compatible-with=9";
    let (_folder, server, _) = serve_library(Compat::Elasticsearch);
    let mut client = server.connect();
    let headers = format!("Accept: {vendor}\r\nContent-Type: {vendor}\r\n");
    // A body with GET.
    let answer = client.request("GET", SEARCH, &headers, "{\"size\":1}");
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("application/vnd.elasticsearch+json;compatible-with=9"));
    assert_eq!(answer.header("x-elastic-product"), Some("Elasticsearch"));
    assert_eq!(client.get("/").json()["version"]["number"], "9.1.0");
    assert_eq!(client.get("/").header("x-elastic-product"), Some("Elasticsearch"));
    assert_eq!(client.request("HEAD", "/", "", "").header("x-elastic-product"), Some("Elasticsearch"));
    assert_eq!(client.get("/api/v1/indexes").header("x-elastic-product"), None);
    for wrong in ["text/plain", "application/vnd.elasticsearch+json; compatible-with=6"] {
        let mut client = server.connect();
        let answer = client.request("POST", SEARCH, &format!("Content-Type: {wrong}\r\n"), "{}");
        assert_eq!(
            (answer.status, &answer.json()["error"]["type"]),
            (415, &json!("media_type_header_exception"))
        );
    }
}

#[test]
fn errors_of_all_kinds_have_one_form() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["one", "other"] {
        write_index(&folder.path().join(name), 0..10);
    }
    let keys = tempfile::NamedTempFile::new().unwrap();
    // The SHA-256 of `0123456789abcdef`.
    let digest = "9f9f5111f7b27a781f1f1ddde5ebc2dd2b796bfc7365c9c28b548e564176929f";
    std::fs::write(keys.path(), format!("web read {digest}\n")).unwrap();
    let mut options = options(&[folder.path()]);
    options.keys = Some(keys.path().to_path_buf());
    let server = TestServer::start(options);
    let key = "X-API-Key: 0123456789abcdef\r\n";
    let check = |method: &str, path: &str, headers: &str, body: &str, status: u16, kind: &str| {
        let answer = server.connect().request(method, path, headers, body);
        assert_eq!(answer.status, status, "{method} {path}");
        let answer = answer.json();
        assert_eq!(
            (&answer["error"]["type"], &answer["status"]),
            (&json!(kind), &json!(status)),
            "{path}: {answer}"
        );
        let cause = json!([{ "type": kind, "reason": answer["error"]["reason"] }]);
        assert_eq!(answer["error"]["root_cause"], cause);
    };
    let json_type = format!("{key}Content-Type: application/json\r\n");
    check("GET", "/one/_search", "", "", 401, "security_exception");
    check("GET", "/", "", "", 401, "security_exception");
    check("GET", "/none/_search", key, "", 404, "index_not_found_exception");
    check("GET", "/x*/_search", key, "", 404, "index_not_found_exception");
    check("GET", "/_search", key, "", 400, "illegal_argument_exception");
    check("GET", "/one,other/_search", key, "", 400, "illegal_argument_exception");
    check("PUT", "/one/_search", key, "", 405, "method_not_allowed_exception");
    check("POST", "/one/_search", &json_type, &" ".repeat((1 << 20) + 1), 413, "content_too_long_exception");
    check("POST", "/one/_search", &json_type, "{", 400, "parsing_exception");
    check(
        "GET",
        "/one/_search",
        &format!("{key}Content-Encoding: gzip\r\n"),
        "",
        415,
        "media_type_header_exception",
    );
    assert_eq!(server.connect().request("GET", "/o*e,one/_count", key, "").json()["count"], json!(10));
}
