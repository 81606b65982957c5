/** Scales of a figure: linear, logarithmic, or names of places. */

import { shown } from "../report/data";
import type { Axis, Figure } from "./model";

export interface Scale {
  /** A value's place on the plot, and back. */
  to(value: number): number;
  back(place: number): number;
  /** Places of ticks. */
  ticks(from: number, to: number): number[];
  /** A value with its unit. */
  text(value: number): string;
  /** A tick. */
  tick(place: number): string;
}

const number = (value: number) =>
  Number(value.toPrecision(6)).toLocaleString("en", { useGrouping: false, maximumFractionDigits: 6 });

/** Round steps: about `count` of them between two values. */
export function round(from: number, to: number, count: number): number[] {
  const raw = (to - from) / count;
  if (!(raw > 0)) return [from];
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * ([1, 2, 5].find((one) => one * power >= raw * (1 - 1e-9)) ?? 10);
  const all: number[] = [];
  for (let n = Math.ceil(from / step - 1e-9) + 0; n * step <= to * (1 + 1e-9); n++) all.push(n * step);
  return all;
}

export function scale({ unit, log, ticks }: Axis): Scale {
  const [factor] = unit;
  const to = log === true ? (value: number) => Math.log10(value) : (value: number) => value;
  const back = log === true ? (value: number) => 10 ** value : (value: number) => value;
  return {
    to,
    back,
    ticks: (low, high) => {
      if (ticks !== undefined) return ticks.map(to).filter((at) => at >= low - 1e-9 && at <= high + 1e-9);
      if (log === true) return decades(low, high);
      return round(low / factor, high / factor, 6).map((value) => value * factor);
    },
    text: (value) => shown(value, unit),
    tick: (at) => number(back(at) / factor),
  };
}

/** 1, 2 and 5 of each power of ten, or the powers alone where there are many. */
function decades(low: number, high: number): number[] {
  const steps = high - low > 2.2 ? [1] : [1, 2, 5];
  const all: number[] = [];
  for (let power = Math.floor(low); power <= Math.ceil(high); power++) {
    for (const step of steps) all.push(power + Math.log10(step));
  }
  return all.filter((at) => at >= low - 1e-9 && at <= high + 1e-9);
}

/** The scale across of a figure. */
export function across(figure: Figure): Scale & { title: string } {
  if (!("categories" in figure.across)) {
    const { axis } = figure.across;
    return { ...scale(axis), title: axis.unit[1] === "" ? axis.title : `${axis.title}, ${axis.unit[1]}` };
  }
  const { categories, title } = figure.across;
  const name = (at: number) => categories[Math.round(at)]?.label ?? "";
  const plain = (value: number) => value;
  return { to: plain, back: plain, ticks: () => categories.map((_, n) => n), text: name, tick: name, title };
}
