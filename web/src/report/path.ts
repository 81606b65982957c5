/** The path between client and server as a picture, whose queues fill and empty as the cursor moves. */

import { shown, type Columns, type Hop, type Path, type Unit } from "./data";
import { first } from "./view";

const SVG = "http://www.w3.org/2000/svg";
const NODE = 70;
const STEP = 142;
const NODE_HEIGHT = 26;
/** Vertical middle of the lane to the right, of the nodes, and of the lane to the left. */
const LANES = { right: 31, node: 58, left: 85 } as const;
const HEIGHT = 116;
const BAR = 56;

const RATES: readonly Unit[] = [
  [1e9, "Gbit/s"],
  [1e6, "Mbit/s"],
  [1e3, "kbit/s"],
  [1, "bit/s"],
];
const BYTES: readonly Unit[] = [
  [1e6, "MB"],
  [1e3, "kB"],
  [1, "B"],
];

/** A value in the largest unit of which it has a whole part. */
function inUnits(value: number, units: readonly Unit[]): string {
  return shown(value, units.find(([scale]) => value >= scale) ?? units[units.length - 1]!);
}

function make(name: string, attributes: Record<string, string | number>, ...children: Node[]): SVGElement {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  element.append(...children);
  return element;
}

function words(text: string, attributes: Record<string, string | number>): SVGElement {
  return make("text", attributes, document.createTextNode(text));
}

interface Gauge {
  hop: Hop;
  fill: SVGElement;
  label: SVGElement;
  full: number;
  right: boolean;
  x: number;
}

/** The picture of one run. */
export class PathPicture {
  readonly element: SVGElement;
  private readonly gauges: Gauge[] = [];

  constructor(
    path: Path,
    private readonly columns: Columns,
  ) {
    const width = NODE + STEP * (path.nodes.length - 1) + 8;
    this.element = make("svg", { class: "plot path", viewBox: `0 0 ${width} ${HEIGHT}`, role: "img" });
    this.element.style.minWidth = `${Math.min(width, 420)}px`;
    this.element.style.maxWidth = `${width * 1.1}px`;
    this.element.append(
      make("title", {}, document.createTextNode(`Queues between ${path.nodes[0]} and ${path.nodes.at(-1)}`)),
    );
    for (const hop of path.links) this.hop(hop);
    path.nodes.forEach((node, number) => {
      const x = 4 + number * STEP;
      this.element.append(
        make("rect", { class: "node", x, y: LANES.node - NODE_HEIGHT / 2, width: NODE, height: NODE_HEIGHT, rx: 6 }),
        words(node, { class: "node-name", x: x + NODE / 2, y: LANES.node + 4, "text-anchor": "middle" }),
      );
    });
    this.show(null);
  }

  private hop(hop: Hop): void {
    const right = hop.to > hop.from;
    const lane = right ? LANES.right : LANES.left;
    const x = 4 + Math.min(hop.from, hop.to) * STEP + NODE;
    const [start, end] = [x + 4, x + STEP - NODE - 4];
    const [tail, head] = right ? [start, end] : [end, start];
    const arrow = right ? -6 : 6;
    const line = `M${tail} ${lane}H${head}m${arrow} -4l${-arrow} 4l${arrow} 4`;
    this.element.append(make("path", { class: "wire", d: line }));
    const rate = hop.rate_bps === null ? "" : inUnits(hop.rate_bps, RATES);
    const y = right ? lane - 19 : lane + 27;
    this.element.append(words(rate, { class: "note", x: (start + end) / 2, y, "text-anchor": "middle" }));
    if (hop.backlog === null) return;
    const backlog = this.columns[hop.backlog[1]]!;
    const largest = backlog.reduce((most, value) => Math.max(most, value), 0);
    // A queue that never held two packets is no bottleneck.
    if (largest < 3000) return;
    const full = Math.max(hop.limit_bytes ?? 0, largest);
    const [bx, by] = [(start + end - BAR) / 2, right ? lane - 13 : lane + 3];
    const label = words("", { class: "gauge-value", x: (start + end) / 2, y: by + 9, "text-anchor": "middle" });
    const fill = make("rect", { class: "gauge-fill", x: bx, y: by, width: 0, height: 11 });
    this.element.append(make("rect", { class: "gauge", x: bx, y: by, width: BAR, height: 11, rx: 2 }), fill, label);
    const limit = hop.limit_bytes === null ? "" : `, limit ${inUnits(hop.limit_bytes, BYTES)}`;
    fill.append(
      make("title", {}, document.createTextNode(`Queue of ${hop.name}: most ${inUnits(largest, BYTES)}${limit}`)),
    );
    this.gauges.push({ hop, fill, label, full, right, x: bx });
  }

  /** The queues at a time; empty ones without a time. */
  show(at: number | null): void {
    for (const { hop, fill, label, full, right, x } of this.gauges) {
      const [times, bytes] = [this.columns[hop.backlog![0]]!, this.columns[hop.backlog![1]]!];
      const index = at === null ? -1 : Math.min(first(times, at), times.length - 1);
      const value = index < 0 ? 0 : bytes[index]!;
      const width = BAR * Math.min(value / full, 1);
      fill.setAttribute("width", width.toFixed(1));
      // Packets wait at the end from which they leave.
      fill.setAttribute("x", (right ? x + BAR - width : x).toFixed(1));
      fill.classList.toggle("high", value > full * 0.5);
      label.textContent = at === null ? "" : inUnits(value, BYTES);
    }
  }

  get isEmpty(): boolean {
    return this.gauges.length === 0;
  }
}
