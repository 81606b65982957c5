/** The editor of a scenario: TOML, errors where they are, keys completed. */

import {
  autocompletion,
  completionKeymap,
  type CompletionContext,
  type CompletionResult,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { HighlightStyle, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { toml } from "@codemirror/legacy-modes/mode/toml";
import { lintGutter, setDiagnostics, type Diagnostic } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { EditorView, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";

import type { Finding } from "../engine/messages";

/** Colours are those of the page. */
const COLOURS = HighlightStyle.define([
  { tag: tags.comment, color: "var(--muted)" },
  { tag: [tags.string, tags.number, tags.bool, tags.atom], color: "var(--string)" },
  { tag: [tags.propertyName, tags.keyword], color: "var(--accent)" },
]);

const LOOK = EditorView.theme({
  "&": { fontSize: "13px", border: "1px solid var(--rule)", borderRadius: "6px", background: "var(--paper)" },
  "&.cm-focused": { outline: "2px solid var(--accent)" },
  ".cm-scroller": { fontFamily: "var(--mono)", maxHeight: "28rem" },
  ".cm-gutters": { background: "var(--band)", color: "var(--muted)", border: "0" },
  ".cm-content": { caretColor: "var(--ink)" },
  ".cm-tooltip": { background: "var(--paper)", color: "var(--ink)", border: "1px solid var(--rule)" },
  ".cm-diagnostic": { whiteSpace: "pre-wrap" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { background: "var(--selection) !important" },
});

/** Keys of a table of the file, by its heading. */
export type Keys = (heading: string) => { key: string; about: string }[];

/** The heading above a place, without indices: `access.up`, `traffic`. */
export function headingAt(text: string, place: number): string {
  const headings = [...text.slice(0, place).matchAll(/^\s*\[\[?\s*([\w.-]+)\s*\]?\]/gm)];
  return headings.at(-1)?.[1] ?? "";
}

export class Editor {
  private readonly view: EditorView;
  private silent = false;

  constructor(parent: HTMLElement, keys: Keys, changed: (text: string) => void) {
    const complete = (context: CompletionContext): CompletionResult | null => {
      const line = context.state.doc.lineAt(context.pos);
      const word = /^\s*([\w-]*)$/.exec(line.text.slice(0, context.pos - line.from));
      if (word === null || (word[1] === "" && !context.explicit)) return null;
      const options = keys(headingAt(context.state.doc.toString(), context.pos));
      if (options.length === 0) return null;
      return {
        from: context.pos - word[1]!.length,
        options: options.map(({ key, about }) => ({
          label: key,
          detail: "",
          info: about,
          apply: `${key} = `,
          type: "property",
        })),
      };
    };
    this.view = new EditorView({
      parent,
      state: EditorState.create({
        extensions: [
          lineNumbers(),
          history(),
          StreamLanguage.define(toml),
          syntaxHighlighting(COLOURS),
          lintGutter(),
          autocompletion({ override: [complete] }),
          keymap.of([...completionKeymap, ...historyKeymap, ...defaultKeymap]),
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ "aria-label": "Scenario" }),
          LOOK,
          EditorView.updateListener.of((update) => {
            if (update.docChanged && !this.silent) changed(update.state.doc.toString());
          }),
        ],
      }),
    });
  }

  get text(): string {
    return this.view.state.doc.toString();
  }

  set text(text: string) {
    if (text === this.text) return;
    this.silent = true;
    this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text } });
    this.silent = false;
  }

  /** Marks findings at their places; the others stand at the first line. */
  findings(found: Finding[]): void {
    const { doc } = this.view.state;
    const marks = found.map((finding): Diagnostic => {
      const line = doc.line(Math.min(finding.at?.[0] ?? 1, doc.lines));
      const caret = /\n.*\| *(\^+)/.exec(finding.text);
      const from = Math.min(line.from + (finding.at?.[1] ?? 1) - 1, line.to);
      const to = finding.at === null ? line.to : Math.min(from + (caret?.[1]?.length ?? 1), line.to);
      const message = finding.hint === null ? finding.message : `${finding.message}\nhint: ${finding.hint}`;
      return { from, to: Math.max(to, from), severity: finding.severity, message };
    });
    marks.sort((a, b) => a.from - b.from);
    this.view.dispatch(setDiagnostics(this.view.state, marks));
  }

  goto(line: number, column: number): void {
    const at = this.view.state.doc.line(Math.min(line, this.view.state.doc.lines));
    this.view.dispatch({ selection: { anchor: Math.min(at.from + column - 1, at.to) }, scrollIntoView: true });
    this.view.focus();
  }
}
