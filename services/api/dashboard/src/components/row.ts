// One row of the ranking and what it opens into, kept and brought up to date in place.

import type { ModelComparison, ModelFigures } from "../lib/api_types";
import { element, say, toggle } from "../lib/dom";
import { cost, count, interval, isolated, percent, score, shortened, UNKNOWN } from "../lib/format";
import { anyCost, ranks, ties, underOtherWeights } from "../lib/models";
import { breakdown } from "./breakdown";
import { Plot } from "./plot";
import { ScenarioList } from "./scenario_list";

export const COLUMNS = 7;
const LOW_COVERAGE = 0.8;

function cell(kind: string, ...children: Node[]): HTMLTableCellElement {
  return element("td", { role: "cell", class: kind }, ...children);
}

/** The experiment of a row, in a table with several rows of a model. */
function experimentOf(model: ModelFigures, { experiments }: ModelComparison): string {
  const found = experiments.find((each) => each.experiment_id === model.experiment_ids[0]);
  return found ? ` · ${isolated(found.name ?? found.occasion ?? found.experiment_id)}` : "";
}

/** What a reader opens and closes. */
export interface Toggles {
  model: (model: string) => void;
  scenario: (model: string, scenario: string) => void;
}

/** What is open of a row. */
export interface Shown {
  open: boolean;
  /** The scenarios whose runs are shown. */
  scenarios: ReadonlySet<string>;
}

export class Row {
  readonly node: HTMLTableRowElement;
  readonly detail: HTMLTableRowElement;
  readonly #rank = cell("rank");
  readonly #button: HTMLButtonElement;
  readonly #about = element("small");
  readonly #plot: Plot;
  readonly #score = cell("figure score");
  readonly #bounds = element("span");
  readonly #remark = element("small");
  readonly #coverage = cell("figure coverage");
  readonly #runs = cell("figure runs");
  readonly #paid = element("span");
  readonly #simulated = element("small");
  readonly #cost = cell("figure cost", this.#paid, this.#simulated);
  readonly #inside = element("td", { role: "cell" });
  readonly #scenarios: ScenarioList;
  #filled = "";

  constructor(model: ModelFigures, detailId: string, toggles: Toggles) {
    this.#scenarios = new ScenarioList((scenario) => {
      toggles.scenario(model.model_id, scenario);
    });
    const closed = { type: "button", "aria-expanded": "false", "aria-controls": detailId };
    this.#button = element("button", closed);
    this.#plot = new Plot(model.kind);
    const heading = { role: "rowheader", scope: "row", class: "name" };
    this.node = element(
      "tr",
      { role: "row", class: `row ${model.kind}`, "data-model": model.model_id },
      this.#rank,
      element("th", heading, this.#button, this.#about),
      cell("plot", this.#plot.node),
      this.#score,
      cell("figure interval", this.#bounds, this.#remark),
      this.#coverage,
      this.#runs,
      this.#cost,
    );
    const hidden = { role: "row", class: `detail ${model.kind}`, id: detailId, hidden: "" };
    this.detail = element("tr", hidden, this.#inside);
    this.node.addEventListener("click", ({ target }) => {
      const onButton = target instanceof Element && target.closest("button");
      if (onButton || !String(getSelection())) toggles.model(model.model_id);
    });
  }

  show(
    model: ModelFigures,
    comparison: ModelComparison,
    leader: ModelFigures | null,
    { open, scenarios }: Shown,
  ): void {
    say(this.#rank, ranks(model));
    this.#rank.title = underOtherWeights(model, comparison);
    say(this.#button, model.model_name);
    this.#button.title = model.model_name;
    this.#describe(model, comparison);
    this.#plot.show(model, leader);
    say(this.#score, score(model.overall_score));
    say(this.#bounds, interval(model.confidence_interval));
    this.#bounds.title = model.interval_note ?? "";
    say(this.#remark, ties(model, leader) ? "ties with leader" : "");
    say(this.#coverage, percent(model.coverage));
    const isLow = model.coverage !== null && model.coverage < LOW_COVERAGE;
    this.#coverage.classList.toggle("low", isLow);
    say(this.#runs, model.kind === "baseline" ? UNKNOWN : count(model.total_runs));
    this.#showCost(model, anyCost(comparison.models));
    this.node.classList.toggle("open", open);
    this.#button.setAttribute("aria-expanded", String(open));
    toggle(this.detail, open);
    if (!open) return;
    this.#fill(model, comparison);
    const by = { profile: comparison.profile, dimension: comparison.filtered?.dimension ?? "" };
    if (model.kind !== "baseline") void this.#scenarios.show(model, by, scenarios);
  }

  #showCost(model: ModelFigures, costs: boolean): void {
    toggle(this.#cost, costs);
    this.#inside.colSpan = COLUMNS + Number(costs);
    say(this.#paid, cost(model.total_cost_usd, model.cost_known));
    const isSimulated = model.kind === "reference" && model.total_cost_usd !== null;
    say(this.#simulated, isSimulated ? "simulated" : "");
  }

  #describe(model: ModelFigures, comparison: ModelComparison): void {
    const isModel = model.kind === "model";
    const id = model.model_name === model.model_id ? "" : shortened(model.model_id);
    const milliseconds = model.simulated_latency_ms;
    const latency = milliseconds ? `, latency of ${count(milliseconds)} ms simulated` : "";
    const under = comparison.mixed_conditions ? experimentOf(model, comparison) : "";
    const told = (isModel ? `${id}${latency}` : `${model.kind}${latency}`) + under;
    if (this.#about.textContent === told) return;
    this.#about.title = isModel ? model.model_id : `${model.model_id}${latency}`;
    const name = isModel ? element("bdi", {}, id) : element("span", { class: "tag" }, model.kind);
    this.#about.replaceChildren(name, latency, ...(under ? [element("bdi", {}, under)] : []));
  }

  #fill(model: ModelFigures, comparison: ModelComparison): void {
    const figures = JSON.stringify([
      model,
      comparison.vectors,
      comparison.dimensions,
      underOtherWeights(model, comparison),
    ]);
    if (this.#filled === figures) return;
    this.#filled = figures;
    const scenarios = model.kind === "baseline" ? [] : [this.#scenarios.node];
    const figuresNode = breakdown(model, comparison);
    if (this.#inside.firstChild) this.#inside.firstChild.replaceWith(figuresNode);
    else this.#inside.append(figuresNode, ...scenarios);
  }
}
