// The heat map as a file: a field for each tutor and scenario, with its figure.

import type { ScenarioScores } from "../../lib/api_types";
import { drawing } from "../../lib/dom";
import { counted, score, shortened } from "../../lib/format";
import { figure, groundOf, ordered, shade } from "../heat_map";
import { fixed, label, TEXT_PX, type Drawing, type Figure } from "./figure";
import { textWidth } from "./labels";
import { sourceOf, type Cited } from "./source";

const ROW = 24;
const NAME_LIMIT = 30;
const SCENARIO_LIMIT = 28;
/** Where a field has no room for its figure. */
const LEAST_FOR_TEXT = 28;

export function heatFigure(table: ScenarioScores, vector: string, cited: Cited | null): Figure {
  const tutors = counted(table.models.length, "tutor");
  const scenarios = counted(table.scenarios.length, "scenario");
  return {
    file: `socratic-bench-heat-map-${vector}-${table.experiment_id}`,
    title: `${vector} of each tutor on each scenario`,
    about: `${tutors} on ${scenarios}, best first.`,
    source: [
      "The darker a field, the higher the score, from 0.00 to 1.00; a dash is unscored, which is not zero.",
      ...sourceOf(cited ? [cited] : [], [table.profile], table.version),
    ],
    draw: (width) => drawHeat(table, vector, width),
  };
}

function drawHeat(table: ScenarioScores, vector: string, width: number): Drawing {
  const models = ordered(table, vector);
  const names = models.map(
    ({ model_name: name, kind }) =>
      shortened(name, NAME_LIMIT) + (kind === "reference" ? " (reference)" : ""),
  );
  const heads = table.scenarios.map(({ scenario_id: id }) => shortened(id, SCENARIO_LIMIT));
  const left = Math.max(0, ...names.map((name) => textWidth(name, TEXT_PX))) + 12;
  const top = Math.max(0, ...heads.map((head) => textWidth(head, TEXT_PX))) + 10;
  const step = Math.min(56, (width - left) / Math.max(1, heads.length));
  const marks: SVGElement[] = heads.map((head, at) => {
    const [x, y] = [fixed(left + (at + 0.5) * step + 4), fixed(top - 6)];
    return drawing(
      "text",
      { class: "label quiet", transform: `translate(${x} ${y}) rotate(-90)` },
      head,
    );
  });
  for (const [place, model] of models.entries()) {
    const y = top + place * ROW;
    marks.push(label(names[place] ?? "", 0, y + ROW / 2));
    for (const [at, found] of model.scores.entries()) {
      const value = figure(found, vector);
      const x = left + at * step;
      const size = { x: fixed(x + 1), y: fixed(y + 1), width: fixed(step - 2), height: ROW - 2 };
      const opacity = Number(fixed(shade(value ?? 0) * 100)) / 100;
      marks.push(drawing("rect", { class: "field", ...size, "fill-opacity": `${opacity}` }));
      if (step < LEAST_FOR_TEXT) continue;
      const told = label(score(value), x + step / 2, y + ROW / 2, "middle");
      told.classList.add("figure", ...groundOf(value).split(" ").filter(Boolean));
      marks.push(told);
    }
  }
  return { height: top + models.length * ROW + 4, marks };
}
