// The drawing of one model over time: a line that breaks where the benchmark changed, in its band.

import type { ModelSeries, Timeseries } from "../../lib/api_types";
import { drawing } from "../../lib/dom";
import { rankingPage } from "../../lib/links";
import { fixed, label, line, path, TEXT_PX, type Drawing } from "../figures/figure";
import { textWidth } from "../figures/labels";
import { linear, scores, time, type Scale } from "../figures/scales";
import {
  marksOf,
  momentsOf,
  pointTold,
  shownTold,
  stretchesOf,
  TURNS_KEPT,
  type Moment,
} from "./series";

const LEFT = 40;
const RIGHT = 18;
const TOP = 46;
const BOTTOM = 28;
const DAY_MS = 86_400_000;
const TICK_PX = 80;
const RADIUS = 5;

/** Scores, or turns from none to the last in which a run can break. */
function values({ figure, greatest }: Timeseries, from: number, to: number): Scale {
  return figure === TURNS_KEPT
    ? linear(0, greatest, from, to, Math.min(6, greatest))
    : scores(from, to);
}

/** The first and the last time of all points, with some air. */
function span(every: readonly ModelSeries[]): [number, number] {
  const times = every.flatMap(momentsOf).map(({ at }) => at);
  const [low, high] = [Math.min(...times), Math.max(...times)];
  const air = Math.max((high - low) * 0.02, 3 * DAY_MS);
  return [low - air, high + air];
}

export function drawTrend(chosen: ModelSeries, shown: Timeseries, width: number): Drawing {
  const every = shown.models;
  const height = Math.round(Math.min(440, Math.max(320, width * 0.4)));
  const ground = height - BOTTOM;
  const [low, high] = span([chosen, ...every]);
  const ticks = Math.max(2, Math.floor((width - LEFT - RIGHT) / TICK_PX));
  const x = time(low, high, LEFT, width - RIGHT, ticks);
  const y = values(shown, ground, TOP);
  const others = every.filter(({ model_id: id }) => id !== chosen.model_id);
  return {
    height,
    marks: [
      ...axes(x, y, width, ground, shownTold(shown)),
      ...others.flatMap((series) => lines(series, x, y, "context")),
      ...changes(chosen, x, width - RIGHT, ground),
      ...bands(chosen, x, y),
      ...lines(chosen, x, y, `trend-line ${chosen.kind}`),
      ...momentsOf(chosen).flatMap((moment) => dot(moment, chosen, x, y)),
    ],
  };
}

function axes(x: Scale, y: Scale, width: number, ground: number, told: string): SVGElement[] {
  const marks: SVGElement[] = y.ticks.flatMap(({ value, text }) => [
    line(LEFT, y.at(value), width - RIGHT, y.at(value), "grid"),
    label(text, LEFT - 8, y.at(value), "end", "quiet"),
  ]);
  let free = 0;
  for (const { value, text } of x.ticks) {
    const at = x.at(value);
    marks.push(line(at, ground, at, ground + 4, "tick"));
    const half = textWidth(text, TEXT_PX) / 2;
    if (at - half < free || at + half > width) continue;
    marks.push(label(text, at, ground + 15, "middle", "quiet"));
    free = at + half + 8;
  }
  marks.push(label(told, 0, 8, "start", "quiet"));
  return marks;
}

function place({ point, at }: Moment, x: Scale, y: Scale): [number, number] {
  return [x.at(at), y.at(point.value ?? 0)];
}

function lines(series: ModelSeries, x: Scale, y: Scale, kind: string): SVGElement[] {
  return stretchesOf(series)
    .filter((stretch) => stretch.length > 1)
    .map((stretch) =>
      path(
        stretch.map((moment) => place(moment, x, y)),
        kind,
      ),
    );
}

/** The intervals of points that join, as one band; a lone point has a whisker. */
function bands(series: ModelSeries, x: Scale, y: Scale): SVGElement[] {
  return stretchesOf(series).flatMap((stretch) => {
    const known = stretch.flatMap(({ point, at }) =>
      point.confidence_interval ? [{ at: x.at(at), bounds: point.confidence_interval }] : [],
    );
    const [only] = known;
    if (!only) return [];
    if (known.length === 1) {
      return [line(only.at, y.at(only.bounds[0]), only.at, y.at(only.bounds[1]), "whisker model")];
    }
    const upper = known.map(({ at, bounds }): [number, number] => [at, y.at(bounds[1])]);
    const lower = known.map(({ at, bounds }): [number, number] => [at, y.at(bounds[0])]);
    return [path([...upper, ...lower.toReversed()], "trend-band")];
  });
}

/** A letter stands for each change; letters too close to each other take turns in height. */
function changes(series: ModelSeries, x: Scale, right: number, ground: number): SVGElement[] {
  let last = -Infinity;
  let isLow = false;
  return marksOf(series).flatMap(({ letter, kind, at, within }) => {
    const where = x.at(at);
    if (where < LEFT || where > right) return [];
    isLow = where - last < 16 && !isLow;
    last = where;
    return [
      ...(within ? [dateBand(within, x, ground)] : []),
      line(where, isLow ? 40 : 24, where, ground, `change ${kind}`),
      label(letter, where, isLow ? 32 : 16, "middle", "letter"),
    ];
  });
}

/** The interval of a change point's date. */
function dateBand([from, to]: [number, number], x: Scale, ground: number): SVGElement {
  const [left, right] = [x.at(from), x.at(to)];
  const corners: [number, number][] = [
    [left, TOP],
    [right, TOP],
    [right, ground],
    [left, ground],
  ];
  return path(corners, "date-band");
}

function dot(moment: Moment, series: ModelSeries, x: Scale, y: Scale): SVGElement[] {
  if (moment.point.value === null) return [];
  const [cx, cy] = place(moment, x, y);
  const spot = { cx: fixed(cx), cy: fixed(cy) };
  return [
    drawing(
      "a",
      {
        href: rankingPage(moment.point.experiment_id, series.model_id),
        class: "point on",
        "aria-label": pointTold(moment.point),
        "data-key": moment.point.experiment_id,
      },
      drawing("circle", { class: "hit", ...spot, r: 12 }),
      drawing("circle", { class: `dot ${series.kind}`, ...spot, r: RADIUS }),
    ),
  ];
}

/** The same in the size of a stamp, for a glance over all models. */
export function drawSmall(series: ModelSeries, shown: Timeseries): SVGSVGElement {
  const [width, height] = [220, 64];
  const [low, high] = span(shown.models);
  const x = time(low, high, 2, width - 2, 1);
  const y = values(shown, height - 4, 4);
  const dots = stretchesOf(series)
    .flat()
    .map((moment) => {
      const [cx, cy] = place(moment, x, y);
      return drawing("circle", { class: `dot ${series.kind}`, cx: fixed(cx), cy: fixed(cy), r: 2 });
    });
  const marks = marksOf(series).filter(({ kind }) => kind !== "named");
  const breaks = marks.map(({ kind, at }) =>
    line(x.at(at), 2, x.at(at), height - 2, `change ${kind}`),
  );
  return drawing(
    "svg",
    { class: "chart small-chart", viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" },
    ...[0, 0.5, 1]
      .map((part) => y.at(part * shown.greatest))
      .map((at) => line(0, at, width, at, "grid")),
    ...breaks,
    ...bands(series, x, y),
    ...lines(series, x, y, `trend-line ${series.kind}`),
    ...dots,
  );
}
