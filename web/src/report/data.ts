/** The data of a report's figures, as the crate `results` writes them (`report/gallery.rs`). */

import { timeShown, type Clock } from "./calendar";

/** The value of a unit in the base unit, and its symbol. */
export type Unit = [number, string];

export interface Across {
  title: string;
  unit: Unit;
  from: number;
  to: number;
  /** Places with names, if the axis has no others. */
  ticks?: [number, string][];
  /** True if places are logarithms to base 10. */
  log?: boolean;
  /** The clock of calendar time, if places are seconds since 1970; the unit names the zone. */
  clock?: Clock;
  /** Begin, end and name of each phase. */
  phases: [number, number, string][];
}

/** How points are drawn that no line joins: segments, steps, marks; `interval` is a line with the interval of each
 * point. */
export type Shape = "steps" | "bars" | "interval" | "triangle" | "cross" | "diamond" | "square" | "dot";

export interface Line {
  /** The name by which a reader switches the line, and those that share it. */
  label: string;
  /** The name of this line alone, if others share its label; else empty. */
  member: string;
  colour: number;
  dash: number;
  faint: boolean;
  bound: boolean;
  /** True if means of the samples are drawn. */
  means: boolean;
  /** Indices of the columns of times and values. */
  columns: [number, number];
  /** A line without. */
  shape?: Shape;
  /** The column of least values, where a point has an extent. */
  low?: number;
  /** The column of half the width of each point's interval. */
  spread?: number;
}

/** What a time was, in colours along the foot of a plot. */
export interface Strip {
  /** Names and colours. */
  kinds: [string, number][];
  /** Indices of the columns of begins and kinds. */
  columns: [number, number];
}

export interface Panel {
  title: string;
  unit: Unit;
  top: number;
  /** The bottom of the scale; zero without. */
  bottom?: number;
  /** True if the scale of a part begins at the part's least value; such a plot is high. */
  fits?: boolean;
  strip?: Strip;
  across: Across;
  lines: Line[];
  references: [string, number][];
  notes: string[];
}

export interface Hop {
  name: string;
  from: number;
  to: number;
  rate_bps: number | null;
  limit_bytes: number | null;
  backlog: [number, number] | null;
}

export interface Path {
  label: string;
  nodes: string[];
  links: Hop[];
}

export interface Figures {
  panels: Panel[];
  paths: Path[];
  /** Number of values and step of each column. */
  columns: [number, number][];
}

/** Columns of numbers. */
export type Columns = Float64Array[];

/** Decodes columns: each value is a multiple of its column's step, stored as a zigzag varint of the difference. */
export function decode(index: [number, number][], bytes: Uint8Array): Columns {
  let at = 0;
  return index.map(([count, step]) => {
    const column = new Float64Array(count);
    let value = 0;
    for (let n = 0; n < count; n++) {
      let rest = 0;
      let weight = 1;
      let byte: number;
      do {
        byte = bytes[at++] ?? 0;
        rest += (byte & 0x7f) * weight;
        weight *= 128;
      } while (byte & 0x80);
      value += rest % 2 === 0 ? rest / 2 : -(rest + 1) / 2;
      column[n] = value * step;
    }
    return column;
  });
}

/** The bytes of a text in Base64, decompressed (DEFLATE). */
export async function unpacked(base64: string): Promise<Uint8Array> {
  const packed = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** A value in a unit, with four digits. */
export function shown(value: number, [scale, symbol]: Unit): string {
  const text = digits(value / scale);
  return symbol === "" ? text : `${text}\u00a0${symbol}`;
}

/** A number with four significant digits. */
export function digits(value: number): string {
  if (!Number.isFinite(value)) return "\u2013";
  return Number(value.toPrecision(4)).toLocaleString("en", { maximumFractionDigits: 9, useGrouping: false });
}

/** A place of an axis: the nearest of named places, or a value. */
export function placeShown(at: number, { unit, ticks, log, clock }: Across): string {
  if (clock !== undefined) return `${timeShown(clock, at)} ${unit[1]}`;
  if (ticks === undefined) return shown(log === true ? 10 ** at : at, unit);
  const [nearest] = [...ticks].sort(([a], [b]) => Math.abs(a - at) - Math.abs(b - at));
  return nearest?.[1] ?? "";
}
