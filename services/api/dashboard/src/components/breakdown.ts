// What a row opens into: dimension by dimension, vector by vector, and what the responses took.

import type { ModelComparison, ModelFigures } from "../lib/api_types";
import { element } from "../lib/dom";
import {
  amount,
  cost,
  count,
  counted,
  dollars,
  interval,
  listed,
  percent,
  score,
} from "../lib/format";
import { meanOf, underOtherWeights } from "../lib/models";
import { fact } from "./fact";

const NOT_APPLICABLE = "does not apply";

/** One vector of one dimension, or of all. */
interface Bar {
  vector: string;
  mean: number | null;
  /** What is said instead of a figure, or besides it. */
  remark: string;
}

interface Group {
  title: string;
  overall: number | null;
  runs: number;
  coverage: number | null;
  bounds: [number, number] | null;
  bars: Bar[];
}

function bar({ vector, mean, remark }: Bar): HTMLElement {
  const filled = element("div", { class: "bar" });
  filled.style.width = `${(mean ?? 0) * 100}%`;
  const figure = mean === null && remark ? "" : score(mean);
  return element(
    "div",
    { class: "vector-bar" },
    element("dt", {}, vector),
    element("dd", {}, remark ? element("small", {}, remark, figure ? " " : "") : null, figure),
    element("dd", { class: "bar-track", "aria-hidden": "true" }, filled),
  );
}

function group({ title, overall, runs, coverage, bounds, bars }: Group): HTMLElement {
  return element(
    "section",
    { class: "group" },
    element("h2", {}, element("span", {}, title), element("span", {}, score(overall))),
    element(
      "p",
      { class: "about" },
      element("span", {}, `${counted(runs, "run")}, ${percent(coverage)} of responses scored`),
      element("span", {}, `95 % interval ${interval(bounds)}`),
    ),
    element("dl", { class: "bars" }, ...bars.map(bar)),
  );
}

function allDimensions(model: ModelFigures, vectors: readonly string[]): Group {
  const bars = vectors.map((vector): Bar => {
    const figures = model.vectors[vector];
    const [mean, n, without] = [
      figures?.mean ?? null,
      figures?.n ?? 0,
      figures?.not_applicable ?? 0,
    ];
    const some =
      n > 0 ? `${NOT_APPLICABLE} to ${count(without)} of ${count(n + without)}:` : NOT_APPLICABLE;
    const remark = without > 0 ? some : (figures?.note ?? "");
    return { vector, mean, remark };
  });
  return {
    title: "all dimensions",
    overall: model.overall_score,
    runs: model.total_runs,
    coverage: model.coverage,
    bounds: model.confidence_interval,
    bars,
  };
}

function oneDimension(model: ModelFigures, title: string, vectors: readonly string[]): Group[] {
  const figures = model.dimensions[title];
  if (!figures) return [];
  const bars = vectors.map((vector): Bar => {
    const mean = meanOf(figures, vector);
    // A scored dimension lacks a vector only where it applies to no response.
    return {
      vector,
      mean,
      remark: mean === null && figures.overall !== null ? NOT_APPLICABLE : "",
    };
  });
  const { overall, runs, coverage, interval: bounds } = figures;
  return [{ title, overall, runs, coverage, bounds, bars }];
}

function tokens(model: ModelFigures): string {
  const reasoned = model.total_reasoning_tokens;
  const reasoning = reasoned ? `, ${count(reasoned)} of reasoning` : "";
  const read = amount(model.total_input_tokens, "read");
  return `${read}, ${amount(model.total_visible_output_tokens, "written")}${reasoning}`;
}

function costs(model: ModelFigures): string {
  if (model.total_cost_usd === null) return "unknown";
  const simulated = model.kind === "reference" ? ", simulated" : "";
  const share = model.cost_known ?? 1;
  const known = share < 1 ? `, known for ${percent(share)} of responses` : "";
  const total = cost(model.total_cost_usd, model.cost_known);
  return `${total}, ${dollars(model.mean_cost_usd)} each${known}${simulated}`;
}

/** What a reader has to know about the answers. */
function notes(model: ModelFigures): Node[] {
  const told = (model.notes ?? []).map((note) => `${note.told} (${note.detail ?? ""})`);
  return told.length ? [fact("Notes", told.join("; "))] : [];
}

/** How far the place of the model depends on the weights. */
function otherWeights(model: ModelFigures, comparison: ModelComparison): Node[] {
  const told = underOtherWeights(model, comparison);
  return told ? [fact("Other weights", told)] : [];
}

function facts(model: ModelFigures, comparison: ModelComparison): HTMLElement {
  const statuses = Object.entries(model.statuses).map(([status, number]) => `${number} ${status}`);
  const ids = model.experiment_ids.flatMap((id, at) => [
    at ? ", " : "",
    element("span", { class: "identifier" }, id),
  ]);
  const reasons = model.statuses.error ? "; `socratic-bench status` has the reasons" : "";
  return element(
    "dl",
    { class: "facts" },
    fact("Responses", statuses.length ? `${listed(statuses)}${reasons}` : "none yet"),
    ...(model.turns ?? []).map(({ turn, overall, coverage }) =>
      fact(`Turn ${turn}`, `${score(overall)}, coverage ${percent(coverage)}`),
    ),
    ...otherWeights(model, comparison),
    ...consumption(model),
    ...notes(model),
    fact("Model", element("bdi", { class: "identifier" }, model.model_id)),
    fact("Experiments", ...ids),
  );
}

/** What the responses took; nothing for a model that never answered. */
function consumption(model: ModelFigures): HTMLElement[] {
  const took = [model.mean_visible_output_tokens, model.mean_latency_ms, model.total_cost_usd];
  if (took.every((figure) => figure === null)) return [];
  const latency = amount(model.mean_latency_ms, "ms each");
  return [
    fact("Output", amount(model.mean_visible_output_tokens, "tokens each")),
    fact("Latency", latency, model.simulated_latency_ms ? " (simulated)" : ""),
    fact("Tokens", tokens(model)),
    fact("Cost", costs(model)),
  ];
}

export function breakdown(model: ModelFigures, comparison: ModelComparison): HTMLElement {
  const { vectors, dimensions } = comparison;
  const hasScore = model.overall_score !== null;
  const groups = hasScore
    ? [
        allDimensions(model, vectors),
        ...dimensions.flatMap((dimension) => oneDimension(model, dimension, vectors)),
      ]
    : [];
  return element(
    "div",
    {},
    element("div", { class: "breakdown" }, ...groups.map(group)),
    facts(model, comparison),
  );
}
