// The sentences around the ranking: what it shows, who leads, and where the figures come from.

import type { ModelComparison, ModelFigures } from "../lib/api_types";
import { byId, element, say, toggle } from "../lib/dom";
import { counted, day, interval, isolated, listed, score, shortened } from "../lib/format";
import { hasLeader, leaderOf } from "../lib/models";

export function showSummary({ models, vectors, experiments }: ModelComparison): void {
  const [one, ...others] = experiments;
  const title = others.length ? null : (one?.name ?? one?.occasion);
  const of = title ? ` of ${isolated(shortened(title, 40))}` : "";
  const runs = models.reduce((sum, model) => sum + model.total_runs, 0);
  say(
    byId("summary"),
    models.length
      ? `How ${counted(models.length, "tutor")} answered in ${counted(runs, "run")}${of}: every response is scored from 0.00 to 1.00 on ${listed(vectors)}.`
      : "How language models answer students: every response is scored from 0.00 to 1.00.",
  );
}

/** Who leads, by how much, and who is not clearly behind. */
export function showFinding(comparison: ModelComparison): void {
  const { models, filtered, baseline } = comparison;
  const node = byId("finding");
  const leader = leaderOf(models);
  // Scores under different conditions do not compare, and hidden models may score higher.
  if (!leader || !hasLeader(comparison)) {
    say(node, "");
    return;
  }
  const name = leader.model_name;
  const bounds = leader.confidence_interval
    ? ` (95 % ${interval(leader.confidence_interval)})`
    : "";
  const where = filtered?.dimension ? ` on ${filtered.dimension}` : "";
  const isAlone =
    leader.kind === "model" && leader.confidence_interval && leader.rank_interval?.[1] === 1;
  const verb = isAlone ? "leads with" : "has the highest score,";
  const told = `${roleOf(leader, models)} ${verb} ${score(leader.overall_score)}${bounds}${where}. ${nearest(leader, models)}${mirrored(leader, baseline)}`;
  if (node.textContent === name + told) return;
  node.replaceChildren(element("strong", {}, element("bdi", {}, name)), told);
}

function roleOf(leader: ModelFigures, models: readonly ModelFigures[]): string {
  if (leader.kind === "reference") return ", a reference tutor,";
  return models[0] === leader ? "" : ", the best model,";
}

/** A leader below the constant reply gives no sign of reading: ranks alone would hide that. */
function mirrored({ overall_score: own }: ModelFigures, baseline: ModelFigures | null): string {
  const constant = baseline?.overall_score ?? null;
  if (own === null || constant === null || own >= constant) return "";
  return ` That is below the constant reply, ${score(constant)}, which reads no message.`;
}

function nearest(leader: ModelFigures, models: readonly ModelFigures[]): string {
  if (!leader.confidence_interval) return leader.interval_note ?? "";
  const tied = (leader.rank_interval?.[1] ?? 1) - 1;
  if (tied) return `${counted(tied, "other")} may be as good: the differences are within chance.`;
  const ranked = models.filter(({ rank }) => rank !== null).length;
  return leader.rank_interval && ranked > 1 ? "That is more than chance can explain." : "";
}

export function showProvenance({
  experiments,
  profile,
}: Pick<ModelComparison, "experiments" | "profile">): void {
  const node = byId("provenance");
  toggle(node, experiments.length > 0);
  const [one, ...others] = experiments;
  if (!one || others.length) {
    say(node, `Scored by ${profile} · ${counted(experiments.length, "experiment")}`);
    return;
  }
  const title = one.name ?? one.occasion;
  const id = title ? `${isolated(title)} (${one.experiment_id})` : one.experiment_id;
  say(node, `Scored by ${profile} · experiment ${id}, begun ${day(one.created_at)}`);
}
