// A run by its place in the plan: of the repeats of a scenario the one that a reader has to see.

import { ApiProblem, read } from "../../lib/api";
import type { RunSummary } from "../../lib/api_types";

const MOST_RUNS = "200";

/** Whether the address names a model and a scenario in place of a run. */
export function isPlanned(): boolean {
  const query = new URLSearchParams(location.search);
  return query.has("model") && query.has("scenario");
}

/**
 * The id of the run that the address means, which then names it by this id.
 *
 * Of several repeats it is the one with the lowest score of the turn in the hash. Raises ApiProblem.
 */
export async function plannedRun(): Promise<string> {
  const query = new URLSearchParams(location.search);
  const fields = Object.fromEntries(
    ["model", "scenario", "profile"].map((name) => [name, query.get(name) ?? ""]),
  );
  const experiments = query.has("experiment") ? query.getAll("experiment") : [""];
  const pages = await Promise.all(
    experiments.map((experiment) =>
      read("/api/detailed-results", { ...fields, experiment, limit: MOST_RUNS }),
    ),
  );
  const turn = Number(/^#turn-(\d+)$/.exec(location.hash)?.[1] ?? 1);
  const run = lowest(
    pages.flatMap(({ data }) => data?.runs ?? []),
    turn,
  );
  if (!run) throw new ApiProblem(404, "The experiment has no such run.");
  const own = new URLSearchParams({ run: run.run_id, profile: query.get("profile") ?? "" });
  if (!own.get("profile")) own.delete("profile");
  history.replaceState(null, "", `${location.pathname}?${own}${location.hash}`);
  return run.run_id;
}

/** The run with the lowest score of a turn; of equal ones, and without scores, that with most turns. */
function lowest(runs: readonly RunSummary[], turn: number): RunSummary | undefined {
  const key = ({ turn_scores: scores }: RunSummary) => scores[turn - 1] ?? Infinity;
  return runs.toSorted((a, b) => {
    const [first, second] = [key(a), key(b)];
    return first === second ? b.turns - a.turns : first - second;
  })[0];
}
