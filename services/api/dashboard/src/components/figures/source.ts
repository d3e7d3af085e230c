// The lines below a saved figure, so that it can be cited.

import type { ExperimentSummary } from "../../lib/api_types";
import { counted } from "../../lib/format";

const ISO_DAY = 10;

/** A text within isolates: no name turns the direction of what follows. */
export function isolated(text: string): string {
  return `\u2068${text}\u2069`;
}

function titled({ experiment_id: id, name, occasion }: ExperimentSummary): string {
  const title = name ?? occasion;
  return title ? `${isolated(title)} (${id})` : id;
}

export function sourceOf(
  experiments: readonly ExperimentSummary[],
  profile: string,
  version: string | undefined,
): string[] {
  const [one, ...others] = experiments;
  const conditions = [...new Set(experiments.map((each) => each.conditions_id))];
  const named = one
    ? others.length
      ? `${counted(experiments.length, "experiment")}, the newest ${titled(one)} of ${one.created_at.slice(0, ISO_DAY)}`
      : `experiment ${titled(one)} of ${one.created_at.slice(0, ISO_DAY)}`
    : "no experiment";
  const under = conditions.length === 1 ? `conditions ${conditions[0] ?? ""}` : "";
  return [
    [`Socratic Bench ${version ?? ""}`.trim(), named].join(" · "),
    [`profile ${profile}`, under, `saved ${new Date().toISOString().slice(0, ISO_DAY)}`]
      .filter(Boolean)
      .join(" · "),
  ];
}
