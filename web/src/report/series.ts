/** The lines of a plot, as uPlot has them. */

import uPlot from "uplot";

import type { Line } from "./data";
import { isMark, isShaped } from "./shapes";
import { dashes, token } from "./style";
import type { Points } from "./view";

/** A line with the points of the view. */
export interface Drawn {
  line: Line;
  points: Points;
}

/** A line; `path` gives the path of one that is not joined points. */
export function stroke(line: Line, path: uPlot.Series.PathBuilder): uPlot.Series {
  const series: uPlot.Series = {
    label: line.label,
    stroke: token(`--c${line.colour % 8}`),
    width: line.faint ? 0.8 : line.bound || isMark(line.shape) ? 1.2 : line.shape === "bars" ? 2 : 1.6,
    spanGaps: true,
    points: { show: false },
  };
  const dash = dashes(line);
  if (dash.length > 0) series.dash = [...dash];
  if (line.faint) series.alpha = 0.55;
  if (isShaped(line)) series.paths = path;
  return series;
}

/** The tables of several lines as one, with `null` where a line has no point. */
export function aligned(drawn: Drawn[]): uPlot.AlignedData {
  const tables = drawn.map(({ points }) => [points.x, points.y] as uPlot.AlignedData);
  if (tables.length === 0) return [[]];
  const shared = tables.every(([x]) => same(x as number[], tables[0]![0] as number[]));
  if (shared) return [tables[0]![0], ...tables.map((table) => table[1]!)] as uPlot.AlignedData;
  if (tables.some(([x]) => hasSteps(x as number[]))) return stepped(drawn);
  return uPlot.join(tables);
}

function same(a: number[], b: number[]): boolean {
  return a === b || (a.length === b.length && a.every((value, n) => value === b[n]));
}

function hasSteps(x: number[]): boolean {
  return x.some((value, n) => n > 0 && value === x[n - 1]);
}

/** Lines with several points at one place: each has rows of its own. */
function stepped(drawn: Drawn[]): uPlot.AlignedData {
  const rows = drawn.flatMap(({ points }, line) => points.x.map((x, n) => ({ x, y: points.y[n]!, line })));
  rows.sort((a, b) => a.x - b.x);
  const columns: (number | null)[][] = drawn.map(({}, line) => rows.map((row) => (row.line === line ? row.y : null)));
  return [rows.map((row) => row.x), ...columns] as uPlot.AlignedData;
}
