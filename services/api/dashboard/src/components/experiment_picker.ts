// The experiments that a reader can choose from: the newest ones, and by a search all others.

import { read } from "../lib/api";
import type { ExperimentPage, ExperimentStatus } from "../lib/api_types";
import { element, fill, say, toggle } from "../lib/dom";
import { count, counted, day, isolated, shortened } from "../lib/format";

const MOST_OFFERED = 100;
const FIND_FROM = 20;
const TYPING_PAUSE_MS = 250;

/** Choices that are no experiment: the value and the text of each. */
type Leading = readonly (readonly [value: string, text: string])[];

/** A choice of experiments, with a search where there are many. */
export class ExperimentPicker {
  readonly #select: HTMLSelectElement;
  readonly #leading: Leading;
  readonly #input = element("input", {
    type: "search",
    autocomplete: "off",
    spellcheck: "false",
    placeholder: "name, occasion, id or tutor",
  });
  readonly #found = element("span", { class: "quiet small", role: "status" });
  readonly #search = element("label", { hidden: "" }, "Find experiment ", this.#input);
  #own: ExperimentStatus | null = null;
  #pause: ReturnType<typeof setTimeout> | undefined;
  #round = 0;

  constructor(select: HTMLSelectElement, leading: Leading) {
    this.#select = select;
    this.#leading = leading;
    (select.closest("label") ?? select).after(this.#search, this.#found);
    this.#input.addEventListener("input", () => {
      clearTimeout(this.#pause);
      this.#pause = setTimeout(() => void this.#find(), TYPING_PAUSE_MS);
    });
  }

  /**
   * Offers experiments, with the one that `chosen` names or one of the leading choices chosen.
   * Returns the newest ones, with the chosen one among them. Raises ApiProblem.
   */
  async offer(chosen: string): Promise<Pick<ExperimentPage, "experiments" | "total">> {
    const { data } = await read("/api/experiments", { limit: String(MOST_OFFERED) });
    const { experiments, total } = data ?? { experiments: [], total: 0 };
    const isLeading = this.#leading.some(([value]) => value === chosen);
    this.#own = isLeading ? null : (named(experiments, chosen) ?? (await experimentNamed(chosen)));
    toggle(this.#search, total >= FIND_FROM);
    if (this.#input.value.trim() === "") this.#fill(experiments);
    this.#select.value = this.#own?.experiment_id ?? (isLeading ? chosen : "");
    return { experiments: this.#withOwn(experiments), total };
  }

  async #find(): Promise<void> {
    const mine = (this.#round += 1);
    const words = this.#input.value.trim();
    try {
      const fields = { q: words, limit: String(MOST_OFFERED) };
      const { data } = await read("/api/experiments", fields);
      if (mine !== this.#round || !data) return;
      const { value } = this.#select;
      this.#fill(data.experiments);
      this.#select.value = value;
      const some = data.total > MOST_OFFERED ? `, the newest ${count(MOST_OFFERED)} offered` : "";
      say(this.#found, words ? `${counted(data.total, "experiment")} found${some}` : "");
    } catch {
      if (mine === this.#round) say(this.#found, "The API does not answer: try again.");
    }
  }

  #fill(experiments: readonly ExperimentStatus[]): void {
    fill(
      this.#select,
      ...this.#leading.map(([value, text]) => element("option", { value }, text)),
      ...this.#withOwn(experiments).map(option),
    );
  }

  #withOwn(experiments: readonly ExperimentStatus[]): ExperimentStatus[] {
    const own = this.#own;
    const isOffered = experiments.some((each) => each.experiment_id === own?.experiment_id);
    return own && !isOffered ? [own, ...experiments] : [...experiments];
  }
}

/** The experiment of an id, the start of one, an occasion or a name; null without one. */
async function experimentNamed(text: string): Promise<ExperimentStatus | null> {
  if (text === "") return null;
  const { data } = await read("/api/experiments", { q: text, limit: String(MOST_OFFERED) });
  return named(data?.experiments ?? [], text);
}

function named(experiments: readonly ExperimentStatus[], text: string): ExperimentStatus | null {
  const isId = ({ experiment_id: id }: ExperimentStatus) => id === text;
  const isCalled = ({ experiment_id: id, name, occasion }: ExperimentStatus) =>
    text !== "" && (id.startsWith(text) || name === text || occasion === text);
  return experiments.find(isId) ?? experiments.find(isCalled) ?? null;
}

function option(experiment: ExperimentStatus): HTMLOptionElement {
  const { experiment_id: id, name, occasion, created_at, models } = experiment;
  const titles = [name, occasion].map((each) => isolated(shortened(each ?? "", 40)));
  const parts = [...titles, day(created_at), counted(models, "tutor"), shortened(id, 14)];
  return element("option", { value: id, title: id }, parts.filter(Boolean).join(" · "));
}
