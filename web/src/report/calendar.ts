/** Calendar time of an axis: ticks at round local times, and times in words, as the command writes them. */

/** From which time on, in seconds since 1970, the zone was how many seconds ahead of UTC. */
export type Clock = [number, number][];

const HOUR = 3600;
const DAY = 24 * HOUR;
/** Distances of ticks, in seconds. */
const STEPS = [
  ...[1, 5, 10, 30, 60, 300, 600, 1800, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR],
  ...[1, 2, 7, 14, 30, 60, 90, 180, 365, 730].map((days) => days * DAY),
];
/** From this length of a view on, dates have their year. */
const YEARLY = 300 * DAY;
const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

function offset(clock: Clock, at: number): number {
  const [, first] = clock[0] ?? [0, 0];
  return clock.reduce((offset, [from, ahead]) => (from <= at ? ahead : offset), first);
}

/** The parts of a local time. */
function parts(clock: Clock, at: number) {
  const local = new Date((at + offset(clock, at)) * 1000);
  const two = (value: number) => String(value).padStart(2, "0");
  const [month, day] = [local.getUTCMonth(), two(local.getUTCDate())];
  const minute = `${two(local.getUTCHours())}:${two(local.getUTCMinutes())}`;
  return {
    date: `${local.getUTCFullYear()}-${two(month + 1)}-${day}`,
    weekday: DAYS[local.getUTCDay()]!,
    dayOfMonth: `${day} ${MONTHS[month]!}`,
    minute,
    second: `${minute}:${two(local.getUTCSeconds())}`,
  };
}

/** Ticks at round local times between two places, at most about `most`, with their names. */
export function calendarTicks(clock: Clock, from: number, to: number, most: number): [number, string][] {
  const wanted = (to - from) / Math.max(most, 1);
  const step = STEPS.find((step) => step >= wanted) ?? 2 * 365 * DAY;
  const name = (at: number): string => {
    const local = parts(clock, at);
    if (step < 60) return local.second;
    if (step < HOUR) return local.minute;
    if (step < DAY) return `${local.weekday} ${local.minute}`;
    return to - from > YEARLY ? local.date : `${local.weekday} ${local.dayOfMonth}`;
  };
  // Multiples of the step on the local clock. A change of that clock moves those after it.
  const ahead = offset(clock, from);
  const found: [number, string][] = [];
  for (let local = Math.ceil((from + ahead) / step) * step; ; local += step) {
    const at = local - offset(clock, local - ahead);
    if (at > to) return found;
    // A time that the clock leaves out is that of an earlier tick.
    if (at >= from && at > (found.at(-1)?.[0] ?? -Infinity)) found.push([at, name(at)]);
  }
}

/** A time of the local clock, such as `2026-11-01 18:30:05`. */
export function timeShown(clock: Clock, at: number): string {
  const local = parts(clock, Math.floor(at));
  return `${local.date} ${local.second}`;
}
