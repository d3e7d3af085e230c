// The page that compares two tutors: differences with intervals, and what both said.

import { differenceCsv, differenceTable } from "../components/comparison/differences";
import { readBoth, sideBySide } from "../components/comparison/side_by_side";
import { sides, verdict } from "../components/comparison/verdict";
import { ExperimentPicker } from "../components/experiment_picker";
import { differenceFigure } from "../components/figures/difference_figure";
import type { Figure } from "../components/figures/figure";
import { saveControl } from "../components/figures/save_control";
import { copyButton } from "../components/copy_button";
import { connectProfiles, sayProblem, showProfiles } from "../components/profile_choice";
import { ApiProblem, read } from "../lib/api";
import type { DescribedProfile, ModelDifference, ModelFigures } from "../lib/api_types";
import { byId, element, say, sayEach, toggle } from "../lib/dom";
import { shortened } from "../lib/format";

const AGAIN_MS = 5_000;
const FIELDS = ["a", "b", "experiment", "scenario", "repeat", "profile"] as const;

type View = Record<(typeof FIELDS)[number], string>;

function readView(): View {
  const query = new URLSearchParams(location.search);
  const fields = FIELDS.map((name) => [name, query.get(name) ?? ""]);
  return Object.fromEntries(fields) as View;
}

class ComparePage {
  #view = readView();
  readonly #picker = new ExperimentPicker(byId("experiment", HTMLSelectElement), [
    ["", "the newest of both"],
  ]);
  #models: readonly ModelFigures[] = [];
  #profiles: readonly DescribedProfile[] = [];
  #difference: ModelDifference | null = null;
  #round = 0;

  start(): void {
    const selects = ["a", "b", "experiment", "repeat"] as const;
    for (const name of selects) {
      const select = byId(name, HTMLSelectElement);
      select.addEventListener("change", () => {
        // Another experiment may have no scores by this profile.
        const reset = name === "experiment" ? { profile: "" } : {};
        this.#change({ ...reset, [name]: select.value });
      });
    }
    connectProfiles((profile) => {
      this.#change({ profile });
    });
    byId("choice").addEventListener("submit", (event) => {
      event.preventDefault();
    });
    byId("differences-head").append(
      copyButton(() => (this.#difference ? differenceCsv(this.#difference) : [])),
      saveControl(() => this.#figure()),
    );
    addEventListener("popstate", () => {
      this.#view = readView();
      void this.#show();
    });
    void this.#show();
  }

  #change(fields: Partial<View>): void {
    this.#view = { ...this.#view, ...fields };
    this.#write(true);
    void this.#show();
  }

  #write(step: boolean): void {
    const given = Object.entries(this.#view).filter(([, value]) => value !== "");
    const address = `${location.pathname}?${new URLSearchParams(given)}`;
    if (step) history.pushState(null, "", address);
    else history.replaceState(null, "", address);
  }

  async #show(): Promise<void> {
    const mine = (this.#round += 1);
    try {
      await this.#ask(mine);
      if (mine === this.#round) toggle(byId("away"), false);
    } catch (error) {
      if (mine === this.#round) this.#showProblem(error, mine);
    }
  }

  async #ask(mine: number): Promise<void> {
    await this.#readChoices();
    if (mine !== this.#round) return;
    if (!this.#choosePair()) {
      this.#tryAgain(mine);
      return;
    }
    const { a, b, experiment, profile } = this.#view;
    const { data } = await read("/api/compare", { a, b, experiment, profile });
    if (mine !== this.#round || !data) return;
    this.#difference = data;
    this.#showDifference(data);
    await this.#showResponses(data, mine);
  }

  async #readChoices(): Promise<void> {
    const { experiment } = this.#view;
    const [comparison, profiles] = await Promise.all([
      read("/api/model-comparison", { experiment }),
      read("/api/profiles"),
    ]);
    this.#models = comparison.data?.models ?? [];
    this.#profiles = profiles.data?.profiles ?? [];
    // The address may hold the start of an id, an occasion or a name: the table has the id.
    const shown = experiment ? comparison.data?.experiments[0]?.experiment_id : undefined;
    await this.#picker.offer(shown ?? experiment);
  }

  /** Fills the choice of tutors; without a pair in the address the two best are taken. */
  #choosePair(): boolean {
    const ids = [...new Set(this.#models.map((model) => model.model_id))];
    const [best = "", next = ""] = ids;
    toggle(byId("choice"), ids.length > 0);
    const isGiven = this.#view.a !== "" && this.#view.b !== "";
    if (!isGiven && ids.length < 2) {
      say(
        byId("verdict"),
        "There are no two tutors to compare yet: run a benchmark of two or more.",
      );
      return false;
    }
    const a = this.#view.a || (this.#view.b === best ? next : best);
    const b = this.#view.b || (a === best ? next : best);
    this.#view = { ...this.#view, a, b };
    this.#write(false);
    for (const [name, chosen] of [
      ["a", a],
      ["b", b],
    ] as const) {
      const known = ids.includes(chosen) ? ids : [chosen, ...ids];
      const options = known.map((id) => {
        const model = this.#models.find((each) => each.model_id === id);
        const kind = model?.kind === "reference" ? " (reference)" : "";
        const text = shortened(model?.model_name ?? id, 50) + kind;
        return element("option", { value: id }, text);
      });
      byId(name, HTMLSelectElement).replaceChildren(...options);
      byId(name, HTMLSelectElement).value = chosen;
    }
    return true;
  }

  #showDifference(difference: ModelDifference): void {
    byId("verdict").replaceChildren(...verdict(difference));
    showProfiles(difference.profile, difference.profiles);
    sayEach(byId("note"), difference.notes);
    toggle(byId("comparison"), difference.by_scenario.length > 0);
    const hollow = this.#isHollow(difference);
    const scenario = this.#scenario(difference);
    const choose = (chosen: string) => {
      this.#change({ scenario: chosen, repeat: "" });
    };
    const focused = document.activeElement?.closest<HTMLElement>("tr[data-scenario]");
    const table = differenceTable(difference, { scenario, hollow, choose });
    byId("differences").replaceChildren(table);
    const id = CSS.escape(focused?.dataset.scenario ?? "");
    if (focused) table.querySelector<HTMLElement>(`[data-scenario="${id}"] button`)?.focus();
    say(byId("provenance"), `Scored by ${difference.profile} · ${sides(difference)}`);
  }

  #figure(): Figure | null {
    if (!this.#difference) return null;
    const said = byId("verdict").textContent;
    return differenceFigure(this.#difference, said, this.#isHollow(this.#difference));
  }

  /** Whether a reference tutor takes part. */
  #isHollow({ first, second }: ModelDifference): boolean {
    const kinds = new Map(this.#models.map((model) => [model.model_id, model.kind]));
    return [first, second].some(({ model_id: id }) => kinds.get(id) === "reference");
  }

  /** The chosen scenario, or else the one that separates the two most. */
  #scenario({ by_scenario: pairs }: ModelDifference): string {
    const chosen = pairs.find((each) => each.scenario_id === this.#view.scenario);
    return (chosen ?? pairs[0])?.scenario_id ?? "";
  }

  async #showResponses(difference: ModelDifference, mine: number): Promise<void> {
    const scenario = this.#scenario(difference);
    toggle(byId("responses"), scenario !== "");
    if (scenario === "") return;
    const repeat = Math.max(1, Math.trunc(Number(this.#view.repeat)) || 1);
    const [first, second, number] = await readBoth(difference, scenario, repeat);
    if (mine !== this.#round) return;
    const options = Array.from({ length: Math.max(number, repeat) }, (_, at) =>
      element("option", { value: String(at + 1) }, String(at + 1)),
    );
    byId("repeat", HTMLSelectElement).replaceChildren(...options);
    byId("repeat", HTMLSelectElement).value = String(repeat);
    const profile = this.#profiles.find((each) => each.name === difference.profile) ?? null;
    byId("responses-heading").replaceChildren("What both said: ", element("bdi", {}, scenario));
    byId("said").replaceChildren(...sideBySide(first, second, profile));
  }

  #showProblem(error: unknown, mine: number): void {
    const isKnown = error instanceof ApiProblem && error.status < 500;
    if (isKnown) {
      sayProblem(byId("verdict"), error.message);
      for (const id of ["comparison", "responses", "note"]) toggle(byId(id), false);
      return;
    }
    toggle(byId("away"), true);
    say(byId("away"), `The API does not answer. Trying again every ${AGAIN_MS / 1000} seconds.`);
    if (!this.#difference) say(byId("verdict"), "No figures yet.");
    this.#tryAgain(mine);
  }

  #tryAgain(mine: number): void {
    setTimeout(() => {
      if (mine === this.#round) void this.#show();
    }, AGAIN_MS);
  }
}

new ComparePage().start();
