// The rows of the ranking, kept and brought up to date in place.

import { breakdown } from "./breakdown.js";
import { drawing, element, say, toggle } from "./dom.js";
import { cost, count, interval, percent, score, shortened } from "./format.js";

const LOW_COVERAGE = 0.8;
const TICKS = [0, 20, 40, 60, 80, 100];
const COLUMNS = 7;

/** Whom the others are compared with: the best model, or the best reference tutor if alone. */
export function leaderOf(models) {
  const scored = models.filter((model) => model.overall_score !== null);
  return scored.find((model) => model.kind === "model") ?? scored[0] ?? null;
}

export function overlaps(model, leader) {
  const [a, b] = [model.confidence_interval, leader?.confidence_interval];
  return Boolean(a && b && model !== leader && a[0] <= b[1] && b[0] <= a[1]);
}

export function anyCost(models) {
  return models.some((model) => model.total_cost_usd !== null);
}

/** The models in the order of the view, each with its rank by score; unknown costs stand last. */
function ordered(models, order) {
  const ranked = models.map((model, index) => ({ model, rank: index + 1 }));
  const sign = { cheapest: 1, "most-expensive": -1 }[order];
  if (!sign) return ranked;
  const last = ({ model }) => model.total_cost_usd === null;
  return ranked.sort((a, b) =>
    last(a) - last(b) || sign * (a.model.total_cost_usd - b.model.total_cost_usd) || a.rank - b.rank);
}

function place(node, attributes) {
  for (const [name, share] of Object.entries(attributes)) node.setAttribute(name, `${share * 100}%`);
}

class Plot {
  constructor(kind) {
    this.band = drawing("rect", { class: "band", y: 0, height: "100%" });
    this.whisker = drawing("line", { class: `whisker ${kind}`, y1: "50%", y2: "50%" });
    this.dot = drawing("circle", { class: `dot ${kind}`, cy: "50%", r: kind === "reference" ? 5 : 6 });
    this.node = drawing(
      "svg",
      { "aria-hidden": "true", focusable: "false" },
      this.band,
      ...TICKS.map((tick) => drawing("line", { class: "grid", x1: `${tick}%`, x2: `${tick}%`, y1: 0, y2: "100%" })),
      this.whisker,
      this.dot,
    );
  }

  show(model, leader) {
    const own = model.confidence_interval;
    const leading = leader?.confidence_interval;
    place(this.band, leading ? { x: leading[0], width: leading[1] - leading[0] } : { x: 0, width: 0 });
    this.whisker.style.display = own ? "" : "none";
    if (own) place(this.whisker, { x1: own[0], x2: own[1] });
    this.dot.style.display = model.overall_score === null ? "none" : "";
    if (model.overall_score !== null) place(this.dot, { cx: model.overall_score });
  }
}

class Row {
  constructor(model, detailId, onToggle) {
    const cell = (kind) => element("td", { role: "cell", class: `figure ${kind}` });
    this.rank = element("td", { role: "cell", class: "rank" });
    this.button = element("button", { type: "button", "aria-expanded": "false", "aria-controls": detailId });
    this.about = element("small");
    this.plot = new Plot(model.kind);
    this.score = cell("score");
    this.bounds = element("span");
    this.remark = element("small");
    this.interval = cell("interval");
    this.interval.append(this.bounds, this.remark);
    this.coverage = cell("coverage");
    this.runs = cell("runs");
    this.paid = element("span");
    this.simulated = element("small");
    this.cost = cell("cost");
    this.cost.append(this.paid, this.simulated);
    this.node = element(
      "tr",
      { role: "row", class: `row ${model.kind}`, "data-model": model.model_id },
      this.rank,
      element("th", { role: "rowheader", scope: "row", class: "name" }, this.button, this.about),
      element("td", { role: "cell", class: "plot" }, this.plot.node),
      this.score, this.interval, this.coverage, this.runs, this.cost,
    );
    this.inside = element("td", { role: "cell" });
    this.detail = element("tr", { role: "row", class: `detail ${model.kind}`, id: detailId, hidden: "" }, this.inside);
    this.node.addEventListener("click", (event) => {
      if (event.target.closest("button") || !String(getSelection())) onToggle(model.model_id);
    });
  }

  show(model, rank, comparison, leader, open) {
    say(this.rank, model.overall_score === null ? "" : String(rank));
    say(this.button, model.model_name);
    this.button.title = model.model_name;
    this.#describe(model);
    this.plot.show(model, leader);
    say(this.score, score(model.overall_score));
    say(this.bounds, interval(model.confidence_interval));
    say(this.remark, overlaps(model, leader) ? "overlaps leader’s" : "");
    say(this.coverage, percent(model.coverage));
    this.coverage.classList.toggle("low", model.coverage !== null && model.coverage < LOW_COVERAGE);
    say(this.runs, count(model.total_runs));
    const costs = anyCost(comparison.models);
    toggle(this.cost, costs);
    this.inside.colSpan = COLUMNS + costs;
    say(this.paid, cost(model.total_cost_usd, model.cost_known));
    say(this.simulated, model.kind === "reference" && model.total_cost_usd !== null ? "simulated" : "");
    this.node.classList.toggle("open", open);
    this.button.setAttribute("aria-expanded", String(open));
    toggle(this.detail, open);
    if (open) this.#fill(model, comparison);
  }

  #describe(model) {
    const id = model.model_name === model.model_id ? "" : shortened(model.model_id);
    const latency = model.simulated_latency_ms ? `, latency of ${count(model.simulated_latency_ms)} ms simulated` : "";
    const told = model.kind === "reference" ? `reference${latency}` : id;
    if (this.about.textContent === told) return;
    this.about.title = model.kind === "reference" ? `${model.model_id}${latency}` : model.model_id;
    this.about.replaceChildren(
      model.kind === "reference" ? element("span", { class: "tag" }, "reference") : element("bdi", {}, id),
      latency,
    );
  }

  #fill(model, comparison) {
    const figures = JSON.stringify(model);
    if (this.filled === figures) return;
    this.filled = figures;
    this.inside.replaceChildren(breakdown(model, comparison));
  }
}

export class Ranking {
  constructor(body, onToggle) {
    this.body = body;
    this.onToggle = onToggle;
    this.rows = new Map();
    this.serial = 0;
  }

  /** Shows the models that match; returns how many do. */
  show(comparison, view) {
    const leader = leaderOf(comparison.models);
    const wanted = view.filter.trim().toLowerCase();
    const present = new Set();
    let previous = null;
    let shown = 0;
    ordered(comparison.models, view.order).forEach(({ model, rank }) => {
      present.add(model.model_id);
      const row = this.#rowOf(model);
      row.show(model, rank, comparison, leader, view.open.has(model.model_id));
      const matches = `${model.model_name} ${model.model_id} ${model.kind}`.toLowerCase().includes(wanted);
      toggle(row.node, matches);
      if (!matches) row.detail.hidden = true;
      shown += matches;
      // Moved only if it stands elsewhere: focus and scroll position stay.
      const due = previous ? previous.nextSibling : this.body.firstChild;
      if (due !== row.node) this.body.insertBefore(row.node, due);
      if (row.node.nextSibling !== row.detail) row.node.after(row.detail);
      previous = row.detail;
    });
    while (previous ? previous.nextSibling : this.body.firstChild) {
      (previous ? previous.nextSibling : this.body.firstChild).remove();
    }
    for (const id of this.rows.keys()) if (!present.has(id)) this.rows.delete(id);
    return shown;
  }

  #rowOf(model) {
    let row = this.rows.get(model.model_id);
    if (!row) {
      row = new Row(model, `detail-${(this.serial += 1)}`, this.onToggle);
      this.rows.set(model.model_id, row);
    }
    return row;
  }
}

/** Rows of the same height as real ones, so that nothing jumps when those come. */
export function skeleton(body, rows = 8) {
  for (let row = 0; row < rows; row += 1) {
    const cells = Array.from({ length: COLUMNS }, () => element("td", {}, element("span", { class: "bone" })));
    body.append(element("tr", { "aria-hidden": "true", class: "bones" }, ...cells));
  }
}
