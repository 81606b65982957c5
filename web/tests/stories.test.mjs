// The stories: every figure has its values and its sources, and every published value is that of the data.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { published, tables } from "../stories-data.mjs";
import { load } from "./typescript.mjs";

const web = path.join(path.dirname(fileURLToPath(import.meta.url)), "..");
const data = JSON.parse(readFileSync(path.join(web, "src/stories/data/stories.json"), "utf8"));
const { STORIES } = await load("src/stories/stories.ts");
const { dots, first, place, table, trial } = await load("src/stories/model.ts");
const { across, round, scale } = await load("src/stories/scale.ts");
const { name } = await load("src/stories/panel.ts");
const publication = (story) => data.find(({ key }) => key === story.key);
const figures = STORIES.flatMap((story) => story.figures.map((figure) => [story, figure]));

test("five publications have a story with two to four figures each", () => {
  assert.deepEqual(STORIES.map(({ key }) => key).sort(), [
    "ano2002",
    "brouer2005",
    "kalyanaraman1999",
    "phanse2000",
    "sun1998",
  ]);
  for (const { key, text, figures } of STORIES) {
    assert.ok(text.length >= 2 && figures.length >= 2 && figures.length <= 4, key);
    assert.equal(new Set(figures.map(({ id }) => id)).size, figures.length, key);
  }
});

test("every figure has published and simulated values, and every series some", () => {
  for (const [story, figure] of figures) {
    const all = figure.series.map((series) => dots(publication(story), figure, series));
    const where = `${story.key}/${figure.id}`;
    assert.ok(
      all.some(({ published }) => published.length > 0),
      `${where}: nothing published`,
    );
    assert.ok(
      all.some(({ simulated }) => simulated.length > 0),
      `${where}: nothing simulated`,
    );
    all.forEach(({ published, simulated }, n) =>
      assert.ok(published.length + simulated.length > 0, `${where}: ${figure.series[n].label}`),
    );
  }
});

test("a series has one value at a place", () => {
  for (const [story, figure] of figures) {
    for (const series of figure.series) {
      for (const side of Object.values(dots(publication(story), figure, series))) {
        assert.equal(new Set(side.map(({ x }) => x)).size, side.length, `${story.key}/${figure.id}: ${series.label}`);
      }
    }
  }
});

test("sources are named, and every table has its claims with a verdict", () => {
  const verdicts = new Set(["shown", "not shown", "hangs on an assumption", "quoted"]);
  for (const story of STORIES) {
    const known = publication(story);
    assert.ok(known.authors.length > 0 && known.year > 1990 && known.kind.length > 0, story.key);
    for (const id of tables(story)) {
      const { where, kind, claims, seeds } = table(known, id);
      assert.ok(where.length > 0 && ["measured", "simulated"].includes(kind) && seeds > 0, id);
      assert.ok(claims.length > 0, id);
      for (const claim of claims) {
        assert.ok(verdicts.has(claim.verdict) && claim.text.length > 0 && claim.evidence.length > 0, id);
        assert.equal(claim.assumptions !== undefined, claim.verdict === "hangs on an assumption", id);
      }
    }
  }
  assert.deepEqual(["5.1", "fig-3.8", "text-11"].map(name), ["Table 5.1", "Figure 3.8", "Section 11"]);
});

test("published values and sources are those of the crate published", async () => {
  for (const story of STORIES) {
    const source = await published(story.key);
    const known = publication(story);
    assert.deepEqual([known.authors, known.year], [source.publication.authors, source.publication.year]);
    for (const one of known.tables) {
      const { row, title, where, claim } = source.table.find(({ id }) => id === one.id);
      assert.deepEqual([one.title, one.where], [title, where], one.id);
      row.forEach(({ published }, n) => {
        const plain = Object.fromEntries(Object.entries(published).filter(([, value]) => typeof value !== "object"));
        assert.deepEqual(one.rows[n].published, plain, `${story.key}/${one.id}, row ${n + 1}`);
      });
      for (const later of one.rows.slice(row.length)) assert.deepEqual(later.published, {}, one.id);
      if (one.claims.length === 1) assert.equal(one.claims[0].text, claim, one.id);
    }
  }
});

test("sliders begin at one of their values, and every choice has a place and a table", () => {
  for (const [story, figure] of figures) {
    const where = `${story.key}/${figure.id}`;
    for (const { values, from, label } of figure.sliders) {
      assert.ok(values.includes(from), `${where}: ${label}`);
      assert.deepEqual(
        values,
        [...values].sort((a, b) => a - b),
        `${where}: ${label}`,
      );
    }
    assert.ok(figure.sliders.length > 0 || figure.choices.length > 1, `${where}: nothing to move`);
    figure.choices.forEach(({ options }, choice) =>
      options.forEach((_, option) => {
        const chosen = first(figure);
        chosen.options[choice] = option;
        const run = trial(figure, chosen);
        const { scenario } = table(publication(story), run.table);
        assert.notEqual(place(figure, { ...scenario, ...run.settings }), null, `${where}: no place`);
        for (const series of run.series) assert.ok(series < figure.series.length, where);
      }),
    );
  }
});

test("settings have the values of sliders, as texts where the plan wants texts", () => {
  const [, figure] = figures.find(([story, { id }]) => story.key === "phanse2000" && id === "cells");
  const run = trial(figure, { sliders: [1, 0], options: [1] });
  assert.deepEqual(run, { table: "5.4", settings: { up_bps: 16_000, queue: "10 packets" }, series: [1] });
});

test("scales have round ticks, and give values back", () => {
  assert.deepEqual(round(0, 103, 5), [0, 50, 100]);
  assert.deepEqual(round(0.3, 0.96, 5), [0.4, 0.6000000000000001, 0.8]);
  const log = scale({ title: "", unit: [1e3, "kbit/s"], log: true });
  assert.ok(Math.abs(log.back(log.to(64_000)) - 64_000) < 1e-6);
  assert.deepEqual(
    log.ticks(3.9, 5.2).map((at) => log.tick(at)),
    ["10", "20", "50", "100"],
  );
  assert.equal(log.text(64_000), "64\u00a0kbit/s");
  const [, figure] = figures.find(([, { id }]) => id === "schedulers");
  assert.equal(across(figure).text(2), "priority, SAD");
});
