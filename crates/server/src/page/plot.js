// Turns numbers into what the page shows: tables, stacked bars, line charts, the picture of an evaluation.
// The colours are variables of the style sheet, so a chart follows the light and the dark colour scheme.

const LISTS_SHOWN = 100; // A prefix can have thousands of lists.

// The edges of a chart around its lines, in CSS pixels.
const LEFT = 52;
const RIGHT = 12;
const TOP = 22;
const BOTTOM = 24;

// Lines differ by dashes too, not by their colour alone.
const DASHES = [[], [6, 4], [2, 3]];

// Elements and texts

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Replaces the content of a container by a table. The first cell of a row is its heading. */
function fillTable(container, heads, rows) {
  const cell = (value, at) => (at === 0 ? make("th", { scope: "row" }, value) : make("td", {}, value));
  const head = make("tr", {}, ...heads.map((name) => make("th", { scope: "col" }, name)));
  const body = rows.map((row) => make("tr", {}, ...row.map(cell)));
  container.replaceChildren(make("table", {}, make("thead", {}, head), make("tbody", {}, ...body)));
}

function scrollTable(label, heads, rows) {
  const container = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label });
  fillTable(container, heads, rows);
  return container;
}

export function pairs(rows) {
  const nodes = rows.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]);
  return make("dl", { class: "pairs" }, ...nodes);
}

// Numbers as text

/** A number for people: few digits, with separators of thousands. */
function short(value) {
  if (value === null || value === undefined) return "none";
  const size = Math.abs(value);
  if (size < 1) return value.toLocaleString("en", { maximumSignificantDigits: 2 });
  return value.toLocaleString("en", { maximumFractionDigits: size >= 100 ? 0 : size >= 10 ? 1 : 2 });
}

export const whole = (number) => number.toLocaleString("en");
export const score = (number) => (number === null ? "none" : number.toFixed(3));
export const quoted = (text) => `“${text}”`;
export const titleOf = ({ title, id }) => title || id || "(no title)";
export const plural = (number, one, many) => `${whole(number)} ${number === 1 ? one : many}`;
export const ms = (us) => `${short(us / 1000)} ms`;

export function bytes(number) {
  const unit = number < 1024 ? 0 : Math.min(4, Math.floor(Math.log2(number) / 10));
  return `${short(number / 1024 ** unit)} ${["bytes", "KiB", "MiB", "GiB", "TiB"][unit]}`;
}

// Charts

/**
 * Draws lines over time, from 0 upwards, and sets the label that screen readers read.
 * `times` are Unix seconds; a value that is null leaves a gap; a colour is a variable such as "--c0".
 */
export function drawLines(canvas, { series, times, unit, title }) {
  const latest = series.map(({ name, values }) => `${name} ${short(values.at(-1))}`);
  canvas.setAttribute("aria-label", `${title}, in ${unit}. Latest: ${latest.join(", ")}.`);
  const pen = prepare(canvas);
  if (!pen) return;
  const highest = series.flatMap(({ values }) => values).reduce((a, b) => Math.max(a, b ?? 0), 0);
  const frame = frameOf(canvas, times, roundUp(highest));
  drawAxes(pen, frame, unit, canvas);
  series.forEach(({ values, color }, at) => drawLine(pen, frame, times, values, colorOf(canvas, color), DASHES[at % 3]));
}

/** Fills a stacked bar. A part is {size, fill}: its share of `total`, and the number of its colour. */
function drawBar(bar, parts, total) {
  const pieces = parts.filter(({ size }) => size > 0).map(({ size, fill }) => {
    const piece = document.createElement("span");
    piece.className = `fill${fill}`;
    piece.style.width = `${Math.min(100, (100 * size) / Math.max(total, 1))}%`;
    return piece;
  });
  bar.replaceChildren(...pieces);
}

/** A cleared context whose unit is a CSS pixel, or null while the canvas is not shown. */
function prepare(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [Math.round(canvas.clientWidth * ratio), Math.round(canvas.clientHeight * ratio)];
  const pen = canvas.getContext("2d");
  if (width === 0 || height === 0 || !pen) return null;
  // Setting the size clears the canvas and takes memory anew, so it is set only if it changes.
  if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
  return pen;
}

/** Where values and times are on the canvas. */
function frameOf(canvas, times, top) {
  const right = canvas.clientWidth - RIGHT;
  const bottom = canvas.clientHeight - BOTTOM;
  const [first, last] = [times[0] ?? 0, times.at(-1) ?? 0];
  const x = (time) => (last > first ? LEFT + ((time - first) / (last - first)) * (right - LEFT) : right);
  const y = (value) => bottom - (value / top) * (bottom - TOP);
  return { right, bottom, first, last, top, x, y };
}

/** The next larger number of the form 1, 2 or 5 times a power of ten; 1 for 0. */
function roundUp(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((digit) => digit * power).find((step) => step >= value) ?? 10 * power;
}

function drawAxes(pen, frame, unit, canvas) {
  pen.font = `12px ${getComputedStyle(canvas).fontFamily}`;
  pen.lineWidth = 1;
  pen.setLineDash([]);
  pen.textBaseline = "middle";
  pen.textAlign = "right";
  for (const value of [0, frame.top / 2, frame.top]) {
    const y = Math.round(frame.y(value)) + 0.5;
    pen.strokeStyle = colorOf(canvas, value === 0 ? "--edge" : "--rule");
    pen.beginPath();
    pen.moveTo(LEFT, y);
    pen.lineTo(frame.right, y);
    pen.stroke();
    pen.fillStyle = colorOf(canvas, "--quiet");
    pen.fillText(short(value), LEFT - 6, y);
  }
  pen.textAlign = "left";
  pen.fillText(unit, LEFT, TOP / 2 - 2);
  if (frame.last === 0) return;
  pen.fillText(clock(frame.first), LEFT, frame.bottom + BOTTOM / 2);
  pen.textAlign = "right";
  if (frame.last > frame.first) pen.fillText(clock(frame.last), frame.right, frame.bottom + BOTTOM / 2);
}

function drawLine(pen, frame, times, values, color, dash) {
  pen.strokeStyle = color;
  pen.fillStyle = color;
  pen.lineWidth = 2;
  pen.lineJoin = "round";
  pen.setLineDash(dash);
  pen.beginPath();
  let isDrawing = false;
  values.forEach((value, at) => {
    if (value === null) isDrawing = false;
    else if (isDrawing) pen.lineTo(frame.x(times[at]), frame.y(value));
    else {
      pen.moveTo(frame.x(times[at]), frame.y(value));
      isDrawing = true;
    }
  });
  pen.stroke();
  // A line of one value has no length; the dot shows it.
  const last = values.at(-1) ?? null;
  if (last === null) return;
  pen.beginPath();
  pen.arc(frame.x(times.at(-1)), frame.y(last), 3, 0, 2 * Math.PI);
  pen.fill();
}

/** The time of day of a Unix time. */
function clock(seconds) {
  return new Date(seconds * 1000).toLocaleTimeString("en-GB");
}

function colorOf(canvas, color) {
  return color.startsWith("--") ? getComputedStyle(canvas).getPropertyValue(color).trim() : color;
}

// The picture of an evaluation

const PARTS = [["decoded", 0], ["by_bound", 1], ["by_range", 7]];
const PART_NAMES = {
  decoded: "decoded",
  by_bound: "skipped by bound: the highest possible score is below the threshold",
  by_range: "skipped by range: no document of the block was requested",
};

export function legend() {
  const items = PARTS.map(([part, fill]) =>
    make("li", {}, make("span", { class: `swatch fill${fill}`, "aria-hidden": "true" }), PART_NAMES[part]));
  return make("div", {}, make("h4", {}, "Blocks of posting lists"), make("ul", { class: "legend" }, ...items));
}

export function segmentOf(segment, isOpen) {
  const { segment: number, strategy, threshold_before, threshold_after, nodes, lists } = segment;
  const name = `Segment ${number}`;
  const heading = make("h4", {}, `${name}: ${strategy}, ${plural(segment.matches, "match", "matches")}`);
  const details = make("details", isOpen ? { open: "" } : {}, make("summary", {}, heading), pairs([
    ["Documents", whole(segment.documents)],
    ["Threshold at the start", score(threshold_before)],
    ["Threshold at the end", score(threshold_after)],
  ]));
  if (nodes.length > 0) details.append(make("p", { class: "quiet" }, "Evaluated as"), treeOf(nodes));
  if (lists.length > 0) details.append(listTable(`Posting lists of segment ${number}`, lists));
  const more = lists.length - LISTS_SHOWN;
  if (more > 0) details.append(make("p", {}, `${plural(more, "more list is", "more lists are")} not shown.`));
  return details;
}

/** Nested lists of the nodes, which come in order with their depths. */
function treeOf(nodes) {
  const lists = [make("ul")];
  for (const { depth, what } of nodes) {
    // A node is at most one level below the node before it.
    const level = Math.min(depth, lists.at(-1).lastChild ? lists.length : lists.length - 1);
    lists.length = Math.min(lists.length, level + 1);
    if (level === lists.length) {
      const list = make("ul");
      lists[level - 1].lastChild.append(list);
      lists.push(list);
    }
    lists[level].append(make("li", {}, what));
  }
  return lists[0];
}

function listTable(label, lists) {
  const heads = ["Term", "Use of blocks", "Documents", "Weight", "Max score", "Blocks", "Decoded", "By bound", "By range",
    "Bytes decoded"];
  const rows = lists.slice(0, LISTS_SHOWN).map((list) => {
    const bar = make("div", { class: "bar", "aria-hidden": "true" });
    drawBar(bar, PARTS.map(([part, fill]) => ({ size: list[part], fill })), list.blocks);
    const decoded = list.docs_bytes_decoded + list.freqs_bytes_decoded;
    const counts = [list.blocks, list.decoded, list.by_bound, list.by_range].map(whole);
    const read = `${whole(decoded)} of ${whole(list.docs_bytes + list.freqs_bytes)}`;
    const scores = [list.weight, list.max_score].map(score);
    return [`${list.field}:${list.term}`, bar, whole(list.documents), ...scores, ...counts, read];
  });
  return scrollTable(label, heads, rows);
}

/** The posting lists of all segments, one for each term of a field. */
function mergeLists(segments) {
  const merged = new Map();
  for (const [segment, list] of segments.flatMap(({ lists }, at) => lists.map((of) => [at, of]))) {
    const key = JSON.stringify([list.field, list.term]);
    const sum = merged.get(key) ?? { term: list.term, documents: 0, weight: 0, maxScore: null, segment: -1 };
    // A term that is twice in a query has two lists in a segment, with the same documents.
    if (sum.segment !== segment) sum.documents += list.documents;
    sum.segment = segment;
    sum.weight = Math.max(sum.weight, list.weight);
    if (list.max_score !== null) sum.maxScore = Math.max(sum.maxScore ?? 0, list.max_score);
    merged.set(key, sum);
  }
  return [...merged.values()];
}

/** Sentences about the evaluation and the first hit: facts of the answer, without suppositions. */
export function factsOf({ hits, explanation }) {
  const { segments, threshold } = explanation;
  const terms = mergeLists(segments);
  const scored = terms.filter(({ maxScore }) => maxScore !== null);
  const searched = `The query was evaluated in ${plural(segments.length, "segment", "segments")}.`;
  const facts = [searched, ...termFacts(terms, scored)];
  if (hits.length > 0) facts.push(...hitFacts(hits, scored));
  else facts.push("There are no hits.");
  if (threshold !== null) facts.push(`At the end, a document needed a score of ${score(threshold)} to be among the hits.`);
  const lists = segments.flatMap((segment) => segment.lists);
  const sum = (name) => lists.reduce((total, list) => total + list[name], 0);
  const blocks = sum("blocks");
  if (blocks > 0) {
    const skipped = `${whole(sum("by_bound"))} were skipped by bound and ${whole(sum("by_range"))} by range`;
    facts.push(`Of ${plural(blocks, "block", "blocks")}, ${whole(sum("decoded"))} were decoded; ${skipped}.`);
  }
  return facts;
}

function termFacts(terms, scored) {
  if (terms.length === 0) return ["No posting list was opened."];
  const described = ({ term, documents }) => `${quoted(term)} (in ${plural(documents, "document", "documents")})`;
  const more = terms.length > 8 ? `, and ${whole(terms.length - 8)} more` : "";
  const names = `${terms.slice(0, 8).map(described).join(", ")}${more}`;
  const facts = [`Posting lists were opened for ${plural(terms.length, "term", "terms")}: ${names}.`];
  if (scored.length < 2) return facts;
  const rarest = scored.reduce((a, b) => (b.documents < a.documents ? b : a));
  const heaviest = scored.reduce((a, b) => (b.weight > a.weight ? b : a));
  if (rarest.weight === heaviest.weight) {
    facts.push(`The rarest scored term, ${quoted(rarest.term)}, has the highest weight: ${score(rarest.weight)}.`);
  } else {
    facts.push(`The rarest scored term is ${quoted(rarest.term)}, with weight ${score(rarest.weight)}. `
      + `The highest weight, ${score(heaviest.weight)}, is that of ${quoted(heaviest.term)}.`);
  }
  return facts;
}

function hitFacts([first, second], scored) {
  const facts = [`The first hit, ${quoted(titleOf(first))}, has the highest score: ${score(first.score)}.`];
  if (second) {
    const isLower = second.score < first.score;
    facts.push(isLower ? `The score of the second hit is ${score(second.score)}.` : "The second hit has the same score.");
  }
  if (first.snippet) {
    const points = Array.from(first.snippet.text);
    const words = new Set(first.snippet.marks.map(([start, end]) => points.slice(start, end).join("").toLowerCase()));
    if (words.size > 0) facts.push(`The snippet of the first hit contains: ${[...words].map(quoted).join(", ")}.`);
  }
  if (scored.length > 0) {
    const sum = scored.reduce((total, { maxScore }) => total + maxScore, 0);
    facts.push(`The max scores of the scored terms add up to ${score(sum)}.`);
  }
  return facts;
}

// The live view

// A line is [name, column of the history, factor].
const CHARTS = [
  { title: "Request rate", unit: "requests per second", lines: [["answered", "answered", 1], ["refused", "refused", 1]] },
  {
    title: "Latency",
    unit: "ms",
    lines: [["p50", "p50_us", 1e-3], ["p99", "p99_us", 1e-3], ["p99.9", "p999_us", 1e-3]],
  },
  { title: "Requests in the engine", unit: "requests", lines: [["queued", "queued", 1], ["running", "running", 1]] },
  { title: "Cache hit rate", unit: "%", lines: [["hit rate", "cache_hit_rate", 100]] },
  { title: "Reads", unit: "MB per second", lines: [["read", "read_bytes", 1e-6]] },
  { title: "Expected wait", unit: "ms", lines: [["expected wait", "expected_wait_us", 1e-3]] },
];

/** Shows statistics, the columns of their history and the indexes, in the elements of index.html. */
export function showLive(stats, columns, indexes) {
  showMemory(stats.engine);
  showRequests(stats);
  showIndexTable(indexes);
  showCharts(columns);
}

function showMemory(engine) {
  const [line, bar, table] = ["memory-line", "memory-bar", "memory-table"].map((id) => document.getElementById(id));
  bar.hidden = table.hidden = engine === null;
  if (engine === null) {
    line.textContent = "No engine runs, because there is no index.";
    return;
  }
  // Parts in another region than the budget's are in the table only.
  const parts = engine.memory.map(({ what, bytes: size, region }, at) => ({ what, size, region, fill: at % 8 }));
  const used = parts.reduce((sum, { size, region }) => sum + (region ? 0 : size), 0);
  line.textContent = `${bytes(used)}, ${engine.dram ? `of a budget of ${bytes(engine.dram)}` : "without a budget"}.`;
  drawBar(bar, parts.filter(({ region }) => !region), Math.max(engine.dram ?? 0, used));
  fillTable(table, ["Part", "Bytes", "Size", "Region"], parts.map(({ what, size, region, fill }) => {
    const swatch = region ? [] : [make("span", { class: `swatch fill${fill}`, "aria-hidden": "true" })];
    return [make("span", {}, ...swatch, what), whole(size), bytes(size), region ?? "budget"];
  }));
}

function showRequests({ uptime_s, draining, engine, server }) {
  const refused = Object.entries(server.refused).map(([reason, count]) => `${reason} ${whole(count)}`).join(", ");
  const rate = engine && engine.cache.hits + engine.cache.misses > 0
    ? ` Cache hits: ${short((100 * engine.cache.hits) / (engine.cache.hits + engine.cache.misses))} %.` : "";
  const reads = engine ? ` Reads: ${whole(engine.reads.count)} (${bytes(engine.reads.bytes)}).` : "";
  document.getElementById("server-line").textContent = (draining ? "The server is stopping and takes no new requests. " : "")
    + `Since the start ${whole(Math.round(uptime_s))} s ago: ${plural(server.requests, "request", "requests")}, `
    + `${whole(server.cancelled)} cancelled. Refused: ${refused}. `
    + `Connections: ${whole(server.connections)} of ${whole(server.connections_max)}.${rate}${reads}`;
  const heads = ["Priority", "Queued", "Running", "Answered", "Cancelled", "Expired", "Oldest wait", "p50", "p99", "p99.9"];
  const rows = Object.entries(engine?.requests ?? {}).map(([name, of]) => {
    const counts = [of.queued, of.running, of.answered, of.cancelled, of.expired].map(whole);
    return [name, ...counts, ...[of.oldest_wait_us, of.p50_us, of.p99_us, of.p999_us].map(ms)];
  });
  fillTable(document.getElementById("requests-table"), heads, rows);
}

function showIndexTable(indexes) {
  const heads = ["Name", "Generation", "Documents", "Deleted", "Segments", "Bytes", "Stale"];
  const rows = indexes.map(({ name, generation, documents, deleted, segments, bytes: size, stale }) => {
    const reason = stale ? `since ${stale.since}: ${stale.reason}` : "no";
    const counts = [documents, deleted, segments].map(whole);
    return [name, String(generation), ...counts, bytes(size), reason];
  });
  fillTable(document.getElementById("indexes-table"), heads, rows);
}

function showCharts(columns) {
  const place = document.getElementById("charts");
  if (!place.firstChild) place.append(...CHARTS.map(makeChart));
  CHARTS.forEach(({ title, unit, lines }, at) => {
    const [legendList, canvas, details] = Array.from(place.children[at].children).slice(1);
    const series = lines.map(([name, column, factor], line) => {
      const values = columns[column].map((value) => (value === null ? null : value * factor));
      return { name, values, color: `--c${line}` };
    });
    drawLines(canvas, { series, times: columns.time, unit, title });
    series.forEach(({ name, values }, line) => {
      legendList.children[line].lastChild.textContent = `${name}: ${short(values.at(-1))}`;
    });
    // A closed table is not filled: it would cost as much as the charts, each second.
    if (!details.open) return;
    const rows = columns.time.map((time, row) => [clock(time), ...series.map(({ values }) => short(values[row]))]);
    fillTable(details.lastChild, ["Time", ...lines.map(([name]) => name)], rows.slice(-10).reverse());
  });
}

function makeChart({ title, unit, lines }) {
  const items = lines.map((line, at) =>
    make("li", {}, make("span", { class: `line fill${at} dash${at}`, "aria-hidden": "true" }), make("span")));
  const label = `Last values: ${title}, in ${unit}`;
  const table = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label });
  const details = make("details", {}, make("summary", {}, label), table);
  const legendList = make("ul", { class: "legend" }, ...items);
  return make("div", {}, make("h3", {}, title), legendList, make("canvas", { role: "img" }), details);
}
