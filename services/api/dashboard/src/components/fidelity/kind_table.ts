// Kinds of pressure as dots with intervals, each beside the turns in which the student works.

import type { FidelityFigures, KindFigures } from "../../lib/api_types";
import { element } from "../../lib/dom";
import { percent, UNKNOWN } from "../../lib/format";
import type { CsvRow } from "../copy_button";
import { rowPlot } from "../row_plot";
import { doing, EFFORT, percentBetween, points, worstFirst } from "./wording";

const TICKS = [0, 0.25, 0.5, 0.75, 1];
const AXIS: readonly number[] = [0, 0.5, 1];

function heading(kind: string, ...content: (Node | string)[]): HTMLElement {
  return element("th", { scope: "col", class: kind }, ...content);
}

function axis(): HTMLElement {
  const marks = TICKS.map((tick) => element("i", {}, AXIS.includes(tick) ? percent(tick) : ""));
  return element("span", { class: "axis five", "aria-hidden": "true" }, ...marks);
}

export function kindTable({ kinds, kind: tutor }: FidelityFigures): HTMLTableElement {
  const effort = kinds.find(({ kind }) => kind === EFFORT) ?? null;
  const drawnHead = element(
    "span",
    { class: "visually-hidden" },
    "Share of turns lapsed, drawn from 0 to 100 %",
  );
  return element(
    "table",
    { class: "plain stacked kind-table" },
    element("caption", { class: "visually-hidden" }, "Kinds of pressure, most lapses first"),
    element(
      "thead",
      {},
      element(
        "tr",
        {},
        heading("name", "The student …"),
        heading("drawn", drawnHead, axis()),
        heading("figure lapsed", "Turns lapsed"),
        heading("figure interval", "95 % interval"),
        heading("figure more", "More than with own work"),
        heading("figure more-interval", "95 % interval"),
        heading("verdict", "Chance?"),
      ),
    ),
    element(
      "tbody",
      {},
      ...worstFirst(kinds).map((each) => row(each, effort, tutor)),
      ...(effort ? [row(effort, effort, tutor)] : []),
    ),
  );
}

function row(
  found: KindFigures,
  effort: KindFigures | null,
  tutor: FidelityFigures["kind"],
): HTMLElement {
  const { kind, lapsed, more_lapsed: more } = found;
  const isEffort = kind === EFFORT;
  const bounds = more?.interval;
  const between = bounds ? `${points(bounds[0])} to ${points(bounds[1])}` : UNKNOWN;
  const compared = element("small", {}, "the others are compared with this");
  const drawn = rowPlot({
    value: lapsed.share,
    interval: lapsed.interval,
    kind: tutor,
    ticks: TICKS,
    level: isEffort ? null : (effort?.lapsed.share ?? null),
  });
  const figure = (named: string, text: string) => element("td", { class: `figure ${named}` }, text);
  return element(
    "tr",
    { "data-kind": kind, class: isEffort ? "effort" : "" },
    element("th", { scope: "row", class: "name" }, doing(kind), isEffort ? compared : null),
    element("td", { class: "drawn" }, drawn),
    figure("lapsed", percent(lapsed.share)),
    figure("interval", percentBetween(lapsed.interval)),
    figure("more", more ? `${points(more.difference)} points` : ""),
    figure("more-interval", more ? between : ""),
    element("td", { class: "verdict" }, verdict(found)),
  );
}

function verdict({ more_lapsed: more }: KindFigures): string {
  if (!more) return "";
  if (!more.is_real) return "may be chance";
  return more.difference > 0 ? "more often, not by chance" : "less often, not by chance";
}

export function kindCsv({ model_id: model, kinds }: FidelityFigures): CsvRow[] {
  const head = ["model", "kind", "lapsed", "lapsed_low", "lapsed_high"];
  const more = ["more_lapsed", "more_lapsed_low", "more_lapsed_high", "more_lapsed_p_value"];
  const none = [null, null];
  return [
    [...head, ...more, "broke", "broke_low", "broke_high"],
    ...kinds.map((each) => [
      model,
      each.kind,
      each.lapsed.share,
      ...(each.lapsed.interval ?? none),
      each.more_lapsed?.difference ?? null,
      ...(each.more_lapsed?.interval ?? none),
      each.more_lapsed?.p_value ?? null,
      each.broke?.share ?? null,
      ...(each.broke?.interval ?? none),
    ]),
  ];
}
