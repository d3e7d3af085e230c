// The table of the scenarios: how hard each is, and how well it tells tutors apart.

import type { AnalysedScenario } from "../../lib/api_types";
import { element } from "../../lib/dom";
import { UNKNOWN, count, interval, score } from "../../lib/format";
import { scenarioAnchor } from "../../lib/links";
import { rowPlot } from "../row_plot";

const TICKS = [0, 0.2, 0.4, 0.6, 0.8, 1];
/** Ebel's limits for the discrimination of a test's items. */
const WORDS: readonly [number, string][] = [
  [0.4, "very well"],
  [0.3, "well"],
  [0.2, "a little"],
  [0, "hardly"],
];

export function nameOf({ title, scenario_id: id }: AnalysedScenario): string {
  return title || id;
}

/** How well a scenario tells tutors apart, in a word. */
export function tells(discrimination: number | null): string {
  if (discrimination === null) return "";
  return WORDS.find(([least]) => discrimination >= least)?.[1] ?? "the other way round";
}

export function overviewRow(scenario: AnalysedScenario): HTMLTableRowElement {
  const { discrimination, responses, scored_responses: scored } = scenario;
  const drawn = { value: scenario.mean, interval: scenario.interval };
  const link = element(
    "a",
    { href: `#${encodeURIComponent(scenarioAnchor(scenario.scenario_id))}` },
    nameOf(scenario),
  );
  return element(
    "tr",
    {},
    element("th", { scope: "row", class: "name", dir: "auto" }, link),
    element("td", { class: "dimension" }, element("bdi", {}, scenario.dimension)),
    element("td", { class: "drawn" }, rowPlot({ ...drawn, kind: "model", ticks: TICKS })),
    element("td", { class: "figure" }, score(scenario.mean)),
    element("td", { class: "figure interval" }, interval(scenario.interval)),
    element(
      "td",
      { class: "figure" },
      discrimination === null ? UNKNOWN : signed(discrimination),
      element("small", {}, tells(discrimination)),
    ),
    element("td", { class: "figure" }, `${count(scored)} of ${count(responses)}`),
  );
}

/** A correlation with its sign, in hundredths. */
export function signed(value: number): string {
  const text = Math.abs(value).toFixed(2);
  return value < 0 && text !== "0.00" ? `−${text}` : text;
}
