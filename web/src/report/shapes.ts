/** Steps, segments and marks as paths: one text for the screen and for drawings. */

import type { Line, Shape } from "./data";
import type { Points } from "./view";

/** Marks around their point, relative to it. */
const MARKS: Readonly<Partial<Record<Shape, readonly (readonly [string, number, number])[]>>> = {
  triangle: [
    ["m", 0, -4],
    ["l", 3.5, 6],
    ["l", -7, 0],
    ["l", 3.5, -6],
  ],
  cross: [
    ["m", -3, -3],
    ["l", 6, 6],
    ["m", 0, -6],
    ["l", -6, 6],
  ],
  diamond: [
    ["m", 0, -3],
    ["l", 3, 3],
    ["l", -3, 3],
    ["l", -3, -3],
    ["l", 3, -3],
  ],
  square: [
    ["m", -2.5, -2.5],
    ["l", 5, 0],
    ["l", 0, 5],
    ["l", -5, 0],
    ["l", 0, -5],
  ],
  dot: [
    ["m", -1, -2.4],
    ["l", 2, 0],
    ["l", 1.4, 1.4],
    ["l", 0, 2],
    ["l", -1.4, 1.4],
    ["l", -2, 0],
    ["l", -1.4, -1.4],
    ["l", 0, -2],
    ["l", 1.4, -1.4],
  ],
};

/** True for points that are signs, one by one. */
export function isMark(shape: Shape | undefined): boolean {
  return shape !== undefined && MARKS[shape] !== undefined;
}

/** True for a line whose path is made here; other lines are joined points. */
export function isShaped(line: Line): boolean {
  return line.shape !== undefined || line.low !== undefined;
}

/** The mark of a shape, `size` times as large. */
function mark(shape: Shape, size: number): string {
  return (MARKS[shape] ?? []).map(([command, x, y]) => `${command}${x * size} ${y * size}`).join("");
}

/** The path of a line in a legend of 24 by 6. */
export function sign(line: Line): string {
  if (line.shape === "bars") return "M6 0V6M12 0V6M18 0V6";
  if (line.shape === "interval") return `M0 3H24M12 3${mark("dot", 1)}`;
  return isMark(line.shape) ? `M12 3${mark(line.shape!, 0.9)}` : "M0 3H24";
}

/** The path of points, with their places and values on the screen; marks are `size` times as large as on paper. */
export function path(
  line: Line,
  points: Points,
  toX: (at: number) => number,
  toY: (value: number) => number,
  size = 1,
): string {
  const x = points.x.map(toX);
  const y = points.y.map(toY);
  const parts: string[] = [];
  const at = (n: number) => `${x[n]!.toFixed(1)} ${y[n]!.toFixed(1)}`;
  const least = (n: number) => toY(points.low?.[n] ?? points.y[n]!);
  x.forEach((_, n) => {
    const begin = n === 0 ? "M" : "L";
    switch (line.shape) {
      case "bars":
        // A segment of no height is seen, too.
        parts.push(`M${x[n]!.toFixed(1)} ${Math.max(least(n), y[n]! + 2 * size).toFixed(1)}V${y[n]!.toFixed(1)}`);
        break;
      case "steps":
        parts.push(n === 0 ? `M${at(n)}` : `H${x[n]!.toFixed(1)}`);
        if (points.low !== undefined) parts.push(`V${least(n).toFixed(1)}`);
        parts.push(`V${y[n]!.toFixed(1)}`);
        break;
      case undefined:
        parts.push(`${begin}${x[n]!.toFixed(1)} ${least(n).toFixed(1)}V${y[n]!.toFixed(1)}`);
        break;
      case "interval":
        parts.push(`${begin}${at(n)}`);
        break;
      default:
        parts.push(`M${at(n)}${mark(line.shape, size)}`);
    }
  });
  if (line.shape === "interval") x.forEach((_, n) => parts.push(`M${at(n)}${mark("dot", size)}`));
  if (points.spread !== undefined) {
    x.forEach((place, n) => {
      const spread = points.spread![n]!;
      if (spread <= 0) return;
      const [top, bottom] = [toY(points.y[n]! + spread), toY(points.y[n]! - spread)];
      const [left, right] = [(place - 4 * size).toFixed(1), (place + 4 * size).toFixed(1)];
      const middle = place.toFixed(1);
      parts.push(`M${middle} ${top.toFixed(1)}V${bottom.toFixed(1)}`);
      for (const end of [top, bottom]) parts.push(`M${left} ${end.toFixed(1)}H${right}`);
    });
  }
  return parts.join("");
}
