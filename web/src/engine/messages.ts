/** What a page and the worker of the simulator say to each other. The other side is the crate `playground`. */

import type { Figures } from "../report/data";

/** A scenario with the files that it names. */
export interface Scenario {
  /** Name of the file. */
  file: string;
  text: string;
  /** Overrides, `key=value`. */
  set?: string[];
  /** Texts by path. */
  files?: Record<string, string>;
  /** Bytes by path, in Base64. */
  binary?: Record<string, string>;
}

export type Request =
  | { do: "catalogue" }
  | { do: "compose"; line: string; home: string }
  | ({ do: "check" } & Scenario)
  | ({ do: "run" } & Scenario)
  | ({ do: "compare"; policies?: string[]; vary?: [string, string[]][] } & Scenario)
  | {
      do: "experiment";
      publication: string;
      table: string;
      settings: Record<string, number | string | boolean>;
      figures: string[];
    }
  | { do: "columns" }
  | { do: "summary"; run: number }
  | { do: "page" };

export interface Finding {
  severity: "warning" | "error";
  key: string;
  message: string;
  hint: string | null;
  /** Line and column, from 1. */
  at: [number, number] | null;
  /** As on a terminal. */
  text: string;
}

export interface Entry {
  name: string;
  about: string;
}

export interface Catalogue {
  version: string;
  lines: Entry[];
  homes: Entry[];
  policies: Entry[];
  /** Keys of the file by the heading of their table. */
  keys: Record<string, { key: string; about: string }[]>;
}

export interface Composed {
  text: string;
  notes: string[];
}

export interface Checked {
  findings: Finding[];
  packets_at_most?: number;
}

export interface Reported {
  body: string;
  figures: Figures;
  runs: string[];
  events: number;
  findings: Finding[];
}

/** To the worker. */
export type ToWorker = { id: number; request: Request };

/** From the worker. */
export type FromWorker =
  | { kind: "ready" }
  | { kind: "failed"; message: string }
  | { kind: "progress"; id: number; share: number }
  | { kind: "answer"; id: number; bytes: Uint8Array; columns: Uint8Array | null; ms: number };
