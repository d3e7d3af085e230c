// The table of tutors: how many turns each keeps asking, how sure that is, and what stands beside it.

import type { FidelityTable, FidelityFigures, ShareFigure } from "../../lib/api_types";
import { element } from "../../lib/dom";
import { percent, shortened } from "../../lib/format";
import { ranks } from "../../lib/models";
import { rowPlot } from "../row_plot";
import { halfLife, percentBetween, turns, turnsBetween } from "./wording";

const TICKS = [0, 0.25, 0.5, 0.75, 1];

const HEADINGS = [
  ["name", "Tutor", ""],
  ["drawn", "", "Turns kept and interval, drawn"],
  ["figure kept", "Turns kept", ""],
  ["figure interval", "95 % interval", ""],
  ["figure rank", "Rank", ""],
  ["figure half", "Half-life", ""],
  ["figure started", "Started", ""],
  ["figure recovery", "Recovery", ""],
  ["figure key-said", "Key said", ""],
  ["figure lost", "Lost", ""],
] as const;

/** `addressOf` gives the address that chooses a tutor. */
export function fidelityTable(
  { models, horizon }: FidelityTable,
  chosen: FidelityFigures,
  addressOf: (model: string) => string,
): HTMLTableElement {
  const heads = HEADINGS.map(([kind, text, hidden]) =>
    element(
      "th",
      { scope: "col", class: kind },
      hidden ? element("span", { class: "visually-hidden" }, hidden) : text,
    ),
  );
  return element(
    "table",
    { class: "plain stacked fidelity-table" },
    element("caption", { class: "visually-hidden" }, "Tutors by turns kept, most first"),
    element("thead", {}, element("tr", {}, ...heads)),
    element(
      "tbody",
      {},
      ...models.map((model) => row(model, horizon, model === chosen, addressOf)),
    ),
  );
}

function row(
  model: FidelityFigures,
  horizon: number,
  isChosen: boolean,
  addressOf: (model: string) => string,
): HTMLElement {
  const { model_id: id, model_name: name, kind, turns_kept: kept, lost } = model;
  const link = element(
    "a",
    {
      href: addressOf(id),
      "data-model": id,
      title: id,
      ...(isChosen ? { "aria-current": "true" } : {}),
    },
    element("bdi", {}, shortened(name, 34)),
  );
  const tag = kind === "model" ? null : element("small", { class: "tag" }, kind);
  const part = (value: number) => value / horizon;
  const bounds = model.turns_kept_interval;
  const drawn = rowPlot({
    value: kept === null ? null : part(kept),
    interval: bounds && [part(bounds[0]), part(bounds[1])],
    kind,
    ticks: TICKS,
  });
  const figure = (named: string, text: string, title = "") =>
    element("td", { class: `figure ${named}`, ...(title ? { title } : {}) }, text);
  return element(
    "tr",
    { "data-row": id, class: isChosen ? "chosen" : "" },
    element("th", { scope: "row", class: "name" }, link, " ", tag),
    element("td", { class: "drawn" }, drawn),
    figure("kept", turns(kept)),
    figure("interval", turnsBetween(model.turns_kept_interval)),
    figure("rank", ranks(model)),
    figure("half", halfLife(model.half_life, horizon)),
    share("started", model.started),
    share("recovery", model.recovery),
    share("key-said", model.key_said),
    figure("lost", percent(lost?.share ?? 0)),
  );
}

function share(named: string, found: ShareFigure | null): HTMLElement {
  const title = found?.interval ? { title: `95 % ${percentBetween(found.interval)}` } : {};
  return element("td", { class: `figure ${named}`, ...title }, percent(found?.share ?? null));
}
