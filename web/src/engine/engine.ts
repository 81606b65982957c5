/** The simulator as a page sees it: promises, progress, and an end at any time. */

import { decode, type Columns } from "../report/data";
import type { FromWorker, Reported, Request, ToWorker } from "./messages";

/** The run was ended by the page. */
export class Cancelled extends Error {}

interface Pending {
  resolve(answer: { bytes: Uint8Array; columns: Uint8Array | null; ms: number }): void;
  reject(error: Error): void;
  progress: ((share: number) => void) | undefined;
}

/** A report with its columns decoded. */
export interface Finished {
  report: Reported;
  columns: Columns;
  ms: number;
}

export class Engine {
  private worker: Worker | null = null;
  private readonly pending = new Map<number, Pending>();
  private next = 1;

  private constructor(
    private readonly script: string,
    private readonly module: ArrayBuffer,
  ) {}

  /** Loads the module. Bytes may come with the page, where files cannot be fetched. */
  static async load(script: string, module: ArrayBuffer): Promise<Engine> {
    const engine = new Engine(script, module);
    engine.start();
    return engine;
  }

  private start(): Worker {
    if (this.worker !== null) return this.worker;
    const worker = new Worker(this.script);
    worker.addEventListener("message", (event: MessageEvent<FromWorker>) => this.hear(event.data));
    worker.addEventListener("error", (event) => this.end(new Error(event.message || "the worker failed")));
    worker.postMessage({ module: this.module });
    this.worker = worker;
    return worker;
  }

  private hear(message: FromWorker): void {
    switch (message.kind) {
      case "ready":
        return;
      case "failed":
        return this.end(new Error(message.message));
      case "progress":
        return this.pending.get(message.id)?.progress?.(message.share);
      case "answer": {
        const pending = this.pending.get(message.id);
        this.pending.delete(message.id);
        return pending?.resolve(message);
      }
    }
  }

  private end(error: Error): void {
    this.worker?.terminate();
    this.worker = null;
    for (const pending of this.pending.values()) pending.reject(error);
    this.pending.clear();
  }

  /** Ends what runs. The next request starts a new worker. */
  cancel(): void {
    if (this.pending.size > 0) this.end(new Cancelled("cancelled"));
  }

  private ask(request: Request, progress?: (share: number) => void) {
    const worker = this.start();
    const id = this.next++;
    return new Promise<{ bytes: Uint8Array; columns: Uint8Array | null; ms: number }>((resolve, reject) => {
      this.pending.set(id, { resolve, reject, progress });
      worker.postMessage({ id, request } satisfies ToWorker);
    });
  }

  /** Bytes of a file. */
  async bytes(request: Request): Promise<Uint8Array> {
    return (await this.ask(request)).bytes;
  }

  /** An answer in JSON. */
  async json<T>(request: Request): Promise<T> {
    return JSON.parse(new TextDecoder().decode(await this.bytes(request))) as T;
  }

  /** A report; or findings, if the scenario is wrong. */
  async report(
    request: Request,
    progress?: (share: number) => void,
  ): Promise<Finished | { findings: Reported["findings"] }> {
    const { bytes, columns, ms } = await this.ask(request, progress);
    const report = JSON.parse(new TextDecoder().decode(bytes)) as Reported & { wrong?: string };
    if (report.wrong !== undefined) throw new Error(report.wrong);
    if (report.body === undefined || columns === null) return { findings: report.findings };
    return { report, columns: decode(report.figures.columns, columns), ms };
  }
}
