// Pages at the widths of phones and screens, light and dark, and for those who cannot see them.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { open, ready } from "./browsers.mjs";

const axe = readFileSync(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

/** Serious violations of accessibility, in words. */
export async function violations(page) {
  // As an expression, which a Content-Security-Policy does not refuse.
  const run = "window.axe.run(document, { resultTypes: ['violations'] })";
  const found = await page.evaluate(`(() => { ${axe}; return ${run}; })()`);
  return found.violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes[0].html.slice(0, 160)}`);
}

/** Adds the tests that the pages at `addresses()` fit each width in both schemes. What does not depend on the browser,
 * as accessibility and most widths, is tested in the first one. */
export function testFits([name], browser, addresses) {
  const widths = name === "chrome" ? [360, 1280, 2560] : [360];
  for (const [width, scheme] of widths.flatMap((one) => [[one, "light"], [one, "dark"]])) {
    test(`fits ${width} px, ${scheme}, and is accessible`, async () => {
      for (const address of addresses()) {
        const { page, wrong } = await open(browser(), address, { width, scheme });
        await ready(page);
        const beyond = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(beyond <= 0, `${address} is ${beyond} px wider than the window`);
        if (name === "chrome") assert.deepEqual(await violations(page), [], address);
        assert.deepEqual(wrong, []);
        await page.close();
      }
    });
  }
}
