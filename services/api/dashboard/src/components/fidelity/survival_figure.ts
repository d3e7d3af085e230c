// Survival curves as stairs: the share of runs still asking after each turn, one tutor in its band.

import type { CurvePoint, FidelityTable, FidelityFigures } from "../../lib/api_types";
import { drawing } from "../../lib/dom";
import { count, percent, shortened } from "../../lib/format";
import { fixed, label, line, path, TEXT_PX, type Drawing, type Figure } from "../figures/figure";
import { textWidth } from "../figures/labels";
import { linear, type Scale } from "../figures/scales";
import { citedOf, sourceOf } from "../figures/source";
import { keptTold, percentBetween, turns } from "./wording";

const LEFT = 46;
const RIGHT = 16;
const TOP = 34;
const BOTTOM = 40;
const RADIUS = 4.5;
const NAME_PX = 15;
/** From this width on the pale curves have their names beside them. */
const NAMES_FROM = 640;
const NAME_LIMIT = 24;
/** A name further below its end would seem to be that of another one. */
const MOST_BELOW = 6;
const HALF = 0.5;

export interface Survival {
  table: FidelityTable;
  chosen: FidelityFigures;
  /** The address that chooses another tutor. */
  addressOf: (model: string) => string;
}

export function survivalFigure(survival: Survival): Figure {
  const { table, chosen } = survival;
  const tag = chosen.kind === "model" ? "" : ` (${chosen.kind})`;
  const told = `${chosen.model_name}${keptTold(chosen, table.horizon)}`;
  return {
    file: `socratic-bench-fidelity-${chosen.model_id.replaceAll(/[^\w.-]+/g, "-")}`,
    title: `${chosen.model_name}${tag} under pressure`,
    about: `${told} The table below has every tutor.`,
    source: [
      told,
      "The stairs are the share of runs still asking after each turn, in the band of its 95 % interval; pale stairs are the other tutors. The area under the stairs is the turns kept.",
      ...sourceOf(table.experiments.map(citedOf), [table.profile], table.version),
    ],
    draw: (width) => drawSurvival(survival, width),
  };
}

interface Place {
  x: Scale;
  y: Scale;
}

function drawSurvival({ table, chosen, addressOf }: Survival, width: number): Drawing {
  const { horizon, models } = table;
  const height = Math.round(Math.min(420, Math.max(300, width * 0.38)));
  const others = models.filter((each) => each !== chosen && each.curve.length > 0);
  const hasNames = width >= NAMES_FROM;
  const named = hasNames ? [chosen, ...others] : [];
  const widest = Math.max(0, ...named.map((each) => textWidth(nameOf(each), TEXT_PX, 600)));
  const right = width - RIGHT - (hasNames ? widest + 8 : 0);
  const place = {
    x: linear(HALF, horizon + HALF, LEFT, right, horizon),
    y: linear(0, 1, height - BOTTOM, TOP, 4),
  };
  return {
    height,
    marks: [
      ...axes(place, horizon, right, height),
      ...others.map((each) => otherCurve(each, place, addressOf(each.model_id))),
      ...band(chosen.curve, place),
      path(
        stairs(chosen.curve, place, ({ left }) => left),
        `trend-line ${chosen.kind}`,
      ),
      ...chosen.curve.map((point) => dot(point, chosen, place)),
      ...names(named, place, right),
    ],
  };
}

function axes({ x, y }: Place, horizon: number, right: number, height: number): SVGElement[] {
  const ground = height - BOTTOM;
  const every = Math.ceil(horizon / Math.max(1, Math.floor((right - LEFT) / 26)));
  const marks: SVGElement[] = [0, 0.25, 0.5, 0.75, 1].flatMap((value) => [
    line(LEFT, y.at(value), right, y.at(value), value === HALF ? "half" : "grid"),
    label(percent(value), LEFT - 8, y.at(value), "end", "quiet"),
  ]);
  for (let turn = 1; turn <= horizon; turn += 1) {
    marks.push(line(x.at(turn), ground, x.at(turn), ground + 4, "tick"));
    if ((turn - 1) % every) continue;
    marks.push(label(String(turn), x.at(turn), ground + 14, "middle", "quiet"));
  }
  marks.push(
    label("Runs still asking", 0, 8, "start", "quiet"),
    label("Turn", right, ground + 31, "end", "quiet"),
  );
  return marks;
}

/** The corners of stairs whose step of turn t reaches from t − ½ to t + ½. */
function stairs(
  curve: readonly CurvePoint[],
  { x, y }: Place,
  value: (point: CurvePoint) => number,
): [number, number][] {
  return curve.flatMap((point): [number, number][] => [
    [x.at(point.turn - HALF), y.at(value(point))],
    [x.at(point.turn + HALF), y.at(value(point))],
  ]);
}

function band(curve: readonly CurvePoint[], place: Place): SVGElement[] {
  const known = curve.filter(({ interval }) => interval !== null);
  if (!known.length) return [];
  const end = (side: 0 | 1) => stairs(known, place, ({ interval }) => interval?.[side] ?? 0);
  return [path([...end(1), ...end(0).toReversed()], "trend-band")];
}

function otherCurve(model: FidelityFigures, place: Place, href: string): SVGElement {
  const corners = stairs(model.curve, place, ({ left }) => left);
  return drawing(
    "a",
    {
      href,
      class: "other",
      "data-model": model.model_id,
      "data-key": `model ${model.model_id}`,
      "aria-label": `${model.model_name} keeps asking for ${turns(model.turns_kept)} turns: show it`,
    },
    path(corners, "hit"),
    path(corners, `context ${model.kind}`),
  );
}

function dot(point: CurvePoint, model: FidelityFigures, { x, y }: Place): SVGElement {
  const { turn, at_risk: runs, happened, left, interval } = point;
  const spot = { cx: fixed(x.at(turn)), cy: fixed(y.at(left)) };
  const bounds = interval ? ` (95 % ${percentBetween(interval)})` : "";
  const broke = runs ? `${count(happened)} of ${count(runs)} broke in this turn` : "no run is left";
  return drawing(
    "a",
    {
      href: "#turns",
      class: "point on",
      "data-key": `turn ${turn}`,
      "aria-label": `Turn ${turn}: ${percent(left)} of runs still asking${bounds}; ${broke}`,
    },
    drawing("circle", { class: "hit", ...spot, r: 12 }),
    drawing("circle", { class: `dot ${model.kind}`, ...spot, r: RADIUS }),
  );
}

function nameOf({ model_name: name }: FidelityFigures): string {
  return shortened(name, NAME_LIMIT);
}

/** Names at the right ends of their stairs, the chosen one first; those without room stay out. */
function names(models: readonly FidelityFigures[], { y }: Place, right: number): SVGElement[] {
  const taken: { where: number; left: number }[] = [];
  return models.flatMap((model, at) => {
    const left = model.curve.at(-1)?.left;
    if (left === undefined) return [];
    const own = y.at(left);
    const besides = (where: number) =>
      taken.find((other) => Math.abs(other.where - where) < NAME_PX);
    const way = besides(own);
    // A lower end has its name below the one in its way: names keep the order of the ends.
    const below = way && left < way.left ? way.where + NAME_PX : null;
    const places = below === null ? [own, own - NAME_PX, own - 2 * NAME_PX] : [below];
    const where = places.find((each) => !besides(each) && each - own <= MOST_BELOW);
    if (where === undefined) return [];
    taken.push({ where, left });
    return [label(nameOf(model), right + 8, where, "start", at === 0 ? "strong" : "quiet")];
  });
}
