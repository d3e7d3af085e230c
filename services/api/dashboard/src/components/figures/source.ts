// The lines below a saved figure, so that it can be cited.

import type { ExperimentSummary } from "../../lib/api_types";
import { counted } from "../../lib/format";

const ISO_DAY = 10;

/** What a source names of an experiment. */
export interface Cited {
  experiment_id: string;
  title: string | null;
  created_at: string;
  conditions_id: string;
}

type Named = Pick<
  ExperimentSummary,
  "experiment_id" | "name" | "occasion" | "created_at" | "conditions_id"
>;

export function citedOf(experiment: Named): Cited {
  const { experiment_id, name, occasion, created_at, conditions_id } = experiment;
  return { experiment_id, title: name ?? occasion, created_at, conditions_id };
}

/** A text within isolates: no name turns the direction of what follows. */
function isolated(text: string): string {
  return `\u2068${text}\u2069`;
}

function named({ experiment_id: id, title, created_at: at }: Cited): string {
  return `${title ? `${isolated(title)} (${id})` : id} of ${at.slice(0, ISO_DAY)}`;
}

/** `experiments` come newest first. */
export function sourceOf(
  experiments: readonly Cited[],
  profiles: readonly string[],
  version: string | undefined,
): string[] {
  const [newest, ...others] = experiments;
  const conditions = [...new Set(experiments.map((each) => each.conditions_id))];
  const count = counted(experiments.length, "experiment");
  const what = !newest
    ? "no experiment"
    : others.length
      ? `${count}, the newest ${named(newest)}`
      : `experiment ${named(newest)}`;
  const under = conditions.length === 1 ? `conditions ${conditions[0] ?? ""}` : "";
  const saved = `saved ${new Date().toISOString().slice(0, ISO_DAY)}`;
  return [
    `Socratic Bench ${version ?? ""}`.trim() + ` · ${what}`,
    [`profile ${profiles.join(", ")}`, under, saved].filter(Boolean).join(" · "),
  ];
}
