//! Queries of clients of Elasticsearch find what the library finds, and what is not supported is an error
//! that names it.

mod support;

use serde_json::{Value, json};
use support::library::{DOCUMENTS, serve_library};
use support::{Client, WORDS};
use tierdex::{Engine, Query, SearchRequest};
use tierdex_server::Compat;

const SEARCH: &str = "/library/_search";

const TITLE: usize = 0;
const TEXT: usize = 1;

fn term(field: usize, term: &str, boost: f64) -> Query {
    Query::Term { field, term: term.to_string(), boost }
}

fn any(should: Vec<Query>) -> Query {
    Query::clauses(vec![], should, vec![])
}

fn all(must: Vec<Query>) -> Query {
    Query::clauses(must, vec![], vec![])
}

fn at_least(should: Vec<Query>, minimum: u32) -> Query {
    Query::Bool { must: vec![], filter: vec![], should, must_not: vec![], minimum }
}

fn prefix(field: usize, prefix: &str, boost: f64) -> Query {
    Query::Prefix { field, prefix: prefix.to_string(), whole_clusters: false, boost }
}

fn fuzzy(field: usize, word: &str, distance: u8) -> Query {
    Query::Fuzzy { field, word: word.to_string(), distance, boost: 1.0 }
}

fn phrase(words: &str, slop: u32) -> Query {
    let terms = words.split(' ').zip(0..).map(|(word, at)| (at, word.to_string())).collect();
    Query::Phrase { field: TEXT, terms, slop, open_end: false, boost: 1.0 }
}

fn constant(filter: Query, boost: f64) -> Query {
    let must = vec![Query::All { boost }];
    Query::Bool { must, filter: vec![filter], should: vec![], must_not: vec![], minimum: 0 }
}

/// Checks that hits and scores of a body are those of a query of the library.
fn check(client: &mut Client, engine: &Engine, body: &Value, query: Query) -> usize {
    let request = json!({ "query": body, "size": 50, "track_total_hits": true, "_source": false });
    let answer = client.post(SEARCH, &request);
    assert_eq!(answer.status, 200, "{body}: {}", String::from_utf8_lossy(&answer.body));
    let answer = answer.json();
    let hits = engine.search(SearchRequest::new(query).k(50).count(true)).unwrap();
    let total = json!({ "value": hits.total.value(), "relation": "eq" });
    assert_eq!(answer["hits"]["total"], total, "{body}");
    let found = answer["hits"]["hits"].as_array().unwrap();
    assert_eq!(found.len(), hits.hits.len(), "{body}");
    for ((hit, expected), id) in found.iter().zip(&hits.hits).zip(hits.ids().unwrap()) {
        assert_eq!((&hit["_id"], &hit["_index"]), (&json!(id), &json!("library")), "{body}");
        let score = hit["_score"].as_f64().unwrap() as f32;
        assert_eq!(score.to_bits(), expected.score.to_bits(), "{body}");
    }
    let best = answer["hits"]["max_score"].as_f64().map(|score| score as f32);
    assert_eq!(best, hits.hits.first().map(|hit| hit.score));
    found.len()
}

/// Full-text bodies with the queries that they stand for.
fn text_queries() -> Vec<(Value, Query)> {
    let text = |word: &str| term(TEXT, word, 1.0);
    let words = |query: &str| query.split(' ').map(text).collect::<Vec<_>>();
    vec![
        (json!({ "match": { "text": "Solid" } }), text("solid")),
        (json!({ "match": { "text": "solid-state DISK" } }), any(words("solid state disk"))),
        (
            json!({ "match": { "text": { "query": "solid disk", "operator": "AND", "boost": 2 } } }),
            all(vec![term(TEXT, "solid", 2.0), term(TEXT, "disk", 2.0)]),
        ),
        (
            json!({ "match": { "text": { "query": "solid disk cache", "minimum_should_match": "67%" } } }),
            at_least(words("solid disk cache"), 2),
        ),
        (
            json!({ "match": { "text": { "query": "solid disk cache", "minimum_should_match": -1 } } }),
            at_least(words("solid disk cache"), 2),
        ),
        (
            json!({ "match": { "text": { "query": "solid disk", "minimum_should_match": 3 } } }),
            Query::Nothing,
        ),
        (
            json!({ "match": { "text": { "query": "solod n1", "fuzziness": "AUTO" } } }),
            any(vec![fuzzy(TEXT, "solod", 1), text("n1")]),
        ),
        (json!({ "match": { "text": { "query": "memmry", "fuzziness": "2" } } }), fuzzy(TEXT, "memmry", 2)),
        (json!({ "match": { "text": "..." } }), Query::Nothing),
        (
            json!({ "match": { "text": { "query": "...", "zero_terms_query": "all" } } }),
            Query::All { boost: 1.0 },
        ),
        (json!({ "match": { "none": "solid" } }), Query::Nothing),
        (json!({ "match_phrase": { "text": "solid state" } }), phrase("solid state", 0)),
        (
            json!({ "match_phrase": { "text": { "query": "solid state", "slop": 3 } } }),
            phrase("solid state", 3),
        ),
        (
            json!({ "match_bool_prefix": { "text": "solid me" } }),
            any(vec![text("solid"), prefix(TEXT, "me", 1.0)]),
        ),
        (
            json!({ "multi_match": { "query": "solid disk", "fields": ["title^2", "te*"], "type": "most_fields" } }),
            any(vec![
                any(vec![term(TITLE, "solid", 2.0), term(TITLE, "disk", 2.0)]),
                any(words("solid disk")),
            ]),
        ),
        (json!({ "multi_match": { "query": "solid", "fields": ["text", "none"] } }), text("solid")),
        (
            json!({ "multi_match": { "query": "solid", "tie_breaker": 1.0 } }),
            any(vec![term(TITLE, "solid", 1.0), text("solid")]),
        ),
    ]
}

/// Query strings with the queries that they stand for.
fn string_queries() -> Vec<(Value, Query)> {
    let text = |word: &str| term(TEXT, word, 1.0);
    let words = |query: &str| query.split(' ').map(text).collect::<Vec<_>>();
    let both = |word: &str| any(vec![term(TITLE, word, 2.0), text(word)]);
    vec![
        (
            json!({ "query_string": { "query": "solid AND disk", "default_field": "text" } }),
            all(words("solid disk")),
        ),
        (
            json!({ "query_string": { "query": "+solid disk -cache", "default_field": "text" } }),
            Query::clauses(words("solid"), words("disk"), words("cache")),
        ),
        (
            json!({ "query_string": { "query": "solid disk", "default_field": "text", "default_operator": "and" } }),
            all(words("solid disk")),
        ),
        (
            json!({ "query_string": { "query": "\"solid state\"~2 mem* title:disk^3 solod~1", "fields": ["text"] } }),
            any(vec![
                phrase("solid state", 2),
                prefix(TEXT, "mem", 1.0),
                term(TITLE, "disk", 3.0),
                fuzzy(TEXT, "solod", 1),
            ]),
        ),
        (
            json!({ "query_string": { "query": "(solid OR cache) AND NOT disk", "default_field": "text" } }),
            Query::clauses(vec![any(words("solid cache"))], vec![], words("disk")),
        ),
        (
            json!({ "query_string": { "query": "solid\\-state", "default_field": "text" } }),
            any(words("solid state")),
        ),
        (json!({ "query_string": { "query": "*:*" } }), Query::All { boost: 1.0 }),
        (
            json!({ "simple_query_string": { "query": "solid disk", "fields": ["title^2", "text"] } }),
            any(vec![both("solid"), both("disk")]),
        ),
        (
            json!({ "simple_query_string": { "query": "solid + disk | cache", "fields": ["text"] } }),
            any(vec![all(words("solid disk")), text("cache")]),
        ),
        (
            json!({ "simple_query_string": { "query": "solid -disk", "fields": ["text"], "default_operator": "and" } }),
            Query::clauses(vec![text("solid"), Query::All { boost: 1.0 }], vec![], words("disk")),
        ),
        (
            json!({ "simple_query_string": { "query": "\"solid state\"~3 | (mem* + \"", "fields": ["text"] } }),
            any(vec![phrase("solid state", 3), prefix(TEXT, "mem", 1.0)]),
        ),
    ]
}

/// The other bodies with the queries that they stand for.
fn other_queries() -> Vec<(Value, Query)> {
    let text = |word: &str| term(TEXT, word, 1.0);
    let one = |word: &str| json!({ "match": { "text": word } });
    vec![
        (json!({ "term": { "text": "solid" } }), text("solid")),
        (json!({ "term": { "text": { "value": "solid", "boost": 0.5 } } }), term(TEXT, "solid", 0.5)),
        (json!({ "term": { "text": "Solid" } }), Query::Nothing),
        (
            json!({ "terms": { "text": ["solid", "n7", 5], "boost": 3 } }),
            constant(any(vec![text("solid"), text("n7"), text("5")]), 3.0),
        ),
        (json!({ "prefix": { "text": "me" } }), prefix(TEXT, "me", 1.0)),
        (json!({ "prefix": { "text": { "value": "me", "boost": 2 } } }), prefix(TEXT, "me", 2.0)),
        (json!({ "wildcard": { "text": "me*" } }), prefix(TEXT, "me", 1.0)),
        (json!({ "fuzzy": { "text": "solod" } }), fuzzy(TEXT, "solod", 1)),
        (json!({ "fuzzy": { "text": { "value": "solod", "fuzziness": 2 } } }), fuzzy(TEXT, "solod", 2)),
        (json!({ "match_all": {} }), Query::All { boost: 1.0 }),
        (json!({ "match_all": { "boost": 4 } }), Query::All { boost: 4.0 }),
        (json!({ "match_none": {} }), Query::Nothing),
        (json!({ "constant_score": { "filter": one("solid"), "boost": 2 } }), constant(text("solid"), 2.0)),
        (json!({ "bool": {} }), Query::All { boost: 1.0 }),
        (
            json!({ "bool": { "must": one("solid"), "should": [one("disk")], "must_not": one("cache") } }),
            Query::clauses(vec![text("solid")], vec![text("disk")], vec![text("cache")]),
        ),
        (
            json!({ "bool": { "should": [one("solid"), one("disk"), one("cache")], "minimum_should_match": 2 } }),
            at_least(vec![text("solid"), text("disk"), text("cache")], 2),
        ),
        (
            json!({ "bool": { "should": [one("solid"), one("disk")], "minimum_should_match": 0 } }),
            any(vec![text("solid"), text("disk")]),
        ),
        (
            json!({ "bool": { "filter": one("solid"), "should": [one("disk")] } }),
            Query::Bool {
                must: vec![],
                filter: vec![text("solid")],
                should: vec![text("disk")],
                must_not: vec![],
                minimum: 0,
            },
        ),
        (
            json!({ "bool": { "filter": one("solid"), "should": [one("disk")], "minimum_should_match": "100%" } }),
            Query::Bool {
                must: vec![],
                filter: vec![text("solid")],
                should: vec![text("disk")],
                must_not: vec![],
                minimum: 1,
            },
        ),
        (
            json!({ "bool": { "must": [{ "bool": { "should": [one("solid"), one("n9")], "boost": 2 } }], "boost": 3 } }),
            any(vec![term(TEXT, "solid", 6.0), term(TEXT, "n9", 6.0)]),
        ),
        (
            json!({ "bool": { "must_not": [one("solid")] } }),
            Query::clauses(vec![], vec![], vec![text("solid")]),
        ),
        (json!({ "bool": { "should": [], "minimum_should_match": 1 } }), Query::Nothing),
    ]
}

#[test]
fn hits_and_scores_equal_those_of_the_library() {
    let (_folder, server, engine) = serve_library(Compat::Opensearch);
    let mut client = server.connect();
    let mut found = 0;
    for (body, query) in text_queries().into_iter().chain(string_queries()).chain(other_queries()) {
        found += check(&mut client, &engine, &body, query);
    }
    assert!(found > 500, "{found}");
}

/// A query of random form, and of a document the words that its two fields contain.
struct RandomQueries(u64);

impl RandomQueries {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below
    }

    fn query(&mut self, depth: usize) -> Value {
        let field = ["title", "text"][self.next(2)];
        let operator = ["or", "and"][self.next(2)];
        let words: Vec<&str> = (0..1 + self.next(3)).map(|_| WORDS[self.next(WORDS.len())]).collect();
        match if depth == 0 { self.next(4) } else { self.next(7) } {
            0 => json!({ "term": { field: words[0] } }),
            1 => {
                json!({ "match": { field: { "query": words.join(" "), "operator": operator } } })
            }
            2 => json!({ "terms": { field: words } }),
            3 => json!({ "prefix": { field: &words[0][..2] } }),
            _ => {
                let mut clauses = serde_json::Map::new();
                for role in ["must", "should", "filter", "must_not"] {
                    let count = self.next(3);
                    let list: Vec<Value> = (0..count).map(|_| self.query(depth - 1)).collect();
                    clauses.insert(role.to_string(), json!(list));
                }
                if self.next(2) == 0 {
                    clauses.insert("minimum_should_match".to_string(), json!(self.next(3)));
                }
                json!({ "bool": clauses })
            }
        }
    }
}

/// Whether a document matches, by the definition of each query.
fn matches(query: &Value, document: &Value) -> bool {
    let (name, body) = query.as_object().unwrap().iter().next().unwrap();
    let list = |role: &str| body[role].as_array().cloned().unwrap_or_default();
    if name == "bool" {
        let (must, should, filter, not) = (list("must"), list("should"), list("filter"), list("must_not"));
        let least = body["minimum_should_match"]
            .as_u64()
            .unwrap_or(0)
            .max(u64::from(must.is_empty() && filter.is_empty() && !should.is_empty()));
        let count = should.iter().filter(|query| matches(query, document)).count() as u64;
        return must.iter().chain(&filter).all(|query| matches(query, document))
            && !not.iter().any(|query| matches(query, document))
            && count >= least;
    }
    let (field, value) = body.as_object().unwrap().iter().next().unwrap();
    let text = document[field].as_str().unwrap();
    let has = |word: &str| text.split(' ').any(|other| other == word);
    match &**name {
        "term" => has(value.as_str().unwrap()),
        "terms" => value.as_array().unwrap().iter().any(|word| has(word.as_str().unwrap())),
        "prefix" => text.split(' ').any(|word| word.starts_with(value.as_str().unwrap())),
        _ => {
            let mut words = value["query"].as_str().unwrap().split(' ');
            if value["operator"] == "and" { words.all(has) } else { words.any(has) }
        }
    }
}

#[test]
fn random_queries_match_the_documents_that_they_should() {
    let (_folder, server, _) = serve_library(Compat::Opensearch);
    let documents: Vec<Value> = (0..DOCUMENTS).map(support::library::source_of).collect();
    let (mut random, mut client, mut some) = (RandomQueries(1), server.connect(), 0);
    for _ in 0..300 {
        let query = random.query(2);
        let body = json!({ "query": query, "size": DOCUMENTS, "_source": false });
        let answer = client.post(SEARCH, &body);
        if answer.status != 200 {
            assert!(answer.json()["error"]["reason"].as_str().unwrap().contains("prefixes"), "{query}");
            continue;
        }
        let answer = answer.json();
        let hits = answer["hits"]["hits"].as_array().unwrap();
        let mut found: Vec<usize> =
            hits.iter().map(|hit| hit["_id"].as_str().unwrap()[1..].parse().unwrap()).collect();
        found.sort_unstable();
        let expected: Vec<usize> =
            (0..DOCUMENTS).filter(|number| matches(&query, &documents[*number])).collect();
        assert_eq!(found, expected, "{query}");
        some += usize::from(!expected.is_empty() && expected.len() < DOCUMENTS);
    }
    assert!(some > 150, "{some}");
}

/// Queries that are not supported, with a part of the error.
fn rejected_queries() -> Vec<(Value, &'static str)> {
    let text = |query: Value| json!({ "query": query });
    let string =
        |query: &str| json!({ "query": { "query_string": { "query": query, "default_field": "text" } } });
    let multi = |kind: &str| json!({ "query": { "multi_match": { "query": "a", "type": kind } } });
    vec![
        (text(json!({ "range": { "year": { "gt": 1 } } })), "[range]"),
        (text(json!({ "exists": { "field": "text" } })), "[exists]"),
        (text(json!({ "ids": { "values": ["d1"] } })), "[ids]"),
        (text(json!({ "dis_max": { "queries": [] } })), "[dis_max]"),
        (text(json!({ "regexp": { "text": "a" } })), "[regexp]"),
        (text(json!({ "match_all": {}, "match_none": {} })), "[match_none]"),
        (text(json!({})), "has no member"),
        (text(json!([])), "[query] must be an object"),
        (text(json!({ "match": { "text": "a", "title": "b" } })), "[title]"),
        (text(json!({ "match": { "text": { "query": "a", "analyzer": "x" } } })), "[analyzer]"),
        (text(json!({ "match": { "text": { "query": "a", "operator": "xor" } } })), "[operator]"),
        (text(json!({ "match": { "text": { "query": "a", "boost": -1 } } })), "negative boost"),
        (text(json!({ "match": { "text": { "query": "a", "boost": 1e10 } } })), "boost"),
        (text(json!({ "match": { "text": { "query": ["a"] } } })), "[query]"),
        (text(json!({ "match": { "text": { "query": "a", "fuzziness": 3 } } })), "[fuzziness]"),
        (text(json!({ "match": { "text": { "query": "a", "prefix_length": 1 } } })), "[prefix_length]"),
        (text(json!({ "match": { "_id": "d1" } })), "[_id]"),
        (
            text(json!({ "term": { "text": { "value": "a", "case_insensitive": true } } })),
            "[case_insensitive]",
        ),
        (text(json!({ "terms": { "text": { "index": "a" } } })), "[terms]"),
        (text(json!({ "wildcard": { "text": "a*b" } })), "[wildcard]"),
        (text(json!({ "wildcard": { "text": "*" } })), "[wildcard]"),
        (text(json!({ "bool": { "musst": [] } })), "[musst]"),
        (text(json!({ "constant_score": {} })), "[filter]"),
        (multi("best_fields"), "[best_fields]"),
        (multi("cross_fields"), "[cross_fields]"),
        (multi("phrase_prefix"), "[phrase_prefix]"),
        (string("a AND"), "character 6"),
        (string("a [1 TO 2]"), "`[`"),
        (string("a?b"), "`?`"),
        (string("a*b"), "`b`"),
        (string("/a/"), "`/`"),
        (string("year:>5"), "`>`"),
        (string("(a"), "`(` has no `)`"),
        (string("\"a"), "phrase without its end"),
        (string("a~5"), "distance"),
        (json!({ "query": { "query_string": { "query": "a" } } }), "most_fields"),
        (string(&"(".repeat(1000)), "groups inside one another"),
        (text(json!({ "match": { "text": "x ".repeat(2000) } })), "terms"),
        (text(json!({ "bool": { "should": vec![json!({ "prefix": { "text": "a" } }); 9] } })), "at most 8"),
        (text(json!({ "bool": { "should": vec![json!({ "term": { "text": "a" } }); 1100] } })), "1024"),
    ]
}

/// Searches that are not supported, with a part of the error.
fn rejected_searches() -> Vec<(Value, &'static str)> {
    vec![
        (json!({ "sort": ["year"] }), "[sort]"),
        (json!({ "sort": [{ "_score": "asc" }] }), "[sort]"),
        (json!({ "aggs": { "a": { "terms": { "field": "year" } } } }), "[aggs]"),
        (json!({ "aggregations": {} }), "[aggregations]"),
        (json!({ "search_after": [1] }), "[search_after]"),
        (json!({ "pit": { "id": "x" } }), "[pit]"),
        (json!({ "fields": ["year"] }), "[fields]"),
        (json!({ "docvalue_fields": ["year"] }), "[docvalue_fields]"),
        (json!({ "stored_fields": ["year"] }), "[stored_fields]"),
        (json!({ "explain": true }), "[explain]"),
        (json!({ "profile": true }), "[profile]"),
        (json!({ "size": -1 }), "[size]"),
        (json!({ "size": 1.5 }), "[size]"),
        (json!({ "size": 1000, "from": 1 }), "[from] + [size] is 1001"),
        (json!({ "timeout": "1" }), "[timeout]"),
        (json!({ "timeout": "10m" }), "[timeout]"),
        (json!({ "track_total_hits": "x" }), "[track_total_hits]"),
        (json!({ "min_score": 1, "track_total_hits": true }), "[min_score]"),
        (json!({ "_source": 1 }), "[_source]"),
        (json!({ "highlight": {} }), "[fields]"),
        (json!({ "highlight": { "fields": { "text": { "matched_fields": [] } } } }), "[matched_fields]"),
        (
            json!({ "query": { "multi_match": { "query": "a", "type": "most_fields" } }, "highlight": { "fields": { "*": {} } } }),
            "[highlight]",
        ),
        (json!({ "unknown": 1 }), "[unknown]"),
    ]
}

#[test]
fn what_is_not_supported_is_named() {
    let (_folder, server, _) = serve_library(Compat::Opensearch);
    let mut client = server.connect();
    for (body, name) in rejected_queries().into_iter().chain(rejected_searches()) {
        let answer = client.post(SEARCH, &body);
        assert_eq!(answer.status, 400, "{body}");
        let answer = answer.json();
        let (error, reason) = (&answer["error"], answer["error"]["reason"].as_str().unwrap());
        assert!(reason.contains(name), "{name}: {reason}");
        assert_eq!(error["root_cause"], json!([{ "type": error["type"], "reason": reason }]));
        assert!(
            ["parsing_exception", "illegal_argument_exception"].contains(&error["type"].as_str().unwrap())
        );
        assert_eq!(answer["status"], json!(400));
    }
    for (parameters, name) in [
        ("scroll=1m", "[scroll]"),
        ("q=a&q=b", "[q] is given twice"),
        ("sort=year", "[sort]"),
        ("filter_path=hits", "[filter_path]"),
        ("explain=true", "[explain]"),
        ("size=x", "[size]"),
    ] {
        let reason = client.get(&format!("{SEARCH}?{parameters}")).json()["error"]["reason"].clone();
        assert!(reason.as_str().unwrap().contains(name), "{name}: {reason}");
    }
    let twice =
        client.request("POST", SEARCH, "Content-Type: application/json\r\n", r#"{"size":1,"size":2}"#);
    assert!(twice.json()["error"]["reason"].as_str().unwrap().contains("[size] is named twice"));
    for (method, path) in [
        ("PUT", "/library"),
        ("DELETE", "/library"),
        ("POST", "/_bulk"),
        ("PUT", "/library/_doc/1"),
        ("POST", "/library/_doc"),
        ("DELETE", "/library/_doc/1"),
        ("POST", "/library/_update/1"),
        ("POST", "/library/_delete_by_query"),
        ("POST", "/library/_refresh"),
        ("POST", "/_search/scroll"),
        ("POST", "/library/_pit"),
        ("GET", "/library/_explain/1"),
        ("GET", "/_nodes/_all/http"),
        ("GET", "/_unknown"),
    ] {
        let answer = client.request(method, path, "", "");
        assert_eq!(answer.status, 400, "{method} {path}");
        assert!(answer.json()["error"]["reason"].as_str().unwrap().contains("not supported"), "{path}");
    }
}
