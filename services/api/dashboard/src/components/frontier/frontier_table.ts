// The figures behind the charts of cost and latency, as a table and as CSV.

import type { ModelComparison, ModelFigures } from "../../lib/api_types";
import { element } from "../../lib/dom";
import { interval, score, shortened, UNKNOWN } from "../../lib/format";
import { comparePage, rankingPage } from "../../lib/links";
import type { CsvRow } from "../copy_button";
import { COST, isSimulated, LATENCY, priceText, type Point, type Price } from "./frontier";

const HEADINGS = [
  ["name", "Tutor"],
  ["figure", "Score"],
  ["figure minor", "95 % interval"],
  ["figure", "USD per 1,000 responses"],
  ["place", "On the frontier of cost"],
  ["figure", "Latency in s"],
  ["place", "On the frontier of latency"],
] as const;

export interface Judged {
  comparison: ModelComparison;
  experiment: string;
  cost: readonly Point[];
  latency: readonly Point[];
}

function pointOf(points: readonly Point[], model: ModelFigures): Point | undefined {
  return points.find((point) => point.model === model);
}

export function frontierTable(
  judged: Judged,
  shown: (model: ModelFigures) => boolean,
): HTMLElement {
  const heads = HEADINGS.map(([kind, text]) => element("th", { scope: "col", class: kind }, text));
  const models = judged.comparison.models.filter(shown);
  return element(
    "table",
    { class: "plain stacked costs-table" },
    element("caption", { class: "visually-hidden" }, "Score, cost and latency, best score first"),
    element("thead", {}, element("tr", {}, ...heads)),
    element("tbody", {}, ...models.map((model) => row(model, judged))),
  );
}

function row(model: ModelFigures, judged: Judged): HTMLElement {
  const kind = model.kind === "model" ? null : element("small", { class: "tag" }, model.kind);
  const address = rankingPage(judged.experiment, model.model_id);
  const name = element(
    "a",
    { href: address, title: model.model_id },
    element("bdi", {}, shortened(model.model_name, 40)),
  );
  return element(
    "tr",
    { "data-model": model.model_id },
    element("th", { scope: "row", class: "name" }, name, kind),
    element("td", { class: "figure score" }, score(model.overall_score)),
    element("td", { class: "figure minor" }, interval(model.confidence_interval)),
    priceCell(model, COST),
    placeCell(pointOf(judged.cost, model), COST, judged),
    priceCell(model, LATENCY),
    placeCell(pointOf(judged.latency, model), LATENCY, judged),
  );
}

function priceCell(model: ModelFigures, price: Price): HTMLElement {
  const text = priceText(model, price);
  const known = model.cost_known ?? 1;
  const isPartly = price.key === "cost" && text !== UNKNOWN && known < 1;
  const simulated = text !== UNKNOWN && isSimulated(model, price) ? "simulated" : "";
  const remark = simulated || (isPartly ? "where known" : "");
  const small = remark ? element("small", {}, remark) : null;
  return element("td", { class: `figure ${price.key}` }, text, small);
}

function placeCell(point: Point | undefined, price: Price, judged: Judged): HTMLElement {
  const cell = element("td", { class: `place ${price.key}-place` });
  if (!point?.isReal || judged.comparison.mixed_conditions) cell.append(UNKNOWN);
  else if (!point.beatenBy) cell.append("yes");
  else {
    const { model_id: other, model_name: name } = point.beatenBy;
    const address = comparePage(other, point.model.model_id, judged.experiment);
    const title = `${name} scores no less and is no ${price.less === "cheaper" ? "dearer" : "slower"}: compare the two`;
    const link = element("a", { href: address, title }, element("bdi", {}, shortened(name, 24)));
    cell.append("no: ", link);
  }
  return cell;
}

export function frontierCsv(judged: Judged): CsvRow[] {
  const head = [
    "model",
    "name",
    "kind",
    "overall",
    "overall_low",
    "overall_high",
    "mean_cost_usd",
    "cost_known",
    "on_cost_frontier",
    "mean_latency_ms",
    "latency_simulated",
    "on_latency_frontier",
    "profile",
    "experiments",
  ];
  const { profile, models, filtered } = judged.comparison;
  return [
    filtered ? [...head, "filter"] : head,
    ...models.map((model) => [
      model.model_id,
      model.model_name,
      model.kind,
      model.overall_score,
      ...(model.confidence_interval ?? [null, null]),
      model.mean_cost_usd,
      model.cost_known,
      isOn(pointOf(judged.cost, model)),
      model.mean_latency_ms,
      isSimulated(model, LATENCY) ? "yes" : "no",
      isOn(pointOf(judged.latency, model)),
      profile,
      model.experiment_ids.join(" "),
      ...(filtered ? [filtered.told] : []),
    ]),
  ];
}

function isOn(point: Point | undefined): string | null {
  return point?.isReal ? (point.isOn ? "yes" : "no") : null;
}
