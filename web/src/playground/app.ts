/** The playground: a scenario is chosen, changed, simulated in this page, and reported. */

import { Cancelled, Engine, type Finished } from "../engine/engine";
import type { Catalogue, Checked, Composed, Finding, Scenario } from "../engine/messages";
import { enhance } from "../report/enhance";
import { themeSwitch } from "../report/theme";
import { command } from "./command";
import { Controls } from "./controls";
import { byId, h } from "../dom";
import { examples, moduleBytes, workerScript } from "./files";
import { fromHash, START, toHash, type State } from "./state";

/** Packets that this page simulates in a second, about: for the warning before a long run. */
const PACKETS_PER_S = 500_000;
/** Seconds from which a run is long. */
const LONG_S = 20;

class Playground {
  private readonly controls: Controls;
  private readonly status = byId("status");
  private readonly bar = byId<HTMLProgressElement>("progress");
  private readonly place = byId("report");
  private running = false;
  private again = false;
  private scenario: Scenario = { file: "", text: "" };

  constructor(
    private readonly engine: Engine,
    catalogue: Catalogue,
    private state: State,
  ) {
    this.controls = new Controls(byId("controls"), catalogue, examples, {
      changed: (state, live) => this.changed(state, live),
      run: () => this.run(true),
      cancel: () => this.engine.cancel(),
      share: () => this.share(),
      save: (what) => this.save(what),
    });
  }

  /** The scenario of the state. */
  private async resolve(): Promise<Scenario> {
    const { source, set } = this.state;
    const pairs = Object.entries(set).map(([key, value]) => `${key}=${value}`);
    switch (source.from) {
      case "library": {
        const composed = await this.engine.json<Composed>({ do: "compose", line: source.line, home: source.home });
        return { file: `${source.line}-${source.home}.toml`, text: composed.text, set: pairs };
      }
      case "example": {
        const found = examples.find(({ path }) => path === source.path);
        if (found === undefined) throw new Error(`no example ${source.path}`);
        const { text, files, binary } = found;
        return { file: source.path.split("/").at(-1)!, text, files, binary, set: pairs };
      }
      case "text":
        return { file: "scenario.toml", text: source.text, set: pairs };
    }
  }

  async start(): Promise<void> {
    if (!(await this.show())) return;
    if (this.cost > LONG_S) this.warn();
    else await this.run(false);
  }

  /** Shows the state in the controls, and checks the scenario. */
  private async show(): Promise<boolean> {
    try {
      this.scenario = await this.resolve();
    } catch (error) {
      this.say(String(error));
      return false;
    }
    this.controls.show(this.state, this.scenario.text);
    const checked = await this.engine.json<Checked>({ do: "check", ...this.scenario });
    this.findings(checked.findings);
    if (checked.findings.some(({ severity }) => severity === "error")) {
      this.say("The scenario has errors.");
      return false;
    }
    this.cost = ((checked.packets_at_most ?? 0) / PACKETS_PER_S) * Math.max(this.state.policies.length, 1);
    return true;
  }

  private cost = 0;

  private async changed(state: State, live: boolean): Promise<void> {
    this.state = state;
    if (this.running) {
      // A slider moves faster than a run: the last value is simulated next.
      this.again = true;
      if (!live) this.engine.cancel();
      return;
    }
    if (await this.show()) {
      if (this.cost > LONG_S) return this.warn();
      await this.run(false);
    }
  }

  private warn(): void {
    const minutes = this.cost / 60;
    const time = minutes > 1.5 ? `about ${Math.round(minutes)} minutes` : `about ${Math.round(this.cost)} s`;
    this.say(
      `At full rate this takes ${time} in a browser. ` +
        "A shorter duration, lower rates or fewer policies take less; Run starts it.",
    );
  }

  /** Policies to compare, and values; a single policy is one of these. */
  private choices(): { set: string[]; policies: string[] } {
    const policies = this.controls.hasLine ? this.state.policies : [];
    const policy = policies.length === 1 ? [`access.policy=${policies[0]}`] : [];
    return { set: [...(this.scenario.set ?? []), ...policy], policies };
  }

  private async run(asked: boolean): Promise<void> {
    if (this.running) return;
    if (asked && !(await this.show())) return;
    this.running = true;
    this.controls.running(true);
    this.bar.hidden = false;
    this.bar.value = 0;
    this.say("Simulating…");
    try {
      const { set, policies } = this.choices();
      const request =
        policies.length > 1
          ? ({ do: "compare", ...this.scenario, policies } as const)
          : ({ do: "run", ...this.scenario, set } as const);
      const begin = performance.now();
      const answer = await this.engine.report(request, (share) => (this.bar.value = share));
      if ("findings" in answer) this.findings(answer.findings);
      else this.report(answer, performance.now() - begin);
      history.replaceState(null, "", (await toHash(this.state)) || location.pathname);
    } catch (error) {
      this.say(error instanceof Cancelled ? "Cancelled." : `The simulation ended: ${String(error)}`);
    } finally {
      this.running = false;
      this.controls.running(false);
      this.bar.hidden = true;
    }
    if (this.again) {
      this.again = false;
      await this.changed(this.state, true);
    }
  }

  private report({ report, columns, ms }: Finished, all: number): void {
    // The height stays while the next report is drawn, so that nothing jumps.
    this.place.style.minHeight = `${this.place.offsetHeight}px`;
    // The body is markup of the crate `results`, in which every name is escaped.
    const parsed = new DOMParser().parseFromString(report.body, "text/html");
    this.place.replaceChildren(...parsed.body.childNodes);
    enhance(this.place, report.figures, columns);
    this.place.style.minHeight = "";
    this.findings(report.findings);
    const events =
      report.events > 1e6 ? `${(report.events / 1e6).toFixed(1)} million events` : `${report.events} events`;
    this.say(`${events} simulated in ${ms.toFixed(0)} ms.`);
    this.place.dataset["ms"] = all.toFixed(0);
    this.place.dataset["runs"] = String(report.runs.length);
    this.controls.reported(report.runs);
  }

  private findings(found: Finding[]): void {
    this.controls.findings(found);
    // The report below errors is that of an earlier scenario.
    this.place.classList.toggle(
      "stale",
      found.some(({ severity }) => severity === "error"),
    );
    byId("findings").replaceChildren(...found.map((finding) => h("pre", { class: finding.severity }, finding.text)));
  }

  private say(text: string): void {
    this.status.textContent = text;
  }

  private async share(): Promise<void> {
    const hash = await toHash(this.state);
    if (hash === "") return this.say("This scenario is too long for an address.");
    history.replaceState(null, "", hash);
    try {
      await navigator.clipboard.writeText(location.href);
      this.say("The address of this scenario is in the clipboard.");
    } catch {
      this.say("The address of this page has the scenario.");
    }
  }

  private async save(what: "page" | "summary" | "scenario"): Promise<void> {
    const { file, text } = this.scenario;
    const { set, policies } = this.choices();
    const kinds = {
      page: { name: "report.html", type: "text/html" },
      summary: { name: "summary.json", type: "application/json" },
      scenario: { name: file, type: "application/toml" },
    } as const;
    const bytes =
      what === "scenario"
        ? `# ${command(file, set, policies)}\n${text}`
        : await this.engine.bytes(what === "page" ? { do: "page" } : { do: "summary", run: 0 });
    const link = h("a", {
      href: URL.createObjectURL(new Blob([bytes as BlobPart], { type: kinds[what].type })),
      download: kinds[what].name,
    });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }
}

async function main(): Promise<void> {
  document.body.prepend(themeSwitch());
  if (typeof WebAssembly !== "object") throw new Error("this browser has no WebAssembly, or it is switched off");
  const engine = await Engine.load(workerScript(), await moduleBytes(""));
  const catalogue = await engine.json<Catalogue>({ do: "catalogue" });
  const state = (await fromHash(location.hash)) ?? START;
  const playground = new Playground(engine, catalogue, state);
  await playground.start();
  // Tests ask the engine that the page uses.
  Object.assign(window, { lastmile: { engine, examples } });
  document.documentElement.dataset["ready"] = "";
}

main().catch((error: unknown) => {
  const why = error instanceof Error ? error.message : String(error);
  byId("status").textContent = `The simulator does not start here: ${why}. The command needs no browser.`;
});
