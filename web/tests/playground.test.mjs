// The playground in browsers. SITE is the folder that `node build.mjs site` wrote, LASTMILE the command.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { BROWSERS, fileAddress, launch, open, ready, saved, serve } from "./browsers.mjs";
import { testFits } from "./fits.mjs";

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), "../..");
const command = process.env.LASTMILE ?? path.join(root, "target/debug/lastmile");
const site = process.env.SITE ?? path.join(root, "target/site");

assert.ok(existsSync(path.join(site, "module.js")), `no site in ${site}: make site`);
assert.ok(BROWSERS.length > 0, "no browser: install chromium");

const status = (page) => page.evaluate(() => document.getElementById("status").textContent);
/** Waits for the report of these runs. */
const reported = (page, runs) =>
  page.waitForFunction(
    (wanted) =>
      document.getElementById("controls").dataset.runs === wanted && document.getElementById("progress").hidden,
    {},
    runs,
  );

for (const installed of BROWSERS) {
  describe(`playground in ${installed[0]}`, () => {
    let browser;
    let server;
    before(async () => {
      [browser, server] = await Promise.all([launch(installed), serve(site)]);
    });
    after(async () => {
      await browser?.close();
      server?.close();
    });

    test("the first report is there, from a server and from disk", async () => {
      for (const address of [server.address, fileAddress(path.join(site, "index.html"))]) {
        const { page, wrong } = await open(browser, address);
        await ready(page);
        await reported(page, "none,full-both-ways");
        const text = await page.evaluate(() => document.getElementById("report").innerText);
        assert.match(text, /An upload starves the download/);
        const opened = await page.evaluate(() => performance.now());
        console.log(`${installed[0]}: first report after ${opened.toFixed(0)} ms, ${await status(page)}`);
        assert.deepEqual(wrong, []);
        await page.close();
      }
    });

    test("a click simulates, a slider simulates anew", async () => {
      const { page, wrong } = await open(browser, server.address);
      await ready(page);
      const check = (policy) =>
        page.evaluate((name) => document.querySelector(`.policies input[value=${name}]`).click(), policy);
      await check("full-both-ways");
      await reported(page, "");
      const ping = () =>
        page.evaluate(() => {
          const rows = [...document.querySelectorAll("#report tr")];
          return (
            rows.map((row) => row.innerText).find((text) => text.startsWith("ping") && /up|default|icmp/i.test(text)) ??
            ""
          );
        });
      const before = await ping();
      const body = () => page.evaluate(() => document.getElementById("report").innerText);
      const long = await body();
      assert.match(long, /is the queue of link up, where its ACKs wait/);
      // A buffer of about 30 ms in place of three seconds.
      await page.evaluate(() => {
        const slider = document.getElementById("knob-access-up-queue-limit");
        slider.value = "15";
        slider.dispatchEvent(new Event("input", { bubbles: true }));
      });
      await page.waitForFunction((was) => document.getElementById("report").innerText !== was, {}, long);
      const short = await body();
      assert.match(short, /access\.up\.queue\.limit=28 ms/);
      assert.ok(before !== "" || long !== short);
      // The saved file has the command for the same values, also after a look at its text.
      await saved(page);
      for (const tab of ["example", "text"]) {
        await page.evaluate((name) => document.getElementById(`tab-${name}`).click(), tab);
        await page.waitForFunction((name) => !document.getElementById(`pane-${name}`).hidden, {}, tab);
        await page.waitForFunction(() => document.getElementById("progress").hidden);
        const scenario = await page.evaluate(() => {
          [...document.querySelectorAll(".actions button")].find((one) => one.textContent === "Scenario").click();
          return window.saved.at(-1);
        });
        const [first] = scenario.text.split("\n");
        const file = tab === "text" ? "scenario.toml" : "upload-starves-download.toml";
        assert.equal(
          first,
          `# lastmile run ${file} --set 'access.up.queue.limit=28 ms' --set access.policy=none`,
        );
      }
      const ms = Number(await page.evaluate(() => document.getElementById("report").dataset.ms));
      console.log(`${installed[0]}: picture of a slider after ${ms} ms`);
      assert.deepEqual(wrong, []);
      await page.close();
    });

    test("a library line, several policies, and an address that restores them", async () => {
      const { page, wrong } = await open(browser, server.address);
      await ready(page);
      await page.click("#tab-library");
      await page.waitForFunction(() => !document.getElementById("pane-library").hidden);
      await page.select("#line", "adsl2plus-12-1");
      await page.select("#home", "single");
      await page.waitForFunction(() =>
        document.getElementById("report").innerText.includes("single on adsl2plus-12-1"),
      );
      await page.evaluate(() => document.querySelector(".policies input[value=cake]").click());
      await page.waitForFunction(() => document.getElementById("controls").dataset.runs === "none,cake,full-both-ways");
      await page.waitForFunction(() => document.getElementById("progress").hidden && location.hash.startsWith("#s="));
      const address = await page.evaluate(() => location.href);
      const table = () => page.evaluate(() => document.querySelector("#report table").innerText);
      const rows = await table();
      const other = await open(browser, address);
      await ready(other.page);
      await reported(other.page, "none,cake,full-both-ways");
      const restored = await other.page.evaluate(() => document.querySelector("#report table").innerText);
      assert.equal(restored, rows);
      assert.deepEqual([...wrong, ...other.wrong], []);
      await other.page.close();
      await page.close();
    });

    test("errors stand where they are, with a caret and a hint", async () => {
      const { page, wrong } = await open(browser, server.address);
      await ready(page);
      await page.click("#tab-text");
      await page.waitForFunction(() => !document.getElementById("pane-text").hidden);
      await page.focus(".cm-content");
      await page.keyboard.down("Control");
      await page.keyboard.press("Home");
      await page.keyboard.up("Control");
      await page.keyboard.type("duratoin = 3\n");
      await page.waitForFunction(() => document.getElementById("findings").innerText.includes("duratoin"));
      const text = await page.evaluate(() => document.getElementById("findings").innerText);
      assert.match(
        text,
        /scenario\.toml:1:1: unknown key "duratoin"[\s\S]*\^\^\^\^\^\^\^\^[\s\S]*hint: did you mean "duration"/,
      );
      assert.ok(
        await page.evaluate(() => document.querySelector(".cm-lintRange-error, .cm-lint-marker-error") !== null),
      );
      assert.equal(await status(page), "The scenario has errors.");
      assert.deepEqual(wrong, []);
      await page.close();
    });

    test("a long run is told before it starts, and can be ended", async () => {
      const state = {
        source: { from: "library", line: "docsis-1000-50", home: "family" },
        set: { duration: "3600 s" },
        policies: ["none"],
      };
      const { page, wrong } = await open(browser, server.address);
      await ready(page);
      await page.evaluate(async (wanted) => {
        const stream = new Blob([JSON.stringify(wanted)]).stream().pipeThrough(new CompressionStream("deflate-raw"));
        const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
        const text = btoa(String.fromCharCode(...bytes))
          .replaceAll("+", "-")
          .replaceAll("/", "_")
          .replaceAll("=", "");
        location.hash = `s=${text}`;
      }, state);
      await page.reload();
      await page.waitForFunction(() => /takes about/.test(document.getElementById("status").textContent));
      await page.click(".primary");
      await page.waitForFunction(() => document.getElementById("progress").value > 0);
      await page.evaluate(() =>
        [...document.querySelectorAll(".actions button")].find((one) => one.textContent === "Cancel").click(),
      );
      await page.waitForFunction(() => document.getElementById("status").textContent === "Cancelled.");
      assert.deepEqual(wrong, []);
      await page.close();
    });

    test("a damaged address begins with the first scenario", async () => {
      const { page, wrong } = await open(browser, `${server.address}#s=AAAA`);
      await ready(page);
      await reported(page, "none,full-both-ways");
      assert.deepEqual(wrong, []);
      await page.close();
    });

    testFits(installed, () => browser, () => [server.address]);
  });
}

describe("summary.json", () => {
  test("has the bytes of the command for every shipped scenario", { timeout: 1_800_000 }, async () => {
    const [installed] = BROWSERS;
    const folder = mkdtempSync(path.join(tmpdir(), "lastmile-bytes-"));
    const [browser, server] = await Promise.all([launch(installed), serve(site)]);
    try {
      const { page } = await open(browser, server.address);
      await ready(page);
      const paths = await page.evaluate(() => window.lastmile.examples.map(({ path: name }) => name));
      assert.ok(paths.length > 30, `${paths.length} scenarios`);
      for (const name of paths) {
        const answer = await page.evaluate(async (wanted) => {
          const { engine, examples } = window.lastmile;
          const { path: file, text, files, binary } = examples.find((one) => one.path === wanted);
          const request = { do: "run", file: file.split("/").at(-1), text, files, binary };
          const report = await engine.report(request);
          if ("findings" in report) return { findings: report.findings.map((one) => one.text) };
          return { summary: new TextDecoder().decode(await engine.bytes({ do: "summary", run: 0 })) };
        }, name);
        const out = path.join(folder, "out");
        rmSync(out, { recursive: true, force: true });
        execFileSync(command, ["run", name, "--out", out], { cwd: root, stdio: "ignore" });
        const expected = readFileSync(path.join(out, "summary.json"), "utf8");
        assert.ok(answer.summary === expected, `${name} differs: ${answer.findings ?? "other bytes"}`);
      }
      console.log(`${paths.length} scenarios: equal bytes`);
    } finally {
      await browser.close();
      server.close();
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
