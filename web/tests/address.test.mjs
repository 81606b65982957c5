// Addresses of the playground: packed ones, and readable ones.
import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./typescript.mjs";

const { fromHash, fromReadable, toHash, toReadable, valid } = await load("src/playground/state.ts");

const example = { source: { from: "example", path: "scenarios/upload-starves-download.toml" }, set: {}, policies: [] };

test("a packed address gives its state back, with any text", async () => {
  const state = {
    source: { from: "text", text: 'name = "a & b # <c>"\n\u00e4' },
    set: { "access.up.rate": "1 Mbit/s" },
    policies: ["cake"],
  };
  assert.deepEqual(await fromHash(await toHash(state)), state);
});

test("damaged and foreign addresses have no state", async () => {
  const packed = await toHash(example);
  const flawed = ["", "#", "#s=", "#s=A", `${packed.slice(0, 12)}x${packed.slice(12)}`, "#s=%00", "#top"];
  for (const hash of flawed) assert.equal(await fromHash(hash), null, hash);
  for (const wrong of [
    null,
    1,
    {},
    { ...example, policies: [1] },
    { ...example, set: { a: 1 } },
    { ...example, source: { from: "file" } },
  ]) {
    assert.equal(valid(wrong), null, JSON.stringify(wrong));
  }
});

test("a readable address names an example, policies and keys", async () => {
  const hash =
    "#example=scenarios/x/y.toml&policy=cake,none&set=access.up.rate=1 Mbit/s&set=access.up.queue.limit=20 kB";
  const state = {
    source: { from: "example", path: "scenarios/x/y.toml" },
    set: { "access.up.rate": "1 Mbit/s", "access.up.queue.limit": "20 kB" },
    policies: ["cake", "none"],
  };
  assert.deepEqual(fromReadable(hash), state);
  assert.deepEqual(
    fromReadable(hash.replaceAll(" ", "%20").replaceAll("/", "%2F")),
    state,
    "as a browser may write it",
  );
  assert.deepEqual(await fromHash(hash), state);
  assert.equal(toReadable(state), hash);
  assert.deepEqual(fromReadable("#line=docsis&home=family"), {
    source: { from: "library", line: "docsis", home: "family" },
    set: {},
    policies: [],
  });
});

test("values that mean something in an address come back as they were", () => {
  for (const value of ["a&b", "100 %", "x#y", "p=q", "\u00e4\u20ac", '{ kind = "sad" }', "+1"]) {
    const state = { ...example, set: { "access.up.queue": value } };
    assert.deepEqual(fromReadable(toReadable(state)), state, value);
    assert.deepEqual(fromReadable(new URL(`https://x/${toReadable(state)}`).hash), state, `${value} through a browser`);
  }
  assert.equal(toReadable({ ...example, source: { from: "text", text: "x" } }), null);
});

test("every other readable address is refused", () => {
  const flawed = [
    "#example=",
    "#example=scenarios/x.txt",
    "#example=../x.toml",
    "#example=scenarios/../x.toml",
    "#example=scenarios/.x.toml",
    "#example=https://x/scenarios/x.toml",
    "#example=scenarios/x.toml&example=scenarios/y.toml",
    "#example=scenarios/x.toml&line=a&home=b",
    "#line=a",
    "#home=b",
    "#line=a/b&home=c",
    "#example=scenarios/x.toml&colour=red",
    "#example=scenarios/x.toml&policy=",
    "#example=scenarios/x.toml&policy=a,,b",
    "#example=scenarios/x.toml&policy=<b>",
    `#example=scenarios/x.toml&policy=${Array(21).fill("none").join(",")}`,
    "#example=scenarios/x.toml&set=rate",
    "#example=scenarios/x.toml&set==1",
    "#example=scenarios/x.toml&set=a=",
    "#example=scenarios/x.toml&set=a b=1",
    "#example=scenarios/x.toml&set=a=1&set=a=2",
    "#example=scenarios/x.toml&set=__proto__=1",
    "#constructor=1&example=scenarios/x.toml",
    "#example=scenarios/x.toml&",
    "#example=scenarios/x.toml&set=a=%E0%A4%A",
    `#example=scenarios/x.toml&set=a=${"1".repeat(40_000)}`,
    "example=scenarios/x.toml",
  ];
  for (const hash of flawed) assert.equal(fromReadable(hash), null, hash.slice(0, 80));
});
