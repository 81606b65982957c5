/** Numbers for the eye: three digits and the unit, as in the live view of a terminal. */

export type Unit = "bit/s" | "B" | "s" | "/s" | "";

const STEPS: Record<Unit, [number, string][]> = {
  "bit/s": [
    [1e9, "Gbit/s"],
    [1e6, "Mbit/s"],
    [1e3, "kbit/s"],
    [1, "bit/s"],
  ],
  B: [
    [1e9, "GB"],
    [1e6, "MB"],
    [1e3, "kB"],
    [1, "B"],
  ],
  s: [
    [1, "s"],
    [1e-3, "ms"],
    [1e-6, "\u00b5s"],
  ],
  "/s": [[1, "/s"]],
  "": [[1, ""]],
};

/** `-` for a value that is not there. */
export function show(value: number | null | undefined, unit: Unit): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "-";
  const steps = STEPS[unit];
  const [factor, name] = steps.find(([least]) => Math.abs(value) >= least * 0.9995) ?? steps[steps.length - 1]!;
  const number = value / factor;
  const decimals = Number.isInteger(number) || Math.abs(number) >= 99.95 ? 0 : Math.abs(number) >= 9.995 ? 1 : 2;
  const digits = number.toFixed(decimals);
  return name === "" ? digits : `${digits} ${name}`;
}

/** All numbers of an axis with one unit. */
export function ticks(values: readonly number[], unit: Unit): string[] {
  const largest = Math.max(...values.map(Math.abs));
  const steps = STEPS[unit];
  const [factor, name] = steps.find(([least]) => largest >= least) ?? steps[steps.length - 1]!;
  return values.map((value) => `${Number((value / factor).toPrecision(6))}${name === "" ? "" : ` ${name}`}`);
}

/** The time of day in the zone of the browser. */
export function clock(ms: number): string {
  return new Date(ms).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
}
