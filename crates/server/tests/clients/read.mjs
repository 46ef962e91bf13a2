// Searches and reads by a JavaScript client of OpenSearch or Elasticsearch, and checks the results.
//
// Usage: node read.mjs URL opensearch|elasticsearch

import assert from "node:assert/strict";

const index = "books";
const [url, kind] = process.argv.slice(2);
const isOpenSearch = kind === "opensearch";

async function connect() {
  if (isOpenSearch) {
    const { Client } = await import("@opensearch-project/opensearch");
    return new Client({ node: url });
  }
  const { Client } = await import("@elastic/elasticsearch");
  return new Client({ node: url });
}

// The clients of OpenSearch take a body and return it in an object, those of Elasticsearch neither.
const client = await connect();
const request = (body, parameters) => (isOpenSearch ? { ...parameters, body } : { ...parameters, ...body });
const bodyOf = async (answer) => {
  const result = await answer;
  return isOpenSearch ? result.body : result;
};
const search = (body, parameters = {}) => bodyOf(client.search(request(body, { index, ...parameters })));
const ids = (answer) => answer.hits.hits.map((hit) => hit._id);

async function fails(status, reason, call) {
  await assert.rejects(call, (error) => {
    assert.equal(error.statusCode ?? error.meta.statusCode, status);
    assert.ok(JSON.stringify(error.meta.body).includes(reason), JSON.stringify(error.meta.body));
    return true;
  });
}

async function checkInfo() {
  await client.ping();
  const info = await bodyOf(client.info());
  assert.match(info.tagline, /^tierdex/);
  assert.equal((await bodyOf(client.cluster.health())).status, "green");
  assert.equal((await bodyOf(client.count({ index }))).count, 6);
  const query = { match: { text: "disk" } };
  assert.equal((await bodyOf(client.count(request({ query }, { index })))).count, 3);
  assert.equal(await bodyOf(client.indices.exists({ index })), true);
  assert.equal(await bodyOf(client.indices.exists({ index: "none" })), false);
  const mapping = await bodyOf(client.indices.getMapping({ index }));
  assert.deepEqual(Object.keys(mapping[index].mappings.properties).sort(), ["text", "title"]);
  const rows = await bodyOf(client.cat.indices({ index, format: "json" }));
  assert.deepEqual([rows[0].index, rows[0]["docs.count"]], [index, "6"]);
  const analyze = request({ text: "Solid-state", field: "text" }, { index });
  const { tokens } = await bodyOf(client.indices.analyze(analyze));
  assert.deepEqual(tokens.map((token) => token.token), ["solid", "state"]);
}

async function checkSearches() {
  const answer = await search({ query: { match: { text: "disk" } } });
  assert.deepEqual(ids(answer).sort(), ["1", "2", "5"]);
  assert.deepEqual(answer.hits.total, { value: 3, relation: "eq" });
  assert.equal(answer.hits.max_score, answer.hits.hits[0]._score);
  const page = await search({ query: { match: { text: "disk" } }, from: 1, size: 1 });
  assert.deepEqual(page.hits.hits, answer.hits.hits.slice(1, 2));
  const bool = { must: { match: { text: "memory data" } }, must_not: [{ term: { title: "disk" } }] };
  assert.deepEqual(ids(await search({ query: { bool } })), ["3", "5"]);
  const fields = { query: "flash disk", fields: ["title^2", "text"], type: "most_fields" };
  assert.deepEqual(ids(await search({ query: { multi_match: fields } })).sort(), ["1", "2", "3", "5"]);
  assert.deepEqual(ids(await search({ query: { match_phrase: { text: "moving parts" } } })), ["1"]);
  assert.deepEqual(ids(await search({ query: { prefix: { text: "platt" } } })), ["2"]);
  assert.deepEqual(ids(await search({ query: { fuzzy: { text: "plattrs" } } })), ["2"]);
  const string = { query: "tape | (flash + erased)", fields: ["text"] };
  assert.deepEqual(ids(await search({ query: { simple_query_string: string } })).sort(), ["3", "4"]);
  assert.equal((await search({ size: 0, track_total_hits: true })).hits.total.value, 6);
  assert.equal((await search({ size: 0 }, { rest_total_hits_as_int: true })).hits.total, 6);
  assert.deepEqual(ids(await search({}, { q: "title:paper" })), ["6"]);

  const highlight = { fields: { text: {} } };
  const shown = { query: { match: { text: "platters" } }, highlight, _source: ["year", "maker.name"] };
  const [hit] = (await search(shown)).hits.hits;
  assert.deepEqual(hit._source, { year: 1956, maker: { name: "South" } });
  assert.ok(hit.highlight.text[0].includes("<em>platters</em>"));

  const lines = [{ index }, { query: { match: { text: "tape" } } }, {}, { query: { range: {} } }];
  const several = isOpenSearch ? { body: lines } : { searches: lines };
  const { responses } = await bodyOf(client.msearch({ index, ...several }));
  assert.deepEqual([ids(responses[0]), responses[0].status, responses[1].status], [["4"], 200, 400]);
  assert.ok(responses[1].error.reason.includes("[range]"));
}

async function checkDocuments() {
  const document = await bodyOf(client.get({ index, id: "3" }));
  assert.deepEqual([document.found, document._source.year], [true, 1984]);
  assert.equal((await bodyOf(client.getSource({ index, id: "4" }))).title, "Magnetic tape");
  assert.equal(await bodyOf(client.exists({ index, id: "3" })), true);
  assert.equal(await bodyOf(client.exists({ index, id: "none" })), false);
  await fails(404, '"found":false', () => client.get({ index, id: "none" }));
  const { docs } = await bodyOf(client.mget(request({ ids: ["1", "none"] }, { index })));
  assert.deepEqual(docs.map((doc) => doc.found), [true, false]);
}

async function checkRejected() {
  await fails(400, "[range]", () => search({ query: { range: { year: { gte: 1 } } } }));
  await fails(400, "[sort]", () => search({ sort: ["year"] }));
  await fails(400, "is not supported", () => search({ aggs: { years: { terms: { field: "year" } } } }));
  await fails(404, "no such index", () => search({}, { index: "none" }));
  const document = isOpenSearch ? { body: { title: "a" } } : { document: { title: "a" } };
  await fails(400, "not supported", () => client.index({ index, id: "7", ...document }));
  await fails(400, "not supported", () => client.delete({ index, id: "1" }));
  await fails(400, "not supported", () => client.indices.create({ index: "new" }));
}

await checkInfo();
await checkSearches();
await checkDocuments();
await checkRejected();
await client.close();
console.log("ok");
