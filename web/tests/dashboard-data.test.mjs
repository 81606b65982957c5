// The hour of the dashboard's page: what it takes from the server, and what it keeps over a week.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "node:test";
import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";
import * as esbuild from "esbuild";
import { encoded } from "./dashboard/history.mjs";

const folder = await mkdtemp(path.join(tmpdir(), "lastmile-dashboard-"));
const options = { entryPoints: ["src/dashboard/data.ts"], bundle: true, format: "esm", write: false };
const { outputFiles } = await esbuild.build(options);
await writeFile(path.join(folder, "data.mjs"), outputFiles[0].text);
const { Store } = await import(pathToFileURL(path.join(folder, "data.mjs")).href);
await rm(folder, { recursive: true });

function report(second, labels) {
  const series = labels.map((label) => ({ label, value: second }));
  const charts = [{ title: "rate", unit: "bit/s", limit: null, series }];
  return { at_ms: second * 1000, status: "", tables: [], groups: [{ id: "up", title: "up", charts }] };
}

test("the history of the server comes before the reports that follow it, each once", () => {
  const store = new Store();
  const marks = [{ at_ms: 2500, words: "a policy" }];
  store.replace(encoded([1000, 2000, 3000], { all: [1, NaN, 3], quick: [7, 8, 9] }, marks));
  assert.equal(store.push(report(3, ["all"])), false, "the history has it");
  assert.equal(store.push(report(4, ["all"])), true);
  const view = store.view("up", "rate", ["all", "quick", "none"], "bit/s", 0, 600);
  assert.deepEqual(view, [
    [1, 2, 3, 4],
    [1, null, 3, 4],
    [7, 8, 9, null],
    [null, null, null, null],
  ]);
  assert.deepEqual(store.view("up", "rate", ["all"], "bit/s", 2500, 600)[0], [3, 4]);
  store.mark({ at_ms: 2500, words: "a policy" });
  assert.equal(store.marks.length, 1);
});

test("bins have the mean of rates and the largest of all else, at times that stay", () => {
  const store = new Store();
  for (let second = 0; second < 100; second += 1) store.push(report(second + 1, ["all"]));
  const [x, means] = store.view("up", "rate", ["all"], "bit/s", 0, 10);
  const largest = store.view("up", "rate", ["all"], "s", 0, 10)[1];
  assert.ok(x.length >= 10 && x.length <= 11, String(x.length));
  assert.deepEqual([means[1], largest[1]], [14.5, 19], "seconds 10 to 19");
  store.push(report(101, ["all"]));
  assert.deepEqual(store.view("up", "rate", ["all"], "s", 0, 11)[0].slice(1, 5), x.slice(1, 5));
});

test("a week of reports with ever new names takes the memory of an hour", () => {
  const store = new Store();
  let early = 0;
  for (let second = 1; second <= 7 * 24 * 3600; second += 1) {
    store.push(report(second, ["all", "quick", ...(second % 60 === 0 ? [`class ${second}`] : [])]));
    if (second % 600 === 0) store.mark({ at_ms: second, words: String(second) });
    // Names of a day fill the space for series.
    if (second === 24 * 3600) early = process.memoryUsage().arrayBuffers;
  }
  assert.equal(store.marks.length, 100);
  assert.equal(store.view("up", "rate", ["all"], "bit/s", 0, 3600)[0].length, 3600);
  const late = process.memoryUsage().arrayBuffers;
  assert.ok(late < early + 4e6 && late < 40e6, `${early} and ${late} bytes`);
});
