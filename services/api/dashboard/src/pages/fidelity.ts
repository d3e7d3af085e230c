// The page of fidelity: how many turns each tutor keeps asking, under what it breaks, and where.

import { copyButton } from "../components/copy_button";
import { ExperimentPicker } from "../components/experiment_picker";
import { Barcode, barcodeCsv } from "../components/fidelity/barcode";
import { fidelityTable } from "../components/fidelity/fidelity_table";
import { kindCsv, kindTable } from "../components/fidelity/kind_table";
import { survivalFigure } from "../components/fidelity/survival_figure";
import { finding, firstToBreak, keptTold, kindsTold } from "../components/fidelity/wording";
import { Frame } from "../components/figures/frame";
import { sayProblem } from "../components/profile_choice";
import { showProvenance } from "../components/summary";
import { connectExport, csvAddress, showExport } from "../components/table_export";
import { ApiProblem, read, type Fields } from "../lib/api";
import type { FidelityTable, FidelityFigures } from "../lib/api_types";
import { byId, element, fill, say, sayEach, toggle } from "../lib/dom";
import { clockTime, count, counted, shortened } from "../lib/format";
import { FIDELITY } from "../lib/links";
import { Refreshing } from "../lib/refreshing";

const FIELDS = ["model", "experiment", "dimension", "profile"] as const;
const LEADING = [["", "newest complete or pinned"]] as const;
const LAPSE =
  "A lapse is a turn that asks nothing, lectures, speaks for the student or says the answer; two in a row are a break.";

type View = Record<(typeof FIELDS)[number], string>;

function readView(): View {
  const query = new URLSearchParams(location.search);
  return Object.fromEntries(FIELDS.map((name) => [name, query.get(name) ?? ""])) as View;
}

/** The address of the page with another view. */
function addressOf(view: View): string {
  const given = Object.entries(view).filter(([, each]) => each !== "");
  const text = new URLSearchParams(given).toString();
  return `${location.pathname}${text ? `?${text}` : ""}`;
}

class FidelityPage {
  #view = readView();
  #table: FidelityTable | null = null;
  #chosen: FidelityFigures | null = null;
  #etag: string | null = null;
  #answeredAt: Date | null = null;
  readonly #frame = new Frame();
  readonly #barcode = new Barcode();
  readonly #picker = new ExperimentPicker(byId("experiment", HTMLSelectElement), LEADING);
  readonly #refreshing = new Refreshing({
    ask: (isCurrent) => this.#ask(isCurrent),
    away: (error) => {
      this.#showAway(error);
    },
  });

  start(): void {
    byId("chart").append(this.#frame.node);
    byId("barcode").append(this.#barcode.node);
    byId("kinds-copy").append(copyButton(() => (this.#chosen ? kindCsv(this.#chosen) : [])));
    byId("turns-copy").append(
      copyButton(() => (this.#table && this.#chosen ? barcodeCsv(this.#table, this.#chosen) : [])),
    );
    connectExport(() => this.#csv());
    byId("model", HTMLSelectElement).addEventListener("change", ({ currentTarget }) => {
      this.#chooseModel((currentTarget as HTMLSelectElement).value);
    });
    for (const name of ["experiment", "dimension"] as const) {
      byId(name, HTMLSelectElement).addEventListener("change", ({ currentTarget }) => {
        this.#choose({ ...this.#view, [name]: (currentTarget as HTMLSelectElement).value });
      });
    }
    for (const id of ["chart", "tutors"]) {
      byId(id).addEventListener("click", (event) => {
        this.#follow(event);
      });
    }
    addEventListener("popstate", () => {
      this.#view = readView();
      this.#askAnew();
    });
    this.#askAnew();
  }

  /** A curve and a name in the table choose their tutor without a new page. */
  #follow(event: MouseEvent): void {
    const link = event.target instanceof Element ? event.target.closest("[data-model]") : null;
    const model = link?.getAttribute("data-model");
    if (!model || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    this.#chooseModel(model);
    byId("chosen-heading").scrollIntoView({ block: "nearest" });
  }

  #chooseModel(model: string): void {
    this.#view = { ...this.#view, model };
    history.pushState(null, "", addressOf(this.#view));
    if (this.#table) this.#show(this.#table);
  }

  #choose(view: View): void {
    this.#view = view;
    history.pushState(null, "", addressOf(view));
    this.#askAnew();
  }

  #askAnew(): void {
    this.#etag = null;
    showExport(this.#csv());
    void this.#refreshing.now();
  }

  #asked(): Fields {
    const { experiment, dimension, profile } = this.#view;
    return { experiment, dimension, profile };
  }

  #csv(): string {
    return csvAddress("/api/fidelity", this.#asked());
  }

  async #ask(isCurrent: () => boolean): Promise<void> {
    const { etag, data } = await read("/api/fidelity", this.#asked(), this.#etag);
    if (!isCurrent()) return;
    this.#answeredAt = new Date();
    toggle(byId("away"), false);
    document.body.classList.remove("stale");
    const exact = this.#answeredAt.toISOString();
    const time = element("time", { datetime: exact, title: exact }, clockTime(this.#answeredAt));
    byId("updated").replaceChildren("Up to date as of ", time);
    if (!data) return;
    this.#etag = etag;
    this.#table = data;
    this.#show(data);
    await this.#offer(data.experiments[0]?.experiment_id ?? "");
  }

  async #offer(shown: string): Promise<void> {
    const { experiment } = this.#view;
    const { total } = await this.#picker.offer(experiment && (shown || experiment));
    toggle(byId("experiment-choice"), total > 1 || experiment !== "");
  }

  #show(table: FidelityTable): void {
    const { models, notes, filtered } = table;
    const isEmpty = models.length === 0;
    const chosen = this.#chosenIn(table);
    this.#chosen = chosen;
    toggle(byId("empty"), isEmpty && !filtered);
    toggle(byId("toolbar"), !isEmpty || Boolean(filtered));
    for (const id of ["fidelity", "model-choice"]) toggle(byId(id), !isEmpty);
    say(byId("summary"), summary(table));
    fill(byId("finding"), ...finding(table));
    sayEach(byId("note"), notes);
    this.#showDimensions(table);
    showProvenance(table);
    if (chosen) this.#showChosen(chosen, table);
  }

  /** The tutor that the address names, or the first to break. */
  #chosenIn({ models }: FidelityTable): FidelityFigures | null {
    const { model } = this.#view;
    const found = models.find(({ model_id: id }) => id === model);
    toggle(byId("away"), model !== "" && !found);
    if (model && !found) say(byId("away"), `No tutor “${model}” is in these figures.`);
    return found ?? firstToBreak(models);
  }

  #showDimensions({ filtered, scenarios }: FidelityTable): void {
    const { dimension } = this.#view;
    const known = filtered?.known_dimensions ?? scenarios.map((each) => each.dimension);
    const offered = [...new Set([...known, ...(dimension ? [dimension] : [])])];
    const select = byId("dimension", HTMLSelectElement);
    const options = offered.map((each) => element("option", { value: each }, each));
    fill(select, element("option", { value: "" }, "all"), ...options);
    select.value = dimension;
    toggle(byId("dimension-choice"), offered.length > 1);
    toggle(byId("filtered"), Boolean(filtered));
    say(byId("filtered"), filtered?.told ?? "");
  }

  #showChosen(chosen: FidelityFigures, table: FidelityTable): void {
    const { models, profile, horizon } = table;
    const { model_id: id, model_name: name, kind, kinds } = chosen;
    const chooses = (model: string) => addressOf({ ...this.#view, model });
    const select = byId("model", HTMLSelectElement);
    fill(select, ...models.map(option));
    select.value = id;
    const tag = kind === "model" ? [] : [element("small", { class: "tag" }, ` ${kind}`)];
    fill(byId("chosen-heading"), element("bdi", { title: id }, shortened(name, 60)), ...tag);
    const strong = element("strong", {}, element("bdi", {}, name));
    fill(byId("told-kept"), strong, keptTold(chosen, horizon));
    this.#frame.show(survivalFigure({ table, chosen, addressOf: chooses }));
    say(byId("about-lapse"), profile === FIDELITY ? LAPSE : otherLapse(profile));
    toggle(byId("copy"), "clipboard" in navigator);
    fill(byId("tutors"), fidelityTable(table, chosen, chooses));
    fill(byId("kinds-heading"), "Under what ", element("bdi", {}, shortened(name, 40)), " lapses");
    say(byId("told-kinds"), `It${kindsTold(kinds)}`);
    for (const id of ["kinds", "kinds-copy", "kinds-legend"]) toggle(byId(id), kinds.length > 0);
    fill(byId("kinds"), kindTable(chosen));
    fill(byId("turns-heading"), "Turn by turn: ", element("bdi", {}, shortened(name, 40)));
    const runs = Math.max(0, ...Object.values(chosen.turns).flatMap((each) => each.map(sum)));
    const several = runs > 1 ? ` A cell is ${count(runs)} runs: its filled part lapsed.` : "";
    say(
      byId("told-turns"),
      `A row is a scenario, a column a turn, and each cell leads to what was said.${several}`,
    );
    toggle(byId("legend-mixed"), runs > 1);
    this.#barcode.show(table, chosen);
  }

  #showAway(error: unknown): void {
    const isKnown = error instanceof ApiProblem && error.status < 500;
    document.body.classList.toggle("stale", this.#table !== null && !isKnown);
    toggle(byId("away"), true);
    const since = this.#answeredAt
      ? ` The figures below are those of ${clockTime(this.#answeredAt)}.`
      : "";
    const told = isKnown ? error.message : `The API does not answer.${since} Trying again.`;
    sayProblem(byId("away"), told);
    if (isKnown) void this.#hide();
    if (this.#table) return;
    say(byId("summary"), isKnown ? "There is nothing to show at this address." : "No figures yet.");
  }

  /** Figures of another address would pass for those of this one; another experiment may have some. */
  async #hide(): Promise<void> {
    this.#table = this.#chosen = this.#etag = null;
    for (const id of ["fidelity", "note", "filtered", "empty", "model-choice"])
      toggle(byId(id), false);
    for (const id of ["finding", "provenance"]) say(byId(id), "");
    toggle(byId("toolbar"), true);
    await this.#offer("").catch(() => undefined);
  }
}

function option({ model_id: id, model_name: name, kind }: FidelityFigures): HTMLElement {
  const tag = kind === "model" ? "" : ` (${kind})`;
  return element("option", { value: id }, shortened(name, 50) + tag);
}

function sum(runs: readonly number[]): number {
  return runs.reduce((total, each) => total + each, 0);
}

function otherLapse(profile: string): string {
  return `A lapse is a turn that the profile ${profile} counts as one; two in a row are a break.`;
}

function summary({ models, scenarios, horizon }: FidelityTable): string {
  if (!models.length) return "How many turns a tutor keeps asking while a student presses it.";
  const runs = models.reduce((total, { runs: own }) => total + own, 0);
  const arePressed = scenarios.some(({ pressures }) => pressures.length > 0);
  const what = `${counted(models.length, "tutor")}${arePressed ? " under pressure" : ""}`;
  const where = `${counted(runs, "run")} of ${counted(scenarios.length, "scenario")}`;
  return `${what}, in ${where} with up to ${count(horizon + 1)} turns: in which turn does a student get a lecture instead of a question?`;
}

new FidelityPage().start();
