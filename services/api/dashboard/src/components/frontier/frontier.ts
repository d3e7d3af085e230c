// Which models nobody beats: no other is both cheaper (or faster) and more Socratic.

import type { ModelFigures } from "../../lib/api_types";
import { dollars, UNKNOWN } from "../../lib/format";

const THOUSAND = 1000;

/** What a score is set against. */
export interface Price {
  key: "cost" | "latency";
  /** The heading of the axis, with its unit. */
  axis: string;
  /** "cheaper". */
  less: string;
  of: (model: ModelFigures) => number | null;
  text: (value: number) => string;
  /** The same in a sentence. */
  told: (value: number) => string;
}

export const COST: Price = {
  key: "cost",
  axis: "Cost of 1,000 responses in USD",
  less: "cheaper",
  of: ({ mean_cost_usd: mean }) => (mean === null ? null : mean * THOUSAND),
  text: dollars,
  told: (value) => `${dollars(value)} for 1,000 responses`,
};

export const LATENCY: Price = {
  key: "latency",
  axis: "Mean latency of a response in seconds",
  less: "faster",
  of: ({ mean_latency_ms: mean }) => (mean === null ? null : mean / THOUSAND),
  text: (value) => value.toFixed(2),
  told: (value) => `${value.toFixed(2)} s a response`,
};

/** A model with a score and a price: what a chart draws. */
export interface Point {
  model: ModelFigures;
  price: number;
  score: number;
  /** Whether its price was measured or billed: that of a reference tutor is simulated. */
  isReal: boolean;
  isOn: boolean;
  /** The best of those that cost no more and score no less; null where there is none. */
  beatenBy: ModelFigures | null;
}

export function isSimulated(model: ModelFigures, { key }: Price): boolean {
  return model.kind !== "model" || (key === "latency" && model.simulated_latency_ms > 0);
}

function beats(one: Point, other: Point): boolean {
  const isNoWorse = one.price <= other.price && one.score >= other.score;
  return isNoWorse && (one.price < other.price || one.score > other.score);
}

/** The points of a chart, the lowest price first; without a frontier across test conditions. */
export function pointsOf(
  models: readonly ModelFigures[],
  price: Price,
  areMixed: boolean,
): Point[] {
  const points = models.flatMap((model): Point[] => {
    const value = price.of(model);
    if (value === null || model.overall_score === null) return [];
    const isReal = !isSimulated(model, price);
    const score = model.overall_score;
    return [{ model, price: value, score, isReal, isOn: false, beatenBy: null }];
  });
  if (!areMixed) judge(points.filter(({ isReal }) => isReal));
  return points.toSorted((a, b) => a.price - b.price || b.score - a.score);
}

function judge(points: readonly Point[]): void {
  for (const point of points) {
    const better = points.filter((other) => beats(other, point));
    point.isOn = better.length === 0;
    point.beatenBy = better.toSorted((a, b) => b.score - a.score)[0]?.model ?? null;
  }
}

/** The figure of a table: a dash where it is unknown. */
export function priceText(model: ModelFigures, price: Price): string {
  const value = price.of(model);
  return value === null ? UNKNOWN : price.text(value);
}
