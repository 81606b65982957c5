/** Colours and dashes of the page's style sheet. */

import type { Line } from "./data";

/** Dashes in pixels, as in the drawings without a script. */
const DASHES: readonly (readonly number[])[] = [[], [7, 3], [3, 3], [10, 3, 2, 3], [1, 3]];

/** The value of a custom property of the page. */
export function token(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** The dashes of a line; none for an unbroken one. */
export function dashes(line: Line): readonly number[] {
  return line.bound ? [2, 3] : DASHES[line.dash % DASHES.length]!;
}
