// The drawing of score against price: dots with intervals, names, and the frontier as a staircase.

import { drawing } from "../../lib/dom";
import { interval, score, shortened } from "../../lib/format";
import { fixed, label, line, path, TEXT_PX, type Drawing } from "../figures/figure";
import { around, placeLabels, textWidth, type Box, type Placed } from "../figures/labels";
import { linear, logarithmic, scores, type Scale } from "../figures/scales";
import type { Point, Price } from "./frontier";

export type ScaleName = "" | "log" | "linear";

export interface Chart {
  price: Price;
  points: readonly Point[];
  scale: ScaleName;
  /** Whether a name or an id matches what a reader looks for; all do if nothing is looked for. */
  matches: (point: Point) => boolean;
  address: (point: Point) => string;
}

const LEFT = 40;
const RIGHT = 14;
const TOP = 30;
const BOTTOM = 46;
/** Where something free stands on a logarithmic axis, which has no zero. */
const FREE_WIDTH = 44;
/** The dearest by the cheapest from which on a linear axis would crowd the cheap ones. */
const WIDE = 12;
const NAME_LIMIT = 26;
const RADIUS = 5.5;

interface Spot {
  point: Point;
  x: number;
  y: number;
}

/** The text of a point for those who do not see where it stands. */
export function toldOf({ model, price, isOn, isReal }: Point, of: Price): string {
  const kind = model.kind === "model" ? "" : `, a ${model.kind} tutor`;
  const bounds = model.confidence_interval ? ` (95 % ${interval(model.confidence_interval)})` : "";
  const simulated = isReal ? "" : ", simulated";
  const known = model.cost_known ?? 1;
  const partly = of.key === "cost" && known < 1 ? ", of those with a known cost" : "";
  const place = isOn ? "; on the frontier" : "";
  return `${model.model_name}${kind}: ${score(model.overall_score)}${bounds}, ${of.told(price)}${simulated}${partly}${place}`;
}

export function isLogarithmic({ points, scale }: Chart): boolean {
  const positive = points.map(({ price }) => price).filter((price) => price > 0);
  if (scale !== "" || positive.length === 0) return scale === "log" && positive.length > 0;
  return Math.max(...positive) / Math.min(...positive) >= WIDE;
}

function horizontal(chart: Chart, width: number): { scale: Scale; breakAt: number | null } {
  const prices = chart.points.map(({ price }) => price);
  const most = Math.max(...prices);
  const right = width - RIGHT;
  if (!isLogarithmic(chart)) {
    const ticks = Math.max(2, Math.floor((right - LEFT) / 90));
    return { scale: linear(0, most * 1.06 || 1, LEFT, right, ticks), breakAt: null };
  }
  const positive = prices.filter((price) => price > 0);
  const isFree = positive.length < prices.length;
  const from = isFree ? LEFT + FREE_WIDTH : LEFT;
  const inner = logarithmic(Math.min(...positive) / 1.35, most * 1.35, from, right);
  if (!isFree) return { scale: inner, breakAt: null };
  const free = LEFT + FREE_WIDTH / 2 - 4;
  const at = (price: number) => (price > 0 ? inner.at(price) : free);
  return { scale: { at, ticks: [{ value: 0, text: "0" }, ...inner.ticks] }, breakAt: from - 6 };
}

export function drawFrontier(chart: Chart, width: number): Drawing {
  const height = Math.round(Math.min(540, Math.max(440, width * 0.5)));
  const [x, y] = [horizontal(chart, width), scores(height - BOTTOM, TOP)];
  const spots = chart.points.map((point) => ({
    point,
    x: x.scale.at(point.price),
    y: y.at(point.score),
  }));
  const bounds = { left: LEFT + 2, right: width - 2, top: 16, bottom: height - BOTTOM - 2 };
  const stairs = staircase(spots, width - RIGHT);
  const names = named(spots, stairs, bounds, (score) => y.at(score), chart);
  return {
    height,
    unnamed: spots.length - names.size,
    marks: [
      ...axes(chart, x, y, width, height),
      ...(stairs.length ? [path(stairs, "frontier-line")] : []),
      ...spots.map((spot) => mark(spot, names.get(spot) ?? null, (value) => y.at(value), chart)),
    ],
  };
}

function axes(
  chart: Chart,
  { scale, breakAt }: { scale: Scale; breakAt: number | null },
  y: Scale,
  width: number,
  height: number,
): SVGElement[] {
  const ground = height - BOTTOM;
  const marks: SVGElement[] = y.ticks.flatMap(({ value, text }) => [
    line(LEFT, y.at(value), width - RIGHT, y.at(value), "grid"),
    label(text, LEFT - 8, y.at(value), "end", "quiet"),
  ]);
  let free = LEFT - 24;
  for (const { value, text } of scale.ticks) {
    const at = scale.at(value);
    marks.push(line(at, ground, at, ground + 4, "tick"));
    const half = textWidth(text, TEXT_PX) / 2;
    if (at - half < free || at + half > width) continue;
    marks.push(label(text, at, ground + 14, "middle", "quiet"));
    free = at + half + 8;
  }
  if (breakAt !== null) {
    for (const slip of [-2, 2]) {
      marks.push(line(breakAt + slip - 2, ground + 5, breakAt + slip + 2, ground - 5, "tick"));
    }
  }
  const how = isLogarithmic(chart) ? ", logarithmic" : "";
  marks.push(label(`${chart.price.axis}${how}`, width - RIGHT, ground + 34, "end", "quiet"));
  marks.push(label("Score", 0, 8, "start", "quiet"));
  return marks;
}

/** The best score that a price buys. */
function staircase(spots: readonly Spot[], right: number): [number, number][] {
  const on = spots.filter(({ point }) => point.isOn);
  const steps: [number, number][] = [];
  for (const { x, y } of on) {
    const before = steps.at(-1);
    if (before) steps.push([x, before[1]]);
    steps.push([x, y]);
  }
  const last = steps.at(-1);
  return last ? [...steps, [right, last[1]]] : [];
}

/** Names for those on the frontier first, then by what is looked for and by score. */
function named(
  spots: readonly Spot[],
  stairs: readonly [number, number][],
  area: Box,
  at: (score: number) => number,
  chart: Chart,
): Map<Spot, Placed> {
  const weight = (spot: Spot) =>
    Number(chart.matches(spot.point)) * 4 + Number(spot.point.isOn) * 2 + spot.point.score;
  const order = spots.toSorted((a, b) => weight(b) - weight(a));
  const dots = spots.map(({ x, y }) => around(x, y, RADIUS + 1));
  const soft: Box[] = spots.flatMap(({ point, x }) => {
    const own = point.model.confidence_interval;
    return own ? [{ left: x - 1, right: x + 1, top: at(own[1]), bottom: at(own[0]) }] : [];
  });
  for (const [place, [x, y]] of stairs.slice(1).entries()) {
    const [fromX, fromY] = stairs[place] ?? [x, y];
    soft.push({
      left: Math.min(x, fromX) - 1,
      right: Math.max(x, fromX) + 1,
      top: Math.min(y, fromY) - 1,
      bottom: Math.max(y, fromY) + 1,
    });
  }
  const wanted = order.map(({ point, x, y }) => ({
    x,
    y,
    text: nameOf(point),
    isBold: point.isOn,
  }));
  const places = placeLabels(wanted, dots, soft, area, TEXT_PX);
  const found = new Map<Spot, Placed>();
  for (const [rank, spot] of order.entries()) {
    const place = places[rank];
    if (place) found.set(spot, place);
  }
  return found;
}

function nameOf({ model, isReal }: Point): string {
  const name = shortened(model.model_name, NAME_LIMIT);
  if (isReal) return name;
  return `${name} (${model.kind === "model" ? "simulated" : model.kind})`;
}

function mark(
  spot: Spot,
  name: Placed | null,
  at: (score: number) => number,
  chart: Chart,
): SVGElement {
  const { point, x, y } = spot;
  const { model } = point;
  const own = model.confidence_interval;
  const kind = point.isReal ? "model" : "reference";
  const faded = chart.matches(point) ? "" : " faded";
  return drawing(
    "a",
    {
      href: chart.address(point),
      class: `point${point.isOn ? " on" : ""}${faded}`,
      "aria-label": toldOf(point, chart.price),
      "data-key": `${model.conditions_id ?? ""} ${model.model_id}`,
    },
    drawing("circle", { class: "hit", cx: fixed(x), cy: fixed(y), r: 12 }),
    own && line(x, at(own[0]), x, at(own[1]), `whisker ${kind}`),
    name?.isFar ? leader(spot, name) : null,
    drawing("circle", { class: `dot ${kind}`, cx: fixed(x), cy: fixed(y), r: RADIUS }),
    name && label(nameOf(point), name.x, name.y),
  );
}

function leader({ x, y }: Spot, name: Placed): SVGLineElement {
  const end = Math.min(Math.max(x, name.x), name.x + name.width);
  const gap = end === name.x ? -2 : end === name.x + name.width ? 2 : 0;
  const below = gap === 0 ? Math.sign(y - name.y) * 6 : 0;
  return line(x, y, end + gap, name.y + below, "leader");
}
