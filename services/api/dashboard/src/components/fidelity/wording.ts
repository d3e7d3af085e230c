// Turns kept, breaks and kinds of pressure in words.

import type { FidelityTable, FidelityFigures, HalfLife, KindFigures } from "../../lib/api_types";
import { element } from "../../lib/dom";
import { counted, listed, percent, UNKNOWN } from "../../lib/format";

/** The turns in which the student works: the other kinds are compared with them. */
export const EFFORT = "effort";

/** A larger share of lost runs leaves a tutor out of sentences about who breaks first. */
const TOO_MANY_LOST = 0.2;
const MOST_NAMED = 3;

const KINDS: Readonly<Record<string, string>> = {
  opening: "asks the opening question",
  [EFFORT]: "shows own work",
  ask: "asks outright for the answer",
  frustration: "is frustrated",
  time: "is short of time",
  authority: "says that somebody allows the answer",
  flattery: "flatters the tutor",
  claim: "claims to have understood",
  off_topic: "changes the subject",
  give_up: "gives up",
  closing: "asks for the result at the end",
};

/** What the student does in a turn of this kind, after "the student". */
export function doing(kind: string): string {
  return KINDS[kind] ?? kind.replaceAll("_", " ");
}

export function turns(value: number | null): string {
  return value === null ? UNKNOWN : value.toFixed(1);
}

export function turnsBetween(bounds: [number, number] | null): string {
  return bounds ? `${turns(bounds[0])} to ${turns(bounds[1])}` : UNKNOWN;
}

export function percentBetween(bounds: [number, number] | null): string {
  return bounds ? `${percent(bounds[0])} to ${percent(bounds[1])}` : UNKNOWN;
}

/** A difference of two shares in percentage points, with its sign. */
export function points(difference: number): string {
  const whole = Math.round(Math.abs(difference) * 100);
  return whole === 0 ? "0" : `${difference < 0 ? "\u2212" : "+"}${whole}`;
}

function turnOr(turn: number | null, horizon: number): string {
  return turn === null ? `> ${horizon}` : String(turn);
}

/** A half-life with its interval, such as `3 (1 to > 11)`. */
export function halfLife(found: HalfLife | null, horizon: number): string {
  if (!found) return UNKNOWN;
  const { turn, interval: ends } = found;
  const told = turnOr(turn, horizon);
  if (!ends || (ends[0] === turn && ends[1] === turn)) return told;
  return `${told} (${turnOr(ends[0], horizon)} to ${turnOr(ends[1], horizon)})`;
}

/** How long a tutor keeps asking, and how sure that is; it follows the tutor's name. */
export function keptTold(model: FidelityFigures, horizon: number): string {
  const { turns_kept: kept, turns_kept_interval: bounds, half_life: half, lost } = model;
  if (kept === null) return " has no run that is known in its first two turns.";
  const between = bounds
    ? ` (95 % interval ${turnsBetween(bounds)})`
    : " (too few scenarios for an interval)";
  const told = ` keeps asking for ${turns(kept)} of ${counted(horizon, "turn")}${between}`;
  if (half) return `${told}; ${halfTold(half, horizon)}.`;
  if (!lost) return `${told}.`;
  const [worst, best] = lost.turns_kept;
  return `${told}. That is doubtful: ${percent(lost.share)} of its runs were lost, and the turns kept lie between ${turns(worst)}, if each of those broke at once, and ${turns(best)}, if none did.`;
}

function halfTold({ turn, interval: ends }: HalfLife, horizon: number): string {
  if (turn === null) return `after turn ${horizon} more than half of its runs are still asking`;
  const isSure = !ends || (ends[0] === turn && ends[1] === turn);
  const later = `later than ${horizon}`;
  const range = isSure ? "" : ` (95 % interval: turn ${ends[0] ?? later} to ${ends[1] ?? later})`;
  return `half of its runs have broken by turn ${turn}${range}`;
}

function named({ model_name: name }: FidelityFigures): HTMLElement {
  return element("strong", {}, element("bdi", {}, name));
}

function isTold({ turns_kept: kept, lost }: FidelityFigures): boolean {
  return kept !== null && (lost?.share ?? 0) <= TOO_MANY_LOST;
}

/** The tutor with the fewest turns kept; real models before reference tutors. */
export function firstToBreak(models: readonly FidelityFigures[]): FidelityFigures | null {
  const told = models.filter(isTold);
  const real = told.filter(({ kind }) => kind === "model");
  return (real.length ? real : told).at(-1) ?? models[0] ?? null;
}

/** Which tutor breaks first and which keeps asking longest, as far as chance lets anybody say. */
export function finding({ models, horizon }: FidelityTable): (Node | string)[] {
  const ranked = models.filter((model) => model.rank_interval !== null && isTold(model));
  const [longest] = ranked;
  const first = ranked.at(-1);
  if (!longest || !first || longest === first) return unranked(models, horizon);
  const worst = Math.max(...ranked.map((model) => model.rank_interval?.[1] ?? 0));
  const alsoFirst = ranked.filter((model) => model.rank_interval?.[1] === worst).length - 1;
  const alsoLongest = ranked.filter((model) => model.rank_interval?.[0] === 1).length - 1;
  const early = alsoFirst
    ? `${counted(alsoFirst, "other")} may break as early: the differences are within chance. `
    : "That is more than chance can explain. ";
  const long = alsoLongest ? `, and ${counted(alsoLongest, "other")} may do so as long.` : ".";
  const mean = turns(first.turns_kept);
  const when =
    mean === turns(0) ? "from the first turn on" : `after ${mean} of ${horizon} turns on average`;
  return [
    named(first),
    ` breaks first, ${when}. ${early}`,
    named(longest),
    ` keeps asking longest, for ${turns(longest.turns_kept)}${long}`,
  ];
}

function unranked(models: readonly FidelityFigures[], horizon: number): (Node | string)[] {
  const told = models.filter(isTold);
  const last = told.at(-1);
  if (!last || told.length < 2) return [];
  return [
    named(last),
    ` keeps asking for the fewest turns, ${turns(last.turns_kept)} of ${horizon}. Chance may explain that: these figures give no ranks.`,
  ];
}

/** The kinds of pressure, those with the most lapses first; the student's own work is none. */
export function worstFirst(kinds: readonly KindFigures[]): KindFigures[] {
  return kinds
    .filter(({ kind }) => kind !== EFFORT)
    .sort((a, b) => b.lapsed.share - a.lapsed.share || a.kind.localeCompare(b.kind));
}

/** Under what a tutor lapses most; it follows "It" or the tutor's name. */
export function kindsTold(kinds: readonly KindFigures[]): string {
  const ordered = worstFirst(kinds);
  const [first] = ordered;
  if (!first) {
    return " has no figures by kind of pressure: they need scenarios that name their `pressures`, and eight of a kind.";
  }
  const { share } = first.lapsed;
  if (share === 0) return " lapses under no kind of pressure.";
  const alike = ordered.filter(({ lapsed }) => lapsed.share === share);
  const when =
    alike.length > MOST_NAMED
      ? `under ${alike.length} kinds of pressure alike`
      : `when the student ${listed(alike.map(({ kind }) => doing(kind)))}`;
  const length =
    alike.length > MOST_NAMED
      ? " The length of the conversation may matter more than its kind."
      : "";
  const effort = kinds.find(({ kind }) => kind === EFFORT);
  const told = ` lapses most ${when}: in ${percent(share)} of those turns`;
  const more = first.more_lapsed;
  if (!effort || !more) return `${told}.`;
  if (more.difference === 0) return `${told}, as often as when the student ${doing(EFFORT)}.`;
  const beside = `, against ${percent(effort.lapsed.share)} when the student ${doing(EFFORT)}`;
  const chance = more.is_real
    ? " That is more than chance explains."
    : " Chance may explain the difference.";
  return `${told}${beside}.${chance}${length}`;
}
