// The page of scenarios: what each asks, how hard it is, how well it tells tutors apart.

import { ExperimentPicker } from "../components/experiment_picker";
import { connectProfiles, sayProblem, showProfiles } from "../components/profile_choice";
import { nameOf, overviewRow } from "../components/scenarios/overview";
import { scenarioSection } from "../components/scenarios/scenario";
import { ApiProblem, problemOf, read } from "../lib/api";
import type { AnalysedScenario, ScenarioAnalysis } from "../lib/api_types";
import { byId, say, toggle } from "../lib/dom";
import { count, counted, isolated } from "../lib/format";

const ORDERS: Record<string, (scenario: AnalysedScenario) => number> = {
  hardest: ({ mean }) => mean ?? Infinity,
  telling: ({ discrimination }) => (discrimination === null ? Infinity : -discrimination),
};

class ScenariosPage {
  readonly #picker = new ExperimentPicker(byId("experiment", HTMLSelectElement), []);
  #analysis: ScenarioAnalysis | null = null;
  #profile = "";

  start(): void {
    connectProfiles((profile) => {
      this.#profile = profile;
      this.#writeAddress();
      void this.#refresh();
    });
    for (const id of ["experiment", "order"]) {
      byId(id, HTMLSelectElement).addEventListener("change", () => {
        // Another experiment may have no scores by this profile.
        if (id === "experiment") this.#profile = "";
        this.#writeAddress();
        if (id === "experiment") void this.#refresh();
        else this.#show();
      });
    }
    addEventListener("popstate", () => void this.#refresh());
    void this.#refresh();
  }

  #writeAddress(): void {
    const query = new URLSearchParams();
    for (const id of ["experiment", "order"]) {
      const { value } = byId(id, HTMLSelectElement);
      if (value) query.set(id, value);
    }
    if (this.#profile) query.set("profile", this.#profile);
    const text = query.toString();
    history.pushState(null, "", `${location.pathname}${text ? `?${text}` : ""}`);
  }

  async #refresh(): Promise<void> {
    const query = new URLSearchParams(location.search);
    const experiment = query.get("experiment") ?? "";
    byId("order", HTMLSelectElement).value = query.get("order") ?? "";
    this.#profile = query.get("profile") ?? "";
    try {
      if (!(await this.#showChoices(experiment))) return;
      const { data } = await read("/api/scenarios", { experiment, profile: this.#profile });
      if (data && !experiment) await this.#picker.offer(data.experiment_id);
      toggle(byId("away"), false);
      this.#analysis = data;
      this.#show();
      this.#goToScenario();
    } catch (error) {
      toggle(byId("away"), true);
      const isKnown = error instanceof ApiProblem && error.status < 500;
      sayProblem(byId("away"), problemOf(error));
      // Figures of another address would pass for those of this one.
      if (isKnown) this.#hide();
      say(
        byId("summary"),
        isKnown ? "There is nothing to show at this address." : "No figures yet.",
      );
    }
  }

  /** Shows the scenario that the address names. */
  #goToScenario(): void {
    const wanted = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!wanted) return;
    wanted.tabIndex = -1;
    wanted.scrollIntoView();
    wanted.focus({ preventScroll: true });
  }

  #hide(): void {
    this.#analysis = null;
    for (const part of ["toolbar", "table", "reading"]) toggle(byId(part), false);
    byId("scenarios").replaceChildren();
  }

  /** Returns whether there is any experiment. */
  async #showChoices(experiment: string): Promise<boolean> {
    const { total } = await this.#picker.offer(experiment);
    toggle(byId("empty"), total === 0);
    if (!total) say(byId("summary"), "There are no scenarios without an experiment.");
    return total > 0;
  }

  #show(): void {
    const analysis = this.#analysis;
    if (!analysis) return;
    const { scenarios, tutors, experiment_id: id, profile } = analysis;
    showProfiles(profile, analysis.profiles);
    const key = ORDERS[byId("order", HTMLSelectElement).value];
    const ordered = key ? scenarios.toSorted((a, b) => compare(key(a), key(b))) : scenarios;
    for (const part of ["toolbar", "table", "reading"]) toggle(byId(part), true);
    const dimensions = new Set(scenarios.map(({ dimension }) => dimension)).size;
    const hardest = scenarios
      .filter(({ mean }) => mean !== null)
      .toSorted((a, b) => (a.mean ?? 0) - (b.mean ?? 0))[0];
    const told = `${counted(scenarios.length, "scenario")} in ${counted(dimensions, "dimension")}.`;
    say(byId("summary"), hardest ? `${told} The hardest: ${nameOf(hardest)}.` : told);
    const most = Math.max(0, ...scenarios.map(({ models }) => models));
    say(
      byId("about-tutors"),
      tutors === "models"
        ? `Figures are over ${counted(most, "model")}; reference tutors are left out.`
        : `Figures are over all ${count(most)} tutors, reference tutors too: there are fewer than three models.`,
    );
    byId("overview")
      .querySelector("tbody")
      ?.replaceChildren(...ordered.map(overviewRow));
    byId("scenarios").replaceChildren(...ordered.map((each) => scenarioSection(id, profile, each)));
    const title = [isolated(analysis.name ?? ""), analysis.occasion, id]
      .filter(Boolean)
      .join(" · ");
    say(byId("provenance"), `Scored by ${profile} · experiment ${title}`);
  }
}

function compare(one: number, other: number): number {
  return one === other ? 0 : one - other;
}

new ScenariosPage().start();
