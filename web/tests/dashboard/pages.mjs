// Runs a shaper with its dashboard, and looks at it in every browser: `node pages.mjs PROGRAM FOLDER`, on the machine
// that shapes.
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import path from "node:path";
import assert from "node:assert/strict";
import { BROWSERS, launch, open } from "../browsers.mjs";
import { accessible, ask, pictures, press, read, rowsOf } from "./looks.mjs";

const [program, folder] = process.argv.slice(2);
const ADDRESS = "http://127.0.0.1:8420/";
const TOKEN = "a-token-of-enough-chars";
const policy = path.join(folder, "mine.toml");
const text = readFileSync(policy, "utf8");

/** A shaper that answers browsers. */
async function shaper() {
  const words = [
    "shape",
    "mine.toml",
    "--lan",
    "west",
    "--wan",
    "east",
    "--make-bridge",
    "--control",
    "socket",
    "--web",
    "--web-token-file",
    "token",
    "--web-control",
  ];
  const child = spawn(program, words, { cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.on("data", (piece) => {
    said += piece;
  });
  for (let tries = 0; ; tries += 1) {
    const answer = await fetch(`${ADDRESS}login`).catch(() => null);
    if (answer?.status === 200) return child;
    assert.ok(tries < 600 && child.exitCode === null, said);
    await sleep(100);
  }
}

const end = async (child) => {
  const ended = new Promise((resolve) => child.on("exit", resolve));
  child.kill("SIGTERM");
  await ended;
};

/** Opens the dashboard with the token, after a wrong one. */
async function enter(page) {
  assert.ok(page.url().endsWith("/login"), page.url());
  const give = async (token) => {
    await page.type("#token", token);
    await Promise.all([page.waitForNavigation(), page.click("button")]);
  };
  await give("wrong");
  assert.ok(page.url().endsWith("/login#wrong"), page.url());
  assert.ok(await page.$eval("#wrong", (node) => getComputedStyle(node).display === "block"));
  await give(TOKEN);
  await page.waitForFunction(() => document.querySelector("#connection").dataset.state === "live");
}

/** Values, switches, a question, a change of the policy. */
async function look(page) {
  // The rate of a second in which the line was full; on a busy machine another second may have less.
  await page.waitForFunction(() =>
    /^all [45]\d\d kbit\/s$/.test(document.querySelector("#groups .charts figure button")?.textContent ?? ""),
  );
  const chart = "#groups .charts figure";
  assert.equal(await read(page, `${chart} h3`), "rate on the wire");
  const legend = await page.$eval(chart, (first) => {
    return [...first.querySelectorAll("button")].map((one) => one.textContent);
  });
  assert.deepEqual(
    legend.map((one) => one.split(" ")[0]),
    ["all", "quick", "default"],
  );
  assert.match(await read(page, "#status"), /^policy mine <b onclick='x'>&amp;$/);
  assert.equal(await page.$("#status b"), null);
  const flows = await page.$$eval("#tables table", (tables) => tables.map((table) => table.innerText));
  assert.ok(
    flows.some((table) => table.includes("10.9.0.2:9000") && table.includes("UDP")),
    flows.join("\n"),
  );

  const span = async (name) => {
    const button = await page.evaluateHandle((wanted) => {
      return [...document.querySelectorAll("#spans button")].find((one) => one.textContent === wanted);
    }, name);
    await button.evaluate((one) => one.click());
    assert.equal(await button.evaluate((one) => one.getAttribute("aria-pressed")), "true");
  };
  await span("1 h");
  await span("1 min");
  await press(page, `${chart} ul.legend button`);
  assert.equal(await page.$eval(`${chart} ul.legend button`, (one) => one.getAttribute("aria-pressed")), "false");
  await press(page, `${chart} ul.legend button`);

  // A policy in which pings have no class of their own: they wait for the bursts.
  await page.select("#policy", "");
  const other = text.replace(/\[\[rule\]\][^]*$/, "").replace(/^name = "mine.*$/m, 'name = "without"');
  await page.$eval(
    "#text",
    (area, value) => {
      area.value = value;
    },
    other,
  );
  await ask(page);
  const rows = await rowsOf(page, "#answer table:first-of-type");
  assert.match(rows[0][2], /replayed$/);
  const row = (name) =>
    rows
      .find(([first]) => first === name)
      .slice(1)
      .map(parseFloat);
  const [happened, again] = row("packets sent");
  // The backlog of a policy before it is not that of the replay: at most a queue.
  const queue = 50;
  assert.ok(happened > 100 && Math.abs(happened - again) <= 0.02 * happened + queue, `${happened} and ${again}`);
  const quick = rows.findIndex(([first]) => first === "class quick");
  assert.ok(quick > 0, JSON.stringify(rows));

  await press(page, "#reload");
  await page.waitForFunction(() => /is in force/.test(document.querySelector("#message").textContent));
  await page.waitForFunction(() => !document.querySelector("#marks").hidden);
  assert.match(await read(page, "#marks li"), /mine <b onclick='x'>&amp; is in force$/);

  // Another policy in force from the page, and back.
  await page.select("#policy", "cake");
  await press(page, "#apply");
  await page.waitForFunction(() => /cake is in force/.test(document.querySelector("#asked").textContent));
  await page.waitForFunction(() =>
    /cake is in force$/.test(document.querySelector("#marks li:last-child").textContent),
  );
  await press(page, "#reload");
  await page.waitForFunction(() =>
    /mine.*is in force$/.test(document.querySelector("#marks li:last-child").textContent),
  );
  await press(page, "#server summary");
  await page.waitForFunction(() => /refused token/.test(document.querySelector("#server dl").textContent));
}

let running = await shaper();
try {
  await sleep(12_000);
  for (const [name, executable] of BROWSERS) {
    const browser = await launch([name, executable]);
    try {
      const { page, wrong } = await open(browser, ADDRESS);
      await enter(page);
      await look(page);
      await accessible(page);
      await pictures(page, `dashboard-${name}`, [360, 1280, 2560]);
      assert.deepEqual(wrong, []);
      // A file that is wrong leaves the policy in force, and the page shows why.
      writeFileSync(policy, text.replace("20 %", "twenty"));
      await press(page, "#reload");
      await page.waitForFunction(() => {
        return /mine\.toml:\d+/.test(document.querySelector("#message.bad")?.textContent ?? "");
      });
      writeFileSync(policy, text);
      // The program goes, and comes again.
      await end(running);
      await page.waitForFunction(() => document.querySelector("#connection").dataset.state === "lost");
      running = await shaper();
      // Another process knows no cookie of the first one.
      await page.waitForFunction(() => location.pathname === "/login");
      await page.type("#token", TOKEN);
      await Promise.all([page.waitForNavigation(), page.click("button")]);
      await page.waitForFunction(() => document.querySelector("#connection").dataset.state === "live");
      await sleep(6_000);
      console.log(`${name}: ok`);
    } finally {
      await browser.close();
    }
  }
} finally {
  await end(running);
}
