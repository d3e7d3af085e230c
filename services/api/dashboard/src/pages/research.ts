// The ranking page: reads the API, shows what it says, and keeps it fresh.

import { ExperimentPicker } from "../components/experiment_picker";
import { rankingFigure } from "../components/figures/ranking_figure";
import { saveControl } from "../components/figures/save_control";
import { pending, showProgress, standing, type State } from "../components/progress";
import { Ranking, skeleton } from "../components/ranking";
import { FilterBar } from "../components/filter_bar";
import { connectProfiles, sayProblem, showProfiles } from "../components/profile_choice";
import { showPrompts } from "../components/prompt_effects";
import { showFinding, showProvenance, showSummary } from "../components/summary";
import { connectExport, csvAddress, showExport } from "../components/table_export";
import { orderNamed, readAddress, runsKey, writeAddress, type View } from "../lib/address";
import { ApiProblem, read, type Fields } from "../lib/api";
import type { ModelComparison } from "../lib/api_types";
import { Changes } from "../lib/changes";
import { byId, element, say, sayEach, toggle } from "../lib/dom";
import { filterFields } from "../lib/filters";
import { clockTime } from "../lib/format";
import { FIDELITY, fidelityPage } from "../lib/links";
import { anyCost } from "../lib/models";

const RUNNING_MS = 2_000;
const RESTING_MS = 15_000;
const AWAY_MS = 5_000;
const LEADING = [
  ["", "newest complete or pinned"],
  ["all", "all, by test conditions"],
] as const;
const FILTER_FROM = 10;

class ResearchPage {
  #view: View = readAddress();
  #comparison: ModelComparison | null = null;
  #states: ReadonlyMap<string, State> = new Map();
  #etag: string | null = null;
  #answeredAt: Date | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #round = 0;
  #choicesAt = 0;
  readonly #filters = new FilterBar(this.#view.filters, (filters) => {
    this.#view.filters = filters;
    writeAddress(this.#view, { step: true });
    this.#choose(this.#view);
  });
  readonly #picker = new ExperimentPicker(byId("experiment", HTMLSelectElement), LEADING);
  readonly #changes = new Changes(() => this.#refresh());
  readonly #ranking = new Ranking(byId("rows"), {
    model: (model) => {
      this.#toggle(this.#view.open, model);
    },
    scenario: (model, scenario) => {
      this.#toggle(this.#view.runs, runsKey(model, scenario));
    },
  });

  start(): void {
    skeleton(byId("rows"));
    this.#connect();
    this.#choose(this.#view);
  }

  #toggle(shown: Set<string>, key: string): void {
    if (!shown.delete(key)) shown.add(key);
    writeAddress(this.#view);
    this.#showRanking();
  }

  #connect(): void {
    const experiment = byId("experiment", HTMLSelectElement);
    experiment.addEventListener("change", () => {
      this.#view.experiment = experiment.value;
      this.#view.profile = "";
      writeAddress(this.#view, { step: true });
      this.#choose(this.#view);
    });
    connectProfiles((profile) => {
      this.#view.profile = profile;
      writeAddress(this.#view, { step: true });
      this.#choose(this.#view);
    });
    const filter = byId("filter", HTMLInputElement);
    filter.addEventListener("input", () => {
      this.#view.filter = filter.value;
      writeAddress(this.#view);
      this.#showRanking();
    });
    const order = byId("order", HTMLSelectElement);
    order.addEventListener("change", () => {
      this.#view.order = orderNamed(order.value);
      writeAddress(this.#view);
      this.#showRanking();
    });
    connectExport(() => this.#csv());
    const figure = () => this.#comparison && rankingFigure(this.#comparison, this.#view);
    byId("toolbar").append(saveControl(figure));
    addEventListener("popstate", () => {
      this.#choose(readAddress());
    });
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) void this.#refresh();
    });
  }

  #asked(): Fields {
    const { experiment, profile, filters } = this.#view;
    return { experiment, profile, ...filterFields(filters) };
  }

  #csv(): string {
    return csvAddress("/api/model-comparison", this.#asked());
  }

  #choose(next: View): void {
    this.#view = next;
    this.#etag = null;
    this.#choicesAt = 0;
    byId("filter", HTMLInputElement).value = next.filter;
    byId("order", HTMLSelectElement).value = next.order;
    showExport(this.#csv());
    void this.#refresh();
  }

  /** Asks the API, shows its answer, and asks again later. */
  async #refresh(): Promise<void> {
    clearTimeout(this.#timer);
    const mine = (this.#round += 1);
    let wait = AWAY_MS;
    try {
      wait = await this.#ask(mine);
    } catch (error) {
      if (mine === this.#round) this.#showAway(error);
    }
    if (mine !== this.#round) return;
    const next = document.hidden ? RESTING_MS : wait;
    this.#timer = setTimeout(() => void this.#refresh(), next);
  }

  /** Returns the milliseconds until the next look. Stops where a later round has begun. */
  async #ask(mine: number): Promise<number> {
    const query = this.#asked();
    const { etag, data } = await read("/api/model-comparison", query, this.#etag);
    if (mine !== this.#round) return RESTING_MS;
    this.#answeredAt = new Date();
    toggle(byId("away"), false);
    document.body.classList.remove("stale");
    if (data) {
      this.#etag = etag;
      this.#comparison = data;
      this.#showAll(data);
    }
    const experiments = this.#comparison?.experiments ?? [];
    this.#showUpdated(this.#answeredAt);
    const isDue = Date.now() - this.#choicesAt >= RUNNING_MS;
    if (isDue && (data || pending(experiments).length)) {
      this.#choicesAt = Date.now();
      await this.#showChoices();
      showProgress(experiments, this.#states);
    }
    const isMoving = standing(experiments, this.#states) !== "out_of_budget";
    if (!pending(experiments).length || !isMoving) {
      this.#changes.stop();
      return RESTING_MS;
    }
    this.#changes.follow("/api/model-comparison", query);
    return RUNNING_MS;
  }

  #showAll(comparison: ModelComparison): void {
    showSummary(comparison);
    showFinding(comparison);
    sayEach(byId("note"), [...total(comparison), ...comparison.notes]);
    this.#filters.show(this.#view.filters, comparison);
    showProgress(comparison.experiments, this.#states);
    showProfiles(comparison.profile, comparison.profiles);
    this.#showRanking();
    this.#showFidelity(comparison);
    showPrompts(comparison);
    showProvenance(comparison);
  }

  #showRanking(): void {
    if (!this.#comparison) return;
    const { models, filtered } = this.#comparison;
    const isEmpty = models.length === 0;
    const shown = this.#ranking.show(this.#comparison, this.#view);
    byId("ranking").classList.remove("loading");
    toggle(byId("empty"), isEmpty && !filtered);
    for (const id of ["ranking", "reading", "download"]) toggle(byId(id), !isEmpty);
    for (const id of ["toolbar", "filters"]) toggle(byId(id), !isEmpty || Boolean(filtered));
    this.#showOrder(anyCost(models));
    // Browsers leave the clipboard out where a page came without TLS from another machine.
    toggle(byId("copy"), !isEmpty && "clipboard" in navigator);
    toggle(byId("filter-choice"), models.length >= FILTER_FROM || this.#view.filter !== "");
    toggle(byId("nothing-found"), !isEmpty && shown === 0);
  }

  /** Leads to the curves where the experiments have scores by the profile that they are made of. */
  #showFidelity({ profiles }: ModelComparison): void {
    const { experiment } = this.#view;
    toggle(byId("to-fidelity"), profiles.includes(FIDELITY) && experiment !== "all");
    byId("fidelity-link", HTMLAnchorElement).href = fidelityPage(experiment);
  }

  #showOrder(costs: boolean): void {
    for (const id of ["cost-header", "order-choice", "about-costs"]) toggle(byId(id), costs);
    byId("ranking").classList.toggle("costs", costs);
    const { order } = this.#view;
    const told = costs && order ? `by cost, ${order} first` : "by overall score, best first";
    say(byId("caption"), `Tutors ${told}. Each row opens into dimensions and vectors.`);
  }

  async #showChoices(): Promise<void> {
    const { experiment } = this.#view;
    // The address may hold the start of an id, an occasion or a name: the table has the id.
    const shown = this.#comparison?.experiments[0]?.experiment_id;
    const isLeading = LEADING.some(([value]) => value === experiment);
    const { experiments, total } = await this.#picker.offer(
      isLeading ? experiment : (shown ?? experiment),
    );
    this.#states = new Map(experiments.map((each) => [each.experiment_id, each.state]));
    toggle(byId("experiment-choice"), total > 1 || experiment !== "");
  }

  #showUpdated(at: Date): void {
    const exact = at.toISOString();
    const time = element("time", { datetime: exact, title: exact }, clockTime(at));
    byId("updated").replaceChildren("Up to date as of ", time);
  }

  #showAway(error: unknown): void {
    const isKnown = error instanceof ApiProblem && error.status < 500;
    document.body.classList.toggle("stale", this.#comparison !== null && !isKnown);
    toggle(byId("away"), true);
    const since = this.#answeredAt
      ? ` The figures below are those of ${clockTime(this.#answeredAt)}.`
      : "";
    const again = `Trying again every ${AWAY_MS / 1000} seconds.`;
    const told = isKnown ? error.message : `The API does not answer.${since} ${again}`;
    sayProblem(byId("away"), told);
    // Figures of another address would pass for those of this one.
    if (isKnown) this.#hide();
    this.#filters.show(this.#view.filters, this.#comparison);
    if (this.#comparison) return;
    say(byId("summary"), isKnown ? "There is nothing to show at this address." : "No figures yet.");
  }

  #hide(): void {
    this.#comparison = null;
    this.#etag = null;
    for (const id of [
      "ranking",
      "reading",
      "download",
      "copy",
      "note",
      "progress",
      "empty",
      "to-fidelity",
      "prompts",
    ]) {
      toggle(byId(id), false);
    }
    for (const id of ["finding", "provenance"]) say(byId(id), "");
  }
}

/** What the experiments of the table cost as a whole; nothing where no price is known. */
function total({ spending, experiments }: ModelComparison): string[] {
  if (spending.paid_usd === null && !spending.reused_usd) return [];
  const many = experiments.length > 1 ? ` of ${experiments.length} experiments` : "";
  return [`Cost${many}: ${spending.told}.`];
}

new ResearchPage().start();
