// The stories in browsers: values at the cursor, a point that a slider simulates, widths and schemes. SITE is the
// folder that `node build.mjs site` wrote.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { BROWSERS, fileAddress, launch, open, ready, serve } from "./browsers.mjs";

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), "../..");
const site = process.env.SITE ?? path.join(root, "target/site");
const axe = readFileSync(path.join(root, "web/node_modules/axe-core/axe.min.js"), "utf8");

assert.ok(existsSync(path.join(site, "stories.js")), `no site in ${site}: make site`);
assert.ok(BROWSERS.length > 0, "no browser: install chromium");

/** A figure, scrolled into the window. */
async function figure(page, id) {
  const handle = await page.$(`#${id}`);
  assert.ok(handle !== null, id);
  await handle.evaluate((one) => one.scrollIntoView({ block: "start", behavior: "instant" }));
  await page.waitForFunction((one) => one.querySelector("canvas") !== null, {}, handle);
  return handle;
}

for (const installed of BROWSERS) {
  describe(`stories in ${installed[0]}`, () => {
    let browser;
    let server;
    before(async () => {
      [browser, server] = await Promise.all([launch(installed), serve(site)]);
    });
    after(async () => {
      await browser?.close();
      server?.close();
    });

    test("five stories have figures, tables and verdicts, also from disk", async () => {
      for (const address of [`${server.address}stories.html`, fileAddress(path.join(site, "stories.html"))]) {
        const { page, wrong } = await open(browser, address);
        await ready(page);
        const found = await page.evaluate(() => {
          const each = [...document.querySelectorAll("article")].map((story) => [
            story.querySelectorAll("section.figure").length,
            story.querySelectorAll("section.figure table tbody tr").length,
            story.querySelectorAll(".verdict").length,
          ]);
          return each.map((counts) => counts.every((count) => count > 1));
        });
        assert.deepEqual(found, [true, true, true, true, true]);
        assert.deepEqual(wrong, []);
        await page.close();
      }
    });

    test("keys move the cursor to values that the table has", async () => {
      const { page, wrong } = await open(browser, `${server.address}stories.html`);
      await ready(page);
      const handle = await figure(page, "phanse2000-cells");
      await handle.evaluate((one) => one.querySelector("[aria-label*='Arrow keys']").focus());
      await page.keyboard.press("ArrowRight");
      await page.waitForFunction((one) => one.querySelector(".legend-value").textContent !== "", {}, handle);
      const [shown, cells] = await handle.evaluate((one) => [
        [...one.querySelectorAll(".legend-value")].map((value) => value.textContent).join(),
        [...one.querySelectorAll("tbody tr")].map((row) => row.cells[3].textContent),
      ]);
      const simulated = /simulated ([^,]+)/.exec(shown);
      assert.ok(simulated !== null && cells.includes(simulated[1]), `${shown} is not in ${cells}`);
      assert.deepEqual(wrong, []);
      await page.close();
    });

    test("a slider simulates a point, and links to its run", async () => {
      const { page, wrong } = await open(browser, `${server.address}stories.html`);
      await ready(page);
      const handle = await figure(page, "phanse2000-cells");
      const output = () => handle.evaluate((one) => one.querySelector("output").textContent);
      const before = await output();
      await handle.evaluate((one) => {
        const slider = one.querySelector("input[type=range]");
        slider.value = slider.value === slider.min ? slider.max : slider.min;
        slider.dispatchEvent(new Event("input", { bubbles: true }));
      });
      assert.notEqual(await output(), before);
      await page.waitForFunction((one) => one.dataset.ms !== undefined, {}, handle);
      const point = await handle.evaluate((one) => one.querySelector(".point").textContent);
      assert.match(point, /^.+: .+ \d/);
      await page.waitForFunction(
        (one) => one.querySelector(".point a")?.href.includes("index.html#") === true,
        {},
        handle,
      );
      // The point is gone with its words.
      await handle.evaluate((one) =>
        [...one.querySelectorAll("button")].find((button) => button.textContent === "Clear my points").click(),
      );
      assert.equal(await handle.evaluate((one) => one.querySelector(".point").textContent), "");
      console.log(`${installed[0]}: ${point.trim()} after ${await handle.evaluate((one) => one.dataset.ms)} ms`);
      assert.deepEqual(wrong, []);
      await page.close();
    });

    for (const width of [360, 1280, 2560]) {
      for (const scheme of ["light", "dark"]) {
        test(`fits ${width} px, ${scheme}, and is accessible`, async () => {
          const { page, wrong } = await open(browser, `${server.address}stories.html`, { width, scheme });
          await ready(page);
          const beyond = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
          assert.ok(beyond <= 0, `${beyond} px wider than the window`);
          if (installed[0] === "chrome") {
            await page.evaluate(axe);
            const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
            const serious = found.violations.filter(({ impact }) => impact === "serious" || impact === "critical");
            assert.deepEqual(
              serious.map(({ id, nodes }) => `${id}: ${nodes[0].html.slice(0, 160)}`),
              [],
            );
          }
          assert.deepEqual(wrong, []);
          await page.close();
        });
      }
    }
  });
}
