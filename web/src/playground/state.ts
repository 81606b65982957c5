/** What a reader chose, and its form in an address. */

/** Where the scenario comes from. */
export type Source =
  { from: "library"; line: string; home: string } | { from: "example"; path: string } | { from: "text"; text: string };

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
  const text = btoa(String.fromCharCode(...packed))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
  return text.length <= LONGEST ? `#s=${text}` : "";
}

/** The readable part of an address after `#`; `null` for a scenario that is neither an example nor of the library. */
export function toReadable({ source, set, policies }: State): string | null {
  if (source.from === "text") return null;
  // A reader sees commas, slashes and spaces as they are; a browser writes a space as %20.
  const text = (value: string) =>
    encodeURIComponent(value).replace(/%(2C|2F|3A|3D|20|40|7B|7D|5B|5D|22)/g, decodeURIComponent);
  const pairs =
    source.from === "example"
      ? [["example", source.path]]
      : [
          ["line", source.line],
          ["home", source.home],
        ];
  if (policies.length > 0) pairs.push(["policy", policies.join(",")]);
  pairs.push(...Object.entries(set).map(([key, value]) => ["set", `${key}=${value}`]));
  return `#${pairs.map(([key, value]) => `${key}=${text(value!)}`).join("&")}`;
}

/**
 * The state of a readable address: `#example=scenarios/x.toml&policy=none,cake&set=access.up.rate=1 Mbit/s`, or
 * `#line=LINE&home=HOME`. `null` for any other key, for one that comes twice (but `set`), and for values of another
 * form.
 */
export function fromReadable(hash: string): State | null {
  if (!hash.startsWith("#") || hash.length > LONGEST) return null;
  const found: Record<string, string> = {};
  const set: Record<string, string> = {};
  for (const part of hash.slice(1).split("&")) {
    const pair = split(decoded(part));
    if (pair === null) return null;
    const [key, value] = pair;
    if (key !== "set") {
      if (!Object.hasOwn(FORMS, key) || Object.hasOwn(found, key) || !FORMS[key]!.test(value)) return null;
      found[key] = value;
      continue;
    }
    const inner = split(value);
    if (inner === null || !/^[\w.:-]+$/.test(inner[0]) || inner[0] === "__proto__" || Object.hasOwn(set, inner[0]))
      return null;
    set[inner[0]] = inner[1];
  }
  const { example, line, home, policy } = found;
  const policies = policy === undefined ? [] : policy.split(",");
  if (policies.length > 20) return null;
  if (example !== undefined && line === undefined && home === undefined)
    return { source: { from: "example", path: example }, set, policies };
  if (example === undefined && line !== undefined && home !== undefined)
    return { source: { from: "library", line, home }, set, policies };
  return null;
}

/** Forms of the values of a readable address. A path stays below `scenarios`. */
const FORMS: Record<string, RegExp> = {
  example: /^scenarios(\/[\w-][\w.-]*)+\.toml$/,
  line: /^[\w.-]+$/,
  home: /^[\w.-]+$/,
  policy: /^[\w.-]+(,[\w.-]+)*$/,
};

/** Key and value around the first `=`; `null` if one of them is empty. */
function split(text: string | null): [string, string] | null {
  const found = text === null ? null : /^([^=]+)=([^]+)$/.exec(text);
  return found === null ? null : [found[1]!, found[2]!];
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

/** The state of an address; `null` if it has none, or a damaged one. */
export async function fromHash(hash: string): Promise<State | null> {
  const readable = fromReadable(hash);
  if (readable !== null) return readable;
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
  if (from === "library" && texts([line, home]))
    return { ...base, source: { from, line: line as string, home: home as string } };
  if (from === "example" && typeof path === "string") return { ...base, source: { from, path } };
  if (from === "text" && typeof text === "string") return { ...base, source: { from, text } };
  return null;
}
