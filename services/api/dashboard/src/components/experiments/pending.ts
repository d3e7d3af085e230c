// The pending runs of an experiment by name: what is stuck, and what it waits for.

import { read } from "../../lib/api";
import type { ExperimentDetail, PendingRun } from "../../lib/api_types";
import { byId, element, say, toggle } from "../../lib/dom";
import { count, counted } from "../../lib/format";
import { runPage } from "../../lib/links";
import { mergeRows } from "../merged_rows";
import { sayCells } from "./cells";

const LIMIT = 100;
const BETWEEN_MS = 3_000;
const WAITS: Record<PendingRun["waits_for"], string> = {
  response: "an answer of the model",
  score: "its score",
};

export class Pending {
  readonly #details = byId("pending", HTMLDetailsElement);
  #detail: ExperimentDetail | null = null;
  #asked = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor() {
    this.#details.addEventListener("toggle", () => {
      this.#asked = 0;
      this.#askSoon();
    });
  }

  /** Shows how many runs are pending; they are listed where a person opens them, or they are stuck. */
  show(detail: ExperimentDetail): void {
    const isNew = this.#detail?.experiment_id !== detail.experiment_id;
    this.#detail = detail;
    toggle(this.#details, detail.left > 0);
    say(byId("pending-summary"), `Pending runs: ${count(detail.left)}`);
    if (isNew) this.#details.open = ["overdue", "out_of_budget"].includes(detail.state);
    this.#askSoon();
  }

  #askSoon(): void {
    if (!this.#details.open || !this.#detail?.left) return;
    clearTimeout(this.#timer);
    const wait = Math.max(0, this.#asked + BETWEEN_MS - Date.now());
    this.#timer = setTimeout(() => void this.#ask(), wait);
  }

  async #ask(): Promise<void> {
    const detail = this.#detail;
    if (!detail) return;
    this.#asked = Date.now();
    const fields = { experiment_id: detail.experiment_id, limit: String(LIMIT) };
    try {
      const { data } = await read("/api/experiments/{experiment_id}/pending", fields);
      if (!data || this.#detail?.experiment_id !== data.experiment_id) return;
      const body = byId("pending-runs").querySelector("tbody");
      if (body) mergeRows(body, data.runs, (run) => run.run_id, make, show);
      const shown = counted(data.runs.length, "run");
      say(
        byId("pending-told"),
        data.has_more ? `The first ${shown}, in the order of the plan.` : "",
      );
    } catch {
      say(byId("pending-told"), "The API does not say which at the moment.");
    }
  }
}

function make(run: PendingRun): HTMLTableRowElement {
  // A run with no answer yet has nothing to read.
  const link = run.turns_answered
    ? element("a", { href: runPage(run.run_id) }, run.scenario_id)
    : run.scenario_id;
  return element(
    "tr",
    { title: run.run_id },
    element("th", { scope: "row" }, element("bdi", {}, run.model_id)),
    element("td", {}, link),
    element("td", { class: "figure" }, String(run.repeat)),
    element("td", { class: "figure answered" }),
    element("td", { class: "waits" }),
  );
}

function show(row: HTMLTableRowElement, run: PendingRun): void {
  const answered = `${run.turns_answered} of ${run.turns}`;
  sayCells(row, { answered, waits: WAITS[run.waits_for] });
}
