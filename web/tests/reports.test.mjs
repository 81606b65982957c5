// Reports in browsers: what a reader sees, clicks and saves. LASTMILE is the command.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
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
  execFileSync(command, args, { cwd: folder, stdio: ["ignore", "pipe", "ignore"] }).toString();

/** A scenario whose names are markup, script, quotes, and marks that turn the direction of text. */
const EVIL = `name = "<img src=x onerror=alert(1)>\\u202e</script><script>alert(2)</script>"
duration = "4 s"
[access]
down = { rate = "2 Mbit/s" }
up = { rate = "256 kbit/s" }
[[traffic]]
name = "'\\"><svg onload=alert(3)>"
kind = "bulk"
direction = "down"
[[traffic]]
name = "<b>ping<b>&amp;"
kind = "ping"
`;

const FIFTY = `duration = "300 s"
[access]
down = { rate = "100 Mbit/s", delay = "10 ms" }
up = { rate = "20 Mbit/s", delay = "10 ms" }
[[traffic]]
kind = "bulk"
direction = "down"
count = 40
[[traffic]]
kind = "bulk"
direction = "up"
count = 10
[[traffic]]
kind = "ping"
`;

const files = {};
before(() => {
  const scenario = path.join(root, "scenarios/upload-starves-download.toml");
  writeFileSync(path.join(folder, "evil.toml"), EVIL);
  lastmile("run", scenario, "--duration", "130 s", "--out", "run");
  lastmile("compare", scenario, "--policy", "none,cake", "--duration", "130 s", "--out", "compare");
  lastmile("run", "evil.toml", "--out", "evil");
  lastmile("run", scenario, "--policy", "cake", "--out", "cake");
  for (const name of ["run", "compare", "evil", "cake"]) files[name] = path.join(folder, name, "report.html");
});

assert.ok(BROWSERS.length > 0, "no browser: install chromium");

for (const installed of BROWSERS) {
  describe(`reports in ${installed[0]}`, () => {
    let browser;
    before(async () => {
      browser = await launch(installed);
    });
    after(() => browser?.close());

    test("values, zoom, lines and keys", async () => {
      const { page, wrong } = await open(browser, fileAddress(files.run));
      await ready(page);
      const { handle, box, legend } = await plot(page, "Round-trip time");
      await page.mouse.move(box.x + box.width * (30 / 130), box.y + box.height / 2);
      await page.waitForFunction((chart) => chart.querySelector(".legend-value").textContent !== "", {}, handle);
      const idle = await legend();
      await page.mouse.move(box.x + box.width * (100 / 130), box.y + box.height / 2);
      await page.waitForFunction(
        (chart, before) => chart.querySelector(".legend").innerText !== before,
        {},
        handle,
        idle,
      );
      const loaded = await legend();
      const rtt = (text) => Number(/([\d.]+)\u00a0s/.exec(text)[1]);
      // The download alone fills its queue: 0.3 s. With the upload the ping takes more than a second.
      assert.ok(rtt(idle) > 0.2 && rtt(idle) < 0.4, idle);
      assert.ok(rtt(loaded) > 1.1 && rtt(loaded) < 1.4, loaded);
      // The path shows the queue of the upstream at that time.
      const gauge = await page.evaluate(() =>
        [...document.querySelectorAll(".gauge-value")].map((one) => one.textContent),
      );
      assert.ok(
        gauge.some((text) => /^6\d(\.\d+)?\u00a0kB$/.test(text)),
        gauge.join(),
      );

      // A drag zooms every plot over time, a double click shows all.
      const goodput = await plot(page, "Goodput");
      const at = (share) => [goodput.box.x + goodput.box.width * share, goodput.box.y + goodput.box.height / 2];
      await page.mouse.move(...at(0.5));
      await page.mouse.down();
      await page.mouse.move(...at(0.55), { steps: 4 });
      await page.mouse.move(...at(0.6), { steps: 4 });
      await page.mouse.up();
      await page.mouse.move(...at(0.501));
      const place = () => page.evaluate((chart) => chart.querySelector(".legend-place").textContent, goodput.handle);
      await page.waitForFunction(
        (chart) => /at 7[0-3]/.test(chart.querySelector(".legend-place").textContent),
        {},
        goodput.handle,
      );
      assert.match(await place(), /^at 7[0-3](\.\d+)?\u00a0s$/);
      await page.mouse.click(...at(0.5), { count: 2 });
      await page.mouse.move(...at(0.505));
      await page.waitForFunction(
        (chart) => /at 6[4-7]/.test(chart.querySelector(".legend-place").textContent),
        {},
        goodput.handle,
      );

      // A line is switched off in every plot.
      const pressed = (name) =>
        page.evaluate((wanted) => {
          const all = [...document.querySelectorAll(".legend button")].filter(
            (one) => one.children[1].textContent === wanted,
          );
          return all.map((one) => one.getAttribute("aria-pressed"));
        }, name);
      await page.evaluate((chart) => {
        [...chart.querySelectorAll(".legend button")].find((one) => one.children[1].textContent === "upload").click();
      }, goodput.handle);
      await page.waitForFunction(() => document.querySelector(".legend [aria-pressed=false]") !== null);
      assert.equal((await pressed("upload"))[0], "false");

      // Keys move the cursor and zoom.
      await page.evaluate((chart) => chart.querySelector(".chart-canvas").focus(), goodput.handle);
      const before = await place();
      await page.keyboard.press("ArrowRight");
      await page.keyboard.press("+");
      await page.waitForFunction(
        (chart, was) => chart.querySelector(".legend-place").textContent !== was,
        {},
        goodput.handle,
        before,
      );
      await page.keyboard.press("0");
      assert.deepEqual(wrong, []);
      await page.close();
    });

    test("tables are sorted and plots are saved", async () => {
      const { page, wrong } = await open(browser, fileAddress(files.compare));
      await ready(page);
      const column = () =>
        page.evaluate(() =>
          [...document.querySelectorAll("table tbody tr")].slice(0, 2).map((row) => row.cells[0].innerText.trim()),
        );
      assert.deepEqual(await column(), ["none", "cake"]);
      await page.evaluate(() => document.querySelectorAll("table thead button")[1].click());
      assert.deepEqual(await column(), ["cake", "none"], "the larger download is first");
      const sort = await page.evaluate(() => document.querySelectorAll("table thead th")[1].getAttribute("aria-sort"));
      assert.equal(sort, "descending");
      const { handle } = await plot(page, "Goodput of download");
      await saved(page);
      await page.evaluate(
        (chart) =>
          [...chart.querySelectorAll(".chart-files button")]
            .filter((one) => one.textContent !== "PNG")
            .forEach((one) => one.click()),
        handle,
      );
      const [svg, csv] = await page.evaluate(() => Promise.all(window.saved));
      assert.match(svg.text, /^<svg [\s\S]*Goodput of download[\s\S]*<\/svg>\n$/);
      assert.equal(svg.name, "goodput-of-download.svg");
      const rows = csv.text.split("\r\n");
      assert.equal(rows[0], "time_s,line,value");
      const cake = rows.filter((row) => row.includes(",cake,")).map((row) => Number(row.split(",")[2]));
      const mean = cake.reduce((sum, value) => sum + value, 0) / cake.length;
      assert.ok(cake.length > 500 && mean > 1.2e6 && mean < 1.71e6, `${cake.length} samples, mean ${mean}`);
      assert.deepEqual(wrong, []);
      await page.close();
    });

    /** The drawing has means over one second, none of which is above the scale; the plot has shorter ones. */
    test("a plot says that peaks are cut, at the width of its means", async () => {
      const { page, wrong } = await open(browser, fileAddress(files.cake));
      await ready(page);
      const { handle } = await plot(page, "Goodput");
      const note = () => handle.evaluate((chart) => chart.querySelector(".chart-note").textContent);
      assert.equal(await note(), "means of 500\u00a0ms; peaks above the scale are cut");
      const drawn = await page.evaluate(() => document.querySelector("[data-panel] .note").textContent);
      assert.equal(drawn, "means of 1 s");
      // A part of the time has a scale of its own.
      await handle.evaluate((chart) => chart.querySelector(".chart-canvas").focus());
      await page.keyboard.press("+");
      await page.waitForFunction((chart) => !/peaks/.test(chart.querySelector(".chart-note").textContent), {}, handle);
      assert.deepEqual(wrong, []);
      await page.close();
    });

    test("names are text", async () => {
      const { page, wrong } = await open(browser, fileAddress(files.evil));
      await ready(page);
      await page.evaluate(() => window.scrollTo(0, 600));
      const found = await page.evaluate(() => ({
        images: document.querySelectorAll("img,[onload],[onerror]").length,
        legend: document.body.innerText.includes("<svg onload=alert(3)>"),
        hidden: /[\u202e\u200b]/.test(document.body.innerText),
      }));
      assert.deepEqual(found, { images: 0, legend: true, hidden: false });
      assert.deepEqual(wrong, []);
      await page.close();
    });

    test("without a script the drawings are there", async (context) => {
      if (installed[0] === "firefox") return context.skip("WebDriver BiDi switches no scripts off");
      const { page } = await open(browser, fileAddress(files.run), { script: false });
      const content = await page.content();
      assert.ok(content.includes('aria-label="Goodput over time"'));
      await page.close();
    });

    test("a page that was cut off keeps its drawings", async () => {
      const text = readFileSync(files.run, "utf8");
      const cut = path.join(folder, "cut.html");
      const script = text.slice(text.lastIndexOf("<script>"));
      writeFileSync(cut, text.slice(0, text.indexOf('id="columns">') + 2000) + "</script>" + script);
      const { page } = await open(browser, fileAddress(cut));
      await page.waitForFunction(() => document.body.innerText.includes("the drawings are complete"));
      assert.ok((await page.evaluate(() => document.querySelectorAll("svg.plot").length)) > 5);
      await page.close();
    });

    testFits(installed, () => browser, () => [files.run, files.compare].map(fileAddress));
  });
}

describe("a report of 50 flows over 300 s", () => {
  test("is small, opens at once, and pans without a pause", async (context) => {
    const chrome = BROWSERS.find(([name]) => name === "chrome");
    if (chrome === undefined) return context.skip("no chromium");
    writeFileSync(path.join(folder, "fifty.toml"), FIFTY);
    lastmile("run", "fifty.toml", "--out", "fifty");
    const file = path.join(folder, "fifty/report.html");
    const bytes = readFileSync(file).length;
    assert.ok(bytes < 1_500_000, `${bytes} bytes`);
    const browser = await launch(chrome);
    try {
      const { page, wrong } = await open(browser, fileAddress(file));
      await ready(page);
      const opened = await page.evaluate(() => performance.now());
      await page.evaluate(() => document.querySelector(".view-controls").scrollIntoView());
      // Frames while every plot on the screen moves: the time that scripts need for each.
      const frames = await page.evaluate(async () => {
        const buttons = [...document.querySelectorAll(".view-controls button")];
        const press = (label) => buttons.find((one) => (one.getAttribute("aria-label") ?? one.title) === label).click();
        press("Zoom in");
        press("Zoom in");
        const times = [];
        let before = await new Promise(requestAnimationFrame);
        for (let n = 0; n < 120; n++) {
          press(n % 30 < 15 ? "Later" : "Earlier");
          const now = await new Promise(requestAnimationFrame);
          times.push(now - before);
          before = now;
        }
        return times.sort((a, b) => a - b);
      });
      console.log(
        `50 flows: ${bytes} bytes, ready after ${opened.toFixed(0)} ms, ` +
          `frames of ${frames[60].toFixed(1)} ms (median), ${frames[114].toFixed(1)} ms (95 %)`,
      );
      assert.deepEqual(wrong, []);
    } finally {
      await browser.close();
    }
  });
});
