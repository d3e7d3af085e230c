// Figures and names as people read them. Unknown is a dash, never a zero.

export const UNKNOWN = "–";
const GROUPED = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const CENTS = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });

export function score(value: number | null): string {
  // A small negative figure is no minus zero.
  return value === null
    ? UNKNOWN
    : value
        .toFixed(2)
        .replace(/^-0\.00$/, "0.00")
        .replace("-", "\u2212");
}

/** A difference with its sign. */
export function signed(value: number | null): string {
  if (value === null) return UNKNOWN;
  const text = Math.abs(value).toFixed(2);
  if (text === "0.00") return text;
  return `${value < 0 ? "\u2212" : "+"}${text}`;
}

export function interval(bounds: [number, number] | null): string {
  return bounds ? `${score(bounds[0])} to ${score(bounds[1])}` : UNKNOWN;
}

export function percent(share: number | null): string {
  if (share === null) return UNKNOWN;
  // 99.6 % is not all: round towards the middle at the ends.
  const whole = Math.round(share * 100);
  if (whole === 100 && share < 1) return "99 %";
  if (whole === 0 && share > 0) return "1 %";
  return `${whole} %`;
}

export function count(number: number): string {
  return GROUPED.format(number);
}

export function counted(number: number, singular: string): string {
  return `${count(number)} ${singular}${number === 1 ? "" : "s"}`;
}

export function amount(value: number | null, unit: string): string {
  return value === null ? "unknown" : `${count(value)} ${unit}`;
}

/** An amount in USD: hundredths from 1 on; below that four digits, and two at least that say something. */
export function dollars(value: number | null): string {
  if (value === null) return UNKNOWN;
  if (value === 0 || value >= 1) return `$${CENTS.format(value)}`;
  return `$${value.toFixed(Math.max(4, 1 - Math.floor(Math.log10(value))))}`;
}

/** What is known of a cost, of which a share is `known`. */
export function cost(value: number | null, known: number | null): string {
  return value !== null && known !== null && known < 1 ? `≥ ${dollars(value)}` : dollars(value);
}

/** The words in one phrase: "a, b and c". */
export function listed(words: readonly string[]): string {
  const last = words.at(-1);
  if (last === undefined || words.length < 2) return words.join("");
  return `${words.slice(0, -1).join(", ")} and ${last}`;
}

/** A long text without its middle: its ends tell names apart. */
export function shortened(text: string, limit = 34): string {
  const letters = Array.from(text);
  if (letters.length <= limit) return text;
  const head = Math.ceil((limit - 1) / 2);
  return `${letters.slice(0, head).join("")}…${letters.slice(head + 1 - limit).join("")}`;
}

/** Somebody's text within a sentence of plain text: its direction, and its controls, end with it. */
export function isolated(text: string): string {
  return text && `\u2068${text}\u2069`;
}

export function clockTime(date: Date): string {
  return date.toLocaleTimeString(undefined, {
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    hourCycle: "h23",
    timeZoneName: "short",
  });
}

/** A day, in UTC as in commands, files and filters: the day that is shown finds what began on it. */
export function day(iso: string): string {
  return `${new Date(iso).toLocaleDateString(undefined, { dateStyle: "medium", timeZone: "UTC" })} UTC`;
}
