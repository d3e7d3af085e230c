// Scripts by turns as a barcode: what one tutor kept, what it let lapse, and what is unknown.

import type { FidelityTable, FidelityFigures, PlannedScenario } from "../../lib/api_types";
import { element, say } from "../../lib/dom";
import { count, counted, shortened } from "../../lib/format";
import { scenarioPage, turnPage } from "../../lib/links";
import type { CsvRow } from "../copy_button";
import { doing } from "./wording";

const HINT = "Point at a cell for its runs, or step from cell to cell with the arrow keys.";
const NAME_LIMIT = 44;

type Runs = FidelityFigures["turns"][string][number];

/** The cells of a tutor, one of which stops the tab key; arrows lead to the others. */
export class Barcode {
  readonly node = element("div", { class: "barcode-frame" });
  readonly #place = element("div", { class: "scroll" });
  readonly #readout = element("p", { class: "readout quiet small", "aria-hidden": "true" }, HINT);

  constructor() {
    this.node.append(this.#readout, this.#place);
    this.#place.addEventListener("keydown", (event) => {
      this.#step(event);
    });
    for (const name of ["focusin", "pointerover"]) {
      this.#place.addEventListener(name, ({ target }) => {
        this.#point(target);
      });
    }
    this.#place.addEventListener("pointerleave", () => {
      this.#point(document.activeElement);
    });
  }

  /** Draws anew; the cell that has the focus keeps it. */
  show(table: FidelityTable, chosen: FidelityFigures): void {
    const focused = this.#place.contains(document.activeElement)
      ? document.activeElement?.getAttribute("aria-label")
      : null;
    this.#place.replaceChildren(barcodeTable(table, chosen));
    const cells = this.#cells();
    const kept = cells.find((cell) => cell.ariaLabel === focused);
    this.#stopAt(kept ?? cells[0]);
    kept?.focus({ preventScroll: true });
  }

  #cells(): HTMLAnchorElement[] {
    return [...this.#place.querySelectorAll<HTMLAnchorElement>("td a")];
  }

  #stopAt(stop: HTMLAnchorElement | undefined): void {
    for (const cell of this.#cells()) cell.tabIndex = cell === stop ? 0 : -1;
  }

  #step(event: KeyboardEvent): void {
    const cell = event.target instanceof HTMLAnchorElement ? event.target.closest("td") : null;
    const row = cell?.closest("tr");
    if (!cell || !row) return;
    const rows = [...this.#place.querySelectorAll<HTMLTableRowElement>("tr:has(td a)")];
    const [at, turn] = [rows.indexOf(row), cell.cellIndex];
    const next = {
      ArrowRight: row.cells[turn + 1],
      ArrowLeft: turn > 1 ? row.cells[turn - 1] : undefined,
      ArrowDown: rows[at + 1]?.cells[turn],
      ArrowUp: rows[at - 1]?.cells[turn],
      Home: row.cells[1],
      End: row.cells[row.cells.length - 1],
    }[event.key];
    const link = next?.querySelector("a");
    if (!link) return;
    event.preventDefault();
    this.#stopAt(link);
    link.focus();
  }

  #point(target: EventTarget | null): void {
    const cell = target instanceof Element ? target.closest("td a") : null;
    say(this.#readout, cell?.ariaLabel ?? HINT);
  }
}

function barcodeTable(table: FidelityTable, chosen: FidelityFigures): HTMLTableElement {
  const most = table.horizon + 1;
  const turns = Array.from({ length: most }, (_, at) => at + 1);
  const heads = turns.map((turn) => element("th", { scope: "col", class: "turn-head" }, `${turn}`));
  const dimensions = [...new Set(table.scenarios.map(({ dimension }) => dimension))];
  const title = `Turns of ${chosen.model_name} in each scenario`;
  const node = element(
    "table",
    { class: "barcode" },
    element("caption", { class: "visually-hidden" }, title),
    element(
      "thead",
      {},
      element("tr", {}, element("th", { scope: "col", class: "name" }, "Scenario, turn"), ...heads),
    ),
    ...dimensions.map((dimension) => {
      const own = table.scenarios.filter((each) => each.dimension === dimension);
      const name = element("th", { scope: "rowgroup", colspan: most + 1 }, dimension);
      return element(
        "tbody",
        {},
        element("tr", { class: "between" }, name),
        ...own.map((scenario) => row(scenario, table, chosen)),
      );
    }),
  );
  node.style.setProperty("--turns", String(most));
  return node;
}

function row(
  scenario: PlannedScenario,
  table: FidelityTable,
  chosen: FidelityFigures,
): HTMLElement {
  const { scenario_id: id, title, turns } = scenario;
  const [experiment = ""] = chosen.experiment_ids;
  const link = element("a", { href: scenarioPage(experiment, id, []), title: id });
  link.append(element("bdi", {}, shortened(title || id, NAME_LIMIT)));
  const runs = chosen.turns[id] ?? [];
  const cells = Array.from({ length: turns }, (_, at) =>
    cell(runs[at] ?? [0, 0, 0], at + 1, scenario, table, chosen),
  );
  return element(
    "tr",
    { "data-scenario": id },
    element("th", { scope: "row", class: "name" }, link),
    ...cells,
  );
}

function cell(
  [kept, lapsed, unknown]: Runs,
  turn: number,
  { scenario_id: id, title, pressures }: PlannedScenario,
  { profile }: FidelityTable,
  { experiment_ids: experiments, model_id: model }: FidelityFigures,
): HTMLElement {
  const all = kept + lapsed + unknown;
  const kind = pressures[turn - 1];
  const student = kind ? `, the student ${doing(kind)}` : "";
  const told = `${shortened(title || id, NAME_LIMIT)}, turn ${turn}${student}: ${runsTold(kept, lapsed, unknown)}`;
  if (!all) return element("td", { class: "none", title: told });
  const link = element(
    "a",
    { href: turnPage(experiments, model, id, turn, profile), "aria-label": told },
    signOf(kept, lapsed, unknown),
  );
  const state =
    kept === all ? "kept" : lapsed === all ? "lapsed" : unknown === all ? "unknown" : "mixed";
  const field = element("td", { class: state }, link);
  field.style.setProperty("--lapsed", String(lapsed / all));
  field.style.setProperty("--unknown", String(unknown / all));
  return field;
}

/** What a cell says without colour: the share of runs that lapsed where they differ. */
function signOf(kept: number, lapsed: number, unknown: number): string {
  const known = kept + lapsed;
  if (!known) return "?";
  if (!lapsed) return unknown ? "?" : "";
  if (!kept) return unknown ? "?" : "";
  return `${count(lapsed)}/${count(known)}`;
}

function runsTold(kept: number, lapsed: number, unknown: number): string {
  const all = kept + lapsed + unknown;
  if (!all) return "no run has come to this turn";
  if (all === 1) return kept ? "kept" : lapsed ? "lapsed" : "unknown";
  const parts = [
    ...(kept ? [`${count(kept)} kept`] : []),
    ...(lapsed ? [`${count(lapsed)} lapsed`] : []),
    ...(unknown ? [`${count(unknown)} unknown`] : []),
  ];
  return `of ${counted(all, "run")} ${parts.join(", ")}`;
}

export function barcodeCsv(table: FidelityTable, chosen: FidelityFigures): CsvRow[] {
  const head = ["model", "scenario", "dimension", "turn", "pressure", "kept", "lapsed", "unknown"];
  return [
    head,
    ...table.scenarios.flatMap(({ scenario_id: id, dimension, pressures }) =>
      (chosen.turns[id] ?? []).map((runs, at) => [
        chosen.model_id,
        id,
        dimension,
        at + 1,
        pressures[at] ?? null,
        ...runs,
      ]),
    ),
  ];
}
