// The effect of each prompt over the models of a matrix, below the ranking.

import type { ModelComparison, PromptEffect } from "../lib/api_types";
import { byId, element, fill, say, toggle } from "../lib/dom";
import { counted, isolated, score, signed, UNKNOWN } from "../lib/format";

/** Shows the effects, or hides their section where no prompts were compared. */
export function showPrompts({ prompts = [] }: ModelComparison): void {
  const [first] = prompts;
  toggle(byId("prompts"), first !== undefined);
  if (first === undefined) return;
  const less = `Less ${isolated(first.prompt)}`;
  const heads = ["Prompt", "Score", less, "95 % interval", "p"].map((text, place) =>
    element("th", { scope: "col", class: place ? "figure" : "name" }, text),
  );
  fill(
    byId("prompt-effects"),
    element(
      "table",
      { class: "plain" },
      element("caption", { class: "visually-hidden" }, "The effect of each prompt"),
      element("thead", {}, element("tr", {}, ...heads)),
      element("tbody", {}, ...prompts.map(row)),
    ),
  );
  const counts = `${counted(first.models, "tutor")} and ${counted(first.scenarios, "scenario")}`;
  say(
    byId("about-prompts"),
    `Over ${counts} with a score under each prompt: paired by tutor and scenario, clustered by ` +
      "scenario, Holm-corrected.",
  );
}

function row(effect: PromptEffect): HTMLElement {
  const { interval, p_value: p } = effect;
  const between = interval ? `${signed(interval[0])} to ${signed(interval[1])}` : UNKNOWN;
  const chance = p === null ? UNKNOWN : p < 0.001 ? "< 0.001" : p.toFixed(3);
  return element(
    "tr",
    {},
    element("th", { scope: "row", class: "name" }, element("bdi", {}, effect.prompt)),
    ...[score(effect.overall), signed(effect.difference), between, chance].map((text) =>
      element("td", { class: "figure" }, text),
    ),
  );
}
