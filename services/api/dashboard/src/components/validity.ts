// The agreement of the scores with people's labels, as one table with its losses.

import type { ColumnFigures, LabelFigures, Paired, ValidityReport } from "../lib/api_types";
import { element } from "../lib/dom";

const share = (value: number | null) => (value === null ? "–" : value.toFixed(2));

function area(column: ColumnFigures | undefined): HTMLElement {
  const range = column?.interval?.map(share).join("–");
  const small = range ? element("small", { class: "quiet" }, ` ${range}`) : null;
  return element("td", { class: "figure" }, share(column?.auc ?? null), small);
}

function verdict(pair: Paired | undefined): string {
  if (!pair) return "";
  const [low, high] = pair.interval ?? [0, 0];
  if (low <= 0 && high >= 0) return "may be chance";
  return pair.difference > 0 ? "ahead" : "loss";
}

function row(label: LabelFigures, profiles: readonly string[]): HTMLElement {
  const named = (name: string | null) => label.columns.find((each) => each.column === name);
  const meant = named(label.dimension);
  const against = meant?.differences.find((pair) => pair.other === label.best_judge);
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, `${label.data}: ${label.label}`),
    element("td", { class: "figure" }, String(label.n)),
    ...profiles.map((profile) => area(named(`${profile} overall`))),
    element("td", {}, label.dimension.split(" ").at(-1) ?? ""),
    area(meant),
    area(named(label.best_judge)),
    element("td", {}, verdict(against)),
  );
}

export function validityTable(report: ValidityReport): HTMLElement {
  const heading = (text: string, kind = "") => element("th", { scope: "col", class: kind }, text);
  const figures = (text: string) => heading(text, "figure");
  const head = element(
    "tr",
    {},
    heading("Set: label"),
    figures("Responses"),
    ...report.profiles.map(figures),
    heading("Meant for it"),
    figures("Its AUC"),
    figures("Best LLM judge"),
    heading("Against the judge"),
  );
  const rows = report.labels.map((label) => row(label, report.profiles));
  const table = element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows));
  // Only what has the focus scrolls by keyboard.
  const label = "Agreement of the scores with labels";
  const region = { class: "scroll", tabindex: 0, role: "region", "aria-label": label };
  return element("div", region, table);
}
