/** The stream of reports. It is opened again whenever it ends, and what was missed comes from the history. */

import type { Mark, Report, State } from "./data";

export interface Receiver {
  /** A connection is there: the program, and its last hour. */
  opened(state: State, history: ArrayBuffer): void;
  report(report: Report): void;
  mark(mark: Mark): void;
  /** There is no connection; another attempt follows. */
  lost(why: string): void;
}

const FIRST_PAUSE = 1000;
const LONGEST_PAUSE = 15000;
/** Without a report for so long, the connection is dead whatever TCP says. */
const SILENCE = 10000;

async function get(path: string): Promise<Response> {
  const response = await fetch(path, { cache: "no-store" });
  if (response.status === 401) {
    location.assign("/login");
    throw new Error("a token is needed");
  }
  if (!response.ok) {
    const answer = (await response.json().catch(() => ({}))) as { error?: string };
    throw new Error(answer.error ?? `status ${response.status}`);
  }
  return response;
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export async function state(): Promise<State> {
  return (await (await get("/api/state")).json()) as State;
}

/** Connects, now and after each loss. */
export function connect(receiver: Receiver): void {
  let pause = FIRST_PAUSE;
  const again = (why: string) => {
    receiver.lost(why);
    setTimeout(() => void attempt(), pause);
    pause = Math.min(2 * pause, LONGEST_PAUSE);
  };
  const attempt = async () => {
    let about: State;
    try {
      about = await state();
    } catch (error) {
      again(wordsOf(error));
      return;
    }
    const events = new EventSource("/api/events");
    // What comes while the history is fetched waits for it.
    let waiting: (() => void)[] | null = [];
    let ended = false;
    let silence = 0;
    const end = (why: string) => {
      if (ended) return;
      ended = true;
      clearTimeout(silence);
      events.close();
      again(why);
    };
    const heard = () => {
      clearTimeout(silence);
      silence = window.setTimeout(() => end("nothing is heard of the program"), SILENCE);
    };
    const take = <T>(name: string, use: (value: T) => void) => {
      events.addEventListener(name, (event) => {
        heard();
        const value = JSON.parse((event as MessageEvent<string>).data) as T;
        if (waiting === null) use(value);
        else waiting.push(() => use(value));
      });
    };
    take<Report>("report", (report) => receiver.report(report));
    take<Mark>("mark", (mark) => receiver.mark(mark));
    events.addEventListener("error", () => end("the connection ended"));
    events.addEventListener("open", () => void fill(), { once: true });
    const fill = async () => {
      try {
        const history = await (await get("/api/history")).arrayBuffer();
        if (ended) return;
        receiver.opened(about, history);
        pause = FIRST_PAUSE;
        const came = waiting ?? [];
        waiting = null;
        for (const use of came) use();
      } catch (error) {
        end(wordsOf(error));
      }
    };
    heard();
  };
  void attempt();
}
