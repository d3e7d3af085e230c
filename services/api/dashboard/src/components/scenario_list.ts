// From a row of the ranking to its evidence: its scenarios, worst first, and the runs of each.

import { read } from "../lib/api";
import type {
  ModelFigures,
  RunSummary,
  ScenarioScore,
  ScenarioScores,
  ScoredScenario,
} from "../lib/api_types";
import { element, say, toggle } from "../lib/dom";
import { count, listed, score, shortened } from "../lib/format";
import { runPage } from "../lib/links";
import { copyButton, type CsvRow } from "./copy_button";

const MOST_RUNS = 200;
const AWAY_MS = 5_000;
const AWAY = `The API does not answer. Trying again every ${AWAY_MS / 1000} seconds.`;

interface Entry {
  scenario: ScoredScenario;
  score: ScenarioScore;
}

/** Lower scores first; what has none comes last, since unscored is not zero. */
function byScore(one: number | null, other: number | null): number {
  return (one ?? Infinity) - (other ?? Infinity) || 0;
}

export class ScenarioList {
  readonly node = element("section", { class: "scenarios" });
  readonly #onToggle: (scenario: string) => void;
  readonly #told = element("p", { class: "quiet", role: "status" }, "Reading the scenarios…");
  readonly #table = element("table");
  #entries: Entry[] = [];
  #vectors: readonly string[] = [];
  #etag: string | null = null;
  #experiment = "";
  #model = "";
  #profile = "";
  #round = 0;

  constructor(onToggle: (scenario: string) => void) {
    this.#onToggle = onToggle;
    const copy = copyButton(() => this.#csv());
    const title = element("h2", {}, "Scenarios, lowest score first");
    const head = element("div", { class: "section-head" }, title, copy);
    this.node.append(head, this.#told, element("div", { class: "scroll" }, this.#table));
  }

  /** Shows the scenarios of a model, with the runs of those that are open. */
  async show(
    model: ModelFigures,
    { profile, dimension }: { profile: string; dimension: string },
    open: ReadonlySet<string>,
  ): Promise<void> {
    const mine = (this.#round += 1);
    [this.#experiment, this.#model] = [model.experiment_ids[0] ?? "", model.model_id];
    this.#profile = profile;
    try {
      const fields = { experiment: this.#experiment, profile, dimension, model: this.#model };
      const { etag, data } = await read("/api/scenario-scores", fields, this.#etag);
      if (mine !== this.#round) return;
      this.#etag = etag;
      if (data) this.#fill(data, model);
    } catch {
      if (mine !== this.#round) return;
      toggle(this.#told, true);
      say(this.#told, AWAY);
      setTimeout(() => {
        if (mine === this.#round && this.node.isConnected)
          void this.show(model, { profile, dimension }, open);
      }, AWAY_MS);
      return;
    }
    for (const row of this.#table.querySelectorAll<HTMLElement>("tr[data-scenario]")) {
      void this.#open(row, open.has(row.dataset.scenario ?? ""));
    }
  }

  #fill({ scenarios, models, vectors }: ScenarioScores, model: ModelFigures): void {
    const scores = models[0]?.scores ?? [];
    this.#vectors = vectors;
    this.#entries = scenarios
      .flatMap((scenario, at) => {
        const found = scores[at];
        return found ? [{ scenario, score: found }] : [];
      })
      .toSorted((a, b) => byScore(a.score.overall, b.score.overall));
    const others = model.experiment_ids.length - 1;
    const newest = `Of the newest of ${count(others + 1)} experiments.`;
    say(this.#told, others > 0 ? newest : "");
    toggle(this.#told, others > 0);
    const heading = (text: string, kind = "") => element("th", { scope: "col", class: kind }, text);
    const head = element(
      "tr",
      {},
      heading("Scenario"),
      heading("Dimension", "minor"),
      heading("Overall", "figure"),
      ...vectors.map((vector) => heading(vector, "figure minor")),
      heading("Scored", "figure"),
    );
    // Runs that are shown stay until newer ones come.
    const rows = this.#entries.flatMap((entry) => {
      const id = CSS.escape(entry.scenario.scenario_id);
      const before = this.#table.querySelector<HTMLElement>(`tr[data-scenario="${id}"]`);
      const runs = before && runsBelow(before);
      return runs ? [this.#row(entry), runs] : [this.#row(entry)];
    });
    this.#table.replaceChildren(
      element("caption", { class: "visually-hidden" }, `Scenarios of ${model.model_name}`),
      element("thead", {}, head),
      element("tbody", {}, ...rows),
    );
  }

  #row({ scenario, score: found }: Entry): HTMLElement {
    const { scenario_id: id, dimension, title } = scenario;
    const button = element("button", { type: "button", "aria-expanded": "false", title: id });
    button.append(element("bdi", {}, shortened(title === "" ? id : title, 60)));
    button.addEventListener("click", () => {
      this.#onToggle(id);
    });
    const figure = (text: string, kind = "") => element("td", { class: `figure ${kind}` }, text);
    return element(
      "tr",
      { "data-scenario": id },
      element("th", { scope: "row", class: "name" }, button),
      element("td", { class: "minor" }, dimension),
      element("td", { class: "figure strong" }, meter(found.overall), score(found.overall)),
      ...this.#vectors.map((vector) => figure(score(found.vectors[vector] ?? null), "minor")),
      figure(`${count(found.scored_responses)} of ${count(found.responses)}`),
    );
  }

  async #open(row: HTMLElement, open: boolean): Promise<void> {
    row.querySelector("button")?.setAttribute("aria-expanded", String(open));
    const shown = runsBelow(row);
    if (!open) shown?.remove();
    if (!open) return;
    const cell = shown?.cells[0] ?? element("td", { colspan: 4 + this.#vectors.length });
    if (!shown) row.after(element("tr", { class: "runs" }, cell));
    try {
      const fields = {
        experiment: this.#experiment,
        profile: this.#profile,
        model: this.#model,
        scenario: row.dataset.scenario ?? "",
        limit: String(MOST_RUNS),
      };
      const page = (await read("/api/detailed-results", fields)).data;
      cell.replaceChildren(...runList(page?.runs ?? [], page?.total ?? 0));
    } catch {
      cell.replaceChildren(AWAY);
      setTimeout(() => {
        if (cell.isConnected) void this.#open(row, true);
      }, AWAY_MS);
    }
  }

  #csv(): CsvRow[] {
    const head = ["scenario", "dimension", "overall", ...this.#vectors, "scored", "responses"];
    const rows = this.#entries.map(({ scenario, score: found }) => [
      scenario.scenario_id,
      scenario.dimension,
      found.overall,
      ...this.#vectors.map((vector) => found.vectors[vector] ?? null),
      found.scored_responses,
      found.responses,
    ]);
    return [head, ...rows];
  }
}

function runsBelow(row: HTMLElement): HTMLTableRowElement | null {
  const next = row.nextElementSibling;
  return next instanceof HTMLTableRowElement && next.classList.contains("runs") ? next : null;
}

function meter(share: number | null): HTMLElement {
  const filled = element("span", { class: "bar" });
  filled.style.width = `${(share ?? 0) * 100}%`;
  return element("span", { class: "bar-track", "aria-hidden": "true" }, filled);
}

function runList(runs: readonly RunSummary[], total: number): HTMLElement[] {
  const worstFirst = runs.toSorted((a, b) =>
    byScore(a.scores.overall ?? null, b.scores.overall ?? null),
  );
  const left = total - runs.length;
  const more = left > 0 ? [element("p", { class: "quiet" }, `${count(left)} more runs.`)] : [];
  return [element("ol", {}, ...worstFirst.map(runEntry)), ...more];
}

function runEntry(run: RunSummary): HTMLElement {
  const { overall = null, ...vectors } = run.scores;
  const figures = Object.entries(vectors).map(([name, mean]) => `${name} ${score(mean)}`);
  const told = run.turns > 0 ? listed(figures) : run.failure === null ? "not ended" : "";
  const unscored = run.statuses.filter((status) => status !== "ok");
  const failed = run.failure === null ? "" : `failed: ${run.failure.kind}`;
  const remarks = [told, listed([...new Set(unscored)]), failed].filter(Boolean).join("; ");
  return element(
    "li",
    {},
    element("strong", {}, score(overall)),
    " ",
    element("a", { href: runPage(run.run_id) }, `Run ${count(run.repeat)}`),
    element("span", { class: "quiet" }, remarks ? `: ${remarks}` : ""),
  );
}
