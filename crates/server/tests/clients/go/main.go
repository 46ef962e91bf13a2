// Searches and reads by a Go client of OpenSearch or Elasticsearch, and checks the results.
//
// Usage: go run . URL opensearch|elasticsearch
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

const index = "books"

// reply is the status of a request, and its answer or its error as JSON.
type reply struct {
	status int
	answer map[string]any
}

// client is a client of either product.
type client interface {
	info() reply
	health() reply
	count(body string) reply
	exists(index string) bool
	mapping() reply
	analyze(text, field string) reply
	search(index, body string) reply
	searchSeveral(lines string) reply
	document(id string) reply
	hasDocument(id string) bool
	documents(body string) reply
	add(id, body string) reply
}

func check(condition bool, what string, shown any) {
	if !condition {
		fmt.Fprintf(os.Stderr, "%s: %v\n", what, shown)
		os.Exit(1)
	}
}

// at returns the part of an answer at a path of members and of numbers of items.
func (r reply) at(path ...any) any {
	var part any = r.answer
	for _, name := range path {
		switch name := name.(type) {
		case string:
			members, _ := part.(map[string]any)
			part = members[name]
		case int:
			items, _ := part.([]any)
			if name >= len(items) {
				return nil
			}
			part = items[name]
		}
	}
	return part
}

func ids(hits any) string {
	var found []string
	items, _ := hits.([]any)
	for _, hit := range items {
		found = append(found, hit.(map[string]any)["_id"].(string))
	}
	slices.Sort(found)
	return strings.Join(found, " ")
}

func checkInfo(c client) {
	info := c.info()
	tagline, _ := info.at("tagline").(string)
	check(strings.HasPrefix(tagline, "tierdex"), "info", info)
	health := c.health()
	check(health.at("status") == "green", "health", health)
	counted := c.count(`{"query": {"match": {"text": "disk"}}}`)
	check(counted.at("count") == 3.0, "count", counted)
	check(c.exists(index) && !c.exists("none"), "exists", index)
	mapping := c.mapping()
	check(mapping.at(index, "mappings", "properties", "text", "type") == "text", "mapping", mapping)
	tokens := c.analyze("Solid-state", "text")
	check(tokens.at("tokens", 1, "token") == "state", "analyze", tokens)
}

func checkSearches(c client) {
	for _, step := range []struct{ query, expected string }{
		{`{"match": {"text": "disk"}}`, "1 2 5"},
		{`{"bool": {"must": {"match": {"text": "memory data"}}, "must_not": [{"term": {"title": "disk"}}]}}`, "3 5"},
		{`{"multi_match": {"query": "flash disk", "fields": ["title^2", "text"], "type": "most_fields"}}`, "1 2 3 5"},
		{`{"match_phrase": {"text": "moving parts"}}`, "1"},
		{`{"prefix": {"text": "platt"}}`, "2"},
		{`{"fuzzy": {"text": "plattrs"}}`, "2"},
		{`{"simple_query_string": {"query": "tape | (flash + erased)", "fields": ["text"]}}`, "3 4"},
		{`{"query_string": {"query": "title:paper OR tape", "default_field": "text"}}`, "4 6"},
	} {
		found := c.search(index, `{"query": `+step.query+`}`)
		check(ids(found.at("hits", "hits")) == step.expected, step.query, found)
	}
	found := c.search(index, `{"query": {"match": {"text": "disk"}}, "size": 1}`)
	check(found.at("hits", "max_score") == found.at("hits", "hits", 0, "_score"), "max_score", found)
	found = c.search(index, `{"size": 0, "track_total_hits": true}`)
	check(found.at("hits", "total", "value") == 6.0, "total", found)
	check(found.at("hits", "total", "relation") == "eq", "total", found)
	found = c.search(index, `{"query": {"match": {"text": "platters"}}, "_source": ["year"],
		"highlight": {"fields": {"text": {}}}}`)
	check(found.at("hits", "hits", 0, "_source", "year") == 1956.0, "source", found)
	check(found.at("hits", "hits", 0, "_source", "title") == nil, "source", found)
	fragment, _ := found.at("hits", "hits", 0, "highlight", "text", 0).(string)
	check(strings.Contains(fragment, "<em>platters</em>"), "highlight", found)

	several := c.searchSeveral(`{"index": "books"}
{"query": {"match": {"text": "tape"}}}
{}
{"query": {"range": {}}}
`)
	check(ids(several.at("responses", 0, "hits", "hits")) == "4", "msearch", several)
	check(several.at("responses", 0, "status") == 200.0, "msearch", several)
	check(several.at("responses", 1, "status") == 400.0, "msearch", several)
	reason, _ := several.at("responses", 1, "error", "reason").(string)
	check(strings.Contains(reason, "[range]"), "msearch", several)
}

func checkDocuments(c client) {
	document := c.document("3")
	check(document.at("found") == true && document.at("_source", "year") == 1984.0, "get", document)
	missing := c.document("none")
	check(missing.status == 404, "get", missing)
	check(c.hasDocument("3") && !c.hasDocument("none"), "exists", index)
	several := c.documents(`{"ids": ["1", "none"]}`)
	check(several.at("docs", 0, "found") == true && several.at("docs", 1, "found") == false, "mget", several)
}

func checkRejected(c client) {
	for _, step := range []struct {
		index, body string
		status      int
		reason      string
	}{
		{index, `{"query": {"range": {"year": {"gte": 1}}}}`, 400, "[range]"},
		{index, `{"sort": ["year"]}`, 400, "[sort]"},
		{index, `{"aggs": {"years": {"terms": {"field": "year"}}}}`, 400, "[aggs]"},
		{"none", `{}`, 404, "no such index"},
	} {
		found := c.search(step.index, step.body)
		reason, _ := found.at("error", "reason").(string)
		check(found.status == step.status && strings.Contains(reason, step.reason), step.body, found)
	}
	added := c.add("7", `{"title": "a"}`)
	reason, _ := added.at("error", "reason").(string)
	check(added.status == 400 && strings.Contains(reason, "not supported"), "index", added)
}

// asMembers converts a value to the members of its JSON.
func asMembers(value any) map[string]any {
	text, err := json.Marshal(value)
	check(err == nil, "JSON", err)
	var members map[string]any
	check(json.Unmarshal(text, &members) == nil, "JSON", string(text))
	return members
}

func main() {
	check(len(os.Args) == 3, "usage", "URL opensearch|elasticsearch")
	var c client = newOpenSearch(os.Args[1])
	if os.Args[2] == "elasticsearch" {
		c = newElasticsearch(os.Args[1])
	}
	checkInfo(c)
	checkSearches(c)
	checkDocuments(c)
	checkRejected(c)
	fmt.Println("ok")
}
