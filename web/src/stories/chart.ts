/**
 * A figure of a story as a plot: published dots as rings, simulated ones as discs with their intervals, the reader's as
 * diamonds.
 */

import uPlot from "uplot";

import { token } from "../report/style";
import { place, type Dot, type Dots, type Figure } from "./model";
import { across, scale, type Scale } from "./scale";

const HEIGHT = 300;

/** What a curve of the plot is. */
export type Side = "published" | "simulated" | "yours";

/** A curve: the dots of a series on one side. */
export interface Curve {
  series: number;
  side: Side;
  dots: Dot[];
}

/** The curves of a figure; those of the reader are empty at first. */
export function curves(all: Dots[], yours: Dot[][]): Curve[] {
  return all.flatMap(({ published, simulated }, series) => [
    { series, side: "published" as const, dots: published },
    { series, side: "simulated" as const, dots: simulated },
    { series, side: "yours" as const, dots: yours[series] ?? [] },
  ]);
}

/** Values of all curves at the places of any of them. */
export function aligned(all: Curve[], x: Scale, y: Scale): uPlot.AlignedData {
  const places = [...new Set(all.flatMap(({ dots }) => dots.map((dot) => dot.x)))].sort((a, b) => a - b);
  const index = new Map(places.map((at, n) => [at, n]));
  const columns = all.map(({ dots }) => {
    const column: (number | null)[] = places.map(() => null);
    for (const dot of dots) column[index.get(dot.x)!] = y.to(dot.y);
    return column;
  });
  return [places.map((at) => x.to(at)), ...columns] as uPlot.AlignedData;
}

export class StoryChart {
  private plot: uPlot | null = null;
  private all: Curve[] = [];
  private readonly x: Scale & { title: string };
  private readonly y: Scale;
  private newest: { series: number; dot: Dot }[] = [];

  constructor(
    private readonly place: HTMLElement,
    private readonly figure: Figure,
    private readonly moved: (at: number | null) => void,
  ) {
    this.x = across(figure);
    this.y = scale(figure.up);
    place.classList.add("story-canvas");
    place.tabIndex = 0;
    place.setAttribute("role", "application");
    place.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => {
      if (this.plot === null) this.draw();
      else if (this.width > 0 && this.width !== this.plot.width)
        this.plot.setSize({ width: this.width, height: HEIGHT });
    }).observe(place);
  }

  private get width(): number {
    return Math.floor(this.place.clientWidth);
  }

  /** The places across of all dots, in their order. */
  get places(): number[] {
    return [...new Set(this.all.flatMap(({ dots }) => dots.map((dot) => dot.x)))].sort((a, b) => a - b);
  }

  show(all: Curve[], newest: { series: number; dot: Dot }[]): void {
    this.all = all;
    this.newest = newest;
    if (this.plot === null) return this.draw();
    this.plot.setData(aligned(all, this.x, this.y), false);
    this.range(this.plot);
  }

  /** Colours change with the theme. */
  restyle(): void {
    this.plot?.destroy();
    this.plot = null;
    this.draw();
  }

  private draw(): void {
    if (this.width <= 0 || this.all.length === 0) return;
    this.plot = new uPlot(this.options(), aligned(this.all, this.x, this.y), this.place);
    this.range(this.plot);
  }

  /** Both scales show all dots, and all places that sliders reach. */
  private range(plot: uPlot): void {
    const { figure } = this;
    const dots = this.all.flatMap((curve) => curve.dots);
    const places = dots.map((dot) => this.x.to(dot.x));
    if ("param" in figure.across) {
      const { param } = figure.across;
      const reach = figure.sliders.find(({ setting }) => setting === param)?.values ?? [];
      places.push(...reach.map((value) => this.x.to(value)));
    }
    const count = "categories" in figure.across ? figure.across.categories.length : null;
    const [low, high] = count === null ? [Math.min(...places), Math.max(...places)] : [-0.5, count - 0.5];
    const gap = count === null ? (high - low) * 0.04 : 0;
    const ups = dots.flatMap((dot) => [this.y.to(dot.y + dot.half), this.y.to(Math.max(dot.y - dot.half, dot.y / 2))]);
    const top = Math.max(...ups);
    const ticks = this.figure.up.ticks?.[0];
    const lowest = ticks === undefined ? Math.floor(Math.min(...ups)) : Math.min(this.y.to(ticks), ...ups);
    const bottom = this.figure.up.log === true ? lowest : 0;
    plot.batch(() => {
      plot.setScale("x", { min: low - gap, max: high + gap });
      plot.setScale("y", { min: bottom, max: bottom + (top - bottom) * 1.08 });
    });
  }

  private options(): uPlot.Options {
    const [muted, grid, rule] = [token("--muted"), token("--grid"), token("--rule")];
    const font = "12px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif";
    const axis = (of: Scale): Partial<uPlot.Axis> => ({
      stroke: muted,
      font,
      labelFont: font,
      grid: { stroke: grid, width: 1 },
      ticks: { stroke: rule, width: 1, size: 4 },
      splits: (_, __, low, high) => of.ticks(low, high),
      values: (_, at) => at.map((one) => of.tick(one)),
    });
    return {
      width: this.width,
      height: HEIGHT,
      padding: [10, 16, 0, 0],
      legend: { show: false },
      scales: { x: { time: false, auto: false }, y: { auto: false } },
      axes: [
        { ...axis(this.x), label: this.x.title, labelSize: this.x.title === "" ? 0 : 22, size: 28 },
        { ...axis(this.y), size: 54 },
      ],
      series: [{}, ...this.all.map((curve) => this.series(curve))],
      cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
      hooks: {
        draw: [(plot) => this.marks(plot)],
        setCursor: [
          (plot) =>
            this.moved(
              plot.cursor.idx === null || plot.cursor.idx === undefined || (plot.cursor.left ?? -1) < 0
                ? null
                : (this.places[plot.cursor.idx] ?? null),
            ),
        ],
      },
    };
  }

  private series({ series, side }: Curve): uPlot.Series {
    const names = "categories" in this.figure.across;
    const stroke = token(`--c${series % 8}`);
    const line = side === "yours" || names ? { paths: () => null } : {};
    // Lines lead the eye from dot to dot; they are no values.
    return {
      stroke,
      width: 1.2,
      alpha: 0.6,
      spanGaps: true,
      points: { show: false },
      ...line,
      ...(side === "published" ? { dash: [5, 4] } : {}),
    };
  }

  /** Dots are drawn above all lines. Of names of places the sides are next to each other. */
  private marks(plot: uPlot): void {
    const { ctx } = plot;
    const pixel = devicePixelRatio;
    ctx.save();
    const names = "categories" in this.figure.across;
    const count = this.all.length / 3;
    for (const { series, side, dots } of this.all) {
      const colour = token(`--c${series % 8}`);
      const beside = names
        ? ((series - (count - 1) / 2) * 34 + { published: -8, simulated: 0, yours: 8 }[side]) * pixel
        : 0;
      dots.forEach((dot) => {
        const [left, top] = [
          plot.valToPos(this.x.to(dot.x), "x", true) + beside,
          plot.valToPos(this.y.to(dot.y), "y", true),
        ];
        ctx.strokeStyle = colour;
        ctx.fillStyle = colour;
        ctx.lineWidth = 1.8 * pixel;
        if (dot.half > 0) this.interval(plot, dot, left);
        const latest = this.newest.some((one) => one.series === series && one.dot === dot);
        mark(ctx, side, left, top, (side === "yours" ? (latest ? 8 : 5) : 4.5) * pixel, latest);
      });
    }
    ctx.restore();
  }

  private interval(plot: uPlot, dot: Dot, left: number): void {
    const ends = [dot.y - dot.half, dot.y + dot.half].map((value) =>
      plot.valToPos(this.y.to(Math.max(value, dot.y / 10)), "y", true),
    );
    if (Math.abs(ends[0]! - ends[1]!) < 3 * devicePixelRatio) return;
    plot.ctx.beginPath();
    plot.ctx.moveTo(left, ends[0]!);
    plot.ctx.lineTo(left, ends[1]!);
    plot.ctx.stroke();
  }

  private key(event: KeyboardEvent): void {
    const { plot } = this;
    if (plot === null || event.ctrlKey || event.metaKey || event.altKey) return;
    const { places } = this;
    const now = (plot.cursor.left ?? -1) < 0 ? -1 : (plot.cursor.idx ?? -1);
    const next = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: places.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    const at = places[Math.min(Math.max(next, 0), places.length - 1)];
    if (at !== undefined) plot.setCursor({ left: plot.valToPos(this.x.to(at), "x"), top: 0 });
  }

  /** The place of settings across; `null` where they have none. */
  at(settings: Parameters<typeof place>[1]): number | null {
    return place(this.figure, settings);
  }
}

/** A ring, a disc or a diamond. */
function mark(
  ctx: CanvasRenderingContext2D,
  side: Side,
  left: number,
  top: number,
  size: number,
  latest: boolean,
): void {
  ctx.beginPath();
  if (side === "yours") {
    ctx.moveTo(left, top - size);
    ctx.lineTo(left + size, top);
    ctx.lineTo(left, top + size);
    ctx.lineTo(left - size, top);
    ctx.closePath();
  } else {
    ctx.arc(left, top, size, 0, 2 * Math.PI);
  }
  if (side === "published") ctx.fillStyle = token("--paper");
  if (side === "yours" && !latest) ctx.globalAlpha = 0.5;
  ctx.fill();
  if (side === "yours") {
    ctx.strokeStyle = token("--ink");
    ctx.lineWidth = 1.2 * devicePixelRatio;
  }
  ctx.stroke();
  ctx.globalAlpha = 1;
}
