// The dashboard's page left open, in Chromium: reports come as fast as the page takes them, with ever new classes,
// flows and marks, and its memory does not grow. Two hours of reports, or with LASTMILE_LONG=1 a week.
import { once } from "node:events";
import test from "node:test";
import assert from "node:assert/strict";
import { BROWSERS, launch, open, serve } from "./browsers.mjs";
import { encoded } from "./dashboard/history.mjs";

const HOUR = 3600;
const long = process.env.LASTMILE_LONG === "1";
/** Reports until all that is kept for an hour is full, and those until the end. */
const [FULL, ALL] = long ? [24 * HOUR, 7 * 24 * HOUR] : [HOUR + 600, 2 * HOUR];
const chrome = BROWSERS.find(([name]) => name === "chrome");
const begin = Date.now();

const STATE = {
  title: "lastmile shape",
  version: "0",
  pid: 1,
  control: false,
  reloads: false,
  policies: [],
  listeners: 1,
  left_out: 0,
  counts: {},
};

/** The report of a second: four classes, one with a new name each hour, and ten flows that are new each minute. */
function report(second) {
  const classes = ["all", "quick", "default", `class of hour ${Math.floor(second / HOUR)}`];
  const series = (scale) =>
    classes.map((label, index) => ({ label, value: scale * (1 + ((second * (index + 3)) % 17)) }));
  const charts = [
    { title: "rate on the wire", unit: "bit/s", limit: 2e7, series: series(1e6) },
    { title: "queue", unit: "B", limit: null, series: series(1e3) },
    { title: "delay", unit: "s", limit: null, series: series(1e-3) },
    { title: "drops", unit: "/s", limit: null, series: series(1) },
  ];
  const groups = ["up", "down"].map((id) => ({ id, title: id, charts }));
  const rows = Array.from({ length: 10 }, (_, flow) => [
    `10.0.0.${flow}:${second - (second % 60)}`,
    "192.0.2.1:443",
    "TCP",
    1e6,
    80,
  ]);
  const columns = [
    ["from", ""],
    ["to", ""],
    ["protocol", ""],
    ["IP rate", "bit/s"],
    ["packets", "/s"],
  ];
  return {
    at_ms: begin + second * 1000,
    status: `policy ${second}`,
    groups,
    tables: [{ title: `flows ${second}`, columns, rows }],
  };
}

/** A program with a dashboard: `until(second)` sends the reports up to this one. */
async function program() {
  let stream;
  let sent = 0;
  const gone = new AbortController();
  const { address, close } = await serve("../crates/dashboard/page", {
    "/api/state": (response) => response.end(JSON.stringify(STATE)),
    "/api/history": (response) => response.end(Buffer.from(encoded([], {}, []))),
    "/api/events": (response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.flushHeaders();
      response.once("close", () => gone.abort());
      stream = response;
    },
  });
  const event = async (name, value) => {
    // A page that reads no more is an error.
    if (!stream.write(`event: ${name}\ndata: ${JSON.stringify(value)}\n\n`))
      await once(stream, "drain", { signal: gone.signal });
  };
  return {
    address,
    async until(second) {
      for (; sent < second; sent += 1) {
        await event("report", report(sent + 1));
        if (sent % 600 === 0) await event("mark", { at_ms: begin + sent * 1000, words: `policy ${sent} is in force` });
      }
    },
    close: () => {
      stream?.end();
      close();
    },
  };
}

/** Memory of the page after its garbage is collected. */
async function memory(page) {
  const session = await page.createCDPSession();
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize, embedderHeapUsedSize = 0, backingStorageSize = 0 } = await session.send("Runtime.getHeapUsage");
  const { nodes, jsEventListeners: listeners } = await session.send("Memory.getDOMCounters");
  await session.detach();
  return { bytes: usedSize + embedderHeapUsedSize + backingStorageSize, nodes, listeners };
}

test(
  "a dashboard left open takes no more memory",
  { skip: chrome === undefined && "no Chromium", timeout: long ? 7_200_000 : 900_000 },
  async () => {
    const [source, browser] = await Promise.all([program(), launch(chrome)]);
    try {
      const { page, wrong } = await open(browser, source.address);
      await page.waitForFunction(() => document.querySelector("#connection").dataset.state === "live");
      const shown = async (second) => {
        await source.until(second);
        await page.waitForFunction(
          (words) => document.querySelector("#status").textContent === words,
          { timeout: 300_000 },
          `policy ${second}`,
        );
        return memory(page);
      };
      const full = await shown(FULL);
      const end = await shown(ALL);
      console.log(
        `dashboard: ${JSON.stringify(full)} after ${FULL / HOUR} h, ${JSON.stringify(end)} after ${ALL / HOUR} h`,
      );
      // Marks and names of classes have bounds, which two hours do not reach.
      assert.ok(end.bytes < full.bytes + 3e6 && end.bytes < 60e6, "bytes");
      assert.ok(end.nodes < full.nodes + 500 && end.listeners < full.listeners + 50, "nodes");
      assert.deepEqual(wrong, []);
    } finally {
      source.close();
      await browser.close();
    }
  },
);
