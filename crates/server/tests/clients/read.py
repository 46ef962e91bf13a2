"""Searches and reads by a Python client of OpenSearch or Elasticsearch, and checks the results.

Usage: read.py URL opensearch|elasticsearch
"""

import sys
import warnings

INDEX = "books"


def connect(url, kind):
    if kind == "opensearch":
        from opensearchpy import OpenSearch
        from opensearchpy.exceptions import TransportError

        return OpenSearch(url), TransportError
    from elasticsearch import ApiError, Elasticsearch

    return Elasticsearch(url), ApiError


def ids(answer):
    return [hit["_id"] for hit in answer["hits"]["hits"]]


def check(actual, expected):
    assert actual == expected, f"{actual!r} is not {expected!r}"


def check_fails(errors, status, reason, call):
    try:
        call()
    except errors as error:
        check(error.status_code, status)
        assert reason in str(getattr(error, "body", None) or error.info), error
    else:
        raise AssertionError(f"no error {status} with {reason}")


def check_info(client):
    assert client.ping()
    info = client.info()
    assert info["tagline"].startswith("tierdex"), info
    check(client.cluster.health()["status"], "green")
    check(client.count(index=INDEX)["count"], 6)
    check(client.count(index=INDEX, body={"query": {"match": {"text": "disk"}}})["count"], 3)
    assert client.indices.exists(index=INDEX)
    assert not client.indices.exists(index="none")
    properties = client.indices.get_mapping(index=INDEX)[INDEX]["mappings"]["properties"]
    check(sorted(properties), ["text", "title"])
    check(client.indices.get(index=INDEX)[INDEX]["aliases"], {})
    rows = client.cat.indices(index=INDEX, format="json")
    check((rows[0]["index"], rows[0]["docs.count"]), (INDEX, "6"))
    tokens = client.indices.analyze(index=INDEX, body={"text": "Solid-state", "field": "text"})["tokens"]
    check([token["token"] for token in tokens], ["solid", "state"])


def check_searches(client):
    def search(body, **parameters):
        return client.search(index=INDEX, body=body, **parameters)

    answer = search({"query": {"match": {"text": "disk"}}})
    check(sorted(ids(answer)), ["1", "2", "5"])
    check(answer["hits"]["total"], {"value": 3, "relation": "eq"})
    scores = [hit["_score"] for hit in answer["hits"]["hits"]]
    check(scores, sorted(scores, reverse=True))
    check(answer["hits"]["max_score"], scores[0])
    check(ids(search({"query": {"match": {"text": "disk"}}, "from": 1, "size": 1})), ids(answer)[1:2])
    must = {"match": {"text": "memory data"}}
    excluded = {"term": {"title": "disk"}}
    check(ids(search({"query": {"bool": {"must": must, "must_not": [excluded]}}})), ["3", "5"])
    fields = {"query": "flash disk", "fields": ["title^2", "text"], "type": "most_fields"}
    check(sorted(ids(search({"query": {"multi_match": fields}}))), ["1", "2", "3", "5"])
    check(ids(search({"query": {"match_phrase": {"text": "moving parts"}}})), ["1"])
    check(ids(search({"query": {"prefix": {"text": "platt"}}})), ["2"])
    check(ids(search({"query": {"fuzzy": {"text": "plattrs"}}})), ["2"])
    string = {"query": "tape | (flash + erased)", "fields": ["text"]}
    check(sorted(ids(search({"query": {"simple_query_string": string}}))), ["3", "4"])
    check(search({"size": 0, "track_total_hits": True})["hits"]["total"]["value"], 6)
    check(search({"size": 0}, rest_total_hits_as_int=True)["hits"]["total"], 6)
    check(ids(client.search(index=INDEX, q="title:paper")), ["6"])

    body = {"query": {"match": {"text": "platters"}}, "highlight": {"fields": {"text": {}}}}
    hit = search({**body, "_source": ["year", "maker.name"]})["hits"]["hits"][0]
    check(hit["_source"], {"year": 1956, "maker": {"name": "South"}})
    assert "<em>platters</em>" in hit["highlight"]["text"][0], hit

    lines = [{"index": INDEX}, {"query": {"match": {"text": "tape"}}}, {}, {"query": {"range": {}}}]
    found, failed = client.msearch(index=INDEX, body=lines)["responses"]
    check((ids(found), found["status"]), (["4"], 200))
    check(failed["status"], 400)
    assert "[range]" in failed["error"]["reason"], failed


def check_documents(client, errors):
    document = client.get(index=INDEX, id="3")
    check((document["found"], document["_source"]["year"]), (True, 1984))
    check(client.get_source(index=INDEX, id="4")["title"], "Magnetic tape")
    assert client.exists(index=INDEX, id="3")
    assert not client.exists(index=INDEX, id="none")
    check_fails(errors, 404, "'found': False", lambda: client.get(index=INDEX, id="none"))
    docs = client.mget(index=INDEX, body={"ids": ["1", "none"]})["docs"]
    check([doc["found"] for doc in docs], [True, False])


def check_rejected(client, errors):
    def search(body, index=INDEX):
        return lambda: client.search(index=index, body=body)

    check_fails(errors, 400, "[range]", search({"query": {"range": {"year": {"gte": 1}}}}))
    check_fails(errors, 400, "[sort]", search({"sort": ["year"]}))
    check_fails(errors, 400, "[aggs]", search({"aggs": {"years": {"terms": {"field": "year"}}}}))
    check_fails(errors, 404, "no such index", search({}, "none"))
    check_fails(errors, 400, "not supported", lambda: client.index(index=INDEX, id="7", body={"title": "a"}))
    check_fails(errors, 400, "not supported", lambda: client.delete(index=INDEX, id="1"))
    check_fails(errors, 400, "not supported", lambda: client.indices.create(index="new"))
    check_fails(errors, 400, "not supported", lambda: client.bulk(body=[{"delete": {"_index": INDEX, "_id": "1"}}]))


def main():
    url, kind = sys.argv[1:]
    # That parameters have no effect is a warning of the client, or one about its own parameter `body`.
    warnings.simplefilter("ignore")
    client, errors = connect(url, kind)
    check_info(client)
    check_searches(client)
    check_documents(client, errors)
    check_rejected(client, errors)
    print("ok")


main()
