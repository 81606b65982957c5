/** The part of a line that is visible, with about as many points as the screen has columns. */

import type { Columns, Line, Shape } from "./data";
import { isMark } from "./shapes";

export interface Points {
  x: number[];
  y: number[];
  /** The least value of each point, where points have extents. */
  low?: number[];
  /** Half the width of the interval of each point. */
  spread?: number[];
}

/** Pixels of a mean. */
const BIN_PIXELS = 3;

/** The first index of sorted `x` whose value is at least `value`. */
export function first(x: Float64Array, value: number): number {
  let low = 0;
  let high = x.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (x[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The smallest of 1, 2, 5 times a power of ten at or above `raw`. */
export function roundStep(raw: number): number {
  const power = 10 ** Math.floor(Math.log10(raw) + 1e-9);
  const step = [1, 2, 5].find((one) => raw <= one * power * (1 + 1e-9)) ?? 10;
  return step * power;
}

/** The time of a mean in a view of this length and width; `null` if samples are drawn. */
export function binOf(line: Line, columns: Columns, span: number, width: number): number | null {
  if (!line.means) return null;
  const x = columns[line.columns[0]]!;
  const bin = roundStep((span / Math.max(width, 1)) * BIN_PIXELS);
  const apart = x.length > 1 ? (x[x.length - 1]! - x[0]!) / (x.length - 1) : 0;
  return apart * 1.5 < bin ? bin : null;
}

/** The points of `line` between two places, and one beyond each end. */
export function visible(line: Line, columns: Columns, from: number, to: number, width: number): Points {
  const x = columns[line.columns[0]]!;
  const y = columns[line.columns[1]]!;
  const begin = Math.max(0, first(x, from) - 1);
  const end = Math.min(x.length, first(x, to) + 1);
  const bin = binOf(line, columns, to - from, width);
  if (bin !== null) return means(x, y, from, end, bin);
  const low = line.low === undefined ? null : columns[line.low]!;
  // A distribution has several points at one place, in an order that matters. Every mark is an event of its own.
  if (end - begin <= 4 * width || isMark(line.shape)) {
    const part = (column: Float64Array) => Array.from(column.subarray(begin, end));
    const points: Points = { x: part(x), y: part(y) };
    if (low !== null) points.low = part(low);
    if (line.spread !== undefined) points.spread = part(columns[line.spread]!);
    return points;
  }
  const column = (to - from) / width;
  return low === null ? extremes(x, y, begin, end, column) : extents(x, y, low, begin, end, column);
}

/** Means over bins of whole multiples of `bin`, each at the middle of its samples. */
function means(x: Float64Array, y: Float64Array, from: number, end: number, bin: number): Points {
  const points: Points = { x: [], y: [] };
  // A sample describes the time before it, so one on a boundary belongs to the bin that ends there.
  const binAt = (time: number) => Math.floor(time / bin - 1e-9);
  let at = first(x, (binAt(from) - 1) * bin);
  while (at < end) {
    const number = binAt(x[at]!);
    let [times, values, count] = [0, 0, 0];
    // A bin is whole, also where the view ends in it.
    for (; at < x.length && binAt(x[at]!) === number; at++) {
      times += x[at]!;
      values += y[at]!;
      count += 1;
    }
    points.x.push(times / count);
    points.y.push(values / count);
  }
  return points;
}

/** The least and the largest sample of each column of pixels, in their order. */
function extremes(x: Float64Array, y: Float64Array, begin: number, end: number, column: number): Points {
  const points: Points = { x: [], y: [] };
  let at = begin;
  while (at < end) {
    const until = x[at]! + column;
    let low = at;
    let high = at;
    for (; at < end && x[at]! < until; at++) {
      if (y[at]! < y[low]!) low = at;
      if (y[at]! > y[high]!) high = at;
    }
    for (const index of low === high ? [low] : [Math.min(low, high), Math.max(low, high)]) {
      points.x.push(x[index]!);
      points.y.push(y[index]!);
    }
  }
  return points;
}

/** The extent of all points in each column of pixels. */
function extents(
  x: Float64Array,
  y: Float64Array,
  low: Float64Array,
  begin: number,
  end: number,
  column: number,
): Points {
  const points = { x: [] as number[], y: [] as number[], low: [] as number[] };
  let at = begin;
  while (at < end) {
    const until = x[at]! + column;
    points.x.push(x[at]!);
    let [least, most] = [low[at]!, y[at]!];
    for (; at < end && x[at]! < until; at++) [least, most] = [Math.min(least, low[at]!), Math.max(most, y[at]!)];
    points.y.push(most);
    points.low.push(least);
  }
  return points;
}

/** The index of the point at a place, as it is drawn: the nearest, of steps and segments the last; `null` outside. */
export function indexAt({ x }: Points, place: number, shape?: Shape): number | null {
  const isOutside = x.length === 0 || place < x[0]! || (place > x[x.length - 1]! && shape === undefined);
  if (x.length === 0 || (isOutside && shape !== "dot" && shape !== "interval")) return null;
  let low = 0;
  let high = x.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (x[middle]! <= place) low = middle;
    else high = middle - 1;
  }
  if (shape === "steps" || shape === "bars") return low;
  const next = Math.min(low + 1, x.length - 1);
  return place - x[low]! <= x[next]! - place ? low : next;
}
