// The dashboard of a shaper with real packets, in the browsers of the machine. Needs root and network namespaces: the
// machine that shapes stands between two others, and the browsers run on it. LASTMILE is the program, SHOTS a folder
// for pictures.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "node:test";
import assert from "node:assert/strict";
import { BROWSERS } from "./browsers.mjs";
import { obstacle } from "./dashboard/looks.mjs";

const program = path.resolve(process.env.LASTMILE ?? "../target/debug/lastmile");
const [left, middle, right] = ["left", "middle", "right"].map((name) => `lastmile-web-${process.pid}-${name}`);
const ip = (...words) => execFileSync("ip", words, { stdio: "pipe" });
const within = (place, ...words) => ["ip", ["netns", "exec", place, ...words]];

/** Names that a page must show as text. */
const POLICY = `
name = "mine <b onclick='x'>&amp;"

[line]
encapsulation = "bridged-vcmux-fcs"
up = "512 kbit/s"
down = "2 Mbit/s"

[[class]]
name = "quick"
rate = "20 %"
priority = 0
limit = "20 packets"

[[class]]
name = "default"
rate = "80 %"
priority = 1
limit = "60 kB"

[[rule]]
class = "quick"
match = { protocol = "icmp" }
`;

/** UDP of 640 kbit/s, in bursts. */
const SENDER = `
const socket = require("node:dgram").createSocket("udp4");
const bytes = Buffer.alloc(1172);
setInterval(() => { for (let i = 0; i < 4; i += 1) socket.send(bytes, 9000, "10.9.0.2"); }, 60);
`;

test("the dashboard of a shaper, in browsers", { skip: obstacle(program), timeout: 1_200_000 }, async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "lastmile-dashboard-"));
  const children = [];
  try {
    for (const name of [left, middle, right]) ip("netns", "add", name);
    ip("-n", middle, "link", "set", "lo", "up");
    for (const [name, inner, address] of [
      [left, "west", "10.9.0.1/24"],
      [right, "east", "10.9.0.2/24"],
    ]) {
      ip("link", "add", "eth0", "netns", name, "type", "veth", "peer", "name", inner, "netns", middle);
      ip("-n", name, "address", "add", address, "dev", "eth0");
      ip("-n", name, "link", "set", "eth0", "up");
      ip("-n", middle, "link", "set", inner, "up");
    }
    writeFileSync(path.join(folder, "mine.toml"), POLICY);
    writeFileSync(path.join(folder, "token"), "a-token-of-enough-chars\n");
    writeFileSync(path.join(folder, "sender.cjs"), SENDER);
    children.push(spawn(...within(left, process.execPath, path.join(folder, "sender.cjs"))));
    children.push(spawn(...within(left, "ping", "-i", "0.05", "-q", "10.9.0.2"), { stdio: "ignore" }));
    const look = within(middle, process.execPath, "tests/dashboard/pages.mjs", program, folder);
    const pages = spawn(...look, { stdio: "inherit" });
    children.push(pages);
    const code = await new Promise((resolve) => pages.on("exit", resolve));
    assert.equal(code, 0);
  } finally {
    for (const child of children) child.kill("SIGKILL");
    for (const name of [left, middle, right]) spawnSync("ip", ["netns", "delete", name]);
    rmSync(folder, { recursive: true });
  }
});
