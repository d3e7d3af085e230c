// The table of differences: overall and each vector with its interval, then scenario by scenario.

import type { FigurePair, ModelDifference, ScenarioPair } from "../../lib/api_types";
import { element } from "../../lib/dom";
import { interval, score, shortened, signed } from "../../lib/format";
import type { CsvRow } from "../copy_button";
import { differencePlot, TICKS } from "./difference_plot";

export interface Shown {
  /** The scenario whose responses are shown. */
  scenario: string;
  hollow: boolean;
  choose: (scenario: string) => void;
}

function heading(kind: string, ...content: (Node | string)[]): HTMLElement {
  return element("th", { scope: "col", class: kind }, ...content);
}

function axis(): HTMLElement {
  const marks = TICKS.map((tick) => element("i", {}, tick.toFixed(1)));
  return element("span", { class: "axis five", "aria-hidden": "true" }, ...marks);
}

export function differenceTable(difference: ModelDifference, shown: Shown): HTMLTableElement {
  const names = [difference.first, difference.second].map(({ model_name: name }) =>
    heading("figure minor", element("bdi", { title: name }, shortened(name, 18))),
  );
  const drawn = "The difference, drawn from -1.0 to 1.0";
  const plot = heading("plot", element("span", { class: "visually-hidden" }, drawn), axis());
  const head = element(
    "tr",
    {},
    heading("name", "Score"),
    ...names,
    plot,
    heading("figure", "Difference"),
    heading("figure minor", "95 % interval"),
  );
  return element(
    "table",
    { class: "differences" },
    element("caption", { class: "visually-hidden" }, "Differences, the first less the second"),
    element("thead", {}, head),
    element("tbody", {}, ...difference.figures.map((each) => figureRow(each, shown))),
    element(
      "tbody",
      { id: "scenarios" },
      element(
        "tr",
        { class: "between" },
        element(
          "th",
          { scope: "rowgroup", colspan: 6 },
          "Scenarios, those that separate them most first",
        ),
      ),
      ...difference.by_scenario.map((each) => scenarioRow(each, shown)),
    ),
  );
}

function cells(
  { first, second, difference }: Pick<FigurePair, "first" | "second" | "difference">,
  bounds: [number, number] | null,
  hollow: boolean,
): HTMLElement[] {
  return [
    element("td", { class: "figure minor" }, score(first)),
    element("td", { class: "figure minor" }, score(second)),
    element("td", { class: "plot" }, differencePlot(difference, bounds, hollow)),
    element("td", { class: "figure strong" }, signed(difference)),
    element("td", { class: "figure minor" }, interval(bounds)),
  ];
}

function figureRow(pair: FigurePair, { hollow }: Shown): HTMLElement {
  const name = element("th", { scope: "row", class: "name" }, pair.name);
  return element(
    "tr",
    { class: pair.name === "overall" ? "total" : "" },
    name,
    ...cells(pair, pair.interval, hollow),
  );
}

function scenarioRow(pair: ScenarioPair, { scenario, hollow, choose }: Shown): HTMLElement {
  const id = pair.scenario_id;
  const isChosen = id === scenario;
  const button = element("button", { type: "button", "aria-pressed": String(isChosen), title: id });
  button.append(element("bdi", {}, shortened(id, 40)));
  button.addEventListener("click", () => {
    choose(id);
  });
  const name = element("th", { scope: "row", class: "name" }, button);
  const attributes = { "data-scenario": id, class: isChosen ? "chosen" : "" };
  return element("tr", attributes, name, ...cells(pair, null, hollow));
}

export function differenceCsv({
  first,
  second,
  figures,
  by_scenario: scenarios,
}: ModelDifference): CsvRow[] {
  const head = ["score", "dimension", first.model_id, second.model_id, "difference", "low", "high"];
  return [
    head,
    ...figures.map((each) => [
      each.name,
      "",
      each.first,
      each.second,
      each.difference,
      ...(each.interval ?? [null, null]),
    ]),
    ...scenarios.map((each) => [
      each.scenario_id,
      each.dimension,
      each.first,
      each.second,
      each.difference,
      null,
      null,
    ]),
  ];
}
