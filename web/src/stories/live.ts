/** The simulator of stories: one run after the other, of each figure only the newest wish. */

import { Engine } from "../engine/engine";
import type { Value, Values } from "./model";

/** The answer of the module: the request `experiment`. */
export interface Point {
  figures: Record<string, Value>;
  /** Name of the scenario, its text, and the keys that the settings set. */
  scenario: string;
  text: string;
  set: string[];
  wrong?: string;
}

export interface Wish {
  publication: string;
  table: string;
  settings: Values;
  figures: string[];
}

interface Waiting {
  wish: Wish;
  begun(): void;
  done(point: Point, ms: number): void;
  failed(message: string): void;
}

export class Live {
  private readonly waiting = new Map<string, Waiting>();
  private engine: Promise<Engine> | null = null;
  private running = false;

  constructor(private readonly load: () => Promise<Engine>) {}

  /** Asks for a point. An older wish of this figure that has not begun is forgotten. */
  ask(figure: string, waiting: Waiting): void {
    this.waiting.delete(figure);
    this.waiting.set(figure, waiting);
    void this.next();
  }

  private async next(): Promise<void> {
    if (this.running) return;
    const [first] = this.waiting;
    if (first === undefined) return;
    const [figure, { wish, begun, done, failed }] = first;
    this.waiting.delete(figure);
    this.running = true;
    begun();
    try {
      this.engine ??= this.load();
      const engine = await this.engine;
      const begin = performance.now();
      const point = await engine.json<Point>({ do: "experiment", ...wish });
      if (point.wrong === undefined) done(point, performance.now() - begin);
      else failed(point.wrong);
    } catch (error) {
      failed(error instanceof Error ? error.message : String(error));
    } finally {
      this.running = false;
    }
    void this.next();
  }
}
