// How far the shown experiments are, and how those stand that are not done.

import type { ExperimentStatus, ExperimentSummary } from "../lib/api_types";
import { byId, say, toggle } from "../lib/dom";
import { count, percent } from "../lib/format";

export type State = ExperimentStatus["state"];

const WORDS: Record<Exclude<State, "complete">, { name: string; advice: string }> = {
  running: { name: "Running", advice: "" },
  paused: { name: "Paused", advice: " Resume it to go on." },
  cancelled: { name: "Cancelled", advice: "" },
  overdue: { name: "Past the deadline", advice: "" },
  out_of_budget: {
    name: "Out of budget",
    advice: " Raise the budget and start it again to go on.",
  },
};

/** What each state is called, and what a person may do about it. */
export const STATES: Record<State, { name: string; advice: string }> = {
  ...WORDS,
  complete: { name: "Complete", advice: "" },
};

export function pending(experiments: readonly ExperimentSummary[]): ExperimentSummary[] {
  return experiments.filter((each) => each.done < each.planned);
}

/** How the experiments that are not done stand: running, unless all have stopped for one reason. */
export function standing(
  experiments: readonly ExperimentSummary[],
  states: ReadonlyMap<string, State>,
): keyof typeof WORDS {
  const found = new Set(pending(experiments).map((each) => states.get(each.experiment_id)));
  const [only] = found;
  return found.size === 1 && only !== undefined && only !== "complete" ? only : "running";
}

export function showProgress(
  experiments: readonly ExperimentSummary[],
  states: ReadonlyMap<string, State>,
): void {
  const planned = experiments.reduce((sum, each) => sum + each.planned, 0);
  const done = experiments.reduce((sum, each) => sum + each.done, 0);
  const share = planned ? done / planned : 0;
  const { name, advice } = WORDS[standing(experiments, states)];
  toggle(byId("progress"), pending(experiments).length > 0);
  byId("progress-bar", HTMLProgressElement).value = share;
  const told = `${count(done)} of ${count(planned)} runs done (${percent(share)}).`;
  say(byId("progress-text"), `${name}: ${told}${advice}`);
}
