// What every page of a dashboard is held to.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import path from "node:path";
import assert from "node:assert/strict";
import { BROWSERS } from "../browsers.mjs";
import { violations } from "../fits.mjs";


/** Why a test with real packets cannot run here; false if it can. `devices` are the files that it needs. */
export function obstacle(program, devices = []) {
  if (process.getuid() !== 0) return "not root";
  const missing = [program, ...devices].find((file) => !existsSync(file));
  if (missing !== undefined) return `no ${missing}`;
  if (BROWSERS.length === 0) return "no browser";
  return spawnSync("ip", ["netns", "list"]).status !== 0 && "no network namespaces";
}

/** The text of the first element. */
export const read = (page, selector) => page.$eval(selector, (node) => node.textContent);

/** The cells of the rows of a table. */
export const rowsOf = (page, selector) =>
  page.$$eval(`${selector} tr`, (rows) => {
    return rows.map((row) => [...row.cells].map((cell) => cell.textContent));
  });

/** Presses a button where it is: a page that takes values each second may move it away from under a mouse. */
export const press = (page, selector) => page.$eval(selector, (node) => node.click());

/** Asks what the chosen policy would change, and waits for the answer. */
export async function ask(page) {
  await press(page, "#what-if button[type=submit]");
  const answered = () => !document.querySelector("#what-if button[type=submit]").disabled;
  await page.waitForFunction(answered);
  assert.match(await read(page, "#asked"), /^replayed the last \d+ s$/);
}

/** Nothing of axe-core's rules that hinders people seriously. */
export async function accessible(page) {
  assert.deepEqual(await violations(page), []);
}

/** Pictures in these widths and two schemes; nothing is wider than the page. `check` looks at each. */
export async function pictures(page, name, widths, check = () => {}) {
  for (const width of widths) {
    await page.setViewport({ width, height: 1000 });
    for (const scheme of ["light", "dark"]) {
      await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]).catch(() => {});
      // Charts out of view are not drawn.
      await page.evaluate(() => window.scrollTo(0, 0));
      await sleep(1500);
      const wide = () => page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      // A busy machine takes longer to draw them in the new width.
      for (let tries = 0; tries < 20 && (await wide()) > 0; tries += 1) await sleep(500);
      assert.ok((await wide()) <= 0, `${width}: ${await wide()} pixels too wide`);
      await check(page);
      if (process.env.SHOTS) {
        await page.screenshot({ path: path.join(process.env.SHOTS, `${name}-${width}-${scheme}.png`), fullPage: true });
      }
    }
  }
}
