// The dashboards of an emulated line and of a lab with real packets, in the browsers of the machine. Needs root and
// network namespaces, which the programs create and remove. LASTMILE is the program, SHOTS a folder for pictures.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import path from "node:path";
import test from "node:test";
import assert from "node:assert/strict";
import { BROWSERS, launch, open } from "./browsers.mjs";
import { accessible, ask, obstacle, pictures, read, rowsOf } from "./dashboard/looks.mjs";

const program = path.resolve(process.env.LASTMILE ?? "../target/debug/lastmile");

/** A queue of one second upstream. */
const LINE = `
name = "mine <b onclick='x'>&amp;"
duration = "900 s"

[access]
encapsulation = "bridged-vcmux-fcs"
down = { rate = "2 Mbit/s", delay = "4 ms" }
up = { rate = "512 kbit/s", delay = "6 ms", queue = { kind = "fifo", limit = "60 kB" } }
`;

const TRAFFIC = `
[[traffic]]
name = "upload"
kind = "bulk"
direction = "up"

[[traffic]]
name = "ping"
kind = "ping"
interval = "50 ms"
`;

/** UDP of 800 kbit/s, of which the line drops a part. */
const SENDER = `
const socket = require("node:dgram").createSocket("udp4");
const bytes = Buffer.alloc(972);
setInterval(() => { for (let i = 0; i < 2; i += 1) socket.send(bytes, 9000, "198.18.0.1"); }, 20);
`;

const options = { skip: obstacle(program, ["/dev/net/tun"]), timeout: 900_000 };

/** Runs the program with its dashboard while `use` has its process and the address of its page. */
async function served(command, text, use) {
  const folder = mkdtempSync(path.join(tmpdir(), "lastmile-dashboard-"));
  writeFileSync(path.join(folder, "line.toml"), text);
  const child = spawn(program, [command, "line.toml", "--web", "127.0.0.1:0", "--json"], {
    cwd: folder,
    stdio: ["ignore", "ignore", "pipe"],
  });
  const ended = new Promise((resolve) => child.on("exit", resolve));
  try {
    let said = "";
    child.stderr.on("data", (piece) => {
      said += piece;
    });
    let address = null;
    for (let tries = 0; address === null; tries += 1) {
      assert.ok(tries < 200 && child.exitCode === null, said);
      await sleep(100);
      address = /dashboard: (http:\/\/127\.0\.0\.1:\d+\/)\n/.exec(said)?.[1] ?? null;
    }
    await use(child, address, folder);
  } finally {
    // It removes its namespaces.
    child.kill("SIGINT");
    await ended;
    rmSync(folder, { recursive: true });
  }
}

/** The charts of all links and of the slowest ones, and the tables of flows up. */
async function look(page, group, flows) {
  await page.waitForFunction(() => document.querySelector("#connection").dataset.state === "live");
  assert.match(await read(page, "#status"), /mine <b onclick='x'>&amp;/);
  assert.equal(await page.$("#status b"), null);
  await page.waitForFunction(() => document.querySelectorAll("#tables table").length === 2);
  const headings = await page.$$eval("#groups h2", (all) => all.map((one) => one.textContent));
  assert.match(headings[group], /^all links/);
  assert.ok(
    headings.some((name) => name.startsWith("up, up: 512 kbit/s")),
    headings.join("\n"),
  );
  assert.ok(
    headings.some((name) => name.startsWith("down, down: 2 Mbit/s")),
    headings.join("\n"),
  );

  // Charts are drawn where they are in view.
  await page.$$eval("#groups h2", (all, group) => all[group].scrollIntoView(), group);
  const chart = (await page.$$("#groups .charts"))[group];
  assert.equal(await chart.$eval("h3", (one) => one.textContent), "one-way delay, 99th percentile");
  const seconds = async () => {
    const labels = await chart.$eval("figure", (figure) => {
      return [...figure.querySelectorAll("button")].map((one) => one.textContent);
    });
    const names = labels.map((label) => label.replace(/ (-|[\d.]+ \S+)$/, ""));
    assert.deepEqual(names, ["up: all links", "up: all links, ACKs", "down: all links", "down: all links, ACKs"]);
    const [, value, unit] = / ([\d.]+) (m?s)$/.exec(labels[0]) ?? [];
    return Number(value) * (unit === "ms" ? 1e-3 : 1);
  };
  for (let tries = 0; !((await seconds()) > 0.3); tries += 1) {
    assert.ok(tries < 60, `${await seconds()}`);
    await sleep(500);
  }

  // A second of the table may be one in which a busy machine has sent too little.
  for (let tries = 0; ; tries += 1) {
    const rows = await rowsOf(page, "#tables table");
    assert.deepEqual(rows[0], ["from", "to", "protocol", "IP rate", "packets", "drops"]);
    const shown = ({ protocol, to, drops }) =>
      rows.some((row) => row[2] === protocol && to.test(row[1]) && drops.test(row[5]));
    if (flows.every(shown)) break;
    assert.ok(tries < 60, rows.join("\n"));
    await sleep(500);
  }
}

/** The question, and its answer with the delays over all links first. */
async function question(page) {
  await page.select("#policy", "fq-codel-sqm");
  await ask(page);
  const rows = await rowsOf(page, "#answer table");
  assert.deepEqual(rows[0].slice(1), ["none: what happened", "none: replayed", "fq-codel-sqm: replayed"]);
  assert.equal(rows[1][0], "up: all links");
  const row = (name) => rows.find(([first]) => first === name).slice(1);
  const [happened, again] = row("packets").map(Number);
  // The backlog at the begin of the record is not that of the replay: at most a queue.
  assert.ok(happened > 100 && Math.abs(happened - again) <= 0.02 * happened + 60, `${happened} and ${again}`);
  assert.ok(
    row("one-way delay, 99th percentile").every((value) => /^[\d.]+ m?s$/.test(value)),
    rows.join("\n"),
  );
  assert.equal(rows.filter(([first]) => first === "down: all links").length, 1);
  const plots = await page.$$eval("#answer figure", (all) => {
    return all.map((one) => [one.querySelector("h3").textContent, one.querySelector("canvas") !== null]);
  });
  for (const name of ["up: all links", "down: all links"]) {
    assert.ok(
      plots.some(([title, drawn]) => drawn && title === `${name}: one-way delay, 99th percentile`),
      `${plots}`,
    );
  }
}

/** Looks at a page in every browser. */
async function inBrowsers(address, name, group, flows) {
  for (const browser of BROWSERS) {
    const opened = await launch(browser);
    try {
      const { page, wrong } = await open(opened, address);
      await look(page, group, flows);
      await question(page);
      await pictures(page, `${name}-${browser[0]}`, [360, 1280], accessible);
      assert.deepEqual(wrong, []);
    } finally {
      await opened.close();
    }
  }
}

test("the dashboard of an emulated line, in browsers", options, async () => {
  await served("emulate", LINE, async ({ pid }, address, folder) => {
    writeFileSync(path.join(folder, "sender.cjs"), SENDER);
    const within = (...words) => {
      return spawn("ip", ["netns", "exec", `lastmile-${pid}-client`, ...words], { stdio: "ignore" });
    };
    const children = [
      within(process.execPath, path.join(folder, "sender.cjs")),
      within("ping", "-i", "0.05", "-q", "198.18.0.1"),
    ];
    try {
      await sleep(10_000);
      const flows = [
        { protocol: "UDP", to: /^198\.18\.0\.1:9000$/, drops: /^[1-9][\d.]* \/s$/ },
        { protocol: "ICMP", to: /^198\.18\.0\.1$/, drops: /^[\d.]+ \/s$/ },
      ];
      await inBrowsers(address, "emulate", 0, flows);
    } finally {
      for (const child of children) child.kill("SIGKILL");
    }
  });
});

test("the dashboard of a lab, in browsers", options, async () => {
  await served("lab", LINE + TRAFFIC, async (_child, address) => {
    await sleep(10_000);
    const flows = [
      { protocol: "TCP", to: /:\d+$/, drops: /^[\d.]+ \/s$/ },
      { protocol: "ICMP", to: /^\d+\.\d+\.\d+\.\d+$/, drops: /^[\d.]+ \/s$/ },
    ];
    // The traffic comes before the links.
    await inBrowsers(address, "lab", 1, flows);
  });
});
