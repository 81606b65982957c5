/** The axes of a plot. */

import uPlot from "uplot";

import { calendarTicks } from "./calendar";
import { digits, type Across, type Panel, type Unit } from "./data";
import { token } from "./style";

const FONT = "12px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif";
/** Pixels between the names of two places. */
const APART = 84;
/** The most times of an axis of calendar time. */
const TIMES = 10;

/** Pixels of a plot at the left and at the right of its lines. */
const BESIDE = 74;

/**
 * The distances of ticks: round ones in the unit that is shown. uPlot leaves out those of more than 17 decimals, such
 * as 5 times 1e-6, which is 0.0000049999999999999996.
 */
export function incrs(unit: number): number[] {
  const round = (step: number, power: number) => Number((step * 10 ** power * unit).toPrecision(12));
  return Array.from({ length: 40 }, (_, n) => [1, 2, 5].map((step) => round(step, n - 20))).flat();
}

/** Both axes. */
export function axes(panel: Panel): uPlot.Axis[] {
  const { across } = panel;
  const [muted, grid, frame] = [token("--muted"), token("--grid"), token("--rule")];
  const axis = (unit: Unit, named: boolean): uPlot.Axis => ({
    stroke: muted,
    font: FONT,
    grid: { stroke: grid, width: 1 },
    ticks: { stroke: frame, width: 1, size: 4 },
    // The last tick names the unit of the horizontal axis.
    values: (_, ticks) =>
      ticks.map((tick, n) => {
        const number = digits(Math.round((tick / unit[0]) * 1e9) / 1e9);
        return named && n === ticks.length - 1 ? `${number} ${unit[1]}` : number;
      }),
  });
  const values: uPlot.Axis = { ...axis(panel.unit, false), incrs: incrs(panel.unit[0]), space: 34, size: 52 };
  const places: uPlot.Axis = { ...axis(across.unit, true), incrs: incrs(across.unit[0]), space: 70, size: 26 };
  if (hasNamedPlaces(across)) {
    places.splits = (plot, _, min, max) => namedPlaces(panel, min, max, plot.width - BESIDE).map(([at]) => at);
    places.values = (plot, splits) => {
      const { min, max } = plot.scales["x"]!;
      const names = new Map(namedPlaces(panel, min!, max!, plot.width - BESIDE));
      return splits.map((at) => names.get(at) ?? "");
    };
  }
  return [places, values];
}

/** Whether the places of an axis have names in place of numbers in its unit. */
export function hasNamedPlaces({ ticks, log, clock }: Across): boolean {
  return ticks !== undefined || log === true || clock !== undefined;
}

/** The named places of an axis that fit between its ends. */
export function namedPlaces(panel: Panel, min: number, max: number, width: number): [number, string][] {
  const { ticks, unit, clock } = panel.across;
  const round = () =>
    clock === undefined ? decades(min, max, unit) : calendarTicks(clock, min, max, Math.min(width / APART, TIMES));
  const all = ticks ?? round();
  let last = -Infinity;
  return all.filter(([at]) => {
    if (at < min - 1e-9 || at > max + 1e-9) return false;
    const place = ((at - min) / (max - min)) * width;
    if (place - last < APART) return false;
    last = place;
    return true;
  });
}

/** 1, 2 and 5 times the powers of ten between two logarithms. */
function decades(min: number, max: number, [scale, symbol]: Unit): [number, string][] {
  const found: [number, string][] = [];
  for (let power = Math.floor(min); power <= max; power++) {
    for (const step of [1, 2, 5]) {
      const at = power + Math.log10(step);
      if (at >= min && at <= max) found.push([at, `${digits(10 ** at / scale)} ${symbol}`.trim()]);
    }
  }
  return found;
}
