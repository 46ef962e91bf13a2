package main

import (
	"context"
	"errors"
	"strings"

	"github.com/opensearch-project/opensearch-go/v4"
	"github.com/opensearch-project/opensearch-go/v4/opensearchapi"
)

// openClient is a client of OpenSearch, which parses answers to typed values.
type openClient struct{ api *opensearchapi.Client }

func newOpenSearch(url string) openClient {
	config := opensearch.Config{Addresses: []string{url}, DisableRetry: true}
	api, err := opensearchapi.NewClient(opensearchapi.Config{Client: config})
	check(err == nil, "client", err)
	return openClient{api}
}

// inspected is an answer with the response that it was parsed from.
type inspected interface{ Inspect() opensearchapi.Inspect }

func openReply(answer inspected, err error) reply {
	var failed *opensearch.StructError
	if errors.As(err, &failed) {
		return reply{failed.Status, asMembers(map[string]any{"error": failed.Err})}
	}
	response := answer.Inspect().Response
	if response == nil || (err != nil && response.StatusCode != 404) {
		check(false, "request", err)
	}
	return reply{response.StatusCode, asMembers(answer)}
}

var background = context.Background()

func (c openClient) info() reply {
	answer, err := c.api.Info(background, nil)
	return openReply(answer, err)
}

func (c openClient) health() reply {
	answer, err := c.api.Cluster.Health(background, nil)
	return openReply(answer, err)
}

func (c openClient) count(body string) reply {
	request := &opensearchapi.IndicesCountReq{Indices: []string{index}, Body: strings.NewReader(body)}
	answer, err := c.api.Indices.Count(background, request)
	return openReply(answer, err)
}

func (c openClient) exists(name string) bool {
	response, _ := c.api.Indices.Exists(background, opensearchapi.IndicesExistsReq{Indices: []string{name}})
	check(response != nil, "exists", name)
	return response.StatusCode == 200
}

func (c openClient) mapping() reply {
	request := &opensearchapi.MappingGetReq{Indices: []string{index}}
	answer, err := c.api.Indices.Mapping.Get(background, request)
	check(err == nil, "mapping", err)
	return reply{200, asMembers(answer.GetIndices())}
}

func (c openClient) analyze(text, field string) reply {
	body := opensearchapi.IndicesAnalyzeBody{Text: []string{text}, Field: field}
	answer, err := c.api.Indices.Analyze(background, opensearchapi.IndicesAnalyzeReq{Index: index, Body: body})
	return openReply(answer, err)
}

func (c openClient) search(name, body string) reply {
	request := &opensearchapi.SearchReq{Indices: []string{name}, Body: strings.NewReader(body)}
	answer, err := c.api.Search(background, request)
	return openReply(answer, err)
}

func (c openClient) searchSeveral(lines string) reply {
	request := opensearchapi.MSearchReq{Indices: []string{index}, Body: strings.NewReader(lines)}
	answer, _ := c.api.MSearch(background, request)
	// An item that failed is an error of this client.
	return openReply(answer, nil)
}

func (c openClient) document(id string) reply {
	answer, err := c.api.Document.Get(background, opensearchapi.DocumentGetReq{Index: index, DocumentID: id})
	return openReply(answer, err)
}

func (c openClient) hasDocument(id string) bool {
	request := opensearchapi.DocumentExistsReq{Index: index, DocumentID: id}
	response, _ := c.api.Document.Exists(background, request)
	check(response != nil, "exists", id)
	return response.StatusCode == 200
}

func (c openClient) documents(body string) reply {
	answer, err := c.api.MGet(background, opensearchapi.MGetReq{Index: index, Body: strings.NewReader(body)})
	return openReply(answer, err)
}

func (c openClient) add(id, body string) reply {
	request := opensearchapi.IndexReq{Index: index, DocumentID: id, Body: strings.NewReader(body)}
	answer, err := c.api.Index(background, request)
	return openReply(answer, err)
}
