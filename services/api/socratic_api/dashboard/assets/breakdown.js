// What a row opens into: dimension by dimension, vector by vector, and what the responses took.

import { element } from "./dom.js";
import { amount, cost, count, counted, dollars, interval, listed, percent, score } from "./format.js";

function bar(value) {
  const filled = element("div", { class: "bar" });
  filled.style.width = `${(value ?? 0) * 100}%`;
  return filled;
}

function bars(vectors, valueOf) {
  return element(
    "dl",
    { class: "bars" },
    ...vectors.map((vector) => {
      const value = valueOf(vector);
      return element(
        "div",
        { class: "vector-bar" },
        element("dt", {}, vector),
        element("dd", {}, score(value)),
        element("dd", { class: "bar-track", "aria-hidden": "true" }, bar(value)),
      );
    }),
  );
}

function group(title, { overall, runs, coverage, bounds }, drawn) {
  return element(
    "section",
    { class: "group" },
    element("h3", {}, element("span", {}, title), element("span", {}, score(overall))),
    element(
      "p",
      { class: "about" },
      element("span", {}, `${counted(runs, "run")}, ${percent(coverage)} of responses scored`),
      element("span", {}, `95 % interval ${interval(bounds)}`),
    ),
    drawn,
  );
}

function fact(term, ...description) {
  return element("div", {}, element("dt", {}, term), element("dd", {}, ...description));
}

function tokens({ total_input_tokens: read, total_visible_output_tokens: written, total_reasoning_tokens: reasoned }) {
  const reasoning = reasoned ? `, ${count(reasoned)} of reasoning` : "";
  return `${amount(read, "read")}, ${amount(written, "written")}${reasoning}`;
}

function costs(model) {
  if (model.total_cost_usd === null) return "unknown";
  const simulated = model.kind === "reference" ? ", simulated" : "";
  const known = model.cost_known < 1 ? `, known for ${percent(model.cost_known)} of responses` : "";
  return `${cost(model.total_cost_usd, model.cost_known)}, ${dollars(model.mean_cost_usd)} each${known}${simulated}`;
}

function facts(model) {
  const statuses = Object.entries(model.statuses).map(([status, number]) => `${number} ${status}`);
  return element(
    "dl",
    { class: "facts" },
    fact("Responses", statuses.length ? listed(statuses) : "none yet"),
    fact("Output", amount(model.mean_visible_output_tokens, "tokens each")),
    fact("Latency", amount(model.mean_latency_ms, "ms each"), model.simulated_latency_ms ? " (simulated)" : ""),
    fact("Tokens", tokens(model)),
    fact("Cost", costs(model)),
    fact("Model", element("bdi", { class: "identifier" }, model.model_id)),
    fact("Experiments", ...model.experiment_ids.flatMap((id, at) => [at ? ", " : "", element("span", { class: "identifier" }, id)])),
  );
}

export function breakdown(model, { vectors, dimensions }) {
  const groups = dimensions
    .filter((dimension) => model.dimensions[dimension])
    .map((dimension) => {
      const figures = model.dimensions[dimension];
      return group(
        dimension,
        { ...figures, bounds: figures.interval },
        bars(vectors, (vector) => figures[vector]),
      );
    });
  const all = group(
    "all dimensions",
    {
      overall: model.overall_score,
      runs: model.total_runs,
      coverage: model.coverage,
      bounds: model.confidence_interval,
    },
    bars(vectors, (vector) => model.vectors[vector].mean),
  );
  return element("div", {}, element("div", { class: "breakdown" }, all, ...groups), facts(model));
}
