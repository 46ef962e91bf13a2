package main

import (
	"encoding/json"
	"io"
	"strings"

	"github.com/elastic/go-elasticsearch/v9"
	"github.com/elastic/go-elasticsearch/v9/esapi"
)

// elasticClient is a client of Elasticsearch.
type elasticClient struct{ es *elasticsearch.Client }

func newElasticsearch(url string) elasticClient {
	es, err := elasticsearch.NewClient(elasticsearch.Config{Addresses: []string{url}, DisableRetry: true})
	check(err == nil, "client", err)
	return elasticClient{es}
}

func elasticReply(response *esapi.Response, err error) reply {
	check(err == nil, "request", err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	check(err == nil, "answer", err)
	var answer map[string]any
	if len(text) > 0 {
		check(json.Unmarshal(text, &answer) == nil, "answer", string(text))
	}
	return reply{response.StatusCode, answer}
}

func (c elasticClient) info() reply   { return elasticReply(c.es.Info()) }
func (c elasticClient) health() reply { return elasticReply(c.es.Cluster.Health()) }

func (c elasticClient) count(body string) reply {
	return elasticReply(c.es.Count(c.es.Count.WithIndex(index), c.es.Count.WithBody(strings.NewReader(body))))
}

func (c elasticClient) exists(name string) bool {
	return elasticReply(c.es.Indices.Exists([]string{name})).status == 200
}

func (c elasticClient) mapping() reply {
	return elasticReply(c.es.Indices.GetMapping(c.es.Indices.GetMapping.WithIndex(index)))
}

func (c elasticClient) analyze(text, field string) reply {
	body, _ := json.Marshal(map[string]string{"text": text, "field": field})
	analyze := c.es.Indices.Analyze
	return elasticReply(analyze(strings.NewReader(string(body)), analyze.WithIndex(index)))
}

func (c elasticClient) search(name, body string) reply {
	return elasticReply(c.es.Search(c.es.Search.WithIndex(name), c.es.Search.WithBody(strings.NewReader(body))))
}

func (c elasticClient) searchSeveral(lines string) reply {
	return elasticReply(c.es.Msearch(strings.NewReader(lines), c.es.Msearch.WithIndex(index)))
}

func (c elasticClient) document(id string) reply { return elasticReply(c.es.Get(index, id)) }

func (c elasticClient) hasDocument(id string) bool {
	return elasticReply(c.es.Exists(index, id)).status == 200
}

func (c elasticClient) documents(body string) reply {
	return elasticReply(c.es.Mget(strings.NewReader(body), c.es.Mget.WithIndex(index)))
}

func (c elasticClient) add(id, body string) reply {
	return elasticReply(c.es.Index(index, strings.NewReader(body), c.es.Index.WithDocumentID(id)))
}
