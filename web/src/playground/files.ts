/** The files that come with the site: the module of the simulator, its worker, and the scenarios that ship. */

import { XzReadableStream } from "xz-decompress";

/** A scenario that ships. */
export interface Example {
  path: string;
  /** Its name, or that of its file. */
  title: string;
  text: string;
  files: Record<string, string>;
  binary: Record<string, string>;
}

declare global {
  interface Window {
    /** The module: WebAssembly, compressed (XZ), in Base64. A script has it, since a page from disk may fetch
     * nothing. */
    lastmileModule?: string;
  }
}

declare const WORKER: string;
declare const EXAMPLES: Example[];

export const examples: Example[] = EXAMPLES;

/** The address of the worker's script, which is part of this script: a page from disk may start no other. */
export function workerScript(): string {
  return URL.createObjectURL(new Blob([WORKER], { type: "text/javascript" }));
}

function script(source: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const element = document.createElement("script");
    element.src = source;
    element.addEventListener("load", () => resolve());
    element.addEventListener("error", () => reject(new Error(`${source} cannot be loaded`)));
    document.head.append(element);
  });
}

/** The module's bytes. `base` leads from the page to the root of the site. */
export async function moduleBytes(base: string): Promise<ArrayBuffer> {
  if (window.lastmileModule === undefined) await script(`${base}module.js`);
  const text = window.lastmileModule;
  if (text === undefined) throw new Error("module.js has no module");
  delete window.lastmileModule;
  const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return new Response(new XzReadableStream(new Blob([packed]).stream())).arrayBuffer();
}
