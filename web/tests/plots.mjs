// Plots in pages: where they are, and accessibility.
import { readFileSync } from "node:fs";

const axe = readFileSync(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

/** Serious violations of accessibility, in words. */
export async function violations(page) {
  await page.evaluate(axe);
  const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return found.violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes[0].html.slice(0, 120)} (${nodes[0].failureSummary?.slice(0, 200)})`);
}

/** The plot with this title in a part of the page: its element, the place of its lines, the text of its legend. */
export async function plot(page, title, within = "body") {
  const handle = await page.evaluateHandle(
    (wanted, part) => {
      const charts = [...document.querySelectorAll(`${part} .chart`)];
      const chart = charts.find((one) => one.querySelector(".chart-title").textContent.startsWith(wanted));
      chart.scrollIntoView({ block: "center" });
      return chart;
    },
    title,
    within,
  );
  await page.waitForFunction((chart) => chart.querySelector("canvas") !== null, {}, handle);
  // Other plots are drawn as they come onto the screen: the place is read once it rests.
  const box = await page.evaluate(async (chart) => {
    const read = () => {
      const { x, y, width, height } = chart.querySelector(".u-over").getBoundingClientRect();
      return { x, y, width, height };
    };
    let last = read();
    for (let still = 0; still < 5;) {
      await new Promise(requestAnimationFrame);
      const now = read();
      still = now.y === last.y && now.width === last.width ? still + 1 : 0;
      last = now;
    }
    return last;
  }, handle);
  const legend = () => page.evaluate((chart) => chart.querySelector(".legend").innerText, handle);
  return { handle, box, legend };
}
