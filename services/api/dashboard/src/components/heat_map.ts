// Tutors by scenarios as a table whose fields are coloured: the chart and its figures are one.

import type { ModelScores, ScenarioScore, ScenarioScores } from "../lib/api_types";
import { runsKey } from "../lib/address";
import { element } from "../lib/dom";
import { score, shortened } from "../lib/format";
import { runsInRanking } from "../lib/links";
import type { CsvRow } from "./copy_button";

export const OVERALL = "overall";

/** Where white reads better than black on a light page, and black better than white on a dark one. */
const DEEP = 0.69;
const BRIGHT = 0.54;

/** How far a field's colour is from the page's to the full one: high scores lie close together. */
export function shade(value: number): number {
  return value ** 1.5;
}

/** What the text on a field needs to keep the contrast of level AA. */
export function groundOf(value: number | null): string {
  const far = shade(value ?? 0);
  return `${far >= DEEP ? "deep " : ""}${far >= BRIGHT ? "bright" : ""}`.trim();
}

export function figure(found: ScenarioScore, vector: string): number | null {
  return vector === OVERALL ? found.overall : (found.vectors[vector] ?? null);
}

function mean({ scores }: ModelScores, vector: string): number | null {
  const known = scores.map((each) => figure(each, vector)).filter((value) => value !== null);
  return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
}

/** The tutors, best mean over scenarios first. */
export function ordered(table: ScenarioScores, vector: string): ModelScores[] {
  const key = (model: ModelScores) => mean(model, vector) ?? -1;
  return table.models.toSorted((a, b) => key(b) - key(a));
}

export function heatMap(table: ScenarioScores, vector: string): HTMLTableElement {
  const heads = table.scenarios.map(({ scenario_id: id, dimension }) =>
    element(
      "th",
      { scope: "col", class: "scenario", title: `${id}, ${dimension}` },
      element("span", {}, shortened(id, 26)),
    ),
  );
  return element(
    "table",
    { class: "heat" },
    element("caption", { class: "visually-hidden" }, `${vector} of each tutor on each scenario`),
    element(
      "thead",
      {},
      element("tr", {}, element("th", { scope: "col", class: "name" }, "Tutor"), ...heads),
    ),
    element("tbody", {}, ...ordered(table, vector).map((model) => row(model, table, vector))),
  );
}

function row(model: ModelScores, table: ScenarioScores, vector: string): HTMLElement {
  const tag = model.kind === "reference" ? element("small", { class: "tag" }, " reference") : null;
  const name = element("bdi", { title: model.model_id }, shortened(model.model_name, 28));
  return element(
    "tr",
    { class: model.kind },
    element("th", { scope: "row", class: "name" }, name, tag),
    ...table.scenarios.map(({ scenario_id: id }, at) => {
      const found = model.scores[at];
      const value = found ? figure(found, vector) : null;
      const runs = runsKey(model.model_id, id);
      const address = runsInRanking(table.experiment_id, model.model_id, runs);
      const told = `${model.model_name}, ${id}: ${score(value)}`;
      const link = element("a", { href: address, "aria-label": told, title: told }, score(value));
      const field = element("td", { class: value === null ? "none" : groundOf(value) }, link);
      field.style.setProperty("--share", String(shade(value ?? 0)));
      return field;
    }),
  );
}

export function heatCsv(table: ScenarioScores, vector: string): CsvRow[] {
  const rows = ordered(table, vector).map((model) => [
    model.model_id,
    ...model.scores.map((each) => figure(each, vector)),
  ]);
  return [["model", ...table.scenarios.map((each) => each.scenario_id)], ...rows];
}
