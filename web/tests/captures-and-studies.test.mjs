// Pages of captures and of studies in browsers: what a reader sees, clicks and saves. LASTMILE is the command.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { BROWSERS, fileAddress, launch, open, ready, saved } from "./browsers.mjs";
import { testFits } from "./fits.mjs";
import { plot } from "./plots.mjs";

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), "../..");
const command = process.env.LASTMILE ?? path.join(root, "target/debug/lastmile");
const folder = mkdtempSync(path.join(tmpdir(), "lastmile-web-"));
after(() => rmSync(folder, { recursive: true }));

const lastmile = (...args) =>
  execFileSync(command, args, { cwd: folder, stdio: ["ignore", "pipe", "pipe"] }).toString();

const LINE = `duration = "20 s"
[access]
down = { rate = "3.2 Mbit/s", delay = "14 ms", loss = "0.5 %" }
up = { rate = "1.1 Mbit/s", delay = "14 ms" }
[[traffic]]
name = "download"
kind = "bulk"
direction = "down"
count = 12
[[traffic]]
name = "upload"
kind = "bulk"
direction = "up"
start = "3 s"
[[traffic]]
kind = "ping"
`;

const EVIL = "<img src=x onerror=alert(1)>";
const STUDY = `# </script><script>alert(2)</script>
name = "${EVIL}<script>alert(2)"
scenario = "line.toml"
duration = "6 s"
seeds = 2
measures = ["download_bps", "ping.p50_s"]
[grid]
access.up.rate = { from = "256 kbit/s", to = "2048 kbit/s", count = 4, scale = "log" }
access.up.delay = ["5 ms", "50 ms"]
access.policy = ["none", "cake"]
`;

const files = {};
before(() => {
  writeFileSync(path.join(folder, "line.toml"), LINE);
  writeFileSync(path.join(folder, "study.toml"), STUDY);
  lastmile("run", "line.toml", "--out", "run", "--capture", "server-gateway");
  renameSync(path.join(folder, "run/server-gateway.pcapng"), path.join(folder, `${EVIL}.pcapng`));
  for (const page of ["capture.html", "again.html"]) lastmile("analyse", `${EVIL}.pcapng`, "--page", page);
  lastmile("study", "study.toml", "--out", "study");
  files.capture = path.join(folder, "capture.html");
  files.study = path.join(folder, "study/report.html");
});

assert.ok(BROWSERS.length > 0, "no browser: install chromium");

/** Saves a view as SVG and CSV. */
async function kept(page, handle) {
  await saved(page);
  await page.evaluate((part) => {
    const buttons = [...part.querySelectorAll(".chart-files button")];
    buttons.filter((one) => one.textContent !== "PNG").forEach((one) => one.click());
  }, handle);
  return page.evaluate(() => Promise.all(window.saved));
}

for (const installed of BROWSERS) {
  describe(`captures and studies in ${installed[0]}`, () => {
    let browser;
    before(async () => {
      browser = await launch(installed);
    });
    after(() => browser?.close());

    test("a capture: values, a zoom of one direction, kinds that are switched off, files", async () => {
      const { page, wrong } = await open(browser, fileAddress(files.capture));
      await ready(page);
      // The largest direction is the upload, at whose receiver the phase of the congestion window does not show.
      const [own, other] = await page.evaluate(() =>
        [...document.querySelectorAll("[data-view]")].slice(1, 3).map(({ id }) => `#${id}`),
      );
      const { handle, box } = await plot(page, "Sequence", own);
      const at = (share) => [box.x + box.width * share, box.y + box.height / 2];
      await page.mouse.move(...at(0.5));
      await page.waitForFunction(
        (chart) => /data[\s\u00a0]*[\d.]+[\s\u00a0]?[kM]B/.test(chart.querySelector(".legend").innerText),
        {},
        handle,
      );
      const legend = await handle.evaluate((chart) => chart.querySelector(".legend").innerText);
      assert.match(legend, /ACKs\s*[\d.]+\u00a0[kM]B/);

      // A drag zooms all plots of the direction, and the scale of its sequence numbers; other directions stay.
      const ends = async (part) => {
        const [, csv] = await kept(page, (await plot(page, "Sequence", part)).handle);
        const times = csv.text
          .split("\r\n")
          .slice(1, -1)
          .map((row) => Number(row.split(",")[0]));
        return [Math.min(...times), Math.max(...times), csv.text];
      };
      const [from, to, all] = await ends(own);
      assert.match(all, /^time_s,line,value,least\r\n/);
      for (const name of ["data", "ACKs", "receiver's window", "fast retransmit"])
        assert.ok(all.includes(`,${name},`), name);
      const before = await ends(other);
      await plot(page, "Sequence", own);
      await page.mouse.move(...at(0.5));
      await page.mouse.down();
      await page.mouse.move(...at(0.55), { steps: 4 });
      await page.mouse.move(...at(0.6), { steps: 4 });
      await page.mouse.up();
      const zoomed = await ends(own);
      assert.ok(zoomed[1] - zoomed[0] < (to - from) * 0.12, `${zoomed.slice(0, 2)} of ${from} to ${to}`);
      assert.deepEqual((await ends(other)).slice(0, 2), before.slice(0, 2));
      const [svg] = await kept(page, (await plot(page, "Sequence", own)).handle);
      assert.match(svg.text, /^<svg [\s\S]*Sequence, [kM]?B[\s\S]*<\/svg>\n$/);
      const ticks = [...svg.text.matchAll(/text-anchor="end">([\d.]+)</g)].map((one) => Number(one[1]));
      assert.ok(Math.min(...ticks) > 0, `the scale begins at the data: ${ticks}`);
      // The phase of the congestion window stands at the cursor.
      const windows = await plot(page, "Windows", own);
      await page.mouse.move(windows.box.x + windows.box.width * 0.5, windows.box.y + 40);
      const phase = /congestion avoidance|slow start|recovery|timeout|receive window|application/;
      await page.waitForFunction(
        (chart, source) => new RegExp(source).test(chart.querySelector(".legend-place").textContent),
        {},
        windows.handle,
        phase.source,
      );

      // A kind is switched off in every direction.
      await handle.evaluate((chart) =>
        [...chart.querySelectorAll(".legend button")].find((one) => one.children[1].textContent === "data").click(),
      );
      await page.waitForFunction(() => document.querySelector(".legend [aria-pressed=false]") !== null);
      assert.ok(!(await ends(own))[2].includes(",data,"));
      assert.ok(!(await ends(other))[2].includes(",data,"));

      // The toolbar shows all of the direction, and keys move its cursor.
      await page.evaluate(
        (part) =>
          [...document.querySelectorAll(`${part} .view-controls button`)]
            .find((one) => one.textContent === "All")
            .click(),
        own,
      );
      await page.waitForFunction((chart) => !chart.querySelector(".chart-note").hidden, {}, handle);
      const whole = await ends(own);
      assert.ok(whole[1] - whole[0] > (to - from) * 0.95);
      await page.mouse.move(2, 2);
      await handle.evaluate((chart) => chart.querySelector(".chart-canvas").focus());
      await page.keyboard.press("ArrowRight");
      await page.waitForFunction((chart) => /^at /.test(chart.querySelector(".legend-place").textContent), {}, handle);
      assert.deepEqual(wrong, []);
      await page.close();
    });

    test("the table of connections is sorted and filtered, and names are text", async () => {
      const { page, wrong } = await open(browser, fileAddress(files.capture));
      await ready(page);
      const bytes = () =>
        page.evaluate(() =>
          [...document.querySelectorAll(".connections tbody tr")].map((row) => row.cells[2].textContent),
        );
      const order = await bytes();
      assert.ok(order.length >= 13, `${order.length} rows`);
      await page.evaluate(() => document.querySelectorAll(".connections thead button")[2].click());
      const sorted = (await bytes()).map((text) => Number.parseFloat(text) * (text.includes("MB") ? 1e6 : 1e3));
      assert.deepEqual(
        sorted,
        [...sorted].sort((a, b) => b - a),
      );
      await page.type(".filter", " up");
      const visible = () =>
        page.evaluate(
          () => [...document.querySelectorAll(".connections tbody tr")].filter((row) => !row.hidden).length,
        );
      assert.equal(await visible(), 1, "one upload");
      const found = await page.evaluate(() => [
        document.querySelectorAll("img").length,
        document.querySelector("h1").textContent,
      ]);
      assert.deepEqual(found, [0, `${EVIL}.pcapng`]);
      assert.deepEqual(wrong, []);
      await page.close();
    });

    test("a study: values with intervals at named places, a map by keys, tables, files", async () => {
      const { page, wrong } = await open(browser, fileAddress(files.study));
      await ready(page);
      const { handle, box } = await plot(page, "download");
      // The second of four rates, of which the axis shows the names.
      await page.mouse.move(box.x + box.width * 0.36, box.y + box.height / 2);
      await page.waitForFunction(
        (chart) => chart.querySelector(".legend-place").textContent === "at 512 kbit/s",
        {},
        handle,
      );
      const legend = await handle.evaluate((chart) => chart.querySelector(".legend").innerText);
      assert.match(legend, /5 ms\s*[\d.]+\u00a0[kM]bit\/s \u00b1 [\d.]+/);
      const [svg, csv] = await kept(page, handle);
      assert.match(svg.text, />512 kbit\/s</);
      const rows = csv.text.split("\r\n");
      assert.equal(rows[0], "access.up.rate,line,value,ci95");
      assert.equal(rows.filter((row) => row.startsWith("512 kbit/s,")).length, 2);

      // A map: by pointer, by keys, as files.
      const map = await page.$("figure.heat");
      await map.evaluate((one) => one.scrollIntoView({ block: "center" }));
      await (await map.$("rect[data-mean]")).hover();
      const words = () => map.evaluate((one) => one.querySelector(".heat-words").textContent);
      assert.match(await words(), /^access\.up\.rate 256 kbit\/s, access\.up\.delay 5 ms: .* \u00b1 /);
      await page.mouse.move(2, 2);
      await map.evaluate((one) => one.querySelector("svg").focus());
      for (const key of ["ArrowRight", "ArrowRight", "ArrowUp"]) await page.keyboard.press(key);
      assert.match(await words(), /^access\.up\.rate 512 kbit\/s, access\.up\.delay 50 ms: /);
      const [drawing, table] = await kept(page, map);
      assert.ok(drawing.text.startsWith("<svg") && drawing.text.includes("fill: rgb("), drawing.text.slice(0, 300));
      assert.equal(table.text.split("\r\n").length, 1 + 8 + 1);

      // A row is a run: 16 points of two seeds.
      const runs = await page.evaluate(() => [...document.querySelectorAll("table")].at(-1).tBodies[0].rows.length);
      assert.equal(runs, 32);
      assert.ok(
        await page.evaluate(() =>
          [...document.querySelectorAll("h2")].some((one) => one.textContent === "Differences from access.policy none"),
        ),
      );
      const found = await page.evaluate(() => [
        document.querySelectorAll("img").length,
        document.querySelector("h1").textContent,
      ]);
      assert.equal(found[0], 0);
      assert.ok(found[1] === `${EVIL}<script>alert(2)`, found[1]);
      assert.deepEqual(wrong, []);
      await page.close();
    });

    test("without a script the drawings are there", async (context) => {
      if (installed[0] === "firefox") return context.skip("WebDriver BiDi switches no scripts off");
      for (const [name, label] of [
        ["capture", "Sequence over time"],
        ["study", "download: access.policy none over access.up.rate"],
      ]) {
        const { page } = await open(browser, fileAddress(files[name]), { script: false });
        assert.ok((await page.content()).includes(label), name);
        await page.close();
      }
    });

    testFits(installed, () => browser, () => [files.capture, files.study].map(fileAddress));
  });
}

test("equal inputs give equal pages", async () => {
  const { readFileSync } = await import("node:fs");
  const [one, again] = ["capture.html", "again.html"].map((name) => readFileSync(path.join(folder, name), "utf8"));
  assert.ok(one === again && one.length < 1_500_000, `${one.length} bytes`);
  const study = readFileSync(files.study, "utf8");
  lastmile("study", "study.toml", "--out", "study");
  assert.ok(readFileSync(files.study, "utf8") === study && study.length < 1_500_000, `${study.length} bytes`);
  console.log(`page of a capture: ${one.length} bytes; of a study: ${study.length} bytes`);
});
