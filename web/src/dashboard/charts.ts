/** Charts over time: one for each chart of the report, drawn again with each report while it is visible. */

import uPlot from "uplot";
import type { Chart, Group, Mark, Store } from "./data";
import { h, setText } from "../dom";
import { show, ticks, type Unit } from "./units";

/** Series that are drawn at first; the others are a click away. */
const SHOWN = 8;
/** Points across a chart. */
const POINTS = 600;

/** Colours of the design, by token. Dashes tell lines apart as well, for eyes that see fewer colours. */
const COLORS = ["--ink", "--c0", "--c1", "--c2", "--c3", "--c4", "--c5", "--c6"];
const DASHES: number[][] = [[], [], [], [], [8, 3], [8, 3], [2, 3], [2, 3]];

/** Plots on the page, which change their colours with the scheme. */
const alive = new Set<Plot>();
const dark = window.matchMedia("(prefers-color-scheme: dark)");
dark.addEventListener("change", () => alive.forEach((plot) => plot.recolor()));

/** One colour for each label, whatever chart it is in. */
export class Colors {
  private readonly known = new Map<string, number>();

  of(label: string): number {
    const index = this.known.get(label) ?? this.known.size;
    // Names of policies that are gone are not kept for ever.
    if (this.known.size < 1000) this.known.set(label, index);
    return index;
  }
}

function colorOf(index: number): string {
  return variable(COLORS[index % COLORS.length]!);
}

function variable(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** A sample of a line, for a legend. */
function swatch(index: number): SVGSVGElement {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", "0 0 22 10");
  svg.setAttribute("aria-hidden", "true");
  const line = document.createElementNS(space, "path");
  line.setAttribute("d", "M1 5h20");
  line.style.stroke = `var(${COLORS[index % COLORS.length]!})`;
  line.setAttribute("stroke-width", "3");
  line.setAttribute("stroke-dasharray", DASHES[index % DASHES.length]!.join(" "));
  svg.append(line);
  return svg;
}

/** A plot of lines over time, with its legend. */
export class Plot {
  readonly figure = h("figure");
  private readonly heading = h("h3");
  private readonly area = h("div", { class: "plot", role: "img" });
  private readonly legend = h("ul", { class: "legend" });
  private readonly more = h("ul", { class: "legend" });
  private readonly details = h("details", { hidden: true }, h("summary"), this.more);
  private plot: uPlot | null = null;
  private labels: string[] = [];
  private values: HTMLElement[] = [];
  private hidden = new Set<string>();
  private data: uPlot.AlignedData = [[]];
  private range: [number, number] = [0, 1];
  visible = false;

  /** `colors` are those of the labels. The time is that of the day, with marks, or seconds from a beginning. */
  constructor(
    title: string,
    private readonly unit: Unit,
    private limit: number | null,
    private readonly colors: Colors,
    private readonly marks: (() => readonly Mark[]) | null,
  ) {
    this.heading.textContent = title;
    this.area.setAttribute("aria-label", `${title}, over time`);
    this.figure.append(this.heading, this.area, this.legend, this.details);
    new ResizeObserver(() => this.resize()).observe(this.area);
    alive.add(this);
  }

  /** The data of these series, and the line across the plot. */
  update(labels: readonly string[], limit: number | null, data: uPlot.AlignedData, range: [number, number]): void {
    this.data = data;
    this.range = range;
    if (this.plot === null || labels.join("\n") !== this.labels.join("\n") || limit !== this.limit) {
      this.limit = limit;
      this.rebuild(labels);
    } else {
      this.plot.setData(data);
    }
    this.showValues(null);
  }

  /** Colours of another scheme. */
  recolor(): void {
    if (!this.figure.isConnected) alive.delete(this);
    else if (this.plot !== null) this.rebuild(this.labels);
  }

  /** It is on the page no more. */
  destroy(): void {
    alive.delete(this);
    this.plot?.destroy();
    this.figure.remove();
  }

  private rebuild(labels: readonly string[]): void {
    this.plot?.destroy();
    for (const label of labels.slice(SHOWN)) if (!this.labels.includes(label)) this.hidden.add(label);
    this.labels = [...labels];
    this.plot = new uPlot(this.options(), this.data, this.area);
    this.drawLegend();
  }

  private options(): uPlot.Options {
    const soft = variable("--muted");
    const grid = { stroke: variable("--grid"), width: 1 };
    const axis = { stroke: soft, grid, ticks: grid, font: "12px system-ui, sans-serif" };
    const { unit } = this;
    return {
      width: Math.max(this.area.clientWidth, 120),
      height: 170,
      legend: { show: false },
      cursor: {
        drag: { x: false, y: false },
        y: false,
        ...(this.marks === null ? {} : { sync: { key: "time", setSeries: false } }),
      },
      scales: {
        x: { time: this.marks !== null, range: () => this.range },
        y: { range: (_plot, _least, most) => [0, Math.max(most ?? 0, this.limit ?? 0, leastOf(unit)) * 1.08] },
      },
      axes: [
        { ...axis, size: 32, ...(this.marks === null ? { values: seconds } : {}) },
        { ...axis, size: 78, values: (_plot, at) => ticks(at, unit) },
      ],
      series: [{}, ...this.labels.map((label, index) => this.line(label, index))],
      hooks: {
        draw: [(plot) => this.drawLines(plot)],
        setCursor: [(plot) => this.showValues(plot.cursor.idx ?? null)],
      },
    };
  }

  private line(label: string, index: number): uPlot.Series {
    return {
      label,
      show: !this.hidden.has(label),
      stroke: colorOf(this.colors.of(label)),
      width: index === 0 ? 2 : 1.5,
      dash: DASHES[this.colors.of(label) % DASHES.length]!,
      points: { show: false },
      spanGaps: false,
    };
  }

  /** The limit across, and a line with a number at each mark. */
  private drawLines(plot: uPlot): void {
    const { ctx, bbox } = plot;
    const ratio = window.devicePixelRatio;
    ctx.save();
    ctx.lineWidth = ratio;
    ctx.setLineDash([4 * ratio, 4 * ratio]);
    ctx.font = `${11 * ratio}px system-ui, sans-serif`;
    ctx.fillStyle = ctx.strokeStyle = variable("--muted");
    if (this.limit !== null) {
      const y = plot.valToPos(this.limit, "y", true);
      stroke(ctx, bbox.left, y, bbox.left + bbox.width, y);
    }
    ctx.fillStyle = ctx.strokeStyle = variable("--accent");
    this.marks?.().forEach((mark, index) => {
      const x = plot.valToPos(mark.at_ms / 1000, "x", true);
      if (x < bbox.left || x > bbox.left + bbox.width) return;
      stroke(ctx, x, bbox.top, x, bbox.top + bbox.height);
      ctx.fillText(String(index + 1), x + 3 * ratio, bbox.top + 11 * ratio);
    });
    ctx.restore();
  }

  private drawLegend(): void {
    this.values = [];
    const items = this.labels.map((label, index) => {
      const value = h("span");
      this.values.push(value);
      const pressed = String(!this.hidden.has(label));
      const sample = swatch(this.colors.of(label));
      const button = h("button", { type: "button", "aria-pressed": pressed }, sample, `${label} `, value);
      button.addEventListener("click", () => this.toggle(label, index, button));
      return h("li", {}, button);
    });
    this.legend.replaceChildren(...items.slice(0, SHOWN));
    this.more.replaceChildren(...items.slice(SHOWN));
    this.details.hidden = items.length <= SHOWN;
    this.details.firstElementChild!.textContent = `${items.length - SHOWN} more`;
  }

  private toggle(label: string, index: number, button: HTMLElement): void {
    const show = this.hidden.has(label);
    if (show) this.hidden.delete(label);
    else this.hidden.add(label);
    button.setAttribute("aria-pressed", String(show));
    this.plot?.setSeries(index + 1, { show });
  }

  /** The values at a position, or the latest ones. */
  private showValues(at: number | null): void {
    const last = this.data[0].length - 1;
    this.values.forEach((node, index) => {
      setText(node, show(this.data[index + 1]?.[at ?? last], this.unit));
    });
  }

  private resize(): void {
    if (this.plot !== null && this.area.clientWidth > 0) {
      this.plot.setSize({ width: this.area.clientWidth, height: 170 });
    }
  }
}

function stroke(ctx: CanvasRenderingContext2D, x0: number, y0: number, x1: number, y1: number): void {
  ctx.beginPath();
  ctx.moveTo(x0, y0);
  ctx.lineTo(x1, y1);
  ctx.stroke();
}

/** Labels of an axis in seconds from a beginning. */
function seconds(_plot: uPlot, at: number[]): string[] {
  return at.map((second) => `${second} s`);
}

/** The least full scale of an axis, so that nothing is not drawn as much. */
function leastOf(unit: Unit): number {
  return { "bit/s": 1000, B: 1000, s: 0.001, "/s": 1, "": 1 }[unit];
}

interface Shown {
  plot: Plot;
  group: string;
  chart: Chart;
}

/** All charts of the page. */
export class Charts {
  private readonly shown = new Map<string, Shown>();
  private readonly headings = new Map<string, { heading: HTMLElement; area: HTMLElement }>();
  private readonly observer: IntersectionObserver;

  constructor(
    private readonly root: HTMLElement,
    private readonly store: Store,
  ) {
    this.observer = new IntersectionObserver(
      (entries) => {
        for (const entry of entries) {
          for (const { plot } of this.shown.values()) {
            if (plot.figure === entry.target) plot.visible = entry.isIntersecting;
          }
        }
        this.draw();
      },
      { rootMargin: "200px" },
    );
  }

  private readonly palettes = new Map<string, Colors>();

  private colors(group: string): Colors {
    const colors = this.palettes.get(group) ?? new Colors();
    this.palettes.set(group, colors);
    return colors;
  }

  /** The time shown, in seconds. */
  span = 300;

  /** Charts and headings as in the latest report. */
  arrange(groups: readonly Group[]): void {
    const wanted = new Set<string>();
    for (const group of groups) {
      const place = this.place(group);
      for (const chart of group.charts) {
        const key = JSON.stringify([group.id, chart.title]);
        wanted.add(key);
        const known = this.shown.get(key);
        if (known === undefined) {
          const plot = new Plot(chart.title, chart.unit, chart.limit, this.colors(group.id), () => this.store.marks);
          this.shown.set(key, { plot, group: group.id, chart });
          place.append(plot.figure);
          this.observer.observe(plot.figure);
        } else {
          known.chart = chart;
        }
      }
    }
    for (const [key, { plot }] of this.shown) {
      if (wanted.has(key)) continue;
      this.observer.unobserve(plot.figure);
      plot.destroy();
      this.shown.delete(key);
    }
    const ids = new Set(groups.map((group) => group.id));
    for (const [id, { heading, area }] of this.headings) {
      if (ids.has(id)) continue;
      heading.remove();
      area.remove();
      this.headings.delete(id);
    }
  }

  private place(group: Group): HTMLElement {
    let known = this.headings.get(group.id);
    if (known === undefined) {
      known = { heading: h("h2"), area: h("div", { class: "charts" }) };
      this.headings.set(group.id, known);
      this.root.append(known.heading, known.area);
    }
    setText(known.heading, group.title);
    return known.area;
  }

  /** Draws the charts that are visible. */
  draw(): void {
    if (document.hidden) return;
    const now = this.store.latest();
    const from = now - this.span * 1000;
    for (const { plot, group, chart } of this.shown.values()) {
      if (!plot.visible) continue;
      const labels = chart.series.map((series) => series.label);
      const data = this.store.view(group, chart.title, labels, chart.unit, from, POINTS);
      plot.update(labels, chart.limit, data, [from / 1000, now / 1000]);
    }
  }
}
