// Plots in pages.

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
