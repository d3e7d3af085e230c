// What the rows of a ranking say about each other.

import type { Order } from "./address";
import type { DimensionFigures, ModelComparison, ModelFigures } from "./api_types";
import { isolated, listed, percent, UNKNOWN } from "./format";

/** Whom the others are compared with: the best model, or the best reference tutor if alone. */
export function leaderOf(models: readonly ModelFigures[]): ModelFigures | null {
  const scored = models.filter((model) => model.overall_score !== null);
  return scored.find((model) => model.kind === "model") ?? scored[0] ?? null;
}

/** Whether one of the models leads: not under several conditions, nor where others are hidden. */
export function hasLeader({ mixed_conditions: areMixed, filtered }: ModelComparison): boolean {
  return !areMixed && !filtered?.models.length;
}

/** The model with the highest score, and no reference tutor; null where none leads. */
export function leadingModel(comparison: ModelComparison): ModelFigures | null {
  const leader = hasLeader(comparison) ? leaderOf(comparison.models) : null;
  return leader?.kind === "model" ? leader : null;
}

/** Whether the paired tests leave the model a chance to be first beside a leader. */
export function ties(model: ModelFigures, leader: ModelFigures | null): boolean {
  return leader !== null && model !== leader && model.rank_interval?.[0] === 1;
}

/** The ranks that the model may have: those whose difference may be chance share theirs. */
export function ranks({
  rank,
  rank_interval: between,
}: Pick<ModelFigures, "rank" | "rank_interval">): string {
  if (rank === null) return UNKNOWN;
  const [best, worst] = between ?? [rank, rank];
  return best === worst ? String(best) : `${best}\u2013${worst}`;
}

/** The place of a model under other weights of the vectors, in words; empty where unknown. */
export function underOtherWeights(model: ModelFigures, { models }: ModelComparison): string {
  const weights = model.other_weights;
  if (!weights) return "";
  const [best, worst] = weights.rank_range;
  const rank = best === worst ? `rank ${best}` : `ranks ${best}\u2013${worst}`;
  const parts = [`${rank} under 95 % of all weightings of the vectors`];
  const next = models.find(({ model_id: id }) => id === weights.next_model);
  const name = next?.model_name ?? weights.next_model;
  if (name !== null) {
    // Rounded down: 95 % is never less than that.
    const ahead = Math.floor(100 * (weights.share_ahead ?? 0)) / 100;
    const share = weights.certain ? "every one" : `${percent(ahead)} of them`;
    parts.push(`ahead of ${isolated(name)} under ${share}`);
  }
  return listed(parts);
}

export function anyCost(models: readonly ModelFigures[]): boolean {
  return models.some((model) => model.total_cost_usd !== null);
}

/** The models in the order of the view; those of unknown cost stand last, best first. */
export function ordered(models: readonly ModelFigures[], order: Order): readonly ModelFigures[] {
  if (order === "") return models;
  const sign = order === "cheapest" ? 1 : -1;
  const key = ({ total_cost_usd: cost }: ModelFigures) => (cost === null ? Infinity : sign * cost);
  return models.toSorted((a, b) => {
    const [first, second] = [key(a), key(b)];
    return first === second ? 0 : first - second;
  });
}

/** The mean of one vector in one dimension; null where nothing was scored on it. */
export function meanOf(figures: DimensionFigures, vector: string): number | null {
  const mean = figures[vector];
  return typeof mean === "number" ? mean : null;
}
