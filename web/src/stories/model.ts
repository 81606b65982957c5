/**
 * What a story is made of, and the values behind its figures: published and simulated ones, from `data/stories.json`.
 */

import type { Unit } from "../report/data";

/** A value of a setting or parameter. */
export type Value = number | string | boolean;
export type Values = Record<string, Value>;

/** A claim with its verdict, as `lastmile reproduce` prints it. */
export interface Claim {
  text: string;
  verdict: string;
  evidence: string;
  shown_in_base_case?: boolean;
  assumptions?: string[];
}

export interface Row {
  params: Values;
  published: Values;
  theory: Values;
  simulated: Values;
  /** Half the width of the 95 % interval of the simulated mean. */
  ci95: Values;
}

export interface Table {
  id: string;
  title: string;
  /** Its place in the publication. */
  where: string;
  /** `measured` or `simulated`: how the publication got its figures. */
  kind: string;
  seeds: number;
  /** Settings that all rows share. */
  scenario: Values;
  rows: Row[];
  claims: Claim[];
}

export interface Publication {
  key: string;
  authors: string;
  year: number;
  kind: string;
  topic: string;
  tables: Table[];
}

/** An axis. A logarithmic one has its ticks given. */
export interface Axis {
  title: string;
  unit: Unit;
  ticks?: number[];
  log?: boolean;
}

/** A place on a horizontal axis of names: rows and settings with these values are there. */
export interface Category {
  label: string;
  where: Values;
}

/** Points of one colour. */
export interface Series {
  label: string;
  /** Ids of the tables whose rows it takes. */
  tables: string[];
  /** Only rows with these parameters. */
  where?: Values;
  /** The figure, by its name in the tables; of a table with another name, by that. */
  figure: string;
  named?: Record<string, string>;
  /** The published side is this closed form of the publication. */
  theory?: string;
}

/** A setting that a reader moves. */
export interface Slider {
  setting: string;
  label: string;
  unit: Unit;
  values: number[];
  /** A text with the value, where the setting is no number: `$ packets`. */
  text?: string;
  /** The first value. */
  from: number;
}

/** Settings that a reader chooses by name. */
export interface Choice {
  label: string;
  options: {
    label: string;
    settings?: Values;
    /** The table whose experiment runs. */
    table?: string;
    /** Numbers of the series in which the point is marked; the first, if not given. */
    series?: number[];
  }[];
}

export interface Figure {
  id: string;
  title: string;
  about: string;
  /** The parameter across, or names of places. */
  across: { param: string; axis: Axis } | { title: string; categories: Category[] };
  up: Axis;
  series: Series[];
  /** The table whose experiment runs, where no choice names another. */
  table: string;
  /** Settings of every point of the reader. */
  settings: Values;
  sliders: Slider[];
  choices: Choice[];
  /** Further figures of a point, which are printed next to it. */
  also?: { figure: string; label: string; unit: Unit }[];
  /** What differs between a reader's point and the simulated ones. */
  note?: string;
}

export interface Story {
  key: string;
  title: string;
  /** Short paragraphs. */
  text: string[];
  figures: Figure[];
}

/** A point of a figure. */
export interface Dot {
  x: number;
  y: number;
  /** Half the width of the 95 % interval. */
  half: number;
}

/** The dots of a series: published and simulated. */
export interface Dots {
  published: Dot[];
  simulated: Dot[];
}

const holds = (values: Values, wanted: Values) =>
  Object.entries(wanted).every(([name, value]) => values[name] === value);

/** The place across of a row or of settings; `null` where they have none. */
export function place(figure: Figure, values: Values): number | null {
  const { across } = figure;
  if ("categories" in across) {
    const index = across.categories.findIndex(({ where }) => holds(values, where));
    return index < 0 ? null : index;
  }
  const value = values[across.param];
  return typeof value === "number"
    ? value
    : typeof value === "string" && Number.isFinite(Number(value))
      ? Number(value)
      : null;
}

/** The table of a publication, which its story names. */
export function table(publication: Publication, id: string): Table {
  const found = publication.tables.find((one) => one.id === id);
  if (found === undefined) throw new Error(`no table ${publication.key}/${id}`);
  return found;
}

/** The dots of a series, from left to right. */
export function dots(publication: Publication, figure: Figure, series: Series): Dots {
  const found: Dots = { published: [], simulated: [] };
  for (const id of series.tables) {
    const name = series.named?.[id] ?? series.figure;
    const { scenario, rows } = table(publication, id);
    for (const row of rows) {
      const settings = { ...scenario, ...row.params };
      const x = place(figure, settings);
      if (x === null || !holds(settings, series.where ?? {})) continue;
      // A closed form is the publication's in its own rows only.
      const own = Object.keys(row.published).length > 0;
      const published = series.theory === undefined ? row.published[name] : own ? row.theory[series.theory] : undefined;
      const simulated = row.simulated[name];
      if (typeof published === "number") found.published.push({ x, y: published, half: 0 });
      const half = row.ci95[name];
      if (typeof simulated === "number")
        found.simulated.push({ x, y: simulated, half: typeof half === "number" ? half : 0 });
    }
  }
  const order = (a: Dot, b: Dot) => a.x - b.x;
  found.published.sort(order);
  found.simulated.sort(order);
  return found;
}

/** What a reader chose: positions of sliders and options. */
export interface Chosen {
  sliders: number[];
  options: number[];
}

/** The first position of everything. */
export function first(figure: Figure): Chosen {
  return {
    sliders: figure.sliders.map(({ values, from }) => Math.max(values.indexOf(from), 0)),
    options: figure.choices.map(() => 0),
  };
}

/** What runs for a choice: table, settings, and the series in which the point is marked. */
export interface Trial {
  table: string;
  settings: Values;
  series: number[];
}

export function trial(figure: Figure, chosen: Chosen): Trial {
  const all: Trial = { table: figure.table, settings: { ...figure.settings }, series: [0] };
  figure.sliders.forEach(({ setting, values, text }, n) => {
    const value = values[chosen.sliders[n]!]!;
    all.settings[setting] = text === undefined ? value : text.replace("$", String(value));
  });
  figure.choices.forEach(({ options }, n) => {
    const option = options[chosen.options[n]!]!;
    Object.assign(all.settings, option.settings);
    if (option.table !== undefined) all.table = option.table;
    if (option.series !== undefined) all.series = option.series;
  });
  return all;
}

/** The name of a series' figure in the experiment of a table. */
export function figureOf(series: Series, id: string): string {
  return series.named?.[id] ?? series.figure;
}
