// Browsers of the machine, and pages in them that record what must not happen.
import { existsSync } from "node:fs";
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { pathToFileURL } from "node:url";
import puppeteer from "puppeteer-core";

const PROGRAMS = {
  chrome: ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"],
  firefox: ["/usr/bin/firefox-esr", "/usr/bin/firefox"],
};

/** The browsers that are installed: name and program. */
export const BROWSERS = Object.entries(PROGRAMS).flatMap(([name, programs]) => {
  const program = programs.find(existsSync);
  return program === undefined ? [] : [[name, program]];
});

/** The longest wait of a test for its browser: it ends one that hangs, and a busy machine takes its time. */
export const PATIENCE = 120_000;

/** Starts a browser without a window. */
export function launch([browser, executablePath]) {
  const args = browser === "chrome" ? ["--no-sandbox", "--disable-dev-shm-usage"] : [];
  return puppeteer.launch({ browser, executablePath, headless: true, args, timeout: PATIENCE });
}

/** A page that records errors of its console and requests to other places than its own. */
export async function open(browser, address, { width = 1280, height = 900, scheme = "light", script = true } = {}) {
  const page = await browser.newPage();
  page.setDefaultTimeout(PATIENCE);
  const wrong = [];
  page.on("pageerror", (error) => wrong.push(`error: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error" || /Content-Security-Policy|refused/i.test(message.text()))
      wrong.push(message.text());
  });
  page.on("dialog", (dialog) => {
    wrong.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  const home = new URL(address);
  page.on("request", (request) => {
    const { protocol, host } = new URL(request.url());
    const own = protocol === "data:" || protocol === "blob:" || (protocol === home.protocol && host === home.host);
    if (!own) wrong.push(`request: ${request.url()}`);
  });
  await page.setViewport({ width, height });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]).catch(() => {});
  if (!script) await page.setJavaScriptEnabled(false);
  await page.goto(address, { waitUntil: "load" });
  return { page, wrong };
}

/** Waits until the page's script has done its work. */
export const ready = (page) => page.waitForFunction(() => document.documentElement.dataset.ready !== undefined);

export const fileAddress = (file) => pathToFileURL(path.resolve(file)).href;

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };

/** A server of a folder on the loopback address: its address, and a function that ends it. `answers` take the response
 * to the paths that are no files. */
export async function serve(folder, answers = {}) {
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url, "http://x");
    if (answers[pathname] !== undefined) return answers[pathname](response);
    const name = path.normalize(decodeURIComponent(pathname)).replace(/^\/+/, "");
    try {
      const bytes = await readFile(path.join(folder, name || "index.html"));
      response.writeHead(200, { "content-type": TYPES[path.extname(name)] ?? "text/html" });
      response.end(bytes);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { address: `http://127.0.0.1:${server.address().port}/`, close: () => server.close() };
}

/** From now on the page keeps the files that it would save in `window.saved`: promises of name and text. */
export function saved(page) {
  return page.evaluate(() => {
    window.saved = [];
    const blobs = new Map();
    const create = URL.createObjectURL;
    URL.createObjectURL = (blob) => {
      const address = create(blob);
      blobs.set(address, blob);
      return address;
    };
    HTMLAnchorElement.prototype.click = function () {
      window.saved.push(
        blobs
          .get(this.href)
          .text()
          .then((text) => ({ name: this.download, text })),
      );
    };
  });
}
