/** A figure with its sliders, values at the cursor, a table, and verdicts. */

import { h } from "../dom";
import { toHash } from "../playground/state";
import { digits, shown } from "../report/data";
import { curves, StoryChart } from "./chart";
import type { Live, Point } from "./live";
import {
  dots,
  figureOf,
  first,
  table,
  trial,
  type Chosen,
  type Claim,
  type Dot,
  type Dots,
  type Figure,
  type Publication,
  type Trial,
} from "./model";
import { across } from "./scale";

/** Milliseconds without a movement before a run. */
const REST_MS = 120;
/** Points of the reader that stay. */
const KEPT = 60;

export class Panel {
  readonly element: HTMLElement;
  readonly chart: StoryChart;
  private readonly all: Dots[];
  private readonly yours: Dot[][];
  private newest: { series: number; dot: Dot }[] = [];
  private readonly chosen: Chosen;
  private readonly values: HTMLElement[] = [];
  private readonly at = h("span", { class: "legend-place" });
  private readonly status = h("p", { class: "status", role: "status" });
  private readonly more = h("p", { class: "point" });
  private readonly bar = h("progress", { hidden: true, "aria-label": "Simulating" });
  private timer = 0;

  constructor(
    private readonly publication: Publication,
    private readonly figure: Figure,
    private readonly live: Live,
  ) {
    this.chosen = first(figure);
    this.all = figure.series.map((series) => dots(publication, figure, series));
    this.yours = figure.series.map(() => []);
    const canvas = h("div", {
      "aria-label": `${figure.title}. Arrow keys move the cursor; a table of values follows.`,
    });
    this.chart = new StoryChart(canvas, figure, (at) => this.cursor(at));
    const unit = figure.up.unit[1];
    this.element = h(
      "section",
      { class: "figure", id: `${publication.key}-${figure.id}` },
      h("h3", {}, figure.title),
      h("p", {}, figure.about),
      h(
        "div",
        { class: "figure-body" },
        h(
          "div",
          {},
          h(
            "figure",
            {},
            h("figcaption", { class: "chart-title" }, unit === "" ? figure.up.title : `${figure.up.title}, ${unit}`),
            canvas,
            this.legend(),
          ),
          this.table(),
        ),
        this.controls(),
      ),
      h("div", { class: "claims" }, ...claims(publication, figure)),
    );
    this.show();
  }

  private show(): void {
    this.chart.show(curves(this.all, this.yours), this.newest);
  }

  private legend(): HTMLElement {
    const entry = (label: string, series: number) => {
      const value = h("span", { class: "legend-value" });
      this.values.push(value);
      return h(
        "span",
        { class: "entry" },
        h("span", { class: "dot", style: `background:var(--c${series % 8})` }),
        label,
        " ",
        value,
      );
    };
    const sign = (kind: string, label: string) =>
      h("span", { class: "entry" }, h("span", { class: `sign ${kind}` }), label);
    return h(
      "div",
      { class: "legend" },
      ...this.figure.series.map(({ label }, n) => entry(label, n)),
      h(
        "span",
        { class: "signs" },
        sign("ring", "published"),
        sign("disc", "simulated, with 95 % interval"),
        sign("diamond", "yours"),
      ),
      this.at,
    );
  }

  /** Values of all series at a place. */
  private cursor(at: number | null): void {
    const value = (found: Dot[]) => found.find((dot) => dot.x === at);
    this.at.textContent = at === null ? "" : `at ${across(this.figure).text(at)}`;
    this.values.forEach((element, n) => {
      const { published, simulated } = this.all[n]!;
      const parts = [
        ["published", value(published)],
        ["simulated", value(simulated)],
        ["yours", value(this.yours[n]!)],
      ] as const;
      const texts = parts.flatMap(([name, dot]) => (dot === undefined ? [] : [`${name} ${this.text(dot)}`]));
      element.textContent = at === null ? "" : texts.join(", ");
    });
  }

  private text({ y, half }: Dot): string {
    const [factor, symbol] = this.figure.up.unit;
    if (half < Math.abs(y) * 1e-4) return shown(y, this.figure.up.unit);
    const around = Number((half / factor).toPrecision(2));
    const unit = symbol === "" ? "" : `\u00a0${symbol}`;
    return `${digits(y / factor)} \u00b1 ${around}${unit}`;
  }

  private controls(): HTMLElement {
    const { figure, publication } = this;
    const id = (n: number, kind: string) => `${publication.key}-${figure.id}-${kind}-${n}`;
    const sliders = figure.sliders.map(({ label, unit, values }, n) => {
      const output = h("output", { for: id(n, "slider") });
      const text = () => {
        const words = shown(values[this.chosen.sliders[n]!]!, unit);
        output.textContent = words;
        input.setAttribute("aria-valuetext", words);
      };
      const input = h("input", {
        type: "range",
        id: id(n, "slider"),
        min: 0,
        max: values.length - 1,
        step: 1,
        value: this.chosen.sliders[n]!,
      });
      text();
      input.addEventListener("input", () => {
        this.chosen.sliders[n] = Number(input.value);
        text();
        this.wish();
      });
      return h("div", { class: "knob" }, h("label", { for: id(n, "slider") }, label), output, input);
    });
    const choices = figure.choices
      .map((choice, n) => ({ choice, n }))
      .filter(({ choice }) => choice.options.length > 1)
      .map(({ choice, n }) => {
        const select = h(
          "select",
          { id: id(n, "choice") },
          ...choice.options.map(({ label }, value) => h("option", { value }, label)),
        );
        select.addEventListener("change", () => {
          this.chosen.options[n] = Number(select.value);
          this.wish();
        });
        return h("div", { class: "field" }, h("label", { for: id(n, "choice") }, choice.label), select);
      });
    const simulate = h("button", { type: "button", class: "primary" }, "Simulate");
    simulate.addEventListener("click", () => this.wish(0));
    const clear = h("button", { type: "button" }, "Clear my points");
    clear.addEventListener("click", () => {
      for (const mine of this.yours) mine.length = 0;
      this.newest = [];
      this.more.replaceChildren();
      this.status.textContent = "";
      this.show();
    });
    return h(
      "form",
      { class: "story-controls", "aria-label": `Simulate a point: ${figure.title}` },
      ...sliders,
      ...choices,
      h("div", { class: "actions" }, simulate, clear),
      this.bar,
      this.status,
      this.more,
      figure.note === undefined ? null : h("p", { class: "hint" }, figure.note),
    );
  }

  private wish(rest = REST_MS): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => {
      const { figure, publication } = this;
      const run = trial(figure, this.chosen);
      const wanted = run.series.map((n) => figureOf(figure.series[n]!, run.table));
      const figures = [...new Set([...wanted, ...(figure.also ?? []).map((also) => also.figure)])];
      this.live.ask(this.element.id, {
        wish: { publication: publication.key, table: run.table, settings: run.settings, figures },
        begun: () => {
          this.bar.hidden = false;
          this.status.textContent = "Simulating\u2026";
        },
        done: (point, ms) => this.done(run, point, ms),
        failed: (message) => {
          this.bar.hidden = true;
          this.status.textContent = `This point cannot be simulated: ${message}`;
        },
      });
    }, rest);
  }

  private done(run: Trial, point: Point, ms: number): void {
    const { figure } = this;
    this.bar.hidden = true;
    this.newest = [];
    const x = this.chart.at({ ...table(this.publication, run.table).scenario, ...run.settings });
    const texts: string[] = [];
    for (const series of run.series) {
      const y = point.figures[figureOf(figure.series[series]!, run.table)];
      if (typeof y !== "number" || x === null) continue;
      const dot: Dot = { x, y, half: 0 };
      const mine = this.yours[series]!;
      const known = mine.findIndex((one) => one.x === x);
      if (known >= 0) mine.splice(known, 1);
      mine.push(dot);
      if (mine.length > KEPT) mine.shift();
      this.newest.push({ series, dot });
      texts.push(`${figure.series[series]!.label} ${shown(y, figure.up.unit)}`);
    }
    for (const { figure: name, label, unit } of figure.also ?? []) {
      const y = point.figures[name];
      if (typeof y === "number") texts.push(`${label} ${shown(y, unit)}`);
    }
    this.status.textContent = `Simulated in ${ms.toFixed(0)} ms.`;
    this.element.dataset["ms"] = ms.toFixed(0);
    this.more.replaceChildren(
      h("b", {}, x === null ? "Your point" : across(figure).text(x)),
      `: ${texts.join("; ")}. `,
    );
    void this.link(point);
    this.show();
  }

  /** A link to the playground with this scenario. */
  private async link({ text, set }: Point): Promise<void> {
    const pairs = set.map((pair) => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)] as const);
    const hash = await toHash({ source: { from: "text", text }, set: Object.fromEntries(pairs), policies: [] });
    if (hash === "") return;
    this.more.querySelector("a")?.remove();
    this.more.append(h("a", { href: `index.html${hash}` }, "Open this run in the playground"));
  }

  /** Values of the figure as a table. */
  private table(): HTMLElement {
    const scale = across(this.figure);
    const row = (label: string, x: number, published: Dot | undefined, simulated: Dot | undefined) =>
      h(
        "tr",
        {},
        h("td", { class: "left" }, label),
        h("td", {}, scale.text(x)),
        h("td", {}, published === undefined ? "\u2013" : this.text(published)),
        h("td", {}, simulated === undefined ? "\u2013" : this.text(simulated)),
      );
    const rows = this.figure.series.flatMap(({ label }, n) => {
      const { published, simulated } = this.all[n]!;
      const places = [...new Set([...published, ...simulated].map((dot) => dot.x))].sort((a, b) => a - b);
      const at = (found: Dot[], x: number) => found.find((dot) => dot.x === x);
      return places.map((x) => row(label, x, at(published, x), at(simulated, x)));
    });
    const head = ["Series", scale.title === "" ? "Case" : scale.title, "Published", "Simulated"];
    return h(
      "details",
      {},
      h("summary", {}, "Values as a table"),
      h(
        "div",
        { class: "scroll" },
        h(
          "table",
          {},
          h(
            "thead",
            {},
            h("tr", {}, ...head.map((name, n) => h("th", { scope: "col", class: n === 0 ? "left" : "" }, name))),
          ),
          h("tbody", {}, ...rows),
        ),
      ),
    );
  }
}

/** The claims of a figure's tables, with their verdicts. */
function claims(publication: Publication, figure: Figure): HTMLElement[] {
  const ids = [...new Set(figure.series.flatMap((series) => series.tables))];
  return ids.flatMap((id) => {
    const { claims, where, kind, seeds } = table(publication, id);
    const runs = seeds > 1 ? `${seeds} runs each` : "one run each";
    return claims.map((claim) => verdict(claim, `${name(id)} (${where}), ${kind} there; ${runs} here`));
  });
}

/** The name of a table from its id. */
export function name(id: string): string {
  if (id.startsWith("fig-")) return `Figure ${id.slice(4)}`;
  if (id.startsWith("text-")) return `Section ${id.slice(5)}`;
  return `Table ${id}`;
}

function verdict(
  { text, verdict: word, evidence, shown_in_base_case, assumptions }: Claim,
  source: string,
): HTMLElement {
  const base =
    shown_in_base_case === undefined
      ? ""
      : shown_in_base_case
        ? " (shown in the base case)"
        : " (not shown in the base case)";
  return h(
    "blockquote",
    { class: `claim ${word.split(" ")[0]}` },
    h("p", { class: "claim-text" }, text),
    h("p", {}, h("b", { class: "verdict" }, word), base, h("span", { class: "caption" }, ` \u2014 ${source}`)),
    h(
      "details",
      {},
      h("summary", {}, assumptions === undefined ? "Evidence" : "Evidence, and answers that turn the verdict"),
      h("p", {}, evidence),
      ...(assumptions === undefined ? [] : [h("ul", { class: "why" }, ...assumptions.map((one) => h("li", {}, one)))]),
    ),
  );
}
