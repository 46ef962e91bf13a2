//! Answers over HTTP equal those of the library, and wrong requests get an error of one shape.

mod support;

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use support::{Client, Random, TestServer, WORDS, options, post_bytes, test_size, text_of, write_index};
use tierdex::{Engine, EngineOptions, PreviewOptions, Query, SearchRequest, TotalHits};

const DOCUMENTS: u64 = 3000;
const SEARCH: &str = "/api/v1/indexes/docs/search";

fn served() -> (tempfile::TempDir, TestServer) {
    let folder = tempfile::tempdir().unwrap();
    write_index(&folder.path().join("docs"), 0..DOCUMENTS);
    let server = TestServer::start(options(&[folder.path()]));
    (folder, server)
}

/// Queries of all kinds of clauses.
fn queries() -> Vec<String> {
    let mut queries = Vec::new();
    for (number, word) in WORDS.iter().enumerate() {
        let other = WORDS[(number + 5) % WORDS.len()];
        queries.extend([
            word.to_string(),
            format!("{word} {other}"),
            format!("+{word} +{other}"),
            format!("{word} -{other}"),
            format!("\"{word} {other}\"~3"),
            format!("{}*", &word[..2]),
            format!("{word}~1"),
            format!("({word} {other} n{number})~2"),
            format!("#{word} {other}^3"),
            format!("+({word} {other}) n1*"),
        ]);
    }
    queries
}

/// Random queries of up to three levels.
fn random_queries(count: usize) -> Vec<String> {
    let mut random = Random(7);
    let mut below = |count: usize| random.below(count);
    fn clause(below: &mut impl FnMut(usize) -> usize, depth: usize) -> String {
        let word = WORDS[below(WORDS.len())];
        let sign = ["", "", "", "+", "+", "#"][below(6)];
        let clause = match below(if depth > 0 { 12 } else { 9 }) {
            0 => format!("n{}", below(DOCUMENTS as usize)),
            1 => format!("\"{word} {}\"", WORDS[below(WORDS.len())]),
            2 => format!("\"{word} {}\"~{}", WORDS[below(WORDS.len())], 1 + below(4)),
            3 => format!("{}*", &word[..1 + below(3)]),
            4 => format!("{word}~1"),
            5 => format!("{word}^{}", 1 + below(5)),
            6..9 => word.to_string(),
            _ => {
                let clauses: Vec<String> = (0..2 + below(3)).map(|_| clause(below, depth - 1)).collect();
                let alternatives = clauses.iter().filter(|clause| !clause.starts_with(['+', '#'])).count();
                let minimum = if below(3) == 0 && alternatives > 1 { "~2" } else { "" };
                format!("({}){minimum}", clauses.join(" "))
            }
        };
        format!("{sign}{clause}")
    }
    let query = |_| {
        let clauses: Vec<String> = (0..1 + below(4)).map(|_| clause(&mut below, 2)).collect();
        let excluded = if below(4) == 0 { format!(" -{}", WORDS[below(WORDS.len())]) } else { String::new() };
        clauses.join(" ") + &excluded
    };
    (0..count).map(query).collect()
}

#[test]
fn hits_scores_totals_and_snippets_equal_those_of_the_library() {
    let (folder, server) = served();
    let engine = Engine::open(folder.path().join("docs"), &EngineOptions::new()).unwrap();
    let snapshot = engine.snapshot();
    let mut client = server.connect();
    let mut found = 0;
    let mut queries = queries();
    // A group may have fewer alternatives than it needs.
    let parses = |text: &String| Query::parse(text, snapshot.schema()).is_ok();
    queries.extend(random_queries(4000).into_iter().filter(parses).take(test_size(300, 2000)));
    assert!(queries.len() > test_size(300, 2000));
    for (number, text) in queries.iter().enumerate() {
        let (k, count) = ([1, 10, 100][number % 3], number % 2 == 0);
        let body = json!({
            "query": text, "k": k, "count": count, "deadline_ms": 30000,
            "hits": { "title": true, "snippet": { "bytes": 60 } },
        });
        let answer = client.post(SEARCH, &body);
        assert_eq!(answer.status, 200, "{text}: {}", String::from_utf8_lossy(&answer.body));
        let answer = answer.json();
        let query = Query::parse(text, snapshot.schema()).unwrap();
        let mut shown = PreviewOptions::default();
        (shown.snippet, shown.title) = (60, 512);
        let hits = engine.search(SearchRequest::new(query).k(k).count(count).previews(shown)).unwrap();
        let relation = if matches!(hits.total, TotalHits::Exact(_)) { "eq" } else { "gte" };
        assert_eq!(answer["total"], json!({ "value": hits.total.value(), "relation": relation }), "{text}");
        let all = answer["hits"].as_array().unwrap();
        assert_eq!(all.len(), hits.hits.len(), "{text}");
        for ((shown, hit), (id, preview)) in
            all.iter().zip(&hits.hits).zip(hits.ids().unwrap().iter().zip(&hits.previews))
        {
            assert_eq!(shown["id"], json!(id), "{text}");
            assert_eq!(shown["document"], json!(hit.document));
            // The shortest decimal number of the score is that score.
            assert_eq!((shown["score"].as_f64().unwrap() as f32).to_bits(), hit.score.to_bits(), "{text}");
            assert_eq!(shown["title"], json!(preview.title));
            assert_eq!(shown["snippet"]["text"], json!(preview.snippet.text));
            let points: Vec<char> = preview.snippet.text.chars().collect();
            let marked = shown["snippet"]["marks"].as_array().unwrap();
            assert_eq!(marked.len(), preview.snippet.marks.len());
            for (mark, bytes) in marked.iter().zip(&preview.snippet.marks) {
                let at = |number: usize| mark[number].as_u64().unwrap() as usize;
                let word: String = points[at(0)..at(1)].iter().collect();
                assert_eq!(word, preview.snippet.text[bytes.clone()]);
            }
            found += 1;
        }
    }
    assert!(found > 1000, "{found}");
}

#[test]
fn pages_of_hits_are_parts_of_all_hits() {
    let (_folder, server) = served();
    let search = |k: usize, offset: usize| -> Vec<Value> {
        let body = json!({ "query": "solid disk", "k": k, "offset": offset });
        server.post(SEARCH, &body).json()["hits"].as_array().unwrap().clone()
    };
    let all = search(30, 0);
    assert_eq!(all.len(), 30);
    for offset in [0, 10, 29, 30] {
        assert_eq!(search(30 - offset, offset), all[offset..], "{offset}");
    }
    // Without hits all matches are counted, also with an offset.
    let counted = server.post(SEARCH, &json!({ "query": "solid disk", "k": 0, "offset": 5 })).json();
    assert_eq!((&counted["total"]["relation"], &counted["hits"]), (&json!("eq"), &json!([])));
    let parameters = server.get(&format!("{SEARCH}?q=solid%20disk&k=30")).json();
    let ids = |hits: &[Value]| hits.iter().map(|hit| hit["id"].clone()).collect::<Vec<_>>();
    assert_eq!(ids(parameters["hits"].as_array().unwrap()), ids(&all));
}

#[test]
fn explanations_have_the_posting_lists_of_the_query() {
    let (_folder, server) = served();
    let answer = server.get(&format!("{SEARCH}?q=%2Bsolid%20%2Bdisk&explain=true&count=true")).json();
    let segments = answer["explanation"]["segments"].as_array().unwrap();
    assert_eq!(segments.len(), 1);
    assert_eq!(segments[0]["strategy"], "conjunction");
    let terms: BTreeSet<_> =
        segments[0]["lists"].as_array().unwrap().iter().map(|list| list["term"].to_string()).collect();
    assert_eq!(terms, ["\"disk\"".to_string(), "\"solid\"".to_string()].into());
    assert!(answer["cost"]["pages"].as_u64().unwrap() > 0);
}

#[test]
fn documents_are_found_by_id_and_by_number() {
    let (_folder, server) = served();
    let by_id = server.get("/api/v1/indexes/docs/documents/d17").json();
    assert_eq!(by_id["members"]["text"], json!([text_of(17)]));
    assert_eq!(by_id["cut"], json!(false));
    let (number, generation) = (&by_id["document"], &by_id["generation"]);
    let path = format!("/api/v1/indexes/docs/documents/{number}?generation={generation}");
    assert_eq!(server.get(&path).json(), by_id);
    for (path, kind) in [
        ("/api/v1/indexes/docs/documents/none", "not_found"),
        ("/api/v1/indexes/docs/documents/%FF", "usage"),
        ("/api/v1/indexes/docs/documents/0?generation=99", "generation"),
        ("/api/v1/indexes/docs/documents/x?generation=1", "not_found"),
        ("/api/v1/indexes/docs/documents/4294967295?generation=1", "not_found"),
        ("/api/v1/indexes/docs/documents/99999999999?generation=1", "not_found"),
        ("/api/v1/indexes/docs/documents/d1?x=1", "usage"),
        ("/api/v1/indexes/other/documents/d1", "not_found"),
    ] {
        assert_eq!(server.get(path).error_kind(), kind, "{path}");
    }
}

#[test]
fn terms_and_tokens_are_those_of_the_index() {
    let (_folder, server) = served();
    let terms = server.get("/api/v1/indexes/docs/terms?prefix=s&limit=2").json();
    let names: Vec<_> = terms["terms"].as_array().unwrap().iter().map(|term| term["term"].clone()).collect();
    assert_eq!(names, ["segment", "solid"]);
    let next = server.get("/api/v1/indexes/docs/terms?prefix=s&after=solid").json();
    assert_eq!(next["terms"][0]["term"], "state");
    let body = json!({ "text": "Solid-state Disks" });
    let tokens = server.post("/api/v1/indexes/docs/analyze", &body).json();
    let expected = json!({ "term": "solid", "start": 0, "end": 5, "position": 0 });
    assert_eq!(tokens["tokens"][0], expected);
    let wrong = json!({ "text": "a", "field": "none" });
    assert_eq!(server.post("/api/v1/indexes/docs/analyze", &wrong).error_kind(), "usage");
}

#[test]
fn suggestions_complete_and_correct() {
    let (_folder, server) = served();
    let answer = server.get("/api/v1/indexes/docs/suggest?q=memry%20seg").json();
    assert_eq!(answer["completions"][0]["word"], "segment");
    assert_eq!(answer["completions"][0]["text"], "memry segment");
    assert_eq!(answer["correction"], "memory seg");
    let none = server.get("/api/v1/indexes/docs/suggest?q=").json();
    assert_eq!(none, json!({ "completions": [], "correction": null }));
    assert_eq!(server.get("/api/v1/indexes/docs/suggest?q=a&field=none").error_kind(), "usage");
}

#[test]
fn a_batch_is_answered_in_order() {
    let (_folder, server) = served();
    let texts = queries();
    let lines: String = (0..2000)
        .map(|number| match number % 50 {
            7 => "not json\n".to_string(),
            8 => format!("{}\n", json!({ "qid": number.to_string(), "query": "disk AND" })),
            9 => "\r\n".to_string(),
            _ => format!("{}\n", json!({ "qid": number.to_string(), "query": texts[number % texts.len()] })),
        })
        .collect();
    let mut client = server.connect();
    let path = "/api/v1/indexes/docs/batch?k=3&count=true&k1=0.9";
    let body = post_bytes(path, "application/x-ndjson", lines.trim_end().as_bytes());
    client.send(&body);
    let answer = client.answer().unwrap();
    assert_eq!(answer.status, 200);
    let text = String::from_utf8(answer.body).unwrap();
    let answers: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let expected = (0..2000).filter(|number| number % 50 != 9);
    assert_eq!(answers.len(), expected.clone().count());
    let mut single = server.connect();
    for (answer, number) in answers.iter().zip(expected) {
        match number % 50 {
            7 => assert_eq!((&answer["qid"], &answer["error"]["kind"]), (&json!(""), &json!("usage"))),
            8 => assert_eq!(answer["error"]["kind"], "query"),
            _ => {
                assert_eq!(answer["qid"], json!(number.to_string()));
                if number < texts.len() {
                    let scorer = json!({ "bm25": { "k1": 0.9, "b": 0.75 } });
                    let body = json!({ "query": texts[number], "k": 3, "count": true, "scorer": scorer });
                    let alone = single.post(SEARCH, &body).json();
                    let hits = alone["hits"]
                        .as_array()
                        .unwrap_or_else(|| panic!("{}: {alone}", texts[number]))
                        .iter();
                    let hits = hits.map(
                        |hit| json!({ "score": hit["score"], "id": hit["id"], "document": hit["document"] }),
                    );
                    assert_eq!(answer["hits"], json!(hits.collect::<Vec<_>>()), "{}", texts[number]);
                    assert_eq!(answer["total"], alone["total"], "{}", texts[number]);
                    assert_eq!(answer["generation"], alone["generation"]);
                }
            }
        }
    }
}

#[test]
fn wrong_requests_get_an_error_of_one_shape() {
    let (_folder, server) = served();
    let mut client = server.connect();
    let mut check = |body: Value, kind: &str| {
        let answer = client.post(SEARCH, &body);
        assert_eq!(answer.error_kind(), kind, "{body}");
        assert_eq!(answer.json()["error"]["request_id"], json!(answer.header("x-request-id").unwrap()));
    };
    check(json!({ "query": "disk AND" }), "query");
    check(json!({ "query": "" }), "query");
    check(json!({ "query": "a", "k": -1 }), "usage");
    check(json!({ "query": "a", "k": 1.5 }), "usage");
    check(json!({ "query": "a", "k": u64::MAX }), "limit");
    check(json!({ "query": "a", "k": 1000, "offset": 1 }), "limit");
    check(json!({ "query": "a", "unknown": 1 }), "usage");
    check(json!({ "query": ["a"] }), "usage");
    check(json!({ "query": "a", "deadline_ms": 0 }), "usage");
    check(json!({ "query": "a", "generation": 99 }), "generation");
    check(json!({ "query": "a", "scorer": { "bm25": { "k1": -1, "b": 0 } } }), "usage");
    check(json!({ "query": "a* b* c* d* e* f* g* h* i*" }), "limit");
    check(json!({ "query": "x ".repeat(3000) }), "query");
    check(json!({ "query": "x".repeat(100_000) }), "query");
    check(json!([1]), "usage");
    let error = server.post(SEARCH, &json!({ "query": "solid AND" })).json();
    assert_eq!(error["error"]["position"], json!(9), "{error}");

    let raw = |bytes: &[u8]| -> (u16, String) {
        let mut client = server.connect();
        client.send(bytes);
        let answer = client.answer().unwrap();
        (answer.status, answer.error_kind())
    };
    let post = |kind: &str, body: &str| raw(&post_bytes(SEARCH, kind, body.as_bytes()));
    assert_eq!(post("text/plain", "{}"), (415, "media_type".to_string()));
    assert_eq!(post("application/json", "{"), (400, "usage".to_string()));
    assert_eq!(post("application/json", ""), (400, "usage".to_string()));
    assert_eq!(post("application/json", &"[".repeat(100_000)), (400, "usage".to_string()));
    assert_eq!(post("application/json", &" ".repeat((1 << 20) + 1)), (413, "too_large".to_string()));
    assert_eq!(
        raw(b"GET /api/v1/nothing HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        (404, "not_found".to_string())
    );
    assert_eq!(raw(b"PUT /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"), (405, "method".to_string()));
    let encoded =
        b"POST /api/v1/indexes/docs/search HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: gzip\r\n\r\n";
    assert_eq!(raw(encoded), (415, "media_type".to_string()));
    let other_site = b"GET /api/v1/indexes HTTP/1.1\r\nHost: example.org\r\n\r\n";
    assert_eq!(raw(other_site), (403, "forbidden".to_string()));
}

#[test]
fn health_metrics_openapi_and_the_page_are_served() {
    let (_folder, server) = served();
    assert_eq!(server.get("/health/live").status, 200);
    assert_eq!(
        server.get("/health/ready").json(),
        json!({ "status": "ready", "indexes": { "docs": "ready" } })
    );
    server.get(&format!("{SEARCH}?q=disk"));
    let older = server.get("/metrics");
    assert!(older.header("content-type").unwrap().starts_with("text/plain; version=0.0.4"));
    assert!(older.text().contains("\n# TYPE tierdex_http_requests_total counter\n"), "{}", older.text());
    let mut client = server.connect();
    let accept = "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5";
    client.send(format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\n{accept}\r\n\r\n").as_bytes());
    let metrics = client.answer().unwrap();
    assert!(metrics.header("content-type").unwrap().starts_with("application/openmetrics-text"));
    let text = String::from_utf8(metrics.body).unwrap();
    assert!(text.ends_with("# EOF\n"));
    for line in [
        "tierdex_request_seconds_count 1",
        "tierdex_index_documents{index=\"docs\"} 3000",
        "tierdex_http_requests_total{route=\"/api/v1/indexes/{index}/search\",status=\"200\"} 1",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
    let openapi = server.get("/openapi.json").json();
    assert!(openapi["openapi"].as_str().unwrap().starts_with("3.1"));
    for path in ["/api/v1/indexes/{index}/search", "/api/v1/stats/history", "/health/ready"] {
        assert!(openapi["paths"][path].is_object(), "{path}");
    }
    for (path, kind) in [("/", "text/html"), ("/app.js", "text/javascript"), ("/style.css", "text/css")] {
        let mut client: Client = server.connect();
        client
            .send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\n\r\n").as_bytes());
        let file = client.answer().unwrap();
        assert!(file.header("content-type").unwrap().starts_with(kind));
        assert!(file.header("content-security-policy").unwrap().starts_with("default-src 'none'"));
        let tag = file.header("etag").unwrap();
        client.send(
            format!(
                "GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\nIf-None-Match: {tag}\r\n\r\n"
            )
            .as_bytes(),
        );
        assert_eq!(client.answer().unwrap().status, 304);
    }
}

#[test]
fn statistics_have_each_line_of_the_memory_report() {
    let (_folder, server) = served();
    server.get(&format!("{SEARCH}?q=disk"));
    let stats = server.stats();
    let memory = stats["engine"]["memory"].as_array().unwrap();
    let bytes = |what: &str| {
        let line = memory.iter().find(|line| line["what"] == what);
        line.unwrap_or_else(|| panic!("no {what}"))["bytes"].as_u64().unwrap()
    };
    for what in ["connections", "request bodies", "results and answers", "cache", "evaluations"] {
        assert!(bytes(what) > 0, "{what}");
    }
    let sum: u64 = memory.iter().map(|line| line["bytes"].as_u64().unwrap()).sum();
    assert!(sum <= 64 << 20, "{sum}");
    assert_eq!(stats["server"]["requests"], json!(1));
    assert_eq!(stats["engine"]["requests"]["interactive"]["answered"], json!(1));
}

#[test]
fn requests_need_a_key_if_there_are_keys() {
    let folder = tempfile::tempdir().unwrap();
    write_index(&folder.path().join("docs"), 0..10);
    // The SHA-256 of `0123456789abcdef` and of `fedcba9876543210`.
    let digest = "9f9f5111f7b27a781f1f1ddde5ebc2dd2b796bfc7365c9c28b548e564176929f";
    let monitor = "3465f6e6975baa864ca957f0914ecda9bf7eb601ac31ac20a5dc3d329279a843";
    let keys = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(keys.path(), format!("web read {digest} 1\nscraper monitor {monitor}\n")).unwrap();
    let mut options = options(&[folder.path()]);
    options.keys = Some(keys.path().to_path_buf());
    // Another address is allowed with keys.
    options.listen = "0.0.0.0:0".parse().unwrap();
    let server = TestServer::start(options);
    let get = |path: &str, headers: &str| {
        let mut client = server.connect();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n").as_bytes());
        client.answer().unwrap()
    };
    for path in [&*format!("{SEARCH}?q=disk"), "/", "/metrics", "/openapi.json", "/api/nothing"] {
        let answer = get(path, "Accept: text/html\r\nAuthorization: Bearer 0123456789abcdeX\r\n");
        assert_eq!((answer.status, &*answer.error_kind()), (401, "unauthorized"), "{path}");
        assert!(answer.header("www-authenticate").unwrap().starts_with("Basic"));
    }
    assert_eq!(get("/health/ready", "").status, 200);
    let search = format!("{SEARCH}?q=disk");
    assert_eq!(get(&search, "Authorization: Bearer 0123456789abcdef\r\n").status, 200);
    assert_eq!(get("/", "X-API-Key: 0123456789abcdef\r\n").status, 200);

    let monitor = "X-API-Key: fedcba9876543210\r\n";
    for path in ["/metrics", "/api/v1/stats", "/api/v1/stats/history"] {
        assert_eq!(get(path, monitor).status, 200, "{path}");
    }
    for path in [&*search, "/api/v1/indexes", "/openapi.json"] {
        assert_eq!(get(path, monitor).error_kind(), "forbidden", "{path}");
    }

    // Paths that begin as those of health checks need keys, and the right host.
    for path in ["/health/_msearch", "/health/_search", "/health", "/health/live/", "/health/_doc/1"] {
        assert_eq!(get(path, "").status, 401, "{path}");
        let mut client = server.connect();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: other\r\n\r\n").as_bytes());
        assert!([401, 403].contains(&client.answer().unwrap().status), "{path}");
    }

    // A request whose body has not arrived is in progress, after a moment.
    let head = "Host: localhost\r\nX-API-Key: 0123456789abcdef\r\nContent-Type: application/json\r\n";
    let began = std::time::Instant::now();
    let (rejected, mut unfinished) = loop {
        let mut unfinished = server.connect();
        unfinished.send(format!("POST {SEARCH} HTTP/1.1\r\n{head}Content-Length: 17\r\n\r\n{{").as_bytes());
        std::thread::sleep(Duration::from_millis(50));
        let answer = get(&search, "X-API-Key: 0123456789abcdef\r\n");
        if answer.status != 200 {
            break (answer, unfinished);
        }
        assert!(began.elapsed().as_secs() < 10);
    };
    assert_eq!((rejected.status, &*rejected.error_kind()), (429, "overloaded"));
    assert_eq!(rejected.header("retry-after"), Some("1"));
    let metrics = get("/metrics", monitor).text();
    assert!(!metrics.contains("tierdex_refused_total{reason=\"quota\"} 0\n"), "{metrics}");
    unfinished.send(b"\"query\": \"disk\"}");
    assert_eq!(unfinished.answer().unwrap().status, 200);
    assert_eq!(get(&search, "X-API-Key: 0123456789abcdef\r\n").status, 200);
}
