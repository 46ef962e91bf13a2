//! Queries of clients of Elasticsearch find what the library finds, and what is not supported is an error
//! that names it.

use crate::support::library::{DOCUMENTS, serve_library, source_of};
use crate::support::{Client, Random, WORDS};
use serde_json::{Value, json};
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
        (json!({ "query_string": { "query": "solod~", "default_field": "text" } }), fuzzy(TEXT, "solod", 1)),
        (
            json!({ "query_string": { "query": "solid", "default_field": "text", "minimum_should_match": 2 } }),
            text("solid"),
        ),
        (
            json!({ "query_string": { "query": "(solid disk cache)", "default_field": "text", "minimum_should_match": 2 } }),
            at_least(words("solid disk cache"), 2),
        ),
        (
            json!({ "query_string": { "query": "solid AND disk", "fields": ["title^2", "text"], "type": "most_fields" } }),
            all(vec![both("solid"), both("disk")]),
        ),
    ]
}

/// Simple query strings with the queries that they stand for.
fn simple_string_queries() -> Vec<(Value, Query)> {
    let text = |word: &str| term(TEXT, word, 1.0);
    let words = |query: &str| query.split(' ').map(text).collect::<Vec<_>>();
    let both = |word: &str| any(vec![term(TITLE, word, 2.0), text(word)]);
    vec![
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
        (
            json!({ "simple_query_string": { "query": "solid - disk", "fields": ["text"], "default_operator": "and" } }),
            all(words("solid disk")),
        ),
        (
            json!({ "simple_query_string": { "query": "solid ->disk", "fields": ["text"], "default_operator": "and" } }),
            Query::clauses(vec![text("solid"), Query::All { boost: 1.0 }], vec![], words("disk")),
        ),
        (
            json!({ "simple_query_string": { "query": "solid -...", "fields": ["text"], "default_operator": "and" } }),
            text("solid"),
        ),
        (json!({ "simple_query_string": { "query": "-...", "fields": ["text"] } }), Query::Nothing),
        (
            json!({ "simple_query_string": { "query": "solid*disk memmry~5", "fields": ["text"] } }),
            any(vec![any(words("solid disk")), fuzzy(TEXT, "memmry", 2)]),
        ),
        (
            json!({ "simple_query_string": { "query": "solid disk cache", "minimum_should_match": 2, "fields": ["title^2", "text"] } }),
            at_least(vec![both("solid"), both("disk"), both("cache")], 2),
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
        (json!({ "bool": { "should": [], "minimum_should_match": 1 } }), Query::All { boost: 1.0 }),
    ]
}

#[test]
fn hits_and_scores_equal_those_of_the_library() {
    let (_folder, server, engine) = serve_library(Compat::Opensearch);
    let mut client = server.connect();
    let mut found = 0;
    let strings = string_queries().into_iter().chain(simple_string_queries());
    for (body, query) in text_queries().into_iter().chain(strings).chain(other_queries()) {
        found += check(&mut client, &engine, &body, query);
    }
    assert!(found > 500, "{found}");
}

/// A query of random form, and of a document the words that its two fields contain.
struct RandomQueries(Random);

impl RandomQueries {
    fn query(&mut self, depth: usize) -> Value {
        let field = ["title", "text"][self.0.below(2)];
        let operator = ["or", "and"][self.0.below(2)];
        let words: Vec<&str> = (0..1 + self.0.below(3)).map(|_| WORDS[self.0.below(WORDS.len())]).collect();
        match if depth == 0 { self.0.below(4) } else { self.0.below(7) } {
            0 => json!({ "term": { field: words[0] } }),
            1 => {
                json!({ "match": { field: { "query": words.join(" "), "operator": operator } } })
            }
            2 => json!({ "terms": { field: words } }),
            3 => json!({ "prefix": { field: &words[0][..2] } }),
            _ => {
                let mut clauses = serde_json::Map::new();
                for role in ["must", "should", "filter", "must_not"] {
                    let count = self.0.below(3);
                    let list: Vec<Value> = (0..count).map(|_| self.query(depth - 1)).collect();
                    clauses.insert(role.to_string(), json!(list));
                }
                if self.0.below(2) == 0 {
                    clauses.insert("minimum_should_match".to_string(), json!(self.0.below(3)));
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
        if [&must, &should, &filter, &not].into_iter().all(Vec::is_empty) {
            return true;
        }
        let minimum = body["minimum_should_match"]
            .as_u64()
            .unwrap_or(0)
            .max(u64::from(must.is_empty() && filter.is_empty() && !should.is_empty()));
        let count = should.iter().filter(|query| matches(query, document)).count() as u64;
        return must.iter().chain(&filter).all(|query| matches(query, document))
            && !not.iter().any(|query| matches(query, document))
            && count >= minimum;
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
    let documents: Vec<Value> = (0..DOCUMENTS).map(source_of).collect();
    let (mut random, mut client, mut some) = (RandomQueries(Random(1)), server.connect(), 0);
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
