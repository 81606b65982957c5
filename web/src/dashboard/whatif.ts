/** "What would change if": a question about another policy, and its answer in columns. */

import { Colors, Plot } from "./charts";
import type { State } from "./data";
import { byId, h, setText } from "../dom";
import { change, type Policy } from "./reload";
import { region } from "./tables";
import { show, type Unit } from "./units";

interface Delay {
  p50: number | null;
  p99: number | null;
  max: number | null;
}
interface Class {
  name: string;
  rate_bps: number | null;
  p50_s: number | null;
  p99_s: number | null;
  dropped: number;
}
interface Second {
  rate_bps: number;
  queue_bytes: number;
  p99_s: number | null;
  drops: number;
}
interface Direction {
  name: string;
  packets: number;
  rate_bps: number;
  delay_s: Delay;
  ack_delay_s: Delay;
  dropped: Record<string, number>;
  acks_dropped: number;
  classes: Class[];
  at_s: number[];
  by_second: Second[];
}
/** The delay over all hops of a direction. */
interface Way {
  name: string;
  packets: number;
  delay_s: Delay;
  ack_delay_s: Delay;
  at_s: number[];
  p99_s: (number | null)[];
}
/** Columns have the same ways and hops; null where a policy does not have a hop. */
interface Column {
  label: string;
  ways: Way[];
  directions: (Direction | null)[];
}
interface Answer {
  policy: string;
  in_force: string;
  seconds: number;
  limits: string[];
  notes: string[];
  columns: Column[];
}

/** The value of the choice that opens the text. */
const OWN = "";

export function offer(state: State): void {
  const section = byId("what-if");
  if (state.policies.length === 0 || !section.hidden) return;
  section.hidden = false;
  const select = byId("policy") as HTMLSelectElement;
  select.append(...state.policies.map((name) => h("option", { value: name }, name)));
  select.append(h("option", { value: OWN }, "another one, as text"));
  select.addEventListener("change", () => {
    byId("own").hidden = select.value !== OWN;
  });
  section.querySelector("form")!.addEventListener("submit", (event) => {
    event.preventDefault();
    void ask(chosen(select.value));
  });
  const apply = byId("apply") as HTMLButtonElement;
  apply.hidden = !state.reloads;
  apply.addEventListener("click", () => {
    apply.disabled = true;
    void change(byId("asked"), "building the queues", chosen(select.value)).finally(() => {
      apply.disabled = false;
    });
  });
}

function chosen(policy: string): Policy {
  return policy === OWN ? { text: (byId("text") as HTMLTextAreaElement).value } : { policy };
}

async function ask(question: Policy): Promise<void> {
  const section = byId("what-if");
  const button = section.querySelector<HTMLButtonElement>("button[type=submit]")!;
  const asked = byId("asked");
  button.disabled = true;
  asked.classList.remove("bad");
  setText(asked, "replaying");
  try {
    const response = await fetch("/api/what-if", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(question),
    });
    const answer: unknown = await response.json();
    if (!response.ok) throw new Error((answer as { error: string }).error);
    present(answer as Answer);
    setText(asked, `replayed the last ${(answer as Answer).seconds.toFixed(0)} s`);
  } catch (error) {
    asked.classList.add("bad");
    setText(asked, error instanceof Error ? error.message : String(error));
  } finally {
    button.disabled = false;
  }
}

function present(answer: Answer): void {
  const parts: Node[] = [];
  for (const plot of drawn.splice(0)) plot.destroy();
  for (const note of answer.notes) parts.push(h("p", {}, note));
  if (answer.columns[0]!.ways.length > 0) parts.push(...ways(answer.columns));
  const count = answer.columns[0]!.directions.length;
  for (let index = 0; index < count; index += 1) {
    const columns = answer.columns.map(({ label, directions }) => ({ label, direction: directions[index] ?? null }));
    parts.push(region(table(columns)), plots(columns));
  }
  parts.push(h("h3", {}, "Limits of this answer"));
  parts.push(h("ul", {}, ...answer.limits.map((limit) => h("li", {}, limit))));
  byId("answer").replaceChildren(...parts);
}

type Shown = { label: string; direction: Direction | null };
type Read = (direction: Direction) => number | null | undefined;

/** The hop of these columns, from the first one that has it. */
const hopOf = (columns: readonly Shown[]) => columns.find(({ direction }) => direction !== null)!.direction!;

/** A row of a table, with a value for each column. */
function valuesOf(name: string, unit: Unit, values: readonly (number | null | undefined)[]): HTMLElement {
  return h(
    "tr",
    {},
    h("th", { scope: "row", class: "text" }, name),
    ...values.map((value) => h("td", {}, show(value, unit))),
  );
}

/** The heading of the rows below it. */
function part(name: string, columns: readonly unknown[]): HTMLElement {
  const across = { scope: "colgroup", class: "text", colspan: String(columns.length + 1) };
  return h("tr", { class: "part" }, h("th", across, name));
}

function tableOf(caption: string, columns: readonly { label: string }[], rows: HTMLElement[]): HTMLTableElement {
  const head = columns.map(({ label }) => h("th", { scope: "col" }, label));
  return h(
    "table",
    {},
    h("caption", {}, caption),
    h("thead", {}, h("tr", {}, h("td"), ...head)),
    h("tbody", {}, ...rows),
  );
}

/** The delays over all links of both directions: a table, and plots. */
function ways(columns: readonly Column[]): Node[] {
  const area = h("div", { class: "charts" });
  const rows = columns[0]!.ways.flatMap(({ name, at_s }, index) => {
    const row = (label: string, unit: Unit, read: (way: Way) => number | null) =>
      valuesOf(
        label,
        unit,
        columns.map((column) => read(column.ways[index]!)),
      );
    const series = columns.map((column) => column.ways[index]!.p99_s);
    draw(area, `${name}: one-way delay, 99th percentile`, "s", at_s, columns, series);
    return [
      part(name, columns),
      row("packets", "", (way) => way.packets),
      row("one-way delay, median", "s", (way) => way.delay_s.p50),
      row("one-way delay, 99th percentile", "s", (way) => way.delay_s.p99),
      row("one-way delay, longest", "s", (way) => way.delay_s.max),
      row("one-way delay of ACKs, 99th percentile", "s", (way) => way.ack_delay_s.p99),
    ];
  });
  return [region(tableOf("delay over all links", columns, rows)), area];
}

function table(columns: readonly Shown[]): HTMLTableElement {
  const row = (name: string, unit: Unit, read: Read) =>
    valuesOf(
      name,
      unit,
      columns.map(({ direction }) => direction && read(direction)),
    );
  const all = <T>(of: (direction: Direction) => T[]) => [
    ...new Set(columns.flatMap(({ direction }) => (direction === null ? [] : of(direction)))),
  ];
  const rows = [
    row("packets sent", "", (d) => d.packets),
    row("rate on the wire", "bit/s", (d) => d.rate_bps),
    row("delay, median", "s", (d) => d.delay_s.p50),
    row("delay, 99th percentile", "s", (d) => d.delay_s.p99),
    row("delay, longest", "s", (d) => d.delay_s.max),
    row("delay of ACKs, 99th percentile", "s", (d) => d.ack_delay_s.p99),
    row("ACKs merged or dropped by ACK regulation", "", (d) => d.acks_dropped),
    ...all((d) => Object.keys(d.dropped)).map((reason) => row(`dropped: ${reason}`, "", (d) => d.dropped[reason] ?? 0)),
  ];
  const classes = all((d) => d.classes.map((one) => one.name));
  for (const name of classes) {
    const of = (d: Direction) => d.classes.find((one) => one.name === name);
    rows.push(
      part(`class ${name}`, columns),
      row("rate", "bit/s", (d) => of(d)?.rate_bps),
      row("delay, median", "s", (d) => of(d)?.p50_s),
      row("delay, 99th percentile", "s", (d) => of(d)?.p99_s),
      row("dropped", "", (d) => of(d)?.dropped),
    );
  }
  return tableOf(hopOf(columns).name, columns, rows);
}

/** The plots of the answer that is shown. */
const drawn: Plot[] = [];

/** Adds a plot to `area`, with a series for each column over the seconds `x`. */
function draw(
  area: HTMLElement,
  title: string,
  unit: Unit,
  x: number[],
  columns: readonly { label: string }[],
  series: (number | null)[][],
): void {
  const plot = new Plot(title, unit, null, new Colors(), null);
  drawn.push(plot);
  area.append(plot.figure);
  // The width is known once the figure is on the page.
  requestAnimationFrame(() => {
    plot.update(
      columns.map(({ label }) => label),
      null,
      [x, ...series],
      [0, x[x.length - 1] ?? 1],
    );
  });
}

/** What happened, and what would have, second by second. */
function plots(columns: readonly Shown[]): HTMLElement {
  const area = h("div", { class: "charts" });
  const kinds: [string, Unit, (second: Second) => number | null][] = [
    ["delay, 99th percentile", "s", (second) => second.p99_s],
    ["queue", "B", (second) => second.queue_bytes],
    ["rate on the wire", "bit/s", (second) => second.rate_bps],
    ["drops", "", (second) => second.drops],
  ];
  const { name: hop, at_s: x } = hopOf(columns);
  for (const [name, unit, read] of kinds) {
    const series = columns.map(({ direction }) =>
      x.map((_at, index) => {
        const second = direction?.by_second[index];
        return second === undefined ? null : read(second);
      }),
    );
    draw(area, `${hop}: ${name}`, unit, x, columns, series);
  }
  return area;
}
