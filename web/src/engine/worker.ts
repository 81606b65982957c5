/** The worker of the simulator: it loads the module once, and answers one request after the other. */

import type { FromWorker, Request, ToWorker } from "./messages";

interface Module {
  memory: WebAssembly.Memory;
  reserve(length: number): number;
  answer(): number;
  answer_at(): number;
}

const post = (message: FromWorker, transfer: Transferable[] = []) =>
  (self as unknown as { postMessage(m: FromWorker, t: Transferable[]): void }).postMessage(message, transfer);

let current = 0;
let told = 0;

/** Tells the page at most twenty times a second. */
function progress(share: number): void {
  const now = performance.now();
  if (now - told < 50) return;
  told = now;
  post({ kind: "progress", id: current, share });
}

async function load(bytes: ArrayBuffer): Promise<Module> {
  const { instance } = await WebAssembly.instantiate(bytes, { page: { progress } });
  return instance.exports as unknown as Module;
}

function ask(module: Module, request: Request): Uint8Array {
  const text = new TextEncoder().encode(JSON.stringify(request));
  const at = module.reserve(text.length);
  new Uint8Array(module.memory.buffer, at, text.length).set(text);
  const length = module.answer();
  return new Uint8Array(module.memory.buffer, module.answer_at(), length).slice();
}

let module: Promise<Module> | null = null;

self.addEventListener("message", (event: MessageEvent<ToWorker | { module: ArrayBuffer }>) => {
  const { data } = event;
  if ("module" in data) {
    module = load(data.module);
    module.then(
      () => post({ kind: "ready" }),
      (error: unknown) => post({ kind: "failed", message: String(error) }),
    );
    return;
  }
  module?.then((loaded) => {
    current = data.id;
    const begin = performance.now();
    try {
      const bytes = ask(loaded, data.request);
      const reports = data.request.do === "run" || data.request.do === "compare";
      const columns = reports ? ask(loaded, { do: "columns" }) : null;
      const transfer = columns === null ? [bytes.buffer] : [bytes.buffer, columns.buffer];
      post({ kind: "answer", id: data.id, bytes, columns, ms: performance.now() - begin }, transfer as Transferable[]);
    } catch (error) {
      // A trap leaves the module in no usable state: the page makes a new worker.
      post({ kind: "failed", message: String(error) });
    }
  });
});
