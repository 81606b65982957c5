/** The names of a panel's lines: switches, with values at the cursor. */

import type { Line, Panel } from "./data";
import type { Group } from "./group";
import { isMark, sign } from "./shapes";

interface Entry {
  name: string;
  lines: Line[];
  button: HTMLButtonElement;
  value: HTMLElement;
}

export class Legend {
  readonly element: HTMLElement;
  private readonly entries: Entry[] = [];
  private readonly place: HTMLElement;
  private focused: Line | null = null;

  constructor(
    panel: Panel,
    private readonly group: Group,
    toggled: (name: string) => void,
  ) {
    this.element = document.createElement("div");
    this.element.className = "legend";
    for (const line of panel.lines) {
      const known = this.entries.find(({ name }) => name === line.label);
      if (known) known.lines.push(line);
      else this.entries.push(this.entry(line, toggled));
    }
    this.place = document.createElement("span");
    this.place.className = "legend-place";
    this.element.append(...this.entries.map((entry) => entry.button), this.place);
  }

  private entry(line: Line, toggled: (name: string) => void): Entry {
    const name = line.label;
    const button = document.createElement("button");
    button.type = "button";
    button.title = `Show or hide ${name}`;
    const swatch = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    swatch.setAttribute("class", "legend-swatch plot");
    swatch.setAttribute("viewBox", "0 0 24 6");
    swatch.setAttribute("aria-hidden", "true");
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    const kind = isMark(line.shape) || line.shape === "bars" ? "stroke" : "line";
    path.setAttribute("class", `${kind} c${line.colour % 8} d${line.dash % 5}`);
    path.setAttribute("d", sign(line));
    if (line.bound) path.setAttribute("class", `bound c${line.colour % 8}`);
    swatch.append(path);
    const label = document.createElement("span");
    label.textContent = name;
    const value = document.createElement("span");
    value.className = "legend-value";
    button.append(swatch, label, value);
    button.addEventListener("click", () => toggled(name));
    return { name, lines: [line], button, value };
  }

  refresh(): void {
    for (const { name, button } of this.entries) {
      button.setAttribute("aria-pressed", String(!this.group.isHidden(name)));
    }
  }

  /** The line that is nearest to the pointer. */
  focus(line: Line | null): void {
    this.focused = line;
    for (const entry of this.entries)
      entry.button.classList.toggle("near", line !== null && entry.lines.includes(line));
  }

  /** The place of the cursor, and the value of each line there. */
  values(place: string, value: (line: Line) => string | null): void {
    this.place.textContent = place === "" ? "" : `at ${place}`;
    for (const entry of this.entries) {
      const [first] = entry.lines;
      if (entry.lines.length === 1) {
        entry.value.textContent = value(first!) ?? "";
        continue;
      }
      const near = this.focused !== null && entry.lines.includes(this.focused) ? this.focused : null;
      entry.value.textContent = near === null ? "" : `${near.member}: ${value(near) ?? "\u2013"}`;
    }
  }
}
