//! What requests of clients of Elasticsearch may not contain is an error that names it.

use crate::support::library::serve_library;
use serde_json::{Value, json};
use tierdex_server::Compat;

const SEARCH: &str = "/library/_search";

/// Queries that are not supported, with a part of the error.
fn rejected_queries() -> Vec<(Value, &'static str)> {
    let text = |query: Value| json!({ "query": query });
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
    ]
}

/// Queries in several fields and query strings that are not supported, with a part of the error.
fn rejected_strings() -> Vec<(Value, &'static str)> {
    let text = |query: Value| json!({ "query": query });
    let string =
        |query: &str| json!({ "query": { "query_string": { "query": query, "default_field": "text" } } });
    let multi = |kind: &str| json!({ "query": { "multi_match": { "query": "a", "type": kind } } });
    vec![
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
        (
            text(
                json!({ "query_string": { "query": "a b", "type": "most_fields", "default_operator": "and" } }),
            ),
            "[default_operator] and",
        ),
        (
            text(
                json!({ "query_string": { "query": "a b", "type": "most_fields", "minimum_should_match": 1 } }),
            ),
            "[minimum_should_match]",
        ),
        (
            text(json!({ "multi_match": { "query": "a", "type": "most_fields", "tie_breaker": 0.5 } })),
            "[most_fields]",
        ),
        (
            text(json!({ "multi_match": { "query": "a", "type": "bool_prefix", "fuzziness": 1 } })),
            "[fuzziness]",
        ),
        (
            text(
                json!({ "multi_match": { "query": "a", "type": "phrase", "tie_breaker": 1, "operator": "and" } }),
            ),
            "[operator]",
        ),
        (
            text(
                json!({ "multi_match": { "query": "a", "type": "phrase", "tie_breaker": 1, "zero_terms_query": "all" } }),
            ),
            "[zero_terms_query]",
        ),
        (
            text(json!({ "multi_match": { "query": "a", "fields": vec!["title"; 129] } })),
            "more than 128 names",
        ),
        (string(&"a ".repeat(1025)), "1024 clauses"),
        (text(json!({ "bool": { "should": vec![json!({ "match_all": {} }); 1025] } })), "1024 clauses"),
        (
            text(json!({ "bool": { "should": vec![json!({ "match": { "text": "..." } }); 1025] } })),
            "1024 clauses",
        ),
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
        (json!({ "min_score": 1, "size": 0 }), "[min_score]"),
        (json!({ "_source": vec!["a"; 129] }), "more than 128 names"),
        (json!({ "highlight": { "pre_tags": ["<".repeat(65)], "fields": {} } }), "[pre_tags] has 65 bytes"),
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
    for (body, name) in rejected_queries().into_iter().chain(rejected_strings()).chain(rejected_searches()) {
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
        ("rest_total_hits_as_int&track_total_hits=10", "[rest_total_hits_as_int]"),
        ("q=a", "df"),
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
