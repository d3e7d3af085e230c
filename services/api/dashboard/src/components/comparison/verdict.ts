// Two tutors compared in a sentence: how far apart they are, and whether chance explains it.

import type { ModelDifference } from "../../lib/api_types";
import { element } from "../../lib/dom";
import { counted, interval, score } from "../../lib/format";

function strong(name: string): HTMLElement {
  return element("strong", {}, element("bdi", {}, name));
}

export function verdict(difference: ModelDifference): (Node | string)[] {
  const { first, second, figures, scenarios, is_real: isReal } = difference;
  const [overall] = figures;
  const names = [strong(first.model_name), strong(second.model_name)] as const;
  const gap = overall?.difference ?? null;
  if (gap === null) return [names[0], " and ", names[1], " have no scored scenario in common."];
  if (score(Math.abs(gap)) === "0.00") return ["Both score the same", ...leftOpen(difference)];
  const [more, less] = gap < 0 ? [names[1], names[0]] : names;
  const bounds = overall?.interval ?? null;
  const ordered: [number, number] | null = bounds && (gap < 0 ? [-bounds[1], -bounds[0]] : bounds);
  const range = ordered ? ` (95 % ${interval(ordered)})` : "";
  const told = ` by ${score(Math.abs(gap))}${range} on ${counted(scenarios, "scenario")} of both: `;
  const needed = difference.scenarios_to_tell;
  const power =
    isReal || needed === null
      ? ""
      : ` About ${counted(needed, "scenario")} like these would tell a difference of this size.`;
  const chance = isReal ? "that is more than chance can explain" : "chance may explain it";
  const value = difference.p_value;
  const p = value < 0.001 ? "p < 0.001" : `p = ${value.toFixed(3)}`;
  return [
    more,
    " scores higher than ",
    less,
    `${told}${chance} (${p}, paired by scenario).${power}`,
  ];
}

/** What equal scores leave open: they are no proof of equality. */
function leftOpen({ scenarios, figures, equivalence }: ModelDifference): string[] {
  const { is_shown: isShown, scenarios_to_show: wanted, margin } = equivalence;
  const told = ` on ${counted(scenarios, "scenario")} of both.`;
  if (isShown) return [`${told} The difference is too small to matter: less than ${margin}.`];
  const bounds = figures[0]?.interval ?? null;
  const room = bounds ? Math.max(...bounds.map(Math.abs)) : null;
  const most = room === null ? "" : `: the true difference may be up to ${score(room)} either way`;
  const more =
    wanted !== null && wanted > scenarios
      ? ` ${counted(wanted, "scenario")} would show that it is less than ${margin}.`
      : "";
  return [`${told} That is no proof of equality${most}.${more}`];
}

/** The experiments of the two sides, if they are different ones. */
export function sides({ first, second }: ModelDifference): string {
  const named = (side: typeof first) => side.title ?? side.experiment_id;
  if (first.experiment_id === second.experiment_id) return `Experiment ${named(first)}`;
  return `Experiments ${named(first)} and ${named(second)}`;
}
