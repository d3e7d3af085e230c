// From figures to places: linear, logarithmic and time axes with their ticks.

export interface Tick {
  value: number;
  text: string;
}

/** Where values lie, in pixels, and the ticks of the axis. */
export interface Scale {
  at: (value: number) => number;
  ticks: Tick[];
}

const PLAIN = new Intl.NumberFormat("en", { maximumSignificantDigits: 3, useGrouping: true });
const STEPS = [1, 2, 5];
const DAY_MS = 86_400_000;
const MONDAY_MS = 4 * DAY_MS;
/** The decades of an axis that has ticks between the powers of ten too. */
const FEW_DECADES = 3;

export function linear(low: number, high: number, from: number, to: number, most: number): Scale {
  const span = high - low || 1;
  const at = (value: number) => from + ((value - low) / span) * (to - from);
  const rough = span / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [...STEPS, 10].map((each) => each * power).find((each) => each >= rough) ?? rough;
  const ticks: Tick[] = [];
  for (let each = Math.ceil(low / step - 1e-9); each * step <= high + step * 1e-9; each += 1) {
    // The first number may be minus zero.
    const value = each * step || 0;
    ticks.push({ value, text: PLAIN.format(value) });
  }
  return { at, ticks };
}

/** Scores, from 0.0 to 1.0. */
export function scores(from: number, to: number): Scale {
  const { at, ticks } = linear(0, 1, from, to, 5);
  return { at, ticks: ticks.map(({ value }) => ({ value, text: value.toFixed(1) })) };
}

/** `low` and `high` are above zero. */
export function logarithmic(low: number, high: number, from: number, to: number): Scale {
  const [start, end] = [Math.log10(low), Math.log10(high)];
  const at = (value: number) =>
    from + ((Math.log10(value) - start) / (end - start || 1)) * (to - from);
  const steps = end - start > FEW_DECADES ? [1] : STEPS;
  const ticks: Tick[] = [];
  for (let power = Math.floor(start); power <= end; power += 1) {
    for (const step of steps) {
      const value = step * 10 ** power;
      if (value >= low && value <= high) ticks.push({ value, text: PLAIN.format(value) });
    }
  }
  return { at, ticks };
}

/** Times in milliseconds; ticks at days, Mondays or first days of months, in UTC. */
export function time(low: number, high: number, from: number, to: number, most: number): Scale {
  const at = (value: number) => from + ((value - low) / (high - low || 1)) * (to - from);
  const days = (high - low) / DAY_MS;
  const ticks = days / 30 > most ? months(low, high, most) : daysBetween(low, high, most);
  return { at, ticks };
}

function daysBetween(low: number, high: number, most: number): Tick[] {
  const needed = (high - low) / DAY_MS / most;
  const step = needed <= 1 ? 1 : Math.ceil(needed / 7) * 7;
  const date = new Date(low);
  date.setUTCHours(0, 0, 0, 0);
  const ticks: Tick[] = [];
  for (; date.getTime() <= high; date.setUTCDate(date.getUTCDate() + 1)) {
    if (date.getTime() >= low && ((date.getTime() - MONDAY_MS) / DAY_MS) % step === 0) {
      ticks.push({ value: date.getTime(), text: dated(date, { day: "numeric", month: "short" }) });
    }
  }
  return ticks;
}

function months(low: number, high: number, most: number): Tick[] {
  const needed = (high - low) / DAY_MS / 30 / most;
  const step = [1, 2, 3, 6, 12].find((each) => each >= needed) ?? 24;
  const date = new Date(Date.UTC(new Date(low).getUTCFullYear(), 0, 1));
  const ticks: Tick[] = [];
  for (; date.getTime() <= high; date.setUTCMonth(date.getUTCMonth() + step)) {
    if (date.getTime() < low) continue;
    const text = dated(date, { month: "short", year: "numeric" });
    ticks.push({ value: date.getTime(), text });
  }
  return ticks;
}

function dated(date: Date, format: Intl.DateTimeFormatOptions): string {
  return date.toLocaleDateString(undefined, { ...format, timeZone: "UTC" });
}
