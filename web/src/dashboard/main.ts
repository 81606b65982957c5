/** The dashboard of a running program. */

import { Charts } from "./charts";
import { connect, state as askState } from "./connection";
import { Store, type Mark, type Report, type State } from "./data";
import { byId, h, setText } from "../dom";
import { change } from "./reload";
import { Tables } from "./tables";
import { clock } from "./units";
import { offer } from "./whatif";

const SPANS: [number, string][] = [
  [60, "1 min"],
  [300, "5 min"],
  [900, "15 min"],
  [3600, "1 h"],
];

const store = new Store();
const charts = new Charts(byId("groups"), store);
const tables = new Tables(byId("tables"));

function connection(state: "live" | "lost" | "waiting", words: string): void {
  const node = byId("connection");
  node.dataset["state"] = state;
  setText(node, words);
}

function showMarks(): void {
  const section = byId("marks");
  section.hidden = store.marks.length === 0;
  const item = (mark: Mark) => h("li", {}, `${clock(mark.at_ms)}: ${mark.words}`);
  section.querySelector("ol")!.replaceChildren(...store.marks.map(item));
}

function showState(about: State): void {
  setText(byId("title"), about.title);
  document.title = about.title;
  byId("reload").hidden = !about.reloads;
  offer(about);
  const facts: [string, string][] = [
    ["version", about.version],
    ["process", String(about.pid)],
    ["browsers connected", String(about.listeners)],
    ["values without space in the history", String(about.left_out)],
    ...Object.entries(about.counts).map(([name, count]): [string, string] => {
      return [name.replaceAll("_", " "), String(count)];
    }),
  ];
  const pairs = facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]);
  byId("server")
    .querySelector("dl")!
    .replaceChildren(...pairs);
}

function show(report: Report): void {
  setText(byId("status"), report.status);
  charts.arrange(report.groups);
  charts.draw();
  tables.update(report.tables);
}

function spans(): void {
  const buttons = SPANS.map(([seconds, name]) => {
    const button = h("button", { type: "button", "aria-pressed": String(seconds === charts.span) }, name);
    button.addEventListener("click", () => {
      charts.span = seconds;
      buttons.forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
      charts.draw();
    });
    return button;
  });
  byId("spans").append(...buttons);
}

async function reload(): Promise<void> {
  await change(byId("message"), "reading the policy", null);
}

spans();
byId("reload").addEventListener("click", () => void reload());
byId("server").addEventListener("toggle", () => void askState().then(showState, () => undefined));
document.addEventListener("visibilitychange", () => charts.draw());
connect({
  opened(about, history) {
    store.replace(history);
    showMarks();
    showState(about);
    connection("live", "live");
  },
  report(report) {
    store.push(report);
    show(report);
  },
  mark(mark) {
    store.mark(mark);
    showMarks();
  },
  lost(why) {
    connection("lost", `no connection: ${why}; trying again`);
  },
});
