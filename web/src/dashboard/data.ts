/** Reports of the program, and the last hour of all series in memory of a fixed size. */

import type { Unit } from "./units";

export interface Series {
  label: string;
  value: number | null;
}
export interface Chart {
  title: string;
  unit: Unit;
  limit: number | null;
  series: Series[];
}
export interface Group {
  id: string;
  title: string;
  charts: Chart[];
}
export type Cell = string | number | null;
export interface Table {
  title: string;
  columns: [string, Unit][];
  rows: Cell[][];
}
export interface Report {
  at_ms: number;
  status: string;
  groups: Group[];
  tables: Table[];
}
export interface Mark {
  at_ms: number;
  words: string;
}
export interface State {
  title: string;
  version: string;
  pid: number;
  control: boolean;
  reloads: boolean;
  policies: string[];
  listeners: number;
  left_out: number;
  counts: Record<string, number>;
}

interface Head {
  reports: number;
  columns: [string, string, string][];
  marks: Mark[];
}

/** Reports that are kept: an hour of one a second. */
const REPORTS = 3600;
/** The bound of the server on series and marks, and of this page too. */
const MOST_SERIES = 1024;
const MOST_MARKS = 100;

/** A key that no name can imitate: names of charts have no line break. */
const keyOf = (group: string, chart: string, label: string) => JSON.stringify([group, chart, label]);

/** The last hour, oldest first from `head` on. */
export class Store {
  readonly marks: Mark[] = [];
  private readonly times = new Float64Array(REPORTS);
  private columns = new Map<string, Float32Array>();
  private next = 0;
  private filled = 0;

  /** Takes the history of the server in place of everything. */
  replace(bytes: ArrayBuffer): void {
    const length = new DataView(bytes).getUint32(0, true);
    const head = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, length))) as Head;
    const reports = Math.min(head.reports, REPORTS);
    let offset = 4 + length;
    this.times.fill(0);
    this.times.set(new Float64Array(bytes, offset, reports));
    offset += 8 * reports;
    this.columns = new Map();
    for (const key of head.columns.slice(0, MOST_SERIES)) {
      const column = new Float32Array(REPORTS).fill(NaN);
      column.set(new Float32Array(bytes, offset, reports));
      this.columns.set(keyOf(...key), column);
      offset += 4 * reports;
    }
    this.filled = reports;
    this.next = reports % REPORTS;
    this.marks.splice(0, this.marks.length, ...head.marks);
  }

  /** The time of the latest report; 0 without one. */
  latest(): number {
    return this.filled === 0 ? 0 : this.times[(this.next + REPORTS - 1) % REPORTS]!;
  }

  /** Adds a report, in place of the oldest. False: it is there already. */
  push(report: Report): boolean {
    if (report.at_ms <= this.latest()) return false;
    const slot = this.next;
    if (slot === 0) this.forgetEmpty();
    this.next = (slot + 1) % REPORTS;
    this.filled = Math.min(this.filled + 1, REPORTS);
    this.times[slot] = report.at_ms;
    for (const column of this.columns.values()) column[slot] = NaN;
    for (const group of report.groups) {
      for (const chart of group.charts) {
        for (const { label, value } of chart.series) {
          if (value !== null) this.column(keyOf(group.id, chart.title, label))[slot] = value;
        }
      }
    }
    return true;
  }

  mark(mark: Mark): void {
    if (this.marks.some((other) => other.at_ms === mark.at_ms && other.words === mark.words)) return;
    this.marks.push(mark);
    this.marks.splice(0, Math.max(0, this.marks.length - MOST_MARKS));
  }

  private column(key: string): Float32Array {
    let column = this.columns.get(key);
    if (column === undefined) {
      if (this.columns.size >= MOST_SERIES) this.forget();
      column = new Float32Array(REPORTS).fill(NaN);
      this.columns.set(key, column);
    }
    return column;
  }

  /** Forgets series without a value in the last hour. */
  private forgetEmpty(): void {
    for (const [key, column] of this.columns) {
      if (column.every(Number.isNaN)) this.columns.delete(key);
    }
  }

  /** Forgets series without a value, or else the first one. */
  private forget(): void {
    this.forgetEmpty();
    const [first] = this.columns.keys();
    if (this.columns.size >= MOST_SERIES && first !== undefined) this.columns.delete(first);
  }

  /** Times in seconds and the values of series since `from` (milliseconds), in at most `points` bins. */
  view(group: string, chart: string, labels: readonly string[], unit: Unit, from: number, points: number): View {
    const slots: number[] = [];
    for (let back = 1; back <= this.filled; back += 1) {
      const slot = (this.next + REPORTS - back) % REPORTS;
      if (this.times[slot]! < from) break;
      slots.push(slot);
    }
    slots.reverse();
    const bin = Math.max(1, Math.ceil(slots.length / points));
    // Bins begin at multiples of their size, so that they stay while time goes on.
    const bins: number[][] = [];
    let current = NaN;
    for (const slot of slots) {
      const number = Math.floor(this.times[slot]! / 1000 / bin);
      if (number === current && bin > 1) bins[bins.length - 1]!.push(slot);
      else bins.push([slot]);
      current = number;
    }
    const x = bins.map((some) => this.times[some[some.length - 1]!]! / 1000);
    const y = labels.map((label) => {
      const column = this.columns.get(keyOf(group, chart, label));
      return bins.map((some) => (column === undefined ? null : summary(column, some, unit)));
    });
    return [x, ...y];
  }
}

/** Times, and the values of each series. */
export type View = [number[], ...(number | null)[][]];

/** The mean of rates; the largest of delays, sizes and events, which a mean would hide. */
function summary(column: Float32Array, slots: readonly number[], unit: Unit): number | null {
  let sum = 0;
  let largest = -Infinity;
  let count = 0;
  for (const slot of slots) {
    const value = column[slot]!;
    if (Number.isNaN(value)) continue;
    sum += value;
    largest = Math.max(largest, value);
    count += 1;
  }
  if (count === 0) return null;
  return unit === "bit/s" ? sum / count : largest;
}
