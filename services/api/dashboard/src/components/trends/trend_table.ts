// The points of a model as a table and as CSV.

import type { ModelSeries, Point, SeriesChangePoint, Timeseries } from "../../lib/api_types";
import { element } from "../../lib/dom";
import {
  count,
  interval,
  listed,
  percent,
  score,
  shortened,
  signed,
  UNKNOWN,
} from "../../lib/format";
import { rankingPage } from "../../lib/links";
import { moment } from "../../lib/moment";
import type { CsvRow } from "../copy_button";
import { differsTold, figureTold } from "./series";

const HEADINGS = [
  ["name", "Experiment"],
  ["begun", "Begun"],
  ["figure score", ""],
  ["figure interval", "95 % interval"],
  ["figure coverage", "Coverage"],
  ["figure ended", "Runs"],
  ["figure change", "Difference"],
  ["what", "What changed"],
] as const;

export function trendTable(series: ModelSeries, { figure }: Timeseries): HTMLElement {
  const heads = HEADINGS.map(([kind, text]) =>
    element("th", { scope: "col", class: kind }, text || figureTold(figure)),
  );
  return element(
    "table",
    { class: "plain stacked trend-table" },
    element("caption", { class: "visually-hidden" }, "The points, newest first"),
    element("thead", {}, element("tr", {}, ...heads)),
    element(
      "tbody",
      {},
      ...series.points.toReversed().map((point) => row(point, series, figureTold(figure))),
    ),
  );
}

function row(point: Point, series: ModelSeries, figure: string): HTMLElement {
  const { experiment_id: id, change } = point;
  const title = shortened(point.title ?? id, 40);
  const link = element(
    "a",
    { href: rankingPage(id, series.model_id), title: id },
    element("bdi", {}, title),
  );
  const tested = change ? element("small", {}, differsTold(change)) : null;
  return element(
    "tr",
    { "data-experiment": id },
    element("th", { scope: "row", class: "name" }, link),
    element("td", { class: "begun" }, moment(point.created_at)),
    element(
      "td",
      { class: "figure score", "data-figure": figure.toLowerCase() },
      score(point.value),
    ),
    element("td", { class: "figure interval" }, interval(point.confidence_interval)),
    element("td", { class: "figure coverage" }, percent(point.coverage)),
    element("td", { class: "figure ended" }, count(point.total_runs)),
    element("td", { class: "figure change" }, change ? signed(change.difference) : UNKNOWN, tested),
    element("td", { class: "what" }, whatChanged(point, series)),
  );
}

function whatChanged(point: Point, series: ModelSeries): string {
  const parts = point.benchmark_changed?.length
    ? `the benchmark: ${listed(point.benchmark_changed)}`
    : "";
  const version = series.version_changes?.find(
    (each) => each.experiment_id === point.experiment_id,
  );
  const moved = changePointAt(point, series) ? "the level: a change point" : "";
  const became = version ? `the reported version: ${listed(version.after)}` : "";
  const lost = point.lost ? `${percent(point.lost.share)} of the runs lost` : "";
  return [parts, moved, became, lost].filter(Boolean).join("; ");
}

/** The change point before a point, where chance does not explain it. */
function changePointAt(point: Point, series: ModelSeries): SeriesChangePoint | undefined {
  return series.change_points.find(
    (each) => each.is_real && each.experiment_id === point.experiment_id,
  );
}

export function trendCsv(series: ModelSeries, shown: Timeseries): CsvRow[] {
  const head = [
    "model",
    "experiment",
    "title",
    "created_at",
    "profile",
    "conditions",
    "joins",
    shown.figure,
    `${shown.figure}_low`,
    `${shown.figure}_high`,
    "coverage",
    "runs",
    "change",
    "change_p_value",
    "benchmark_changed",
    "model_versions",
    "change_point_difference",
    "change_point_p_value",
    "change_point_earliest",
    "change_point_latest",
    "minimal_detectable_change",
    "turn",
    "dimension",
    "lost_runs",
  ];
  return [
    head,
    ...series.points.map((point) => [
      series.model_id,
      point.experiment_id,
      point.title,
      point.created_at,
      point.profile,
      point.conditions_id,
      point.joins ? "yes" : "no",
      point.value,
      ...(point.confidence_interval ?? [null, null]),
      point.coverage,
      point.total_runs,
      point.change?.difference ?? null,
      point.change?.p_value ?? null,
      (point.benchmark_changed ?? []).join(" "),
      (point.model_versions ?? []).join(" "),
      ...changePointCells(changePointAt(point, series)),
      detectableAt(point, series),
      shown.turn,
      shown.dimension,
      point.lost?.runs ?? null,
    ]),
  ];
}

function changePointCells(found: SeriesChangePoint | undefined): CsvRow {
  return found
    ? [found.difference, found.p_value, found.earliest, found.latest]
    : [null, null, null, null];
}

/** The minimal detectable change of the points that join this one. */
function detectableAt({ created_at: at }: Point, series: ModelSeries): number | null {
  const found = series.detectable_changes.find(
    ({ since, until }) =>
      Date.parse(since) <= Date.parse(at) && Date.parse(at) <= Date.parse(until),
  );
  return found?.least ?? null;
}
