/** What a plot shows besides its lines: phases, capacities and limits, a strip along the foot. */

import type uPlot from "uplot";

import type { Columns, Panel } from "./data";
import { token } from "./style";

/** The height of a strip. */
export const STRIP = 8;

/** Calls `draw` with begin, end and colour of each part of a strip between two places. */
export function parts(
  panel: Panel,
  columns: Columns,
  [low, high]: [number, number],
  draw: (from: number, to: number, colour: number) => void,
): void {
  if (panel.strip === undefined) return;
  const [begins, kinds] = panel.strip.columns.map((index) => columns[index]!) as [Float64Array, Float64Array];
  begins.forEach((begin, n) => {
    const [from, to] = [Math.max(begin, low), Math.min(begins[n + 1] ?? panel.across.to, high)];
    if (from < to) draw(from, to, panel.strip!.kinds[kinds[n]!]?.[1] ?? 0);
  });
}

/** The strip along the foot, above the grid and below the lines. */
export function strip(plot: uPlot, panel: Panel, columns: Columns): void {
  const { ctx, bbox } = plot;
  const { min, max } = plot.scales["x"]!;
  const height = STRIP * devicePixelRatio;
  const colours = new Map<number, string>();
  ctx.save();
  parts(panel, columns, [min!, max!], (from, to, colour) => {
    if (!colours.has(colour)) colours.set(colour, token(`--c${colour % 8}`));
    const [left, right] = [plot.valToPos(from, "x", true), plot.valToPos(to, "x", true)];
    ctx.fillStyle = colours.get(colour)!;
    ctx.fillRect(left, bbox.top + bbox.height - height, Math.max(right - left, 0.5), height);
  });
  ctx.restore();
}

/** Bands of phases and their names. */
export function ground(plot: uPlot, panel: Panel): void {
  const { ctx, bbox } = plot;
  const { phases } = panel.across;
  if (phases.length < 2) return;
  const above = 16 * devicePixelRatio;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top - above, bbox.width, bbox.height + above);
  ctx.clip();
  ctx.font = `${11 * devicePixelRatio}px system-ui,sans-serif`;
  ctx.textAlign = "center";
  phases.forEach(([from, to, name], number) => {
    const [left, right] = [plot.valToPos(from, "x", true), plot.valToPos(to, "x", true)];
    if (number % 2 === 1) {
      ctx.fillStyle = token("--band");
      ctx.fillRect(left, bbox.top, right - left, bbox.height);
    }
    const [start, end] = [Math.max(left, bbox.left), Math.min(right, bbox.left + bbox.width)];
    if (ctx.measureText(name).width < end - start) {
      ctx.fillStyle = token("--muted");
      ctx.fillText(name, (start + end) / 2, bbox.top - 5 * devicePixelRatio);
    }
  });
  ctx.restore();
}

/** Capacities and limits, with their names at the right. */
export function references(plot: uPlot, panel: Panel): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = token("--ink");
  ctx.fillStyle = token("--ink");
  ctx.lineWidth = devicePixelRatio;
  ctx.font = `${11 * devicePixelRatio}px system-ui,sans-serif`;
  ctx.textAlign = "right";
  for (const [label, value] of panel.references) {
    if (value > plot.scales["y"]!.max! || value < plot.scales["y"]!.min!) continue;
    const y = Math.round(plot.valToPos(value, "y", true));
    ctx.setLineDash([6 * devicePixelRatio, 3 * devicePixelRatio]);
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
    ctx.setLineDash([]);
    const below = y - bbox.top < 16 * devicePixelRatio;
    const at = y + (below ? 12 : -4) * devicePixelRatio;
    ctx.strokeStyle = token("--paper");
    ctx.lineWidth = 3 * devicePixelRatio;
    ctx.strokeText(label, bbox.left + bbox.width - 4 * devicePixelRatio, at);
    ctx.strokeStyle = token("--ink");
    ctx.lineWidth = devicePixelRatio;
    ctx.fillText(label, bbox.left + bbox.width - 4 * devicePixelRatio, at);
  }
  ctx.restore();
}
