/** One panel as a plot: lines over time or another quantity, with values at the cursor. */

import uPlot from "uplot";

import { digits, shown, type Columns, type Line, type Panel, type Unit } from "./data";
import { exports } from "./export";
import type { Group, Member } from "./group";
import { Legend } from "./legend";
import { binOf, valueAt, visible, type Points } from "./view";

/** Dashes in pixels, as in the drawings without a script. */
export const DASHES: readonly (readonly number[])[] = [[], [7, 3], [3, 3], [10, 3, 2, 3], [1, 3]];
const HEIGHT = 190;
/** The most lines that are drawn with a point for each pixel. */
const MANY = 12;

/** The value of a custom property of the page. */
export function token(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** A line with the points of the view. */
export interface Drawn {
  line: Line;
  points: Points;
}

export class Chart implements Member {
  readonly element: HTMLElement;
  private plot: uPlot | null = null;
  private drawn: Drawn[] = [];
  private dirty = true;
  private onScreen = false;
  private readonly canvas: HTMLElement;
  private readonly note: HTMLElement;
  private readonly legend: Legend;

  constructor(
    readonly panel: Panel,
    readonly columns: Columns,
    readonly group: Group,
    toggled: (name: string) => void,
  ) {
    this.element = document.createElement("div");
    this.element.className = "chart";
    const head = document.createElement("div");
    head.className = "chart-head";
    const title = document.createElement("span");
    title.className = "chart-title";
    title.textContent = panel.unit[1] === "" ? panel.title : `${panel.title}, ${panel.unit[1]}`;
    this.note = document.createElement("span");
    this.note.className = "chart-note";
    head.append(title, this.note, exports(this));
    this.canvas = document.createElement("div");
    this.canvas.className = "chart-canvas";
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "application");
    this.canvas.setAttribute("aria-label", this.description());
    this.legend = new Legend(panel, group, toggled);
    this.element.append(head, this.canvas, this.legend.element);
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    group.add(this);
  }

  /** What the plot shows, for a reader who does not see it. */
  private description(): string {
    const { panel } = this;
    const names = [...new Set(panel.lines.map((line) => line.label).filter((label) => label !== ""))];
    const keys = "Arrow keys move the cursor, plus and minus zoom, shift with arrows moves the view, 0 shows all.";
    return `${panel.title} over ${panel.across.title.toLowerCase()}: ${names.join(", ")}. ${keys}`;
  }

  /** Draws once the chart is on the screen, and when its size changes. */
  attach(): void {
    const seen = new IntersectionObserver((entries) => {
      this.onScreen = entries.some((entry) => entry.isIntersecting);
      if (this.onScreen && this.dirty) this.redraw();
    }, { rootMargin: "200px" });
    seen.observe(this.canvas);
    new ResizeObserver(() => {
      const width = this.width();
      if (this.plot !== null && width > 0 && width !== this.plot.width) {
        this.plot.setSize({ width, height: HEIGHT });
        this.group.changed();
      }
    }).observe(this.canvas);
  }

  /** Colours change with the theme: the plot is made anew. */
  restyle(): void {
    this.plot?.destroy();
    this.plot = null;
    this.dirty = true;
    if (this.onScreen) this.redraw();
  }

  private width(): number {
    return Math.floor(this.canvas.clientWidth);
  }

  /** The lines that are on, with their points in the view. */
  lines(): Drawn[] {
    const [from, to] = this.group.view;
    const on = this.panel.lines.filter((line) => !this.group.isHidden(this.legend.nameOf(line)));
    // Of very many lines, each is as fine as the eye can follow.
    const width = Math.max(this.width() - 70, 100) / (on.length > MANY ? 3 : 1);
    return on.map((line) => ({ line, points: visible(line, this.columns, from, to, width) }));
  }

  redraw(): void {
    if (!this.onScreen) {
      this.dirty = true;
      return;
    }
    const width = this.width();
    if (width <= 0) return;
    this.dirty = false;
    this.drawn = this.lines();
    this.note.textContent = this.notes(width).join("; ");
    this.note.title = this.note.textContent;
    this.legend.refresh();
    const data = aligned(this.drawn);
    if (this.plot !== null && this.plot.series.length === data.length) {
      this.plot.setData(data, false);
      this.scale(this.plot);
      return;
    }
    this.plot?.destroy();
    this.plot = new uPlot(this.options(width), data, this.canvas);
    this.scale(this.plot);
  }

  private scale(plot: uPlot): void {
    const [from, to] = this.group.view;
    plot.batch(() => {
      plot.setScale("x", { min: from, max: to });
      plot.setScale("y", { min: 0, max: this.top() });
    });
    // The pointer rests, but another time is under it.
    if (plot.over.matches(":hover")) this.moved(plot);
  }

  /** The top of the scale: the panel's own, or above what a zoomed view shows. */
  top(): number {
    if (!this.group.zoomed) return this.panel.top;
    const [from, to] = this.group.view;
    let largest = 0;
    for (const { line, points } of this.drawn) {
      if (line.bound) continue;
      points.y.forEach((value, n) => {
        if (points.x[n]! >= from && points.x[n]! <= to) largest = Math.max(largest, value);
      });
    }
    return largest > 0 ? Math.min(largest * 1.08, Math.max(this.panel.top, largest)) : this.panel.top;
  }

  private notes(width: number): string[] {
    const { panel, group } = this;
    const [from, to] = group.view;
    const line = panel.lines.find((one) => one.means);
    const bin = line && binOf(line, this.columns, to - from, width - 70);
    const own = panel.notes.filter((note) => !note.startsWith("means of "));
    if (group.zoomed) own.splice(0, own.length, ...own.filter((note) => !note.startsWith("peaks above")));
    return bin === undefined || bin === null ? own : [`means of ${shown(bin, bin < 1 ? [1e-3, "ms"] : [1, "s"])}`, ...own];
  }

  private options(width: number): uPlot.Options {
    const { panel, group } = this;
    const [muted, grid, frame] = [token("--muted"), token("--grid"), token("--rule")];
    const font = "12px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif";
    const axis = (unit: Unit, named: boolean): Partial<uPlot.Axis> => ({
      stroke: muted,
      font,
      grid: { stroke: grid, width: 1 },
      ticks: { stroke: frame, width: 1, size: 4 },
      // The last tick names the unit of the horizontal axis.
      values: (_, ticks) =>
        ticks.map((tick, n) => {
          const number = digits(Math.round((tick / unit[0]) * 1e9) / 1e9);
          return named && n === ticks.length - 1 ? `${number} ${unit[1]}` : number;
        }),
    });
    // Round ticks are those of the unit that is shown.
    const incrs = (unit: number) =>
      Array.from({ length: 40 }, (_, n) => [1, 2, 5].map((step) => step * 10 ** (n - 20) * unit)).flat();
    return {
      width,
      height: HEIGHT,
      padding: [panel.across.phases.length > 1 ? 18 : 8, 22, 0, 0],
      legend: { show: false },
      scales: { x: { time: false, auto: false }, y: { auto: false } },
      axes: [
        { ...axis(panel.across.unit, true), incrs: incrs(panel.across.unit[0]), space: 70, size: 26 },
        { ...axis(panel.unit, false), incrs: incrs(panel.unit[0]), space: 34, size: 52 },
      ],
      series: [{}, ...this.drawn.map(({ line }) => stroke(line))],
      cursor: {
        y: false,
        points: { size: 7 },
        drag: { x: true, y: false, setScale: false, dist: 8 },
        bind: { dblclick: () => null },
        focus: { prox: 24 },
      },
      focus: { alpha: 0.35 },
      hooks: {
        drawClear: [(plot) => this.ground(plot)],
        draw: [(plot) => this.references(plot)],
        setCursor: [(plot) => this.moved(plot)],
        setSeries: [(_, index) => this.legend.focus(index === null ? null : this.drawn[index - 1]?.line ?? null)],
        setSelect: [
          (plot) => {
            const { left, width: selected } = plot.select;
            if (selected < 8) return;
            plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
            group.show(plot.posToVal(left, "x"), plot.posToVal(left + selected, "x"));
          },
        ],
        ready: [(plot) => this.gestures(plot)],
      },
    };
  }

  /** Double click shows all; the wheel with Ctrl zooms; fingers move the cursor, two of them zoom. */
  private gestures(plot: uPlot): void {
    const { over } = plot;
    const { group } = this;
    over.addEventListener("dblclick", () => group.reset());
    over.addEventListener("mouseleave", () => group.cursor(null, this));
    over.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.shiftKey) return;
      event.preventDefault();
      const at = plot.posToVal(event.clientX - over.getBoundingClientRect().left, "x");
      if (event.ctrlKey) group.zoom(event.deltaY < 0 ? 1.25 : 0.8, at);
      else group.pan((event.deltaY || event.deltaX) > 0 ? 0.1 : -0.1);
    }, { passive: false });
    const fingers = new Map<number, number>();
    over.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "touch") fingers.set(event.pointerId, event.clientX);
    });
    over.addEventListener("pointermove", (event) => {
      if (!fingers.has(event.pointerId)) return;
      const places = () => [...fingers.values()].sort((a, b) => a - b);
      const before = places();
      fingers.set(event.pointerId, event.clientX);
      const after = places();
      const left = over.getBoundingClientRect().left;
      if (after.length === 2) {
        const [was, is] = [before[1]! - before[0]!, after[1]! - after[0]!];
        if (was > 0 && is > 0) group.zoom(is / was, plot.posToVal((after[0]! + after[1]!) / 2 - left, "x"));
      } else {
        this.canvas.focus({ preventScroll: true });
        plot.setCursor({ left: event.clientX - left, top: 0 });
      }
    });
    for (const end of ["pointerup", "pointercancel"] as const) {
      over.addEventListener(end, (event) => fingers.delete(event.pointerId));
    }
  }

  private key(event: KeyboardEvent): void {
    const { plot, group } = this;
    if (plot === null || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = plot.over.clientWidth / 100;
    const left = plot.cursor.left === undefined || plot.cursor.left < 0 ? 0 : plot.cursor.left;
    const move = (by: number) => plot.setCursor({ left: Math.min(Math.max(left + by, 0), plot.over.clientWidth - 1), top: 0 });
    const at = plot.cursor.left === undefined || plot.cursor.left < 0 ? undefined : plot.posToVal(left, "x");
    switch (event.key) {
      case "ArrowLeft": event.shiftKey ? group.pan(-0.2) : move(-step); break;
      case "ArrowRight": event.shiftKey ? group.pan(0.2) : move(step); break;
      case "Home": move(-left); break;
      case "End": move(plot.over.clientWidth); break;
      case "+": case "=": group.zoom(1.5, at); break;
      case "-": group.zoom(1 / 1.5, at); break;
      case "0": case "Escape": group.reset(); break;
      default: return;
    }
    event.preventDefault();
  }

  private moved(plot: uPlot): void {
    const { left } = plot.cursor;
    const at = left === undefined || left < 0 ? null : plot.posToVal(left, "x");
    this.values(at);
    if (this.leads(plot)) this.group.cursor(at, this);
  }

  /**
   * Whether the reader moves the cursor in this plot: with the pointer, or with keys while the pointer is in no plot. The
   * cursors of the other plots follow, later than they are told, so their places say nothing.
   */
  private leads(plot: uPlot): boolean {
    if (plot.over.matches(":hover")) return true;
    return this.canvas.contains(document.activeElement) && document.querySelector(".u-over:hover") === null;
  }

  cursor(at: number | null): void {
    this.values(at);
    if (this.plot === null || !this.onScreen) return;
    this.plot.setCursor({ left: at === null ? -10 : this.plot.valToPos(at, "x"), top: -10 });
  }

  private values(at: number | null): void {
    const place = at === null ? "" : shown(at, this.panel.across.unit);
    const value = (line: Line) => {
      const found = at === null ? undefined : this.drawn.find((drawn) => drawn.line === line);
      const point = found && at !== null ? valueAt(found.points, at) : null;
      return point === null ? null : shown(point, this.panel.unit);
    };
    this.legend.values(place, value);
  }

  /** Bands of phases and their names. */
  private ground(plot: uPlot): void {
    const { ctx, bbox } = plot;
    const { phases } = this.panel.across;
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
  private references(plot: uPlot): void {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.strokeStyle = token("--ink");
    ctx.fillStyle = token("--ink");
    ctx.lineWidth = devicePixelRatio;
    ctx.font = `${11 * devicePixelRatio}px system-ui,sans-serif`;
    ctx.textAlign = "right";
    for (const [label, value] of this.panel.references) {
      if (value > this.top()) continue;
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

  /** The canvas of the plot, for a picture. */
  picture(): HTMLCanvasElement | null {
    if (this.plot === null) this.redraw();
    return this.plot?.ctx.canvas ?? null;
  }
}

function stroke(line: Line): uPlot.Series {
  const series: uPlot.Series = {
    label: line.label || line.member,
    stroke: token(`--c${line.colour % 8}`),
    width: line.faint ? 0.8 : line.bound ? 1.2 : 1.6,
    spanGaps: true,
    points: { show: false },
  };
  const dash = line.bound ? [2, 3] : DASHES[line.dash % DASHES.length]!;
  if (dash.length > 0) series.dash = [...dash];
  if (line.faint) series.alpha = 0.55;
  return series;
}

/** The tables of several lines as one, with `null` where a line has no point. */
function aligned(drawn: Drawn[]): uPlot.AlignedData {
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
