/** The form next to the report: line and home, examples, an editor, knobs, policies. */

import type { Catalogue, Entry, Finding } from "../engine/messages";
import { h } from "../dom";
import { Editor, type Keys } from "./editor";
import type { Example } from "./files";
import { knobRow, knobsOf } from "./knobs";
import { START, type Source, type State } from "./state";

export interface Actions {
  /** A choice changed; `live` for a slider that may move on. */
  changed(state: State, live: boolean): void;
  run(): void;
  cancel(): void;
  share(): void;
  save(what: "page" | "summary" | "scenario"): void;
}

const TABS = ["library", "example", "text"] as const;
const TAB_NAMES = { library: "Library", example: "Examples", text: "Edit" } as const;
/** Milliseconds after the last key before the text is read. */
const TYPING_MS = 400;
/** The policy of the line's own queues. */
const NONE: Entry = { name: "none", about: "The line's own queues" };

export class Controls {
  hasLine = true;
  private state: State = START;
  private readonly tabs: Record<(typeof TABS)[number], HTMLButtonElement>;
  private readonly panes: Record<(typeof TABS)[number], HTMLElement>;
  private readonly line: HTMLSelectElement;
  private readonly home: HTMLSelectElement;
  private readonly example: HTMLSelectElement;
  private readonly about = h("p", { class: "hint" });
  private readonly knobs = h("div", { class: "knobs" });
  private readonly policies = h("fieldset", { class: "policies" });
  private readonly runButton = h("button", { type: "submit", class: "primary" }, "Run");
  private readonly editor: Editor;
  private typing = 0;
  private knobsFor = "";

  constructor(
    private readonly form: HTMLElement,
    private readonly catalogue: Catalogue,
    examples: Example[],
    private readonly actions: Actions,
  ) {
    const options = (entries: Entry[]) => entries.map(({ name }) => h("option", { value: name }, name));
    this.line = h("select", { id: "line" }, ...options(catalogue.lines));
    this.home = h("select", { id: "home" }, ...options(catalogue.homes));
    this.example = h("select", { id: "example" }, ...examplesByFolder(examples));
    const editorPlace = h("div", { class: "editor" });
    this.panes = {
      library: h("div", { id: "pane-library" }, labelled("Line", this.line), labelled("Home", this.home), this.about),
      example: h("div", { id: "pane-example" }, labelled("Scenario", this.example)),
      text: h("div", { id: "pane-text" }, editorPlace),
    };
    const tab = (name: (typeof TABS)[number]) => {
      const attributes = { type: "button", role: "tab", id: `tab-${name}`, "aria-controls": `pane-${name}` };
      const button = h("button", attributes, TAB_NAMES[name]);
      button.addEventListener("click", () => this.open(name));
      this.panes[name].setAttribute("role", "tabpanel");
      this.panes[name].setAttribute("aria-labelledby", `tab-${name}`);
      return button;
    };
    this.tabs = { library: tab("library"), example: tab("example"), text: tab("text") };
    this.form.replaceChildren(
      h(
        "div",
        { class: "tabs", role: "tablist", "aria-label": "Where the scenario comes from" },
        ...Object.values(this.tabs),
      ),
      ...Object.values(this.panes),
      this.knobs,
      this.policies,
      this.buttons(),
    );
    this.editor = new Editor(editorPlace, keysOf(catalogue), (text) => this.typed(text));
    for (const select of [this.line, this.home]) {
      select.addEventListener("change", () =>
        this.source({ from: "library", line: this.line.value, home: this.home.value }),
      );
    }
    this.example.addEventListener("change", () => this.source({ from: "example", path: this.example.value }));
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.actions.run();
    });
    this.policyBoxes();
  }

  private buttons(): HTMLElement {
    const button = (text: string, title: string, act: () => void) => {
      const made = h("button", { type: "button", title }, text);
      made.addEventListener("click", act);
      return made;
    };
    this.cancel = button("Cancel", "End the simulation", () => this.actions.cancel());
    this.cancel.hidden = true;
    return h(
      "div",
      { class: "actions" },
      this.runButton,
      this.cancel,
      button("Share", "Copy an address that has this scenario", () => this.actions.share()),
      button("Save page", "Save the report as one file", () => this.actions.save("page")),
      button("summary.json", "Save every scalar result of the first run", () => this.actions.save("summary")),
      button("Scenario", "Save the scenario, with the command for these policies and values", () =>
        this.actions.save("scenario"),
      ),
    );
  }

  private cancel!: HTMLButtonElement;

  private policyBoxes(): void {
    const box = ({ name, about }: Entry) => {
      const input = h("input", { type: "checkbox", name: "policy", value: name });
      input.addEventListener("change", () => {
        const chosen = [...this.policies.querySelectorAll("input")]
          .filter(({ checked }) => checked)
          .map(({ value }) => value);
        this.tell({ ...this.state, policies: chosen.length === 0 ? ["none"] : chosen }, false);
      });
      return h("label", { title: about }, input, h("span", {}, name));
    };
    this.policies.append(h("legend", {}, "Policies to compare"), ...[NONE, ...this.catalogue.policies].map(box));
  }

  private tell(state: State, live: boolean): void {
    this.state = state;
    this.actions.changed(state, live);
  }

  private source(source: Source): void {
    this.tell({ ...this.state, source, set: {} }, false);
  }

  /** Opens a tab; the editor begins with the scenario that was shown, and with its values. */
  private open(name: (typeof TABS)[number]): void {
    if (this.state.source.from === name) return;
    if (name === "text") this.tell({ ...this.state, source: { from: "text", text: this.editor.text } }, false);
    else if (name === "library") this.source({ from: "library", line: this.line.value, home: this.home.value });
    else this.source({ from: "example", path: this.example.value });
  }

  private typed(text: string): void {
    clearTimeout(this.typing);
    this.typing = window.setTimeout(() => {
      this.tell({ ...this.state, source: { from: "text", text }, set: {} }, false);
    }, TYPING_MS);
  }

  /** Shows a state, and the text of its scenario. */
  show(state: State, text: string): void {
    this.state = state;
    const { source } = state;
    for (const name of TABS) {
      this.tabs[name].setAttribute("aria-selected", String(source.from === name));
      this.panes[name].hidden = source.from !== name;
    }
    if (source.from === "library") [this.line.value, this.home.value] = [source.line, source.home];
    if (source.from === "example") this.example.value = source.path;
    this.editor.text = text;
    const about = (entries: Entry[], name: string) => entries.find((entry) => entry.name === name)?.about ?? "";
    const { lines, homes } = this.catalogue;
    this.about.textContent = `${about(lines, this.line.value)}. ${about(homes, this.home.value)}.`;
    // A slider that is being moved must stay in the page.
    const knobs = knobsOf(text);
    if (this.knobsFor !== text || Object.keys(state.set).length === 0) {
      this.knobsFor = text;
      this.knobs.replaceChildren(
        ...knobs.map((knob) => knobRow(knob, state.set[knob.keys[0]], (value) => this.turned(knob.keys, value))),
      );
    }
    this.hasLine = /^\s*\[access/m.test(text);
    this.policies.hidden = !this.hasLine;
    for (const input of this.policies.querySelectorAll("input")) input.checked = state.policies.includes(input.value);
  }

  private turned(keys: string[], value: string | null): void {
    const set = { ...this.state.set };
    for (const key of keys) {
      if (value === null) delete set[key];
      else set[key] = value;
    }
    this.tell({ ...this.state, set }, true);
  }

  running(is: boolean): void {
    this.cancel.hidden = !is;
    this.runButton.disabled = is;
  }

  reported(runs: string[]): void {
    this.form.dataset["runs"] = runs.join(",");
  }

  findings(found: Finding[]): void {
    this.editor.findings(found);
  }
}

function labelled(text: string, field: HTMLElement): HTMLElement {
  return h("div", { class: "field" }, h("label", { for: field.id }, text), field);
}

function examplesByFolder(examples: Example[]): HTMLElement[] {
  const folders = new Map<string, Example[]>();
  for (const example of examples) {
    const folder = example.path.split("/").slice(1, -1).join("/") || "lines";
    folders.set(folder, [...(folders.get(folder) ?? []), example]);
  }
  const option = ({ path, title }: Example) => h("option", { value: path }, title);
  return [...folders].map(([folder, own]) => h("optgroup", { label: folder.replaceAll("-", " ") }, ...own.map(option)));
}

/** Completions: the keys that the catalogue lists for a heading. */
function keysOf(catalogue: Catalogue): Keys {
  return (heading) => catalogue.keys[heading] ?? catalogue.keys[heading.split(".").at(-1) ?? ""] ?? [];
}
