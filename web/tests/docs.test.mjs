// Links of the documentation to the playground, and its colours.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { USUAL, colours, linked, stateOf, words } from "../docs.mjs";
import { load } from "./typescript.mjs";

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), "../..");
const { fromReadable, toReadable } = await load("src/playground/state.ts");
const shipped = (file) => {
  try {
    return readFileSync(path.join(root, file), "utf8");
  } catch {
    return null;
  }
};

test("a command line has the words of a shell, or none", () => {
  assert.deepEqual(words("a --set k='1 Mbit/s' \"b c\""), ["a", "--set", "k=1 Mbit/s", "b c"]);
  for (const line of ["a | b", "a > b", "a 'b", "a $HOME", "a; b", "a \\"]) assert.equal(words(line), null, line);
});

test("commands become states of the playground", () => {
  const file = "scenarios/upload-starves-download.toml";
  const state = (line) => stateOf(line, shipped);
  assert.deepEqual(
    state(`lastmile run ${file} --policy cake --set access.up.rate='1 Mbit/s' --duration 5s --out out`),
    {
      source: { from: "example", path: file },
      set: { "access.up.rate": "1 Mbit/s", duration: "5s" },
      policies: ["cake"],
    },
  );
  assert.deepEqual(state(`lastmile compare ${file}`).policies, USUAL);
  for (const line of [
    `lastmile compare ${file} --vary access.up.rate=1,2`,
    "lastmile compare scenarios/atm/abr-edge.toml",
    "lastmile compare scenarios/senders/quic-return-path.toml",
    "lastmile run scenarios/no-such.toml",
    "lastmile run mine.toml",
    `lastmile emulate ${file}`,
    `lastmile run ${file} --set`,
    `lastmile run ${file} --json | jq .`,
  ]) {
    assert.equal(state(line), null, line);
  }
});

test("a link follows its block, and texts in it are escaped", () => {
  const page =
    "```console\n$ lastmile run a.toml --set 'k=\"<b>\"'\noutput\n```\n\n" +
    "```console\n$ lastmile run b.toml\nerror: no\n```\n";
  const out = linked(page, "../", () => '#example=scenarios/a.toml&set=k="<b>"');
  assert.equal(out.split('class="try"').length, 2, "an error has no link");
  const href = "../index.html#example=scenarios/a.toml&amp;set=k=%22%3Cb%3E%22";
  assert.ok(out.includes(`\`\`\`\n\n<p class="tries"><a class="try" href="${href}"`), out);
  assert.doesNotMatch(out.split("```")[2], /<b>/);
  assert.equal(
    linked(page, "../", () => null),
    page,
  );
});

test("every link of the documentation opens a state", () => {
  let count = 0;
  for (const entry of readdirSync(path.join(root, "docs"), { recursive: true }).filter((name) =>
    name.endsWith(".md"),
  )) {
    linked(readFileSync(path.join(root, "docs", entry), "utf8"), "", (line) => {
      const state = stateOf(line, shipped);
      if (state === null) return null;
      count += 1;
      assert.deepEqual(fromReadable(toReadable(state)), state, `${entry}: ${line}`);
      return toReadable(state);
    });
  }
  assert.ok(count > 30, `${count} links`);
});

test("colours of the documentation are those of the pages", () => {
  const css = colours(readFileSync(path.join(root, "crates/results/assets/tokens.css"), "utf8"));
  const [light, dark] = css.trim().split(/\n(?=\.navy)/);
  for (const [block, paper] of [
    [light, "#ffffff"],
    [dark, "#14171c"],
  ]) {
    assert.match(block, new RegExp(`--paper:${paper}`));
    assert.match(block, /;--bg:var\(--paper\);/);
  }
});
