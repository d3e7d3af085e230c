// The page with the heat map of tutors and scenarios.

import { copyButton } from "../components/copy_button";
import { ExperimentPicker } from "../components/experiment_picker";
import { heatFigure } from "../components/figures/heat_figure";
import { saveControl } from "../components/figures/save_control";
import { citedOf, type Cited } from "../components/figures/source";
import { heatCsv, heatMap, OVERALL } from "../components/heat_map";
import { connectProfiles, sayProblem, showProfiles } from "../components/profile_choice";
import { ApiProblem, read } from "../lib/api";
import type { ScenarioScores } from "../lib/api_types";
import { byId, element, say, toggle } from "../lib/dom";
import { counted } from "../lib/format";

const AGAIN_MS = 5_000;

class HeatMapPage {
  #table: ScenarioScores | null = null;
  #cited: Cited | null = null;
  readonly #picker = new ExperimentPicker(byId("experiment", HTMLSelectElement), []);
  #vector = OVERALL;
  #profile = "";
  #round = 0;

  start(): void {
    connectProfiles((profile) => {
      this.#profile = profile;
      this.#write();
      void this.#ask();
    });
    for (const id of ["vector", "experiment"]) {
      byId(id, HTMLSelectElement).addEventListener("change", () => {
        // Another experiment may have no scores by this profile.
        if (id === "experiment") this.#profile = "";
        this.#write();
        void this.#ask();
      });
    }
    byId("choice").append(
      copyButton(() => (this.#table ? heatCsv(this.#table, this.#vector) : [])),
      saveControl(() => this.#table && heatFigure(this.#table, this.#vector, this.#cited)),
    );
    addEventListener("popstate", () => void this.#ask());
    void this.#ask();
  }

  #write(): void {
    const query = new URLSearchParams();
    for (const id of ["vector", "experiment"]) {
      const { value } = byId(id, HTMLSelectElement);
      if (value) query.set(id, value);
    }
    if (this.#profile) query.set("profile", this.#profile);
    history.pushState(null, "", `${location.pathname}?${query}`);
  }

  async #ask(): Promise<void> {
    const mine = (this.#round += 1);
    const query = new URLSearchParams(location.search);
    const experiment = query.get("experiment") ?? "";
    this.#profile = query.get("profile") ?? "";
    try {
      const table = await read("/api/scenario-scores", { experiment, profile: this.#profile });
      if (mine !== this.#round || !table.data) return;
      const id = table.data.experiment_id;
      const { experiments } = await this.#picker.offer(id);
      if (mine !== this.#round) return;
      this.#table = table.data;
      const own = experiments.find((each) => each.experiment_id === id);
      this.#cited = own ? citedOf(own) : null;
      this.#show(table.data, query.get("vector") ?? OVERALL);
    } catch (error) {
      if (mine === this.#round) this.#showProblem(error);
    }
  }

  #show(table: ScenarioScores, wanted: string): void {
    const vectors = [OVERALL, ...table.vectors];
    this.#vector = vectors.includes(wanted) ? wanted : OVERALL;
    this.#choices(
      "vector",
      vectors.map((name) => [name, name]),
      this.#vector,
    );
    showProfiles(table.profile, table.profiles);
    const scenarios = counted(table.scenarios.length, "scenario");
    say(byId("summary"), `${counted(table.models.length, "tutor")} on ${scenarios}, best first.`);
    toggle(byId("choice"), true);
    byId("map").replaceChildren(heatMap(table, this.#vector));
    say(byId("provenance"), `Scored by ${table.profile} · experiment ${table.experiment_id}`);
  }

  #choices(id: string, options: [string, string][], chosen: string): void {
    const select = byId(id, HTMLSelectElement);
    select.replaceChildren(...options.map(([value, text]) => element("option", { value }, text)));
    select.value = chosen;
  }

  #showProblem(error: unknown): void {
    const isKnown = error instanceof ApiProblem && error.status < 500;
    sayProblem(byId("summary"), isKnown ? error.message : "The API does not answer. Trying again.");
    if (isKnown) {
      // Figures of another address would pass for those of this one.
      this.#table = null;
      toggle(byId("choice"), false);
      byId("map").replaceChildren();
    }
    setTimeout(() => void this.#ask(), AGAIN_MS);
  }
}

new HeatMapPage().start();
