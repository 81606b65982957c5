/** Tables of the latest report. */

import type { Cell, Table } from "./data";
import { h, setText } from "../dom";
import { show, type Unit } from "./units";

function words(cell: Cell, unit: Unit): string {
  return typeof cell === "string" ? cell : show(cell, unit);
}

/** Whether the column has text: its cells that are there are. */
function isText(table: Table, column: number): boolean {
  return column === 0 || table.rows.some((row) => typeof row[column] === "string");
}

/** All tables of the page. They are changed in place, so that a selection of text stays. */
export class Tables {
  private shown: { element: HTMLTableElement; shape: string }[] = [];

  constructor(private readonly root: HTMLElement) {}

  update(tables: readonly Table[]): void {
    if (document.hidden) return;
    const shapes = tables.map((table) => JSON.stringify([table.columns, table.rows.length]));
    if (shapes.length !== this.shown.length || shapes.some((shape, index) => shape !== this.shown[index]!.shape)) {
      this.shown = tables.map((table, index) => ({ element: build(table), shape: shapes[index]! }));
      this.root.replaceChildren(...this.shown.map(({ element: table }) => region(table)));
      return;
    }
    tables.forEach((table, index) => refresh(this.shown[index]!.element, table));
  }
}

/** A part that scrolls by itself, also with the keyboard. */
export function region(table: HTMLTableElement): HTMLElement {
  const label = table.caption?.textContent ?? "";
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, table);
}

function build(table: Table): HTMLTableElement {
  const head = table.columns.map(([name], index) =>
    h("th", { scope: "col", class: isText(table, index) ? "text" : "" }, name),
  );
  const rows = table.rows.map((row) =>
    h(
      "tr",
      {},
      ...row.map((cell, index) => {
        const text = words(cell, table.columns[index]![1]);
        if (index === 0) return h("th", { scope: "row", class: "text" }, text);
        return h("td", { class: isText(table, index) ? "text" : "" }, text);
      }),
    ),
  );
  return h("table", {}, h("caption", {}, table.title), h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows));
}

function refresh(shown: HTMLTableElement, table: Table): void {
  setText(shown.caption!, table.title);
  table.rows.forEach((row, number) => {
    const cells = shown.tBodies[0]!.rows[number]!.cells;
    row.forEach((cell, index) => setText(cells[index]!, words(cell, table.columns[index]![1])));
  });
}
