// The order of the cells of a column.
import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./typescript.mjs";

const { compare } = await load("src/report/tables.ts");

/** Cells from the least to the largest are in this order, and in the reverse one from the largest. */
function inOrder(cells) {
  const mixed = [...cells].sort((a, b) => [...a].reverse().join("").localeCompare([...b].reverse().join("")));
  for (const down of [false, true]) {
    const sorted = [...mixed].sort((a, b) => compare(a, b, down));
    assert.deepEqual(sorted, down ? [...cells].reverse() : cells);
  }
}

test("numbers are in the order of their values, whatever their units", () => {
  inOrder(["-2 ms", "\u22485 ms", "1.5e-2 s", "120 ms", "2 s", "1 min"]);
  inOrder(["900 bytes", "1\u202f234 bytes", "12 kB"]);
  inOrder(["3 x, 900 y", "12 x, 300 y"]);
});

test("times, dates and addresses are in the order of all their numbers", () => {
  inOrder(["2025-12-01 23:00:00", "2026-01-26 07:11:40", "2026-10-26 07:11:39", "2026-10-26 07:11:40"]);
  inOrder(["07:11", "9:02:30", "18:00"]);
  inOrder(["10.0.0.2", "10.0.0.10", "10.0.12.1", "192.0.2.1"]);
  inOrder(["2001:db8::2", "2001:db8::10"]);
});
