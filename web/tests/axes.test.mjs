// Distances of ticks that uPlot accepts.
import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./typescript.mjs";

const { incrs } = await load("src/report/axes.ts");

/** As uPlot guesses it. */
const decimals = (number) => (`${number}`.split(".")[1] ?? "").length;

test("each unit has ticks at 1, 2 and 5 times every power of ten that a plot shows", () => {
  assert.deepEqual(
    incrs(1e-6).filter((step) => step >= 1e-6 && step < 1e-3),
    [1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4],
  );
  for (const unit of [1, 1e-3, 1e-6, 1e-9, 1e3, 1e6]) {
    const shown = incrs(unit).filter((step) => step >= unit / 1000 && step <= unit * 1e6);
    assert.equal(shown.length, 28);
    assert.deepEqual(
      shown.filter((step) => step < 5 && decimals(step) > 17),
      [],
      `a unit of ${unit}`,
    );
  }
});
