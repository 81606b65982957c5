/** What a reader chose, and its form in an address. */

/** Where the scenario comes from. */
export type Source =
  | { from: "library"; line: string; home: string }
  | { from: "example"; path: string }
  | { from: "text"; text: string };

export interface State {
  source: Source;
  /** Values of knobs by key, as `--set` has them. */
  set: Record<string, string>;
  /** Policies; a single one is a run, several are compared. */
  policies: string[];
}

export const START: State = {
  source: { from: "example", path: "scenarios/upload-starves-download.toml" },
  set: {},
  policies: ["none", "full-both-ways"],
};

/** Longest text that an address holds. */
const LONGEST = 32_000;

async function through(bytes: BlobPart, stream: GenericTransformStream): Promise<ArrayBuffer> {
  const writer = stream.writable.getWriter();
  // The reader hears of damage; the writer need not.
  writer.write(new Uint8Array(await new Blob([bytes]).arrayBuffer())).catch(() => {});
  writer.close().catch(() => {});
  writer.closed.catch(() => {});
  const reader = stream.readable.getReader() as ReadableStreamDefaultReader<BlobPart>;
  reader.closed.catch(() => {});
  const parts: BlobPart[] = [];
  for (let part = await reader.read(); !part.done; part = await reader.read()) parts.push(part.value);
  return new Blob(parts).arrayBuffer();
}

/** The part of an address after `#`; empty for a state that is too long. */
export async function toHash(state: State): Promise<string> {
  const packed = new Uint8Array(await through(JSON.stringify(state), new CompressionStream("deflate-raw")));
  const text = btoa(String.fromCharCode(...packed)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  return text.length <= LONGEST ? `#s=${text}` : "";
}

/** The state of an address; `null` if it has none, or a damaged one. */
export async function fromHash(hash: string): Promise<State | null> {
  const found = /^#s=([\w-]+)$/.exec(hash);
  if (found === null) return null;
  try {
    const packed = Uint8Array.from(atob(found[1]!.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
    const text = new TextDecoder().decode(await through(packed, new DecompressionStream("deflate-raw")));
    return valid(JSON.parse(text));
  } catch {
    return null;
  }
}

/** An address is written by strangers: anything but a state is refused. */
export function valid(value: unknown): State | null {
  if (typeof value !== "object" || value === null) return null;
  const { source, set, policies } = value as Record<string, unknown>;
  const texts = (one: unknown): one is string[] => Array.isArray(one) && one.every((text) => typeof text === "string");
  if (!texts(policies) || policies.length > 20) return null;
  if (typeof set !== "object" || set === null || !texts(Object.values(set))) return null;
  if (typeof source !== "object" || source === null) return null;
  const { from, line, home, path, text } = source as Record<string, unknown>;
  const base = { set: { ...(set as Record<string, string>) }, policies };
  if (from === "library" && texts([line, home])) return { ...base, source: { from, line: line as string, home: home as string } };
  if (from === "example" && typeof path === "string") return { ...base, source: { from, path } };
  if (from === "text" && typeof text === "string") return { ...base, source: { from, text } };
  return null;
}
