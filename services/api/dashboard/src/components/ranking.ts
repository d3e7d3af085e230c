// The rows of the ranking, in the order of the view.

import { runsKey, type View } from "../lib/address";
import type { ModelComparison, ModelFigures } from "../lib/api_types";
import { byId, element, toggle } from "../lib/dom";
import { leadingModel, ordered } from "../lib/models";
import { COLUMNS, Row, type Toggles } from "./row";

export class Ranking {
  readonly #body: HTMLElement;
  readonly #toggles: Toggles;
  readonly #rows = new Map<string, Row>();
  #serial = 0;

  constructor(body: HTMLElement, toggles: Toggles) {
    this.#body = body;
    this.#toggles = toggles;
  }

  /** Shows the models that match; returns how many do. */
  show(comparison: ModelComparison, view: View): number {
    const leader = leadingModel(comparison);
    toggle(byId("leader-legend"), Boolean(leader?.confidence_interval));
    const wanted = view.filter.trim().toLowerCase();
    const present = new Set<string>();
    let previous: ChildNode | null = null;
    let shown = 0;
    const baseline = comparison.baseline ? [comparison.baseline] : [];
    for (const model of [...ordered(comparison.models, view.order), ...baseline]) {
      present.add(keyOf(model));
      const row = this.#rowOf(model);
      const open = view.open.has(model.model_id);
      row.show(model, comparison, leader, { open, scenarios: openScenarios(view, model) });
      const text = `${model.model_name} ${model.model_id} ${model.kind}`.toLowerCase();
      const matches = text.includes(wanted);
      toggle(row.node, matches);
      if (!matches) row.detail.hidden = true;
      shown += Number(matches && model.kind !== "baseline");
      previous = this.#putAfter(previous, row);
    }
    while (this.#next(previous)) this.#next(previous)?.remove();
    for (const id of this.#rows.keys()) if (!present.has(id)) this.#rows.delete(id);
    return shown;
  }

  /** Moves a row only if it stands elsewhere: focus and scroll position stay. Returns its end. */
  #putAfter(previous: ChildNode | null, row: Row): ChildNode {
    const due = this.#next(previous);
    if (due !== row.node) this.#body.insertBefore(row.node, due);
    if (row.node.nextSibling !== row.detail) row.node.after(row.detail);
    return row.detail;
  }

  #next(previous: ChildNode | null): ChildNode | null {
    return previous ? previous.nextSibling : this.#body.firstChild;
  }

  #rowOf(model: ModelFigures): Row {
    const known = this.#rows.get(keyOf(model));
    if (known) return known;
    const row = new Row(model, `detail-${(this.#serial += 1)}`, this.#toggles);
    this.#rows.set(keyOf(model), row);
    return row;
  }
}

function openScenarios({ runs }: View, { model_id: id }: ModelFigures): Set<string> {
  const start = runsKey(id, "");
  const ours = [...runs].filter((key) => key.startsWith(start));
  return new Set(ours.map((key) => key.slice(start.length)));
}

/** A table of several conditions has a row of a model under each. */
function keyOf({ model_id: id, conditions_id: conditions }: ModelFigures): string {
  return `${conditions ?? ""} ${id}`;
}

/** Rows of the same height as real ones, so that nothing jumps when those come. */
export function skeleton(body: HTMLElement, rows = 8): void {
  for (let row = 0; row < rows; row += 1) {
    const cells = Array.from({ length: COLUMNS }, () =>
      element("td", {}, element("span", { class: "bone" })),
    );
    body.append(element("tr", { "aria-hidden": "true", class: "bones" }, ...cells));
  }
}
