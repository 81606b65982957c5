/** Maps of a measure over two keys: the drawing itself answers, cell by cell. */

import { field, menu } from "./export";

/** Properties of a drawing's parts that its style sheet sets. */
const STYLED = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "paint-order",
  "font-size",
  "font-weight",
  "font-family",
];
/** Pixels of a picture for each unit of the drawing. */
const FINE = 2;

/** Makes the maps below `root` answer. */
export function enhanceMaps(root: ParentNode): void {
  for (const figure of root.querySelectorAll<HTMLElement>("figure.heat")) {
    const drawing = figure.querySelector("svg");
    if (drawing !== null && figure.dataset["live"] === undefined) new HeatMap(figure, drawing);
  }
}

class HeatMap {
  private readonly cells: SVGRectElement[];
  private readonly words = document.createElement("p");
  private chosen = -1;

  constructor(
    private readonly figure: HTMLElement,
    private readonly drawing: SVGSVGElement,
  ) {
    figure.dataset["live"] = "";
    this.cells = [...drawing.querySelectorAll<SVGRectElement>("rect[data-mean]")];
    this.words.className = "heat-words";
    this.words.setAttribute("role", "status");
    const head = document.createElement("div");
    head.className = "chart-head";
    const title = figure.dataset["title"] ?? "";
    head.append(
      this.words,
      menu({ title, svg: () => this.svg(), csv: () => this.csv(), png: (saved) => this.png(saved) }),
    );
    figure.prepend(head);
    drawing.tabIndex = 0;
    drawing.setAttribute("role", "application");
    drawing.setAttribute(
      "aria-label",
      `${drawing.getAttribute("aria-label") ?? ""}. Arrow keys move from cell to cell.`,
    );
    drawing.addEventListener("pointermove", (event) => this.choose(this.cells.indexOf(event.target as SVGRectElement)));
    drawing.addEventListener("pointerdown", (event) => this.choose(this.cells.indexOf(event.target as SVGRectElement)));
    drawing.addEventListener("pointerleave", () => this.choose(-1));
    drawing.addEventListener("keydown", (event) => this.key(event));
  }

  private choose(index: number): void {
    this.cells[this.chosen]?.classList.remove("chosen");
    this.chosen = index;
    const cell = this.cells[index];
    cell?.classList.add("chosen");
    this.words.textContent = cell?.querySelector("title")?.textContent ?? "";
  }

  private key(event: KeyboardEvent): void {
    const ways: Record<string, [number, number]> = {
      ArrowLeft: [-1, 0],
      ArrowRight: [1, 0],
      ArrowUp: [0, -1],
      ArrowDown: [0, 1],
    };
    const way = ways[event.key];
    if (event.key === "Escape") return this.choose(-1);
    if (way === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const place = (cell: SVGRectElement): [number, number] => [cell.x.baseVal.value, cell.y.baseVal.value];
    const from = this.cells[this.chosen];
    if (from === undefined) return this.choose(0);
    const [x, y] = place(from);
    // The nearest cell in this direction; some may have no result.
    const apart = (cell: SVGRectElement): number => {
      const [dx, dy] = [place(cell)[0] - x, place(cell)[1] - y];
      const along = dx * way[0] + dy * way[1];
      return along > 0.5 ? along + 1000 * Math.abs(dx * way[1] + dy * way[0]) : Infinity;
    };
    const nearest = this.cells.reduce(
      (best, cell, n) => (apart(cell) < apart(this.cells[best]!) ? n : best),
      this.chosen,
    );
    if (apart(this.cells[nearest]!) < Infinity) this.choose(nearest);
  }

  private csv(): string {
    const { across, up } = this.figure.dataset;
    const row = ({ dataset }: SVGRectElement) =>
      [field(dataset["x"]!), field(dataset["y"]!), dataset["mean"]!, dataset["ci95"]!].join();
    return [[field(across ?? ""), field(up ?? ""), "mean", "ci95"].join(), ...this.cells.map(row), ""].join("\r\n");
  }

  /** The drawing with the colours that it has now. */
  private svg(): string {
    const copy = this.drawing.cloneNode(true) as SVGSVGElement;
    const [shown, copied] = [this.drawing, copy].map((one) => [...one.querySelectorAll<SVGElement>("rect,text,path")]);
    shown!.forEach((part, n) => {
      const style = getComputedStyle(part);
      for (const name of STYLED) copied![n]!.style.setProperty(name, style.getPropertyValue(name));
    });
    const { width, height } = this.drawing.viewBox.baseVal;
    copy.setAttribute("width", String(width));
    copy.setAttribute("height", String(height));
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    copy.style.background = getComputedStyle(document.body).backgroundColor;
    for (const name of ["tabindex", "role", "class"]) copy.removeAttribute(name);
    return `${new XMLSerializer().serializeToString(copy)}\n`;
  }

  private png(saved: (blob: Blob) => void): void {
    const { width, height } = this.drawing.viewBox.baseVal;
    const image = new Image();
    image.addEventListener("load", () => {
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [width * FINE, height * FINE];
      canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => blob && saved(blob));
    });
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(this.svg())}`;
  }
}
