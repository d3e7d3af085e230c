// A model's points over time: stretches that join, and what broke them.

import type { Change, ModelSeries, Point, Timeseries } from "../../lib/api_types";
import {
  counted,
  day,
  interval,
  listed,
  percent,
  score,
  shortened,
  signed,
} from "../../lib/format";

export const TURNS_KEPT = "turns-kept";

/** A figure as a page calls it. */
export function figureTold(name: string): string {
  if (name === TURNS_KEPT) return "Turns kept";
  return name === "overall" ? "Score" : shortened(name, 30);
}

/** The figure with the turn and the dimension that it is of. */
export function shownTold({ figure, turn, dimension }: Timeseries): string {
  const parts = [turn === null ? "" : `turn ${turn}`, dimension ? shortened(dimension, 30) : ""];
  return [figureTold(figure), ...parts.filter(Boolean)].join(", ");
}

export interface Moment {
  point: Point;
  at: number;
}

/** Something that changed, with the letter that stands for it in the figure. */
export interface Mark {
  letter: string;
  kind: "benchmark" | "version" | "change-point" | "named";
  at: number;
  /** The interval of its date; null where the date is known. */
  within: [number, number] | null;
  /** The sentence beside the letter. */
  told: string;
}

export function momentsOf({ points }: ModelSeries): Moment[] {
  return points.map((point) => ({ point, at: Date.parse(point.created_at) }));
}

/** Points that join and have the figure, each stretch for itself. */
export function stretchesOf(series: ModelSeries): Moment[][] {
  const stretches: Moment[][] = [];
  for (const moment of momentsOf(series)) {
    const last = stretches.at(-1);
    if (last && moment.point.joins) last.push(moment);
    else stretches.push([moment]);
  }
  return stretches
    .map((stretch) => stretch.filter(({ point }) => point.value !== null))
    .filter((stretch) => stretch.length > 0);
}

/** The changes of the benchmark and of the reported version, change points and a named date, the oldest first. */
export function marksOf(series: ModelSeries): Mark[] {
  const moments = momentsOf(series);
  const found: Omit<Mark, "letter">[] = series.change_points
    .filter(({ is_real: isReal }) => isReal)
    .map((each) => ({
      kind: "change-point",
      at: (Date.parse(each.last_before) + Date.parse(each.first_after)) / 2,
      within: [Date.parse(each.earliest), Date.parse(each.latest)],
      told: each.finding,
    }));
  const named = series.date_difference;
  if (named) {
    found.push({ kind: "named", at: Date.parse(named.changed), within: null, told: named.finding });
  }
  for (const [place, { point, at }] of moments.entries()) {
    const before = moments[place - 1];
    const parts = point.benchmark_changed ?? [];
    if (before && parts.length) {
      const told = `${day(point.created_at)}: the benchmark changed (${listed(parts)}). The line breaks here, and no test crosses the place.`;
      found.push({ kind: "benchmark", at: (before.at + at) / 2, within: null, told });
    }
    const change = series.version_changes?.find(
      (each) => each.experiment_id === point.experiment_id,
    );
    if (change) {
      const told = `${day(point.created_at)}: the provider reports ${listed(change.after)} instead of ${listed(change.before)}. ${change.finding}`;
      found.push({ kind: "version", at, within: null, told });
    }
  }
  return found
    .toSorted((a, b) => a.at - b.at)
    .map((mark, place) => ({ ...mark, letter: letterOf(place) }));
}

function letterOf(place: number): string {
  const letter = String.fromCodePoint(65 + (place % 26));
  return place < 26 ? letter : `${letter}${Math.floor(place / 26) + 1}`;
}

/** Trends, change points that chance may explain (others have a letter), and what points would show. */
export function trendsTold(series: ModelSeries): string[] {
  const unclear = series.change_points.filter(({ is_real: isReal }) => !isReal);
  return [...series.trends, ...unclear, ...series.detectable_changes].map(
    ({ since, until, finding }) => `${day(since)} to ${day(until)}: ${finding}`,
  );
}

export function pointTold(point: Point): string {
  const title = point.title ? `${point.title}, ` : "";
  const bounds = point.confidence_interval ? ` (95 % ${interval(point.confidence_interval)})` : "";
  const changed = point.change
    ? `; ${signed(point.change.difference)} from the point before, ${differsTold(point.change)}`
    : "";
  const broken = point.benchmark_changed
    ? `; the benchmark changed (${listed(point.benchmark_changed)})`
    : "";
  const lost = point.lost ? `, ${percent(point.lost.share)} of the runs lost` : "";
  const coverage = point.coverage === null ? "" : `, ${percent(point.coverage)} scored`;
  return `${title}${day(point.created_at)}: ${score(point.value)}${bounds}, ${counted(point.total_runs, "run")}${coverage}${lost}${changed}${broken}`;
}

/** Whether two neighbouring experiments differ: a difference of theirs shows no change of the model. */
export function differsTold(change: Change): string {
  return change.is_real ? "these two experiments differ" : "which may be chance";
}

/** The newest point with the figure. */
export function newestOf({ points }: ModelSeries): Point | undefined {
  return points.findLast(({ value }) => value !== null) ?? points.at(-1);
}
