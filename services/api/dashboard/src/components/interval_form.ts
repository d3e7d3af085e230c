// The form of the interval's arithmetic: scores that a person writes, or those of a model.

import { ApiProblem, problemOf, read } from "../lib/api";
import { byId, element, say, toggle } from "../lib/dom";
import { shortened } from "../lib/format";
import { ExperimentPicker } from "./experiment_picker";
import { intervalSteps } from "./interval_steps";

const TYPING_PAUSE_MS = 300;
const CHOSEN = ["experiment", "model", "vector"] as const;

/** The steps follow the form, and the form the address where it names a model. */
class IntervalForm {
  readonly #scores = byId("own-scores", HTMLTextAreaElement);
  readonly #picker = new ExperimentPicker(this.#select("experiment"), [["", "your own"]]);
  #pause: ReturnType<typeof setTimeout> | undefined;
  #round = 0;

  async start(): Promise<void> {
    this.#scores.addEventListener("input", () => {
      clearTimeout(this.#pause);
      this.#pause = setTimeout(() => void this.#show(), TYPING_PAUSE_MS);
    });
    for (const name of CHOSEN) {
      this.#select(name).addEventListener("change", () => {
        this.#write();
        void (name === "experiment" ? this.#chooseExperiment() : this.#show());
      });
    }
    byId("interval-form").addEventListener("submit", (event) => {
      event.preventDefault();
    });
    await this.#readExperiments();
    await this.#chooseExperiment();
  }

  #select(name: (typeof CHOSEN)[number]): HTMLSelectElement {
    return byId(`interval-${name}`, HTMLSelectElement);
  }

  #write(): void {
    const address = new URL(location.href);
    for (const name of CHOSEN) {
      const { value } = this.#select(name);
      if (value && this.#select("experiment").value) address.searchParams.set(name, value);
      else address.searchParams.delete(name);
    }
    history.replaceState(null, "", address);
  }

  async #readExperiments(): Promise<void> {
    try {
      await this.#picker.offer(new URLSearchParams(location.search).get("experiment") ?? "");
    } catch {
      // Written scores need no experiment; the steps say that the API does not answer.
    }
  }

  /** Fills the choices of the experiment's models and vectors. */
  async #chooseExperiment(): Promise<void> {
    const experiment = this.#select("experiment").value;
    toggle(byId("interval-of-model"), experiment !== "");
    toggle(byId("interval-own"), experiment === "");
    try {
      const data = experiment ? (await read("/api/model-comparison", { experiment })).data : null;
      if (data) {
        this.#fill(
          "model",
          data.models.map((each) => [each.model_id, each.model_name]),
        );
        this.#fill(
          "vector",
          ["overall", ...data.vectors].map((name) => [name, name]),
        );
      }
    } catch (error) {
      this.#sayProblem(problemOf(error));
      return;
    }
    await this.#show();
  }

  #fill(name: "model" | "vector", options: [string, string][]): void {
    const select = this.#select(name);
    const wanted = new URLSearchParams(location.search).get(name);
    select.replaceChildren(
      ...options.map(([value, text]) => element("option", { value }, shortened(text, 40))),
    );
    if (options.some(([value]) => value === wanted)) select.value = wanted ?? "";
  }

  async #show(): Promise<void> {
    clearTimeout(this.#pause);
    const mine = (this.#round += 1);
    const experiment = this.#select("experiment").value;
    const fields: Record<string, string> = experiment
      ? Object.fromEntries(CHOSEN.map((name) => [name, this.#select(name).value]))
      : { scores: this.#scores.value };
    // An empty box is a mistake that the API explains.
    if (fields.scores?.trim() === "") fields.scores = ";";
    try {
      const { data } = await read("/api/interval", fields);
      if (mine !== this.#round || !data) return;
      toggle(byId("interval-problem"), false);
      byId("interval-steps").replaceChildren(...intervalSteps(data));
    } catch (error) {
      if (mine !== this.#round) return;
      this.#sayProblem(
        error instanceof ApiProblem
          ? error.message
          : "The API does not answer. Try again in a moment.",
      );
    }
  }

  #sayProblem(told: string): void {
    toggle(byId("interval-problem"), true);
    say(byId("interval-problem"), told);
    byId("interval-steps").replaceChildren();
  }
}

export function connectIntervalForm(): void {
  void new IntervalForm().start();
}
