/** Replaces the drawings of a report by plots that answer. */

import { Chart } from "./chart";
import type { Columns, Figures } from "./data";
import { Group } from "./group";
import { enhanceMaps } from "./heat";
import { PathPicture } from "./path";
import { enhanceTables } from "./tables";

/** Seconds in which the cursor crosses the view. */
const PLAY_S = 20;

/** A report that answers. */
export interface Report {
  charts: Chart[];
  groups: Group[];
}

/** Replaces the drawings below `root`. */
export function enhance(root: HTMLElement, figures: Figures, columns: Columns): Report {
  enhanceTables(root);
  enhanceMaps(root);
  const hidden = new Set<string>();
  const groups = new Map<string, Group>();
  const charts: Chart[] = [];
  const toggled = (name: string) => {
    if (!hidden.delete(name)) hidden.add(name);
    for (const group of groups.values()) group.changed();
  };
  for (const figure of root.querySelectorAll<HTMLElement>("figure[data-panel]")) {
    const panel = figures.panels[Number(figure.dataset["panel"])];
    if (panel === undefined) continue;
    const { title, from, to } = panel.across;
    // The plots of a part with a view of its own are not moved by others.
    const part = figure.closest<HTMLElement>("[data-view]");
    const key = `${title} ${from} ${to} ${part?.id ?? ""}`;
    const group = groups.get(key) ?? new Group(panel, hidden);
    if (part !== null && !groups.has(key)) figure.before(controls(group));
    groups.set(key, group);
    const chart = new Chart(panel, columns, group, toggled);
    // The drawing stays for print, which needs lines of any resolution.
    figure.append(chart.element);
    figure.classList.add("live");
    chart.attach();
    charts.push(chart);
  }
  const time = [...groups].find(([key]) => key.startsWith("Time "))?.[1];
  const begin = root.querySelector("[data-view]") ? null : root.querySelector<HTMLElement>("figure[data-panel]");
  if (time !== undefined && begin !== null) {
    const row = begin.closest<HTMLElement>(".panels") ?? begin;
    row.before(...paths(figures, columns, time), controls(time));
  }
  const restyle = () => charts.forEach((chart) => chart.restyle());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", restyle);
  new MutationObserver(restyle).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  return { charts, groups: [...groups.values()] };
}

/** The pictures of the paths, if a queue of any holds packets. */
function paths(figures: Figures, columns: Columns, time: Group): HTMLElement[] {
  const pictures = figures.paths.map((path) => ({ label: path.label, picture: new PathPicture(path, columns) }));
  const shown = pictures.filter(({ picture }) => !picture.isEmpty);
  if (shown.length === 0) return [];
  const box = document.createElement("div");
  box.className = "paths";
  for (const { label, picture } of shown) {
    const figure = document.createElement("figure");
    figure.className = "path-figure";
    // It scrolls where the window is narrow.
    figure.tabIndex = 0;
    figure.setAttribute("aria-label", label === "" ? "Path" : `Path of ${label}`);
    if (label !== "") {
      const caption = document.createElement("figcaption");
      caption.textContent = label;
      figure.append(caption);
    }
    figure.append(picture.element);
    box.append(figure);
  }
  time.follow((at) => shown.forEach(({ picture }) => picture.show(at)));
  return [box];
}

/** Buttons for the view and the cursor of an axis. */
function controls(group: Group): HTMLElement {
  const bar = document.createElement("div");
  bar.className = "view-controls";
  bar.setAttribute("role", "toolbar");
  bar.setAttribute("aria-label", "View of all plots over time");
  const button = (text: string, title: string, act: () => void) => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.title = title;
    // A symbol says nothing to a reader who does not see it.
    if (!/\w/.test(text)) made.setAttribute("aria-label", title);
    made.addEventListener("click", act);
    bar.append(made);
    return made;
  };
  let playing = 0;
  const play = button("\u25b6", "Play: the cursor moves through time", () => {
    if (playing !== 0) return stop();
    play.textContent = "\u23f8";
    const begin = performance.now();
    const [from, to] = group.view;
    const frame = (now: number) => {
      const share = (now - begin) / 1000 / PLAY_S;
      if (share >= 1) return stop();
      group.cursor(from + (to - from) * share);
      playing = requestAnimationFrame(frame);
    };
    playing = requestAnimationFrame(frame);
  });
  const stop = () => {
    cancelAnimationFrame(playing);
    playing = 0;
    play.textContent = "\u25b6";
  };
  button("+", "Zoom in", () => group.zoom(2));
  button("\u2212", "Zoom out", () => group.zoom(0.5));
  button("\u2190", "Earlier", () => group.pan(-0.5));
  button("\u2192", "Later", () => group.pan(0.5));
  button("All", "Show the whole time", () => group.reset());
  const hint = document.createElement("span");
  hint.className = "view-hint";
  hint.textContent = "Drag over a plot to zoom, double-click to show all.";
  bar.append(hint);
  return bar;
}
