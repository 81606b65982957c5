/** A chart as a file: the picture that is shown (SVG, PNG), or the samples of the view (CSV). */

import type { Chart } from "./chart";
import { parts as strip, STRIP } from "./annotations";
import { hasNamedPlaces, namedPlaces } from "./axes";
import { digits, placeShown, type Line, type Panel } from "./data";
import { isMark, isShaped, path, sign } from "./shapes";
import { dashes, token } from "./style";
import { first, roundStep } from "./view";

/** What is saved of a view: two texts, and a picture that is made later. */
export interface Files {
  title: string;
  svg(): string;
  csv(): string;
  png(saved: (blob: Blob) => void): void;
}

/** Buttons that save a chart. */
export function exports(chart: Chart): HTMLElement {
  return menu({
    title: chart.panel.title,
    svg: () => svg(chart),
    csv: () => csv(chart),
    png: (saved) => png(chart, saved),
  });
}

/** Buttons that save a view. */
export function menu(files: Files): HTMLElement {
  const menu = document.createElement("span");
  menu.className = "chart-files";
  const kept = (extension: string) => (blob: Blob) => save(files.title, extension, blob);
  const kinds: [string, string, () => void][] = [
    ["SVG", "Save this view as a drawing", () => kept("svg")(new Blob([files.svg()], { type: "image/svg+xml" }))],
    ["PNG", "Save this view as a picture", () => files.png(kept("png"))],
    [
      "CSV",
      "Save the samples of this view as a table",
      () => kept("csv")(new Blob([files.csv()], { type: "text/csv" })),
    ],
  ];
  for (const [name, title, act] of kinds) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = name;
    button.title = title;
    button.setAttribute("aria-label", `${name}: ${title.toLowerCase()}, ${files.title}`);
    button.addEventListener("click", act);
    menu.append(button);
  }
  return menu;
}

function save(title: string, extension: string, blob: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = `${title.toLowerCase().replace(/[^a-z0-9]+/g, "-")}.${extension}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function png(chart: Chart, saved: (blob: Blob) => void): void {
  const source = chart.picture();
  if (source === null) return;
  const scale = devicePixelRatio;
  const target = document.createElement("canvas");
  const labels = named(chart);
  const head = 26 * scale;
  const row = 18 * scale;
  target.width = source.width;
  target.height = source.height + head + row * Math.ceil(labels.length / 4) + 6 * scale;
  const ctx = target.getContext("2d")!;
  ctx.fillStyle = token("--paper");
  ctx.fillRect(0, 0, target.width, target.height);
  ctx.fillStyle = token("--ink");
  ctx.font = `600 ${13 * scale}px system-ui,sans-serif`;
  ctx.fillText(titled(chart.panel.title, chart.panel.unit[1]), 8 * scale, 17 * scale);
  ctx.drawImage(source, 0, head);
  ctx.font = `${12 * scale}px system-ui,sans-serif`;
  labels.forEach((line, number) => {
    const x = ((number % 4) * target.width) / 4 + 8 * scale;
    const y = head + source.height + row * (Math.floor(number / 4) + 0.6);
    ctx.fillStyle = token(`--c${line.colour % 8}`);
    ctx.fillRect(x, y - 2 * scale, 18 * scale, 3 * scale);
    ctx.fillStyle = token("--ink");
    ctx.fillText(line.label, x + 24 * scale, y + 3 * scale, target.width / 4 - 32 * scale);
  });
  target.toBlob((blob) => blob && saved(blob));
}

/** A field of CSV (RFC 4180); a spreadsheet takes no field for a formula. */
export function field(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** The samples between the ends of the view: a row for each, with the name of its line. */
export function csv(chart: Chart): string {
  const { panel, columns, group } = chart;
  const { across } = panel;
  const [from, to] = group.view;
  const lines = chart.lines().map(({ line }) => line);
  const more = [
    ["least", lines.some((line) => line.low !== undefined)],
    ["ci95", lines.some((line) => line.spread !== undefined)],
  ].flatMap(([name, is]) => (is === true ? [name] : []));
  const axis = across.title.toLowerCase().replaceAll(" ", "_");
  const place = (at: number) => {
    if (across.ticks !== undefined) return field(placeShown(at, across));
    // Seconds since 1970 have more digits than a measured value.
    if (across.clock !== undefined) return String(Math.round(at * 1e3) / 1e3);
    return number(across.log === true ? 10 ** at : at);
  };
  const isTime = across.title === "Time" || /^(|m|\u00b5|n)s$/.test(across.unit[1]);
  const rows = [[field(isTime ? `${axis}_s` : axis), "line", "value", ...more].join()];
  for (const line of lines) {
    const [x, y] = [columns[line.columns[0]]!, columns[line.columns[1]]!];
    const [low, spread] = [line.low, line.spread].map((index) => (index === undefined ? undefined : columns[index]!));
    const name = field(line.member || line.label);
    for (let n = first(x, from); n < x.length && x[n]! <= to; n++) {
      const cells = { least: number(low?.[n] ?? y[n]!), ci95: spread === undefined ? "" : number(spread[n]!) };
      rows.push([place(x[n]!), name, number(y[n]!), ...more.map((one) => cells[one as keyof typeof cells])].join());
    }
  }
  return `${rows.join("\r\n")}\r\n`;
}

function number(value: number): string {
  return String(Number(value.toPrecision(7)));
}

const escaped = (text: string) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);

/** The view as a drawing of its own. */
export function svg(chart: Chart): string {
  const { panel, group } = chart;
  const [from, to] = group.view;
  const [bottom, top] = chart.scaleEnds();
  const [width, height, left, above, right] = [900, panel.fits === true ? 400 : 260, 60, 34, 20];
  const drawn = chart.lines();
  const names = named(chart);
  const total = above + height + 44 + 18 * Math.ceil(names.length / 4);
  const x = (value: number) => left + ((value - from) / (to - from)) * (width - left - right);
  const y = (value: number) => above + height - Math.min(Math.max((value - bottom) / (top - bottom), 0), 1) * height;
  const text = (px: number, py: number, words: string, more = "") =>
    `<text x="${px.toFixed(1)}" y="${py.toFixed(1)}" ${more}>${escaped(words)}</text>`;
  const parts: string[] = [];
  for (const tick of ticks(bottom, top, panel.unit[0], 5)) {
    parts.push(`<path d="M${left} ${y(tick).toFixed(1)}H${width - right}" stroke="${token("--grid")}"/>`);
    parts.push(text(left - 8, y(tick) + 4, digits(tick / panel.unit[0]), 'text-anchor="end"'));
  }
  for (const [tick, name] of places(panel, from, to, width - left - right)) {
    parts.push(`<path d="M${x(tick).toFixed(1)} ${above + height}v4" stroke="${token("--muted")}"/>`);
    parts.push(text(x(tick), above + height + 17, name, 'text-anchor="middle"'));
  }
  strip(panel, chart.columns, [from, to], (begin, end, colour) => {
    const wide = Math.max(x(end) - x(begin), 0.5).toFixed(1);
    const at = `x="${x(begin).toFixed(1)}" y="${above + height - STRIP}" width="${wide}"`;
    parts.push(`<rect ${at} height="${STRIP}" fill="${token(`--c${colour % 8}`)}"/>`);
  });
  for (const { line, points } of drawn) {
    const joined = () =>
      points.x.map((at, n) => `${n === 0 ? "M" : "L"}${x(at).toFixed(1)} ${y(points.y[n]!).toFixed(1)}`).join("");
    const d = isShaped(line) ? path(line, points, x, y) : joined();
    const dash = dashes(line);
    const broken = dash.length > 0 ? ` stroke-dasharray="${dash.join(" ")}"` : "";
    const opacity = line.faint ? ' stroke-opacity=".55"' : "";
    const stroke = `stroke="${token(`--c${line.colour % 8}`)}" stroke-width="${isMark(line.shape) ? 1.2 : 1.6}"`;
    parts.push(`<path d="${d}" fill="none" ${stroke}${broken}${opacity}/>`);
  }
  for (const [label, value] of panel.references.filter(([, value]) => value <= top && value >= bottom)) {
    parts.push(
      `<path d="M${left} ${y(value).toFixed(1)}H${width - right}" stroke="${token("--ink")}" stroke-dasharray="6 3"/>`,
    );
    parts.push(text(width - right - 4, y(value) - 4, label, 'text-anchor="end" font-size="11"'));
  }
  names.forEach((line, number) => {
    const [px, py] = [left + (number % 4) * 210, above + height + 52 + 18 * Math.floor(number / 4)];
    const mark = isMark(line.shape)
      ? `transform="translate(${px - 2} ${py - 7})" d="${sign(line)}" stroke-width="1.4"`
      : `d="M${px} ${py - 4}h18" stroke-width="3"`;
    parts.push(`<path ${mark} stroke="${token(`--c${line.colour % 8}`)}" style="fill:none"/>`);
    parts.push(text(px + 24, py, line.label));
  });
  parts.push(`<path d="M${left} ${above + height}H${width - right}" stroke="${token("--muted")}"/>`);
  const title = text(8, 18, titled(panel.title, panel.unit[1]), 'font-weight="600" font-size="13"');
  const across = text(
    (left + width) / 2,
    above + height + 33,
    titled(panel.across.title, panel.across.ticks ? "" : panel.across.unit[1]),
    'text-anchor="middle"',
  );
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${total}" width="${width}" height="${total}" ` +
    `font-family="system-ui,'DejaVu Sans',sans-serif" font-size="12" fill="${token("--ink")}">` +
    `<rect width="100%" height="100%" fill="${token("--paper")}"/><clipPath id="plot">` +
    `<rect x="${left}" y="${above - 2}" width="${width - left - right}" height="${height + 4}"/></clipPath>` +
    `${title}${across}${parts.join("").replaceAll('fill="none"', 'fill="none" clip-path="url(#plot)"')}</svg>\n`
  );
}

/** The first line of each name that is on. */
function named(chart: Chart): Line[] {
  const lines = chart.lines().map(({ line }) => line);
  return lines.filter((line, number) => lines.findIndex(({ label }) => label === line.label) === number);
}

/** A name with its unit, if it has one. */
function titled(name: string, unit: string): string {
  return unit === "" ? name : `${name}, ${unit}`;
}

/** Ticks of the horizontal axis with their texts. */
function places(panel: Panel, from: number, to: number, width: number): [number, string][] {
  const { unit } = panel.across;
  if (hasNamedPlaces(panel.across)) return namedPlaces(panel, from, to, width);
  return ticks(from, to, unit[0], 10).map((tick) => [tick, digits(tick / unit[0])]);
}

/** Round values between two ends, in a unit. */
function ticks(from: number, to: number, unit: number, wanted: number): number[] {
  const step = roundStep((to - from) / unit / wanted) * unit;
  const found = [];
  for (let n = Math.ceil(from / step - 1e-9); n * step <= to + step * 1e-9; n++) found.push(n * step);
  return found;
}
