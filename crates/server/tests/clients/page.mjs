// Uses the page of a server in Chromium, as a person would: with the keyboard, in both colour schemes, on a phone and on a
// wide screen; and checks each view with axe.
//
// Usage: node page.mjs URL [FOLDER]; the folder gets a picture of each view. The server has one index with stored texts, in
// which `solid state disk` has hits.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import chromium from "@sparticuz/chromium";
import puppeteer from "puppeteer-core";

const [base, folder] = process.argv.slice(2);
assert(base, "usage: page.mjs URL [FOLDER]");
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
if (folder) mkdirSync(folder, { recursive: true });

const browser = await puppeteer.launch({
  args: chromium.args,
  executablePath: await chromium.executablePath(),
  headless: "shell",
});
const page = await browser.newPage();
const problems = [];
page.on("request", (request) => {
  const url = request.url();
  if (!url.startsWith(base) && !url.startsWith("data:")) problems.push(`request of ${url}`);
});
page.on("pageerror", (error) => problems.push(error.message));
page.on("console", (message) => {
  // A rejected query is an answer with status 400, which the browser reports.
  if (message.type() === "error" && !message.text().includes("400")) problems.push(message.text());
});
page.on("dialog", (dialog) => {
  problems.push(`a text of the index was run: ${dialog.message()}`);
  dialog.dismiss();
});

const text = (selector) => page.$eval(selector, (element) => element.innerText);
const until = (condition, ...values) => page.waitForFunction(condition, { timeout: 20_000 }, ...values);
const focused = () => page.evaluate(() => document.activeElement.id || document.activeElement.className);

async function type(query) {
  await page.$eval("#query", (box) => (box.value = ""));
  await page.focus("#query");
  await page.keyboard.type(query, { delay: 5 });
  await page.keyboard.press("Enter");
}

/** Checks what is shown in both colour schemes and two widths. */
async function check(view) {
  for (const scheme of ["light", "dark"]) {
    for (const width of [360, 1280]) {
      await page.setViewport({ width, height: 900 });
      await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert(overflow <= 0, `${view}, ${scheme}: ${overflow} pixels wider than ${width}`);
      await page.evaluate(axe);
      const found = await page.evaluate(() => globalThis.axe.run());
      const ids = found.violations.map(({ id, impact, nodes }) => `${id} (${impact}): ${nodes[0].html}`);
      assert.deepEqual(ids, [], `${view}, ${scheme}, ${width} pixels`);
      if (folder) await page.screenshot({ path: `${folder}/${view}-${scheme}-${width}.png` });
    }
  }
}

await page.goto(`${base}/`);
await until(() => !document.querySelector("#search").hidden);

// What is typed is searched without a button.
await page.keyboard.type("solid state disk", { delay: 20 });
await until(() => document.querySelectorAll("#hits > li").length > 0);
assert.match(await text("#count"), /\d/);
assert((await page.$$("#hits mark")).length > 0, "no word of the query is marked");
await check("hits");

// The keyboard alone: to the first hit, its document, and back; then why it is the first.
await page.focus("#query");
await page.keyboard.press("ArrowDown");
const hit = await focused();
assert.notEqual(hit, "query");
await page.keyboard.press("Enter");
await until(() => document.querySelector("#document").open);
assert((await text("#document-body")).length > 0);
await check("document");
await page.keyboard.press("Escape");
await until(() => !document.querySelector("#document").open);
assert.equal(await focused(), hit);
await page.keyboard.press("e");
await until(() => document.querySelector("#explanation-body").children.length > 0);
assert.match(await text("#explanation-body"), /solid|disk|state/);
await check("explanation");
await page.keyboard.press("Escape");
await until(() => document.querySelector("#explanation").hidden);

// Completions and corrections. The index may have this file: the word is not in it.
await type(["so", "llidd"].join(""));
await until(() => document.querySelectorAll("#suggestions button").length > 0);
await check("suggestions");
await page.click("#suggestions button");
await until(() => document.querySelectorAll("#hits > li").length > 0);

// A fault is shown where it is.
await type("solid AND");
await until(() => !document.querySelector("#query-error").hidden);
await check("fault");

// Queries are shown as text.
for (const payload of [
  "<img src=x onerror=alert(1)>",
  "<script>alert(1)</script>",
  "\"><svg onload=alert(1)>",
  "javascript:alert(1)",
  "{{constructor.constructor('alert(1)')()}}",
]) {
  await page.goto(`${base}/#q=${encodeURIComponent(payload)}&syntax=terms`);
  await until((value) => document.querySelector("#query").value === value, payload);
  assert.equal(await page.$("main img, main script, main svg[onload]"), null);
}

// The live view draws while searches run.
await page.goto(`${base}/#live`);
for (let number = 0; number < 40; number++) {
  await fetch(`${base}/api/v1/indexes`).then((answer) => answer.json());
}
await until(() => document.querySelectorAll("#charts canvas").length > 3 && document.querySelector("#memory-bar").children.length > 3);
await check("live");

assert.deepEqual(problems, []);
await browser.close();
console.log("ok");
process.exit(0);
