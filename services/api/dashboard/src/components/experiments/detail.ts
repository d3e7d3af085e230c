// One experiment: how far it and each of its models are, what goes wrong, and what it cost.

import type { ExperimentDetail, ModelProgress, Trouble } from "../../lib/api_types";
import { byId, element, say, toggle } from "../../lib/dom";
import { cost, count, counted, dollars, listed, percent } from "../../lib/format";
import { experimentRanking, FIDELITY, fidelityPage } from "../../lib/links";
import { moment } from "../../lib/moment";
import { fact } from "../fact";
import { mergeRows } from "../merged_rows";
import { STATES } from "../progress";
import { progressCell, sayCells, showProgressCell } from "./cells";
import { titleOf } from "./list";

const OFFERED: Record<ExperimentDetail["state"], readonly string[]> = {
  running: ["paused", "cancelled"],
  overdue: ["paused", "cancelled"],
  out_of_budget: ["paused", "cancelled"],
  paused: ["resumed", "cancelled"],
  cancelled: ["resumed"],
  complete: [],
};

export function showDetail(detail: ExperimentDetail): void {
  const { state, done, planned, left, failed } = detail;
  const title = titleOf(detail);
  say(byId("title"), title);
  document.title = `${title} · Socratic Bench`;
  const share = planned ? done / planned : 0;
  byId("detail-bar", HTMLProgressElement).value = share;
  const failures = failed ? ` ${counted(failed, "run")} failed after all tries.` : "";
  const pending = left ? ` ${count(left)} are left.` : "";
  const told = `${count(done)} of ${count(planned)} runs are done (${percent(share)}).`;
  say(byId("summary"), `${told}${pending}${failures}`);
  const { name, advice } = STATES[state];
  say(byId("detail-state"), `${name}.${advice}`);
  showFacts(detail);
  showControls(state);
  byId("ranking", HTMLAnchorElement).href = experimentRanking(detail.experiment_id);
  toggle(byId("fidelity-link"), detail.profile === FIDELITY);
  byId("fidelity-link", HTMLAnchorElement).href = fidelityPage(detail.experiment_id);
  const body = byId("models").querySelector("tbody");
  const troubles = new Map(detail.troubles.map((each) => [each.model_id, each]));
  if (body) {
    mergeRows(
      body,
      detail.models_progress,
      (model) => model.model_id,
      makeModel,
      (row, model) => {
        showModel(row, model, troubles.get(model.model_id));
      },
    );
  }
}

function showControls(state: ExperimentDetail["state"]): void {
  for (const button of byId("controls").querySelectorAll<HTMLElement>("[data-state]")) {
    toggle(button, OFFERED[state].includes(button.dataset.state ?? ""));
  }
}

function showFacts(detail: ExperimentDetail): void {
  const list = byId("detail-facts");
  const { experiment_id: id, scenarios, repeats, completed_at: ended } = detail;
  const dimensions = listed(
    Object.entries(detail.dimensions).map(([name, many]) => `${count(many)} ${name}`),
  );
  const plan = `${counted(detail.models, "model")} × ${counted(scenarios, "scenario")} (${dimensions}) × ${counted(repeats, "repeat")}`;
  const { deadline_at: deadline, spending, notes, stop_when: narrow, batches, priority } = detail;
  const parts = [id, ended, deadline, spending, notes, plan, narrow, batches, priority];
  const key = JSON.stringify(parts);
  if (list.dataset.key === key) return;
  list.dataset.key = key;
  list.replaceChildren(
    fact("Id", element("span", { class: "identifier" }, id)),
    fact("Plan", plan),
    ...(narrow === null ? [] : [fact("Repeats", narrow)]),
    ...batches.map((batch) => fact("Batch", batch)),
    ...(priority === "normal" ? [] : [fact("Priority", priority)]),
    fact("Begun", moment(detail.created_at)),
    ended ? fact("Complete", moment(ended)) : fact("Deadline", moment(detail.deadline_at)),
    fact("Cost", spent(detail)),
    fact("Scored by", detail.profile),
    ...(detail.notes ? [fact("Notes", element("bdi", {}, detail.notes))] : []),
    ...(detail.submitted ? [] : [fact("Carried out by", "socratic-bench run, on one machine")]),
  );
}

function spent({ spending }: ExperimentDetail): string {
  const { paid_usd: paid, possibly_paid_usd: possibly, budget_usd: budget, told } = spending;
  if (paid === null) return told;
  if (budget === null) return `${told}, no budget set`;
  const used = Math.min(1, (paid + (possibly ?? 0)) / budget);
  return `${told}; budget ${dollars(budget)}${budget > 0 ? ` (${percent(used)} used)` : ""}`;
}

function makeModel(model: ModelProgress): HTMLTableRowElement {
  const { model_id: id, model_name: name, kind } = model;
  const parts = [name === id ? "" : id, kind === "reference" ? "reference tutor" : ""];
  const about = parts.filter(Boolean).join(" · ");
  return element(
    "tr",
    { role: "row" },
    element(
      "th",
      { role: "rowheader", scope: "row", class: "name" },
      element("bdi", {}, name),
      element("small", { title: id }, about),
    ),
    progressCell(`Runs done of ${name}`),
    element("td", { role: "cell", class: "figure left" }),
    element("td", { role: "cell", class: "figure failed" }),
    element("td", { role: "cell", class: "figure cost" }),
    element("td", { role: "cell", class: "wrong" }),
  );
}

function showModel(
  row: HTMLTableRowElement,
  model: ModelProgress,
  trouble: Trouble | undefined,
): void {
  const cell = row.querySelector<HTMLElement>(".runs-done");
  if (cell) showProgressCell(cell, model.done, model.planned);
  sayCells(row, {
    left: count(Math.max(0, model.planned - model.done)),
    failed: count(model.failed),
    cost: cost(model.total_cost_usd, model.cost_known),
  });
  const wrong = row.querySelector(".wrong");
  if (!wrong) return;
  const lines = wrongLines(model, trouble);
  if (wrong.textContent !== lines.join("")) {
    wrong.replaceChildren(...lines.map((line) => element("span", { dir: "auto" }, line)));
  }
}

/** The failing calls of the moment, then the failed runs by class, each with one example. */
function wrongLines(model: ModelProgress, trouble: Trouble | undefined): string[] {
  const failures = Object.entries(model.failures).map(([kind, many]) => {
    const example = model.failure_examples[kind];
    return `${kind}, ${counted(many, "run")}${example ? `: ${example}` : ""}`;
  });
  return trouble ? [`At the moment: ${trouble.reason} (${tries(trouble)})`, ...failures] : failures;
}

function tries({ attempt, attempts, next_in_seconds: next }: Trouble): string {
  if (!attempt) return "not called";
  if (next === null) return `given up after ${counted(attempt, "attempt")}`;
  return `attempt ${attempt} of ${attempts}`;
}
