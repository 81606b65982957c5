/** One panel as a plot: lines over time or another quantity, with values at the cursor. */

import uPlot from "uplot";

import { ground, references, strip } from "./annotations";
import { axes } from "./axes";
import { placeShown, shown, type Columns, type Line, type Panel } from "./data";
import { exports } from "./export";
import type { Group, Member } from "./group";
import { Legend } from "./legend";
import { aligned, stroke, type Drawn } from "./series";
import { isMark, path } from "./shapes";
import { binOf, first, indexAt, visible } from "./view";

const HEIGHT = 190;
/** The height of a plot whose scale follows the view. */
const HIGH = 340;
/** The most lines that are drawn with a point for each pixel. */
const MANY = 12;
/** Pixels between the cursor and a mark that has a value there. */
const NEAR = 8;

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
    this.canvas.style.minHeight = `${this.height}px`;
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
    const names = [...new Set(panel.lines.map((line) => line.label))];
    const keys = "Arrow keys move the cursor, plus and minus zoom, shift with arrows moves the view, 0 shows all.";
    return `${panel.title} over ${panel.across.title.toLowerCase()}: ${names.join(", ")}. ${keys}`;
  }

  /** Draws once the chart is on the screen, and when its size changes. */
  attach(): void {
    const seen = new IntersectionObserver(
      (entries) => {
        this.onScreen = entries.some((entry) => entry.isIntersecting);
        if (this.onScreen && this.dirty) this.redraw();
      },
      { rootMargin: "200px" },
    );
    seen.observe(this.canvas);
    new ResizeObserver(() => {
      const width = this.width();
      if (this.plot !== null && width > 0 && width !== this.plot.width) {
        this.plot.setSize({ width, height: this.height });
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

  private get height(): number {
    return this.panel.fits === true ? HIGH : HEIGHT;
  }

  private width(): number {
    return Math.floor(this.canvas.clientWidth);
  }

  /** The lines that are on, with their points in the view. */
  lines(): Drawn[] {
    const [from, to] = this.group.view;
    const on = this.panel.lines.filter((line) => !this.group.isHidden(line.label));
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
      const [min, max] = this.scaleEnds();
      plot.setScale("y", { min, max });
    });
    // The pointer rests, but another time is under it.
    if (plot.over.matches(":hover")) this.moved(plot);
  }

  /** The ends of the scale: the panel's own, or around the values of a zoomed view. Bounds may be far above them. */
  scaleEnds(): [number, number] {
    const { panel, group } = this;
    const bottom = panel.bottom ?? 0;
    if (!group.zoomed) return [bottom, panel.top];
    const [from, to] = group.view;
    let [least, largest] = [Infinity, -Infinity];
    for (const { line, points } of this.drawn) {
      if (line.bound) continue;
      points.y.forEach((value, n) => {
        if (points.x[n]! < from || points.x[n]! > to) return;
        const spread = points.spread?.[n] ?? 0;
        largest = Math.max(largest, value + spread);
        least = Math.min(least, (points.low?.[n] ?? value) - spread);
      });
    }
    if (panel.fits === true && largest >= least) {
      const margin = Math.max((largest - least) * 0.06, panel.top * 1e-6);
      return [Math.max(least - margin, bottom), largest + margin];
    }
    return [bottom, largest > 0 ? Math.min(largest * 1.08, Math.max(panel.top, largest)) : panel.top];
  }

  private notes(width: number): string[] {
    const { panel, group } = this;
    const [from, to] = group.view;
    const line = panel.lines.find((one) => one.means);
    const bin = line && binOf(line, this.columns, to - from, width - 70);
    // Means here are over other times than those of the drawing, and have other peaks.
    const own = panel.notes.filter((note) => !/^(means of|peaks above) /.test(note));
    const [, top] = this.scaleEnds();
    const isAbove = ({ line, points: { x, y } }: Drawn) =>
      !line.bound && y.some((value, n) => value > top && x[n]! >= from && x[n]! <= to);
    if (this.drawn.some(isAbove)) own.unshift("peaks above the scale are cut");
    return bin === undefined || bin === null
      ? own
      : [`means of ${shown(bin, bin < 1 ? [1e-3, "ms"] : [1, "s"])}`, ...own];
  }

  private options(width: number): uPlot.Options {
    const { panel, group } = this;
    const shape: uPlot.Series.PathBuilder = (plot, index) => {
      const { line, points } = this.drawn[index - 1]!;
      const [toX, toY] = (["x", "y"] as const).map((scale) => (value: number) => plot.valToPos(value, scale, true));
      return { stroke: new Path2D(path(line, points, toX!, toY!, devicePixelRatio)), fill: null, flags: 0 };
    };
    return {
      width,
      height: this.height,
      padding: [panel.across.phases.length > 1 ? 18 : 8, 22, 0, 0],
      legend: { show: false },
      scales: { x: { time: false, auto: false }, y: { auto: false } },
      axes: axes(panel),
      series: [{}, ...this.drawn.map(({ line }) => stroke(line, shape))],
      cursor: {
        y: false,
        points: { size: 7 },
        drag: { x: true, y: false, setScale: false, dist: 8 },
        bind: { dblclick: () => null },
        focus: { prox: 24 },
        hover: { prox: panel.fits === true ? NEAR : 40 },
      },
      // Segments and marks that belong together stay equally clear.
      focus: { alpha: panel.fits === true ? 1 : 0.35 },
      hooks: {
        drawClear: [(plot) => ground(plot, panel)],
        drawAxes: [(plot) => strip(plot, panel, this.columns)],
        draw: [(plot) => references(plot, panel)],
        setCursor: [(plot) => this.moved(plot)],
        setSeries: [(_, index) => this.legend.focus(index === null ? null : (this.drawn[index - 1]?.line ?? null))],
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
    over.addEventListener(
      "wheel",
      (event) => {
        if (!event.ctrlKey && !event.shiftKey) return;
        event.preventDefault();
        const at = plot.posToVal(event.clientX - over.getBoundingClientRect().left, "x");
        if (event.ctrlKey) group.zoom(event.deltaY < 0 ? 1.25 : 0.8, at);
        else group.pan((event.deltaY || event.deltaX) > 0 ? 0.1 : -0.1);
      },
      { passive: false },
    );
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
    const move = (by: number) =>
      plot.setCursor({ left: Math.min(Math.max(left + by, 0), plot.over.clientWidth - 1), top: 0 });
    const at = plot.cursor.left === undefined || plot.cursor.left < 0 ? undefined : plot.posToVal(left, "x");
    switch (event.key) {
      case "ArrowLeft":
        event.shiftKey ? group.pan(-0.2) : move(-step);
        break;
      case "ArrowRight":
        event.shiftKey ? group.pan(0.2) : move(step);
        break;
      case "Home":
        move(-left);
        break;
      case "End":
        move(plot.over.clientWidth);
        break;
      case "+":
      case "=":
        group.zoom(1.5, at);
        break;
      case "-":
        group.zoom(1 / 1.5, at);
        break;
      case "0":
      case "Escape":
        group.reset();
        break;
      default:
        return;
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
   * Whether the reader moves the cursor in this plot: with the pointer, or with keys while the pointer is in no plot.
   * The cursors of the other plots follow, later than they are told, so their places say nothing.
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
    if (at === null) return this.legend.values("", () => null);
    const place = [placeShown(at, this.panel.across), this.kindAt(at)].filter((text) => text !== "").join(", ");
    this.legend.values(place, (line) => this.valueAt(line, at));
  }

  /** The value of a line at a place, in words; a mark has one only near it. */
  private valueAt(line: Line, at: number): string | null {
    const points = this.drawn.find((drawn) => drawn.line === line)?.points;
    const n = points === undefined ? null : indexAt(points, at, line.shape);
    if (points === undefined || n === null) return null;
    const { unit } = this.panel;
    const [value, low, spread] = [points.y[n]!, points.low?.[n], points.spread?.[n]];
    const [from, to] = this.group.view;
    const { across } = this.panel;
    const apart = (Math.abs(points.x[n]! - at) / (to - from)) * this.width();
    const isNamed = () => placeShown(points.x[n]!, across) === placeShown(at, across);
    const isHere = across.ticks === undefined ? apart <= NEAR : isNamed();
    if (isMark(line.shape) && !isHere) return null;
    if (spread !== undefined && spread > 0) return `${shown(value, unit)} \u00b1 ${shown(spread, unit)}`;
    return low !== undefined && low < value ? `${shown(low, unit)} to ${shown(value, unit)}` : shown(value, unit);
  }

  /** What the strip along the foot has at a place. */
  private kindAt(at: number): string {
    const { strip } = this.panel;
    if (strip === undefined) return "";
    const begins = this.columns[strip.columns[0]]!;
    let n = first(begins, at);
    if (n >= begins.length || begins[n]! > at) n -= 1;
    return n < 0 ? "" : (strip.kinds[this.columns[strip.columns[1]]![n]!]?.[0] ?? "");
  }

  /** The canvas of the plot, for a picture. */
  picture(): HTMLCanvasElement | null {
    if (this.plot === null) this.redraw();
    return this.plot?.ctx.canvas ?? null;
  }
}
