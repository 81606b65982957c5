// The page of a watched line in browsers: the names of times on its axes and at the cursor. LASTMILE is the command.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { BROWSERS, fileAddress, launch, open, ready, saved } from "./browsers.mjs";
import { plot } from "./plots.mjs";
import { load } from "./typescript.mjs";

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), "../..");
const command = process.env.LASTMILE ?? path.join(root, "target/debug/lastmile");
const folder = mkdtempSync(path.join(tmpdir(), "lastmile-web-"));
after(() => rmSync(folder, { recursive: true }));

/** Options of a span, and the form of its times. */
const SPANS = [
  ["15 min", /^\d\d:\d\d$/],
  ["3 d", /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d\d:\d\d$/],
  ["1 y", /^\d{4}-\d\d-\d\d$/],
];
const CLOCK = /^at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$/;
const page = (from) => path.join(folder, `${from.replace(" ", "")}.html`);

/** Addresses of this machine. */
const HOSTS = ["127.0.0.1", "127.0.0.2"];

/** Watches two loopback addresses for some seconds; false where the machine allows no pings. */
async function watched(store) {
  const options = ["--no-gateway", "--interval", "100 ms"];
  const watcher = spawn(command, ["watch", "--store", store, ...options, ...HOSTS], { stdio: "ignore" });
  const ended = new Promise((resolve, reject) => watcher.on("exit", resolve).on("error", reject));
  const early = await Promise.race([ended, sleep(4_000, "running")]);
  if (early !== "running") return false;
  watcher.kill("SIGTERM");
  await ended;
  return true;
}

let canPing = false;
/** When the line was watched. */
let at = 0;
before(async () => {
  const store = path.join(folder, "line.watch");
  at = Date.now() / 1e3;
  canPing = await watched(store);
  // Bins of two seconds without a ping: a gap.
  if (canPing) await sleep(5_000);
  canPing &&= await watched(store);
  for (const [from] of canPing ? SPANS : [])
    execFileSync(command, ["history", "--store", store, "--utc", "--from", from, "--page", page(from)]);
});

/** The texts that the axes of a plot draw, once it shows all again after a zoom. */
async function labels(page, handle) {
  await page.evaluate(() => {
    window.texts = [];
    const draw = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
      window.texts.push(text);
      return draw.call(this, text, ...place);
    };
  });
  await handle.evaluate((chart) => chart.querySelector(".chart-canvas").focus());
  await page.keyboard.press("+");
  await page.waitForFunction(() => window.texts.length > 0);
  await page.evaluate(() => new Promise(requestAnimationFrame));
  await page.evaluate(() => (window.texts = []));
  await page.keyboard.press("0");
  await page.waitForFunction(() => window.texts.some((text) => /[:-]/.test(text)));
  return page.evaluate(() => window.texts);
}

test("ticks are round on the local clock, also across its changes", async () => {
  const { calendarTicks, timeShown } = await load("src/report/calendar.ts");
  // Berlin: summer time from 29 March 2026 01:00 UTC.
  const spring = Date.UTC(2026, 2, 29, 1) / 1e3;
  const clock = [
    [spring - 1e6, 3600],
    [spring, 7200],
  ];
  const ticks = calendarTicks(clock, spring - 4 * 3600, spring + 4 * 3600, 10);
  assert.deepEqual(
    ticks.map(([at]) => (at - spring) / 3600),
    [-4, -3, -2, -1, 0, 1, 2, 3, 4],
  );
  assert.deepEqual(
    ticks.map(([, name]) => name).slice(2, 6),
    ["Sun 00:00", "Sun 01:00", "Sun 03:00", "Sun 04:00"],
  );
  assert.equal(timeShown(clock, spring - 1), "2026-03-29 01:59:59");
  assert.equal(timeShown(clock, spring), "2026-03-29 03:00:00");
  const [[day, name]] = calendarTicks(clock, spring - 3 * 86400, spring + 3 * 86400, 10);
  assert.deepEqual([day - spring, name], [-3 * 86400 + 22 * 3600, "Fri 27 Mar"]);
  assert.ok(calendarTicks(clock, spring, spring + 30, 10).every(([, name]) => /^\d\d:\d\d:\d\d$/.test(name)));
});

for (const installed of BROWSERS) {
  describe(`the history of a line in ${installed[0]}`, () => {
    let browser;
    before(async () => {
      browser = await launch(installed);
    });
    after(() => browser?.close());

    for (const [from, form] of SPANS) {
      test(`${from}: axes and cursor name times`, async (context) => {
        if (!canPing) return context.skip("no pings on this machine");
        const { page: tab, wrong } = await open(browser, fileAddress(page(from)));
        await ready(tab);
        const { handle, box } = await plot(tab, "Round-trip time");
        const texts = await labels(tab, handle);
        const times = texts.filter((text) => form.test(text));
        assert.ok(times.length >= 3, `${texts}`);
        assert.ok(!texts.some((text) => /\d{7}/.test(text)), `${texts}`);

        await tab.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
        await tab.waitForFunction(
          (chart) => chart.querySelector(".legend-place").textContent !== "",
          {},
          handle,
        );
        assert.match(await handle.evaluate((chart) => chart.querySelector(".legend-place").textContent), CLOCK);

        // Files of the view: a drawing with the same names, and exact times.
        await saved(tab);
        const [svg, csv] = await tab.evaluate((chart) => {
          const buttons = [...chart.querySelectorAll(".chart-files button")];
          buttons.filter((one) => one.textContent !== "PNG").forEach((one) => one.click());
          return Promise.all(window.saved);
        }, handle);
        const names = [...svg.text.matchAll(/text-anchor="middle">([^<]+)</g)].map((one) => one[1]);
        assert.ok(names.filter((name) => form.test(name)).length >= 3 && names.includes("Time, UTC"), `${names}`);
        if (from === "15 min") {
          const [time] = csv.text.split("\r\n")[1].split(",");
          assert.ok(Math.abs(at - Number(time)) < 120, time);
        }
        assert.deepEqual(wrong, []);
        await tab.close();
      });
    }

    test("each part of a line belongs to its host", async (context) => {
      if (!canPing) return context.skip("no pings on this machine");
      const { page: tab, wrong } = await open(browser, fileAddress(page("15 min")));
      await ready(tab);
      const { handle } = await plot(tab, "Round-trip time");
      await saved(tab);
      const lines = () =>
        tab.evaluate(async (chart) => {
          [...chart.querySelectorAll(".chart-files button")].find((one) => one.textContent === "CSV").click();
          const { text } = await window.saved.at(-1);
          return text
            .trim()
            .split("\r\n")
            .slice(1)
            .map((row) => row.split(",").slice(1, -1).join());
        }, handle);
      const all = await lines();
      const of = (host) => ["99th percentile", "median"].map((what) => `"${host}, ${what}"`);
      assert.deepEqual([...new Set(all)].sort(), HOSTS.flatMap(of));
      const buttons = await tab.evaluate((chart) => {
        const found = [...chart.querySelectorAll(".legend button")];
        found[0].click();
        return found.map((one) => one.children[1].textContent);
      }, handle);
      assert.deepEqual(buttons, HOSTS);
      assert.deepEqual(
        await lines(),
        all.filter((name) => of(HOSTS[1]).includes(name)),
        "one click takes all parts of one host",
      );
      assert.deepEqual(wrong, []);
      await tab.close();
    });
  });
}
