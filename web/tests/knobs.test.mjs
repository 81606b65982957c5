// The keys that sliders of the playground set.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { load } from "./typescript.mjs";

const { knobsOf } = await load("src/playground/knobs.ts");

const keysOf = (line) => {
  const text = readFileSync(new URL(`../../library/lines/${line}.toml`, import.meta.url), "utf8");
  return Object.fromEntries(knobsOf(text).map(({ label, keys }) => [label, keys]));
};

test("a slider sets the rate of a service flow and that of its queue", () => {
  assert.deepEqual(keysOf("docsis-1000-50"), {
    Downstream: ["access.down.rate"],
    Upstream: ["access.up.grants.sustained", "access.up.queue.sustained"],
    "Upstream buffer": ["access.up.queue.limit"],
  });
  assert.deepEqual(keysOf("docsis-100-10").Upstream, ["access.up.grants.sustained"]);
  assert.deepEqual(keysOf("adsl2plus-12-1").Upstream, ["access.up.rate"]);
});

test("the rate of a queue is none of grants", () => {
  const text = '[access.up]\nrate = "9 Mbit/s"\nqueue = { kind = "docsis-pie", sustained = "9 Mbit/s" }\n';
  assert.deepEqual(
    knobsOf(text).map(({ keys }) => keys),
    [["access.up.rate", "access.up.queue.sustained"]],
  );
});
