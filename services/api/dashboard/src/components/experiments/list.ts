// The table of all experiments.

import type { ExperimentStatus } from "../../lib/api_types";
import { byId, element, say } from "../../lib/dom";
import { UNKNOWN, count, counted, dollars, shortened } from "../../lib/format";
import { experimentPage } from "../../lib/links";
import { moment } from "../../lib/moment";
import { mergeRows } from "../merged_rows";
import { STATES } from "../progress";
import { progressCell, sayCells, showProgressCell } from "./cells";

/** A person's name for an experiment, or its id without the middle. */
export function titleOf({ name, occasion, experiment_id: id }: ExperimentStatus): string {
  return [name, occasion].filter(Boolean).join(" · ") || shortened(id, 18);
}

export function showList(experiments: readonly ExperimentStatus[]): void {
  const body = byId("experiments").querySelector("tbody");
  if (body) mergeRows(body, experiments, (each) => each.experiment_id, make, show);
}

function make(experiment: ExperimentStatus): HTMLTableRowElement {
  const { experiment_id: id, models, created_at: begun } = experiment;
  const title = titleOf(experiment);
  const link = element("a", { href: experimentPage(id), title: id }, element("bdi", {}, title));
  const about = element("small", {}, `${counted(models, "model")}, begun `, moment(begun));
  return element(
    "tr",
    { role: "row" },
    element("th", { role: "rowheader", scope: "row", class: "name" }, link, about),
    element("td", { role: "cell", class: "state" }),
    progressCell(`Runs done of ${title}`),
    element("td", { role: "cell", class: "figure left" }),
    element("td", { role: "cell", class: "figure failed" }),
    element("td", { role: "cell", class: "figure spent" }),
    element("td", { role: "cell", class: "figure budget" }),
  );
}

function show(row: HTMLTableRowElement, experiment: ExperimentStatus): void {
  const { state, left, failed, spending } = experiment;
  row.dataset.state = state;
  const cell = row.querySelector<HTMLElement>(".runs-done");
  if (cell) showProgressCell(cell, experiment.done, experiment.planned);
  sayCells(row, {
    state: STATES[state].name,
    left: count(left),
    failed: count(failed),
    spent: dollars(spending.paid_usd),
    budget: spending.budget_usd === null ? UNKNOWN : dollars(spending.budget_usd),
  });
}

/** How many experiments run, have stopped and are complete, in one sentence. */
export function showListSummary(experiments: readonly ExperimentStatus[], total: number): void {
  const number = (...states: ExperimentStatus["state"][]) =>
    experiments.filter(({ state }) => states.includes(state)).length;
  const parts = [
    [number("running"), "running"],
    [number("paused", "cancelled"), "stopped by a person"],
    [number("overdue"), "past the deadline"],
    [number("out_of_budget"), "out of budget"],
    [number("complete"), "complete"],
  ] as const;
  const told = parts.filter(([many]) => many).map(([many, what]) => `${count(many)} ${what}`);
  const which = total > experiments.length ? `Of the newest ${count(experiments.length)}: ` : "";
  const sentence = told.length ? `${which}${told.join(", ")}.` : "Nothing has been measured yet.";
  say(byId("summary"), sentence);
}
