/** A chart as a file: the picture that is shown (SVG, PNG), or the samples of the view (CSV). */

import type { Chart } from "./chart";
import { DASHES, token } from "./chart";
import { digits } from "./data";
import { first, roundStep } from "./view";

/** Buttons that save a chart. */
export function exports(chart: Chart): HTMLElement {
  const menu = document.createElement("span");
  menu.className = "chart-files";
  const kinds: [string, string, (chart: Chart) => void][] = [
    ["SVG", "Save this view as a drawing", (one) => save(one, "svg", new Blob([svg(one)], { type: "image/svg+xml" }))],
    ["PNG", "Save this view as a picture", png],
    ["CSV", "Save the samples of this view as a table", (one) => save(one, "csv", new Blob([csv(one)], { type: "text/csv" }))],
  ];
  for (const [name, title, act] of kinds) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = name;
    button.title = title;
    button.setAttribute("aria-label", `${name}: ${title.toLowerCase()}, ${chart.panel.title}`);
    button.addEventListener("click", () => act(chart));
    menu.append(button);
  }
  return menu;
}

function save(chart: Chart, extension: string, blob: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = `${chart.panel.title.toLowerCase().replace(/[^a-z0-9]+/g, "-")}.${extension}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function png(chart: Chart): void {
  const source = chart.picture();
  if (source === null) return;
  const scale = devicePixelRatio;
  const target = document.createElement("canvas");
  const labels = chart.lines().map(({ line }) => line).filter((line) => line.label !== "");
  const head = 26 * scale;
  const row = 18 * scale;
  target.width = source.width;
  target.height = source.height + head + row * Math.ceil(labels.length / 4) + 6 * scale;
  const ctx = target.getContext("2d")!;
  ctx.fillStyle = token("--paper");
  ctx.fillRect(0, 0, target.width, target.height);
  ctx.fillStyle = token("--ink");
  ctx.font = `600 ${13 * scale}px system-ui,sans-serif`;
  ctx.fillText(`${chart.panel.title}, ${chart.panel.unit[1]}`, 8 * scale, 17 * scale);
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
  target.toBlob((blob) => blob && save(chart, "png", blob));
}

/** A field of CSV (RFC 4180); a spreadsheet takes no field for a formula. */
function field(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** The samples between the ends of the view: a row for each, with the names of line and unit. */
export function csv(chart: Chart): string {
  const { panel, columns, group } = chart;
  const [from, to] = group.view;
  const rows = [`${field(`${panel.across.title.toLowerCase().replaceAll(" ", "_")}_s`)},line,value`];
  for (const { line } of chart.lines()) {
    const [x, y] = [columns[line.columns[0]]!, columns[line.columns[1]]!];
    const name = field(line.member || line.label);
    for (let n = first(x, from); n < x.length && x[n]! <= to; n++) {
      rows.push(`${number(x[n]!)},${name},${number(y[n]!)}`);
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
  const top = chart.top();
  const [width, height, left, above, right] = [900, 260, 60, 34, 20];
  const drawn = chart.lines();
  const names = drawn.filter(({ line }) => line.label !== "");
  const total = above + height + 44 + 18 * Math.ceil(names.length / 4);
  const x = (value: number) => left + ((value - from) / (to - from)) * (width - left - right);
  const y = (value: number) => above + height - Math.min(Math.max(value / top, 0), 1) * height;
  const text = (px: number, py: number, words: string, more = "") =>
    `<text x="${px.toFixed(1)}" y="${py.toFixed(1)}" ${more}>${escaped(words)}</text>`;
  const parts: string[] = [];
  for (const tick of ticks(0, top, panel.unit[0], 5)) {
    parts.push(`<path d="M${left} ${y(tick).toFixed(1)}H${width - right}" stroke="${token("--grid")}"/>`);
    parts.push(text(left - 8, y(tick) + 4, digits(tick / panel.unit[0]), 'text-anchor="end"'));
  }
  for (const tick of ticks(from, to, panel.across.unit[0], 10)) {
    parts.push(`<path d="M${x(tick).toFixed(1)} ${above + height}v4" stroke="${token("--muted")}"/>`);
    parts.push(text(x(tick), above + height + 17, digits(tick / panel.across.unit[0]), 'text-anchor="middle"'));
  }
  for (const { line, points } of drawn) {
    const path = points.x.map((at, n) => `${n === 0 ? "M" : "L"}${x(at).toFixed(1)} ${y(points.y[n]!).toFixed(1)}`).join("");
    const dash = line.bound ? [2, 3] : DASHES[line.dash % DASHES.length]!;
    const dashes = dash.length > 0 ? ` stroke-dasharray="${dash.join(" ")}"` : "";
    const opacity = line.faint ? ' stroke-opacity=".55"' : "";
    parts.push(`<path d="${path}" fill="none" stroke="${token(`--c${line.colour % 8}`)}" stroke-width="1.6"${dashes}${opacity}/>`);
  }
  for (const [label, value] of panel.references.filter(([, value]) => value <= top)) {
    parts.push(`<path d="M${left} ${y(value).toFixed(1)}H${width - right}" stroke="${token("--ink")}" stroke-dasharray="6 3"/>`);
    parts.push(text(width - right - 4, y(value) - 4, label, 'text-anchor="end" font-size="11"'));
  }
  names.forEach(({ line }, number) => {
    const [px, py] = [left + (number % 4) * 210, above + height + 52 + 18 * Math.floor(number / 4)];
    parts.push(`<path d="M${px} ${py - 4}h18" stroke="${token(`--c${line.colour % 8}`)}" stroke-width="3"/>`);
    parts.push(text(px + 24, py, line.label));
  });
  parts.push(`<path d="M${left} ${above + height}H${width - right}" stroke="${token("--muted")}"/>`);
  const title = text(8, 18, `${panel.title}, ${panel.unit[1]}`, 'font-weight="600" font-size="13"');
  const across = text((left + width) / 2, above + height + 33, `${panel.across.title}, ${panel.across.unit[1]}`, 'text-anchor="middle"');
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${total}" width="${width}" height="${total}" ` +
    `font-family="system-ui,'DejaVu Sans',sans-serif" font-size="12" fill="${token("--ink")}">` +
    `<rect width="100%" height="100%" fill="${token("--paper")}"/><clipPath id="plot">` +
    `<rect x="${left}" y="${above - 2}" width="${width - left - right}" height="${height + 4}"/></clipPath>` +
    `${title}${across}${parts.join("").replaceAll('fill="none"', 'fill="none" clip-path="url(#plot)"')}</svg>\n`
  );
}

/** Round values between two ends, in a unit. */
function ticks(from: number, to: number, unit: number, wanted: number): number[] {
  const step = roundStep((to - from) / unit / wanted) * unit;
  const found = [];
  for (let n = Math.ceil(from / step - 1e-9); n * step <= to + step * 1e-9; n++) found.push(n * step);
  return found;
}
