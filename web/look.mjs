// A picture of a page: node look.mjs URL OUT.png [WIDTH] [dark|light] [HEIGHT] [script]
import { chromium } from "playwright-core";
const [url, out, width = "1280", scheme = "light", height = "900", act = ""] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: +width, height: +height }, colorScheme: scheme });
page.on("console", (m) => console.log(m.type(), m.text()));
page.on("pageerror", (e) => console.log("ERROR", e.message));
const t = Date.now();
await page.goto(url);
await page.waitForTimeout(1200);
console.log("ready", await page.evaluate(() => document.documentElement.dataset.ready), Date.now() - t);
if (act) { console.log(await page.evaluate(act)); await page.waitForTimeout(400); }
await page.screenshot({ path: out });
await browser.close();
