/** Sliders for the keys of an access line: rates and buffers. */

import { h } from "../dom";

interface Unit {
  scale: number;
  symbol: string;
}

const RATES: readonly Unit[] = [
  { scale: 1e9, symbol: "Gbit/s" },
  { scale: 1e6, symbol: "Mbit/s" },
  { scale: 1e3, symbol: "kbit/s" },
];
const TIMES: readonly Unit[] = [
  { scale: 1, symbol: "s" },
  { scale: 1e-3, symbol: "ms" },
];

interface Knob {
  /** The keys that the slider sets. */
  keys: [string, ...string[]];
  label: string;
  units: readonly Unit[];
  least: number;
  most: number;
  /** The value of the file, in words. */
  own: string;
  /** The place of the slider without a value of its own. */
  start: number;
}

/** Steps of a slider from its least to its largest value, each by an equal factor. */
const STEPS = 60;

/** A value with two significant digits in the largest unit of which it has a whole part. */
export function written(value: number, units: readonly Unit[]): string {
  const unit = units.find(({ scale }) => value >= scale * 0.9995) ?? units[units.length - 1]!;
  return `${Number((value / unit.scale).toPrecision(2))} ${unit.symbol}`;
}

/** The number of a text such as `512 kbit/s`; `null` for another text. */
export function read(text: string, units: readonly Unit[]): number | null {
  const found = /^([\d.]+)\s*(\S+)$/.exec(text.trim());
  const unit = units.find(({ symbol }) => symbol === found?.[2]);
  return found && unit ? Number(found[1]) * unit.scale : null;
}

/** The table `[access.down]` or `[access.up]` of a file, also in one line of `[access]`. */
function table(text: string, name: string): string {
  const own = new RegExp(`^\\[access\\.${name}\\]\\s*$([\\s\\S]*?)(?=^\\[|(?![\\s\\S]))`, "m").exec(text);
  if (own !== null) return own[1]!;
  const inline = new RegExp(`^\\[access\\]\\s*$[\\s\\S]*?^${name}\\s*=\\s*\\{(.*)\\}\\s*$`, "m").exec(text);
  return inline?.[1] ?? "";
}

const value = (text: string, key: string) => new RegExp(`(?:^|[\\s,{])${key}\\s*=\\s*"([^"]*)"`, "m").exec(text)?.[1];

/** The text of a table in one line. */
const inline = (text: string, key: string) =>
  new RegExp(`(?:^|[\\s,{])${key}\\s*=\\s*\\{([^}]*)\\}`, "m").exec(text)?.[1] ?? "";

/** The knobs of a file; none without an access line. */
export function knobsOf(text: string): Knob[] {
  const knobs: Knob[] = [];
  const rate = (keys: Knob["keys"], label: string, own: string | undefined) => {
    const now = own === undefined ? null : read(own, RATES);
    if (now === null || own === undefined) return;
    knobs.push({
      keys,
      label,
      units: RATES,
      least: Math.max(now / 16, 64e3),
      most: Math.min(now * 8, 2e9),
      own,
      start: now,
    });
  };
  const [down, up] = [table(text, "down"), table(text, "up")];
  rate(["access.down.rate"], "Downstream", value(down, "rate"));
  const [granted, queued] = ["grants", "queue"].map((key) => value(inline(up, key), "sustained"));
  const upstream = granted === undefined ? "access.up.rate" : "access.up.grants.sustained";
  // A queue that is told the rate of the service flow hears of each.
  const told = queued === undefined ? [] : ["access.up.queue.sustained"];
  rate([upstream, ...told], "Upstream", granted ?? value(up, "rate"));
  const limit = value(up, "limit");
  if (limit !== undefined) {
    knobs.push({
      keys: ["access.up.queue.limit"],
      label: "Upstream buffer",
      units: TIMES,
      least: 5e-3,
      most: 5,
      own: limit,
      start: 0.25,
    });
  }
  return knobs;
}

/** A row with a slider. `changed` hears of a value, or of `null` for that of the file. */
export function knobRow(knob: Knob, set: string | undefined, changed: (value: string | null) => void): HTMLElement {
  const factor = Math.log(knob.most / knob.least);
  const place = (at: number) => Math.round((Math.log(at / knob.least) / factor) * STEPS);
  const at = (set === undefined ? null : read(set, knob.units)) ?? read(knob.own, knob.units) ?? knob.start;
  const id = `knob-${knob.keys[0].replaceAll(".", "-")}`;
  const slider = h("input", { type: "range", id, min: 0, max: STEPS, step: 1, value: place(at) });
  const output = h("output", { for: id });
  const reset = h("button", { type: "button", class: "reset", title: `The file's own value: ${knob.own}` }, "reset");
  const show = (value: string | null) => {
    output.textContent = value ?? knob.own;
    slider.setAttribute("aria-valuetext", value ?? knob.own);
    reset.hidden = value === null;
  };
  show(set ?? null);
  slider.addEventListener("input", () => {
    const value = written(knob.least * Math.exp((factor * Number(slider.value)) / STEPS), knob.units);
    show(value);
    changed(value);
  });
  reset.addEventListener("click", () => {
    slider.value = String(place(read(knob.own, knob.units) ?? knob.start));
    show(null);
    changed(null);
  });
  return h("div", { class: "knob" }, h("label", { for: id }, knob.label), output, reset, slider);
}
