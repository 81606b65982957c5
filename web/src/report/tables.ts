/** Tables that are sorted by a click on a heading, and filtered where they are long. */

/** The fewest rows of a table with a filter. */
const FILTERED = 10;

const UNITS: Readonly<Record<string, number>> = {
  "Gbit/s": 1e9,
  "Mbit/s": 1e6,
  "kbit/s": 1e3,
  "bit/s": 1,
  GB: 1e9,
  MB: 1e6,
  kB: 1e3,
  B: 1,
  GiB: 2 ** 30,
  MiB: 2 ** 20,
  KiB: 2 ** 10,
  bytes: 1,
  h: 3600,
  min: 60,
  s: 1,
  ms: 1e-3,
  "\u00b5s": 1e-6,
  ns: 1e-9,
  "%": 1,
};

/** A number with its unit. A date, a time of day and an address go on after their first number. */
const NUMBER = /^\s*\u2248?([-+\u2212]?\d[\d\s]*(?:\.\d+)?(?:e[-+]?\d+)?)(?!\s*\d|[-:.]+\w)\s*([^\s\d]*)/;

/** The number at the beginning of a cell in its base unit, also of an estimate (≈); `null` for another text. */
export function numberOf(text: string): number | null {
  const found = NUMBER.exec(text);
  if (found === null) return null;
  const value = Number(found[1]!.replace(/\s/g, "").replace("\u2212", "-"));
  const unit = found[2]!.replace(/[,;]$/, "");
  return Number.isFinite(value) ? value * (UNITS[unit] ?? 1) : null;
}

/** Numbers in their order before texts in theirs; empty cells last, in either direction. */
export function compare(a: string, b: string, down: boolean): number {
  const empty = (text: string) => text === "" || text === "\u2013";
  if (empty(a) || empty(b)) return Number(empty(a)) - Number(empty(b));
  const [x, y] = [numberOf(a), numberOf(b)];
  const order =
    x !== null && y !== null ? x - y : x !== null ? -1 : y !== null ? 1 : a.localeCompare(b, "en", { numeric: true });
  return down ? -order : order;
}

/** Makes the tables below `root` answer. */
export function enhanceTables(root: ParentNode): void {
  for (const table of root.querySelectorAll("table")) {
    const body = table.tBodies[0];
    if (body === undefined || table.tHead === null || table.dataset["live"] !== undefined) continue;
    table.dataset["live"] = "";
    if (body.rows.length > 1) sortable(table, body);
    if (body.rows.length >= FILTERED) filtered(table, body);
    // Whoever has no pointer scrolls a wide table by keys.
    table.closest<HTMLElement>(".scroll")?.setAttribute("tabindex", "0");
  }
}

function sortable(table: HTMLTableElement, body: HTMLTableSectionElement): void {
  const original = [...body.rows];
  const heads = [...(table.tHead?.rows[0]?.cells ?? [])];
  heads.forEach((head, column) => {
    if (head.textContent?.trim() === "") return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const state = head.getAttribute("aria-sort");
      // Numbers are sorted from the largest first, then from the least, then as they came.
      const numeric = original.some((row) => numberOf(row.cells[column]?.textContent ?? "") !== null);
      const turns = numeric ? ["descending", "ascending", null] : ["ascending", "descending", null];
      const next = turns[(turns.indexOf(state) + 1) % 3] ?? null;
      for (const other of heads) other.removeAttribute("aria-sort");
      if (next !== null) head.setAttribute("aria-sort", next);
      const rows = [...original];
      const text = (row: HTMLTableRowElement) => (row.cells[column]?.textContent ?? "").trim();
      if (next !== null) rows.sort((a, b) => compare(text(a), text(b), next === "descending"));
      body.append(...rows);
    });
  });
}

function filtered(table: HTMLTableElement, body: HTMLTableSectionElement): void {
  const field = document.createElement("input");
  field.type = "search";
  field.className = "filter";
  field.placeholder = "Filter rows";
  field.setAttribute("aria-label", "Filter rows of the table");
  const count = document.createElement("span");
  count.className = "filter-count";
  count.setAttribute("role", "status");
  field.addEventListener("input", () => {
    const wanted = field.value.trim().toLowerCase();
    let shown = 0;
    for (const row of body.rows) {
      row.hidden = wanted !== "" && !(row.textContent ?? "").toLowerCase().includes(wanted);
      if (!row.hidden) shown += 1;
    }
    count.textContent = wanted === "" ? "" : `${shown} of ${body.rows.length} rows`;
  });
  const bar = document.createElement("p");
  bar.className = "filter-bar";
  bar.append(field, count);
  (table.closest(".scroll") ?? table).before(bar);
}
