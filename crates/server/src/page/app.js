// The page of the search server: searches as one types, explains evaluations, and shows live statistics.
// Data of the server become text nodes and are never parsed as HTML, because titles and texts are hostile.

import { bytes, factsOf, legend, make, ms, pairs, plural, quoted, score, segmentOf } from "/plot.js";
import { showLive, titleOf, whole } from "/plot.js";

const OFFSET_END = 1000; // Hits above this rank are not served.
const DEBOUNCE_MS = 150;
const HISTORY_SECONDS = 600;

const byId = (id) => document.getElementById(id);
const box = byId("query");

let indexes = [];
let indexTimer = 0;
let shownFragment = null; // The fragment of the search that is shown; null before the first.
let typeTimer = 0;
let isTyping = false; // While one types, the entry of the history is replaced, not added.
let searching = null; // The AbortController of the search in progress.
let explaining = null;
let page = null; // The search that is shown: {request, index, generation, shown}.
let isExplained = false;
let explainOpener = null;
let live = null; // The AbortController of the live view, while it is shown.
let polled = null; // When the statistics were fetched last.
let stats = null;
const past = {}; // The columns of the history.

// Texts

function say(text) {
  const notice = byId("notice");
  if (notice.textContent !== text) notice.textContent = text;
  notice.hidden = text === "";
}

/** The text as nodes, with the ranges `marks` of Unicode code points marked. */
function marked(text, marks) {
  const points = Array.from(text);
  const nodes = [];
  let at = 0;
  for (const [start, end] of marks) {
    if (start < at || end <= start) continue;
    nodes.push(points.slice(at, start).join(""), make("mark", {}, points.slice(start, end).join("")));
    at = end;
  }
  return [...nodes, points.slice(at).join("")];
}

/** The number of code points of `text` before byte `position` of its UTF-8 form. */
function pointsBefore(text, position) {
  const encoder = new TextEncoder();
  let points = 0;
  let seen = 0;
  for (const point of text) {
    seen += encoder.encode(point).length;
    if (seen > position) break;
    points += 1;
  }
  return points;
}

// Requests

class Refusal extends Error {
  constructor(status, error) {
    super(error?.message ?? `The server answered with status ${status}.`);
    this.position = error?.position ?? null;
    this.isOfQuery = status === 400;
    if (status >= 500 && error?.request_id) this.message += ` (request ${error.request_id})`;
  }
}

function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, milliseconds);
    signal.addEventListener("abort", stop);
  });
}

/** Fetches JSON. With `onBusy`, a request that a busy server refuses is sent once more, after a pause. */
async function request(path, { body, signal, onBusy } = {}) {
  const headers = { "Content-Type": "application/json" };
  const options = body ? { method: "POST", body: JSON.stringify(body), headers, signal } : { signal };
  let answer = await fetch(path, options);
  if (onBusy && (answer.status === 429 || answer.status === 503)) {
    const seconds = Math.min(60, Number(answer.headers.get("Retry-After")) || 1);
    onBusy(seconds);
    await pause(seconds * 1000, signal);
    answer = await fetch(path, options);
  }
  const value = await answer.json().catch(() => null);
  signal?.throwIfAborted();
  if (!answer.ok || value === null) throw new Refusal(answer.status, value?.error);
  return value;
}

const busy = (seconds) => say(`The server is busy. Trying again in ${seconds} s.`);
const reasonOf = (error) => (error instanceof Refusal ? error.message : "The server cannot be reached.");
const pathOf = (index) => `/api/v1/indexes/${encodeURIComponent(index)}`;

// Indexes

async function refreshIndexes() {
  clearTimeout(indexTimer);
  try {
    const answer = await request("/api/v1/indexes");
    const isFirst = indexes.length === 0 && answer.indexes.length > 0;
    indexes = answer.indexes;
    showIndexes(answer.folders);
    if (isFirst) {
      say("");
      route();
      if (document.activeElement === document.body) box.focus();
    }
  } catch (error) {
    if (indexes.length === 0) say(`${reasonOf(error)} Trying again.`);
  }
  if (indexes.length === 0) indexTimer = setTimeout(refreshIndexes, 2000);
}

function showIndexes(folders) {
  byId("setup").hidden = indexes.length > 0;
  byId("search").hidden = indexes.length === 0;
  const paths = folders.length > 0 ? folders : ["FOLDER"];
  const commands = paths.map((folder) => `tierdex index YOUR-FILES --out ${folder.replace(/\/$/, "")}/NAME`);
  const shown = Array.from(byId("commands").children, (line) => line.textContent);
  if (shown.join("\n") !== commands.join("\n")) {
    byId("commands").replaceChildren(...commands.map((command) => make("pre", {}, make("code", {}, command))));
  }
  const select = byId("index");
  const names = indexes.map(({ name }) => name);
  byId("index-field").hidden = names.length < 2;
  if (Array.from(select.options, ({ value }) => value).join("\n") === names.join("\n")) return;
  const selected = select.value;
  select.replaceChildren(...names.map((name) => make("option", { value: name }, name)));
  if (names.includes(selected)) select.value = selected;
}

// The controls and the fragment of the URL

function fragmentOfControls() {
  const values = { i: byId("index").value, q: box.value, s: byId("syntax").value, k: byId("k").value };
  if (byId("count-all").checked) values.c = "1";
  return `#${new URLSearchParams(values)}`;
}

/** Sets the controls; returns what cannot be set. */
function setControls(fragment) {
  const values = new URLSearchParams(fragment.slice(1));
  const select = (id, value, first) => {
    const control = byId(id);
    control.value = value ?? first;
    if (control.selectedIndex < 0) control.value = first;
  };
  const [name, first] = [values.get("i"), indexes[0].name];
  select("index", name, first);
  select("syntax", values.get("s"), "query");
  select("k", values.get("k"), "10");
  box.value = values.get("q") ?? "";
  byId("count-all").checked = values.get("c") === "1";
  const isKnown = name === null || indexes.some((index) => index.name === name);
  return isKnown ? [] : [`There is no index ${quoted(name)}. The hits are of ${quoted(first)}.`];
}

/** Shows what the fragment asks for. */
function route() {
  clearTimeout(typeTimer);
  typeTimer = 0;
  isTyping = false;
  const isLive = location.hash === "#live";
  byId("search-view").hidden = isLive;
  byId("live-view").hidden = !isLive;
  byId(isLive ? "to-live" : "to-search").setAttribute("aria-current", "page");
  byId(isLive ? "to-search" : "to-live").removeAttribute("aria-current");
  if (isLive) {
    document.title = "Live - tierdex";
    openLive();
    return;
  }
  closeLive();
  if (indexes.length === 0) return;
  if (location.hash === shownFragment) {
    setDocumentTitle();
    return;
  }
  shownFragment = location.hash;
  search(setControls(location.hash));
}

// Suggestions

/** Shows completions of the last word, and a correction, as buttons. */
async function suggest() {
  const [index, text] = [byId("index").value, box.value];
  const place = byId("suggestions");
  const path = `${pathOf(index)}/suggest?${new URLSearchParams({ q: text })}`;
  const answer = text.trim() === "" ? null : await request(path).catch(() => null);
  // The text may have changed meanwhile, or there is nothing to suggest.
  if (box.value !== text || byId("index").value !== index) return;
  const buttons = (answer?.completions ?? []).map(({ word, text }) => suggestion(word, text));
  if (answer?.correction) buttons.push("Did you mean ", suggestion(answer.correction, answer.correction));
  place.replaceChildren(...buttons);
  place.hidden = buttons.length === 0;
}

function suggestion(shown, text) {
  const button = make("button", { type: "button", className: "suggestion" }, shown);
  button.addEventListener("click", () => {
    box.value = text;
    box.focus();
    settle();
    update();
  });
  return button;
}

/** Writes the controls into the fragment and searches. */
function update() {
  clearTimeout(typeTimer);
  typeTimer = 0;
  shownFragment = fragmentOfControls();
  suggest();
  if (shownFragment !== location.hash) {
    history[isTyping ? "replaceState" : "pushState"](null, "", shownFragment);
  }
  search([]);
}

/** Ends an entry of the history: what is typed later is a new one. */
function settle() {
  if (typeTimer) update();
  isTyping = false;
}

function setDocumentTitle() {
  document.title = box.value.trim() === "" ? "tierdex" : `${box.value} - tierdex`;
}

// Search

function clearResults() {
  byId("count").textContent = "";
  for (const id of ["hits", "warnings", "query-error", "explanation-body"]) byId(id).replaceChildren();
  for (const id of ["warnings", "query-error", "explanation", "explain", "more"]) byId(id).hidden = true;
  box.removeAttribute("aria-invalid");
  box.removeAttribute("aria-describedby");
  page = null;
}

function stopSearches() {
  searching?.abort();
  explaining?.abort();
  searching = null;
}

/** Searches for what the controls say; `remarks` are shown above the warnings of the answer. */
async function search(remarks) {
  stopSearches();
  say("");
  setDocumentTitle();
  byId("to-search").href = shownFragment || "#";
  if (box.value.trim() === "") {
    clearResults();
    return;
  }
  const index = byId("index").value;
  const body = {
    query: box.value,
    syntax: byId("syntax").value,
    k: Number(byId("k").value),
    offset: 0,
    count: byId("count-all").checked,
    explain: isExplained,
    hits: { title: true, snippet: { bytes: 180 } },
  };
  const answer = await send(index, body);
  if (!answer) return;
  clearResults();
  page = { body, index, generation: answer.generation, shown: 0 };
  byId("explain").hidden = false;
  showWarnings([...remarks, ...warningsOf(answer)]);
  addHits(answer);
  showCount(answer);
  if (isExplained) showExplanation(answer);
}

/** The answer, or null if the search was replaced by a later one or refused. */
async function send(index, body) {
  const controller = new AbortController();
  searching = controller;
  try {
    const answer = await request(`${pathOf(index)}/search`, { body, signal: controller.signal, onBusy: busy });
    if (searching !== controller) return null;
    say("");
    return answer;
  } catch (error) {
    if (searching === controller) showProblem(error, body.query);
    return null;
  } finally {
    if (searching === controller) searching = null;
  }
}

async function showMore() {
  if (searching || !page) return;
  const last = page.shown;
  const answer = await send(page.index, { ...page.body, offset: last, explain: false });
  if (!answer) return;
  if (answer.generation !== page.generation) {
    search(["The index has changed, so the hits are shown from the first."]);
    return;
  }
  addHits(answer);
  (hitButtons()[last] ?? box).focus();
}

function showProblem(error, query) {
  clearResults();
  if (!error.isOfQuery) {
    say(reasonOf(error));
    return;
  }
  say("");
  const place = byId("query-error");
  place.append(make("p", {}, error.message));
  if (error.position !== null) {
    const [points, at] = [Array.from(query), pointsBefore(query, error.position)];
    const rest = points.slice(at).join("") || " (end of the query)";
    place.append(make("p", {}, make("code", {}, points.slice(0, at).join(""), make("mark", {}, rest))));
  }
  place.hidden = false;
  box.setAttribute("aria-invalid", "true");
  box.setAttribute("aria-describedby", "query-error");
}

function warningsOf(answer) {
  const late = "The time limit was reached. The hits are the best of those found until then.";
  return answer.timed_out ? [late, ...answer.warnings] : answer.warnings;
}

function showWarnings(warnings) {
  byId("warnings").replaceChildren(...warnings.map((text) => make("li", {}, text)));
  byId("warnings").hidden = warnings.length === 0;
}

function showCount({ total, took_us }) {
  const matches = plural(total.value, "match", "matches");
  byId("count").textContent = `${total.relation === "gte" ? "At least " : ""}${matches} in ${ms(took_us)}`;
}

function addHits({ hits, total }) {
  const { index, generation, body } = page;
  byId("hits").append(...hits.map((hit) => {
    const title = make("button", { type: "button", class: "hit", dir: "auto" }, titleOf(hit));
    title.addEventListener("click", () => openDocument(hit, index, generation, title));
    const facts = make("p", { class: "quiet" }, `id ${hit.id}, score ${score(hit.score)}`);
    const snippet = hit.snippet ? [make("p", { dir: "auto" }, ...marked(hit.snippet.text, hit.snippet.marks))] : [];
    return make("li", {}, title, ...snippet, facts);
  }));
  page.shown += body.k;
  const isEnd = hits.length < body.k || (total.relation === "eq" && page.shown >= total.value);
  byId("more").hidden = isEnd || page.shown + body.k > OFFSET_END;
}

const hitButtons = () => Array.from(document.querySelectorAll("button.hit"));

async function openDocument(hit, index, generation, opener) {
  const [dialog, body] = [byId("document"), byId("document-body")];
  const controller = new AbortController();
  dialog.addEventListener("close", () => {
    controller.abort();
    opener.focus();
  }, { once: true });
  byId("document-heading").textContent = titleOf(hit);
  body.replaceChildren(make("p", {}, "Loading."));
  dialog.showModal();
  const show = (seconds) => body.replaceChildren(make("p", {}, `The server is busy. Trying again in ${seconds} s.`));
  try {
    const path = `${pathOf(index)}/documents/${hit.document}?generation=${generation}`;
    const stored = await request(path, { signal: controller.signal, onBusy: show });
    body.replaceChildren(...membersOf(stored));
  } catch (error) {
    if (!controller.signal.aborted) body.replaceChildren(make("p", {}, reasonOf(error)));
  }
}

function membersOf({ id, members, others, cut }) {
  const member = (name, value) => [make("h3", {}, name), make("p", { dir: "auto" }, value)];
  const values = Object.entries(members).flatMap(([name, list]) => member(name, [list].flat().map(String).join("\n")));
  const rest = Object.entries(others ?? {}).flatMap(([name, value]) =>
    member(name, typeof value === "string" ? value : JSON.stringify(value, null, 2)));
  const nodes = [...member("id", id), ...values, ...rest];
  if (values.length + rest.length === 0) nodes.push(make("p", { class: "quiet" }, "No other members are stored."));
  if (cut) nodes.push(make("p", { class: "quiet" }, "The document is longer than what is shown."));
  return nodes;
}

// Explanation

async function openExplanation(opener) {
  if (!page) return;
  isExplained = true;
  explainOpener = opener;
  byId("explanation").hidden = false;
  byId("explain").setAttribute("aria-expanded", "true");
  byId("explanation-heading").focus();
  const controller = new AbortController();
  explaining?.abort();
  explaining = controller;
  const body = { ...page.body, explain: true };
  try {
    const answer = await request(`${pathOf(page.index)}/search`, { body, signal: controller.signal, onBusy: busy });
    if (explaining !== controller) return;
    say("");
    showExplanation(answer);
  } catch (error) {
    if (!controller.signal.aborted) byId("explanation-body").replaceChildren(make("p", {}, reasonOf(error)));
  }
}

function closeExplanation() {
  explaining?.abort();
  isExplained = false;
  byId("explanation").hidden = true;
  byId("explain").setAttribute("aria-expanded", "false");
  (explainOpener?.isConnected ? explainOpener : byId("explain")).focus();
}

function showExplanation(answer) {
  const { explanation, cost, took_us, queued_us } = answer;
  if (!explanation) return;
  const many = explanation.segments.length > 3;
  const facts = factsOf(answer).map((text) => make("li", { dir: "auto" }, text));
  byId("explanation-body").replaceChildren(
    make("ul", {}, ...facts),
    make("h4", {}, "Cost"),
    pairs([
      ["Pages requested from the cache", whole(cost.pages)],
      ["Pages read from disk", whole(cost.pages_read)],
      ["Memory", bytes(cost.memory_bytes)],
      ["Time", `${ms(took_us)}, of which in the queue ${ms(queued_us)}`],
    ]),
    legend(),
    ...explanation.segments.map((segment, at) => segmentOf(segment, !many || at === 0)),
  );
  byId("explanation").hidden = false;
}

// The live view

async function openLive() {
  if (live) return;
  const controller = new AbortController();
  live = controller;
  for (let tick = 0; !controller.signal.aborted; tick += 1) {
    if (!document.hidden) await poll(tick, controller.signal);
    await pause(1000, controller.signal).catch(() => null);
  }
}

function closeLive() {
  live?.abort();
  live = null;
}

async function poll(tick, signal) {
  // After a pause, because the page was hidden, the seconds since then are requested.
  const seconds = polled === null ? HISTORY_SECONDS : Math.ceil((performance.now() - polled) / 1000) + 1;
  const path = `/api/v1/stats/history?seconds=${Math.min(HISTORY_SECONDS, Math.max(3, seconds))}`;
  try {
    const [now, added] = await Promise.all([request("/api/v1/stats", { signal }), request(path, { signal })]);
    polled = performance.now();
    addHistory(added.columns);
    stats = now;
    showLive(stats, past, indexes);
    say("");
    // The list of indexes changes seldom.
    if (tick % 5 === 4) await refreshIndexes();
  } catch (error) {
    if (!signal.aborted) say(`${reasonOf(error)} Trying again.`);
  }
}

/** Appends what is newer than the last second, and drops what is too old for the charts. */
function addHistory(columns) {
  const last = past.time?.at(-1) ?? -Infinity;
  const first = columns.time.findIndex((time) => time > last);
  for (const [name, values] of Object.entries(columns)) {
    const added = first < 0 ? [] : values.slice(first);
    past[name] = [...(past[name] ?? []), ...added].slice(-HISTORY_SECONDS);
  }
}

function redraw() {
  if (live && stats) showLive(stats, past, indexes);
}

// Keys and controls

function moveAmongHits(event) {
  const buttons = hitButtons();
  const at = buttons.indexOf(document.activeElement);
  if (at < 0 && document.activeElement !== box) return;
  const target = event.key === "ArrowDown" ? buttons[at + 1] : buttons[at - 1] ?? (at === 0 ? box : null);
  if (!target) return;
  event.preventDefault();
  target.focus();
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (document.querySelector("dialog[open]")) return;
  const focused = document.activeElement;
  const isText = focused === box || focused instanceof HTMLSelectElement;
  if (event.key === "ArrowDown" || event.key === "ArrowUp") moveAmongHits(event);
  else if (event.key === "Escape" && byId("explanation").contains(focused)) closeExplanation();
  else if (event.key === "e" && focused.classList.contains("hit")) openExplanation(focused);
  else if (event.key === "?" && !isText) byId("keys").showModal();
  else if (event.key === "/" && !isText && !byId("search").hidden && !byId("search-view").hidden) box.focus();
  else return;
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") event.preventDefault();
}

function onType() {
  // The answer to the text before is not of interest any more.
  stopSearches();
  clearTimeout(typeTimer);
  typeTimer = setTimeout(() => {
    update();
    isTyping = true;
  }, DEBOUNCE_MS);
}

function listen() {
  box.addEventListener("input", onType);
  box.addEventListener("change", settle);
  byId("form").addEventListener("submit", (event) => {
    event.preventDefault();
    settle();
    if (!searching) search([]);
  });
  for (const id of ["index", "syntax", "k", "count-all"]) {
    byId(id).addEventListener("change", () => {
      settle();
      update();
    });
  }
  byId("more").addEventListener("click", showMore);
  const button = byId("explain");
  button.addEventListener("click", () => (isExplained ? closeExplanation() : openExplanation(button)));
  byId("close-explanation").addEventListener("click", closeExplanation);
  byId("show-keys").addEventListener("click", () => byId("keys").showModal());
  for (const id of ["document", "keys"]) byId(`close-${id}`).addEventListener("click", () => byId(id).close());
  document.addEventListener("keydown", onKey);
  document.addEventListener("visibilitychange", () => document.hidden || refreshIndexes());
  // A table of values is filled when it is opened; the event does not bubble.
  byId("charts").addEventListener("toggle", redraw, true);
  window.addEventListener("hashchange", route);
  window.addEventListener("resize", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
}

listen();
route();
refreshIndexes();
