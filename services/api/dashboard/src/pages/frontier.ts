// The page of cost and latency against score, each with its frontier.

import { copyButton } from "../components/copy_button";
import { ExperimentPicker } from "../components/experiment_picker";
import { FilterBar } from "../components/filter_bar";
import { Frame } from "../components/figures/frame";
import { citedOf, sourceOf } from "../components/figures/source";
import { COST, LATENCY, pointsOf, type Point, type Price } from "../components/frontier/frontier";
import { drawFrontier, type ScaleName } from "../components/frontier/frontier_figure";
import { frontierCsv, frontierTable, type Judged } from "../components/frontier/frontier_table";
import { showProvenance } from "../components/summary";
import { ApiProblem, read } from "../lib/api";
import type { ModelComparison, ModelFigures } from "../lib/api_types";
import { byId, element, say, toggle } from "../lib/dom";
import { filterFields, filtersIn, type Filters } from "../lib/filters";
import { clockTime, counted, listed, shortened } from "../lib/format";
import { rankingPage } from "../lib/links";
import { Refreshing } from "../lib/refreshing";

const LEADING = [
  ["", "newest complete or pinned"],
  ["all", "all, by test conditions"],
] as const;
const FILTER_FROM = 10;
const MOST_NAMED = 12;
const FIELDS = ["experiment", "profile", "q", "scale", "references"] as const;

type View = Record<(typeof FIELDS)[number], string>;

function readView(): View {
  const query = new URLSearchParams(location.search);
  return Object.fromEntries(FIELDS.map((name) => [name, query.get(name) ?? ""])) as View;
}

/** The filters of the address, without models: a frontier is that of all. */
function readFilters(): Filters {
  return { ...filtersIn(new URLSearchParams(location.search)), models: [] };
}

class FrontierPage {
  #view = readView();
  #filters = readFilters();
  #comparison: ModelComparison | null = null;
  #etag: string | null = null;
  #answeredAt: Date | null = null;
  readonly #picker = new ExperimentPicker(byId("experiment", HTMLSelectElement), LEADING);
  readonly #frames = { cost: new Frame(), latency: new Frame() };
  readonly #bar = new FilterBar(this.#filters, (filters) => {
    this.#filters = filters;
    this.#writeAddress({ step: true });
    this.#askAnew();
  });
  readonly #refreshing = new Refreshing({
    ask: (isCurrent) => this.#ask(isCurrent),
    away: (error) => {
      this.#showAway(error);
    },
  });

  start(): void {
    byId("cost").append(this.#frames.cost.node);
    byId("latency").append(this.#frames.latency.node);
    byId("table-head").append(
      copyButton(() => (this.#comparison ? frontierCsv(this.#judged(this.#comparison)) : [])),
    );
    this.#connect();
    addEventListener("popstate", () => {
      this.#view = readView();
      this.#filters = readFilters();
      this.#askAnew();
    });
    this.#askAnew();
  }

  #connect(): void {
    for (const name of ["experiment", "profile"] as const) {
      const select = byId(name, HTMLSelectElement);
      select.addEventListener("change", () => {
        if (name === "experiment") this.#view.profile = "";
        this.#write(name, select.value, { step: true });
        this.#askAnew();
      });
    }
    const scale = byId("scale", HTMLSelectElement);
    scale.addEventListener("change", () => {
      this.#write("scale", scale.value);
      this.#show();
    });
    const filter = byId("filter", HTMLInputElement);
    filter.addEventListener("input", () => {
      this.#write("q", filter.value);
      this.#show();
    });
    const references = byId("references", HTMLInputElement);
    references.addEventListener("change", () => {
      this.#write("references", references.checked ? "" : "no");
      this.#show();
    });
  }

  #write(name: keyof View, value: string, { step = false } = {}): void {
    this.#view[name] = value;
    this.#writeAddress({ step });
  }

  #writeAddress({ step }: { step: boolean }): void {
    const { dimension, since, until } = this.#filters;
    const fields = { ...this.#view, dimension, since, until };
    const given = Object.entries(fields).filter(([, each]) => each !== "");
    const text = new URLSearchParams(given).toString();
    const address = `${location.pathname}${text ? `?${text}` : ""}`;
    if (step) history.pushState(null, "", address);
    else history.replaceState(null, "", address);
  }

  #askAnew(): void {
    this.#etag = null;
    byId("filter", HTMLInputElement).value = this.#view.q;
    byId("scale", HTMLSelectElement).value = this.#scale();
    byId("references", HTMLInputElement).checked = this.#view.references !== "no";
    void this.#refreshing.now();
  }

  #scale(): ScaleName {
    return (["log", "linear"] as const).find((each) => each === this.#view.scale) ?? "";
  }

  async #ask(isCurrent: () => boolean): Promise<void> {
    const { experiment, profile } = this.#view;
    const query = { experiment, profile, ...filterFields(this.#filters) };
    const { etag, data } = await read("/api/model-comparison", query, this.#etag);
    if (!isCurrent()) return;
    if (data) {
      // The address may hold the start of an id, an occasion or a name: the table has the id.
      const isLeading = LEADING.some(([value]) => value === experiment);
      const shown = isLeading ? experiment : (data.experiments[0]?.experiment_id ?? experiment);
      const { total } = await this.#picker.offer(shown);
      if (!isCurrent()) return;
      this.#comparison = data;
      this.#etag = etag;
      toggle(byId("experiment-choice"), total > 1 || experiment !== "");
      this.#show();
    }
    this.#answeredAt = new Date();
    toggle(byId("away"), false);
    document.body.classList.remove("stale");
    const exact = this.#answeredAt.toISOString();
    const time = element("time", { datetime: exact, title: exact }, clockTime(this.#answeredAt));
    byId("updated").replaceChildren("Up to date as of ", time);
  }

  #judged(comparison: ModelComparison): Judged {
    const { models, mixed_conditions: areMixed } = comparison;
    return {
      comparison,
      experiment: this.#view.experiment,
      cost: pointsOf(models, COST, areMixed),
      latency: pointsOf(models, LATENCY, areMixed),
    };
  }

  #matches(model: ModelFigures): boolean {
    const text = `${model.model_name} ${model.model_id} ${model.kind}`.toLowerCase();
    return text.includes(this.#view.q.trim().toLowerCase());
  }

  #show(): void {
    const comparison = this.#comparison;
    if (!comparison) return;
    const { models, note, profile, profiles, filtered } = comparison;
    toggle(byId("empty"), models.length === 0 && !filtered);
    toggle(byId("figures"), models.length > 0);
    for (const id of ["toolbar", "filters"]) {
      toggle(byId(id), models.length > 0 || Boolean(filtered));
    }
    this.#bar.show(this.#filters, comparison);
    toggle(byId("note"), Boolean(note));
    say(byId("note"), note ?? "");
    toggle(byId("filter-choice"), models.length >= FILTER_FROM || this.#view.q !== "");
    toggle(
      byId("references-choice"),
      models.some(({ kind }) => kind === "reference"),
    );
    toggle(byId("profile-choice"), profiles.length > 1);
    const select = byId("profile", HTMLSelectElement);
    select.replaceChildren(...profiles.map((name) => element("option", { value: name }, name)));
    select.value = profile;
    say(byId("summary"), summary(comparison));
    showProvenance(comparison);
    if (!models.length) return;
    const judged = this.#judged(comparison);
    this.#showFigure(COST, judged.cost, comparison);
    this.#showFigure(LATENCY, judged.latency, comparison);
    const shown = (model: ModelFigures) => this.#matches(model) && this.#isWanted(model);
    byId("table").replaceChildren(frontierTable(judged, shown));
    toggle(byId("nothing-found"), !models.some(shown));
  }

  #isWanted({ kind }: ModelFigures): boolean {
    return kind === "model" || this.#view.references !== "no";
  }

  #showFigure(price: Price, every: readonly Point[], comparison: ModelComparison): void {
    const points = every.filter(({ model }) => this.#isWanted(model));
    const finding = findingOf(price, points, comparison);
    say(byId(`${price.key}-finding`), finding);
    toggle(byId(price.key), points.length > 0);
    const drawn = new Set(points.map(({ model }) => model));
    const unknown = comparison.models.filter(
      (model) => this.#isWanted(model) && price.of(model) === null && !drawn.has(model),
    );
    toggle(byId(`${price.key}-unknown`), unknown.length > 0 && points.length > 0);
    say(
      byId(`${price.key}-unknown`),
      `Not drawn, since the ${price.key} is unknown: ${named(unknown)}.`,
    );
    if (!points.length) return;
    const { experiments, profile, version, filtered } = comparison;
    const title = price === COST ? "Cost against score" : "Latency against score";
    const chart = {
      price,
      points,
      scale: this.#scale(),
      matches: ({ model }: Point) => this.#matches(model),
      address: ({ model }: Point) => rankingPage(this.#view.experiment, model.model_id),
    };
    this.#frames[price.key].show({
      file: `socratic-bench-${price.key}-${experiments[0]?.experiment_id ?? "none"}`,
      title,
      about: `${title} of ${counted(points.length, "tutor")}. ${finding} The table below has every figure.`,
      source: [
        "Dots are means, vertical lines 95 % intervals of the score, the stepped line the frontier; a dashed dot is a reference tutor or has a simulated latency.",
        ...(filtered ? [filtered.told] : []),
        ...sourceOf(experiments.map(citedOf), [profile], version),
      ],
      draw: (width) => drawFrontier(chart, width),
    });
  }

  #showAway(error: unknown): void {
    const isKnown = error instanceof ApiProblem && error.status < 500;
    document.body.classList.toggle("stale", this.#comparison !== null && !isKnown);
    toggle(byId("away"), true);
    const since = this.#answeredAt
      ? ` The figures below are those of ${clockTime(this.#answeredAt)}.`
      : "";
    say(byId("away"), isKnown ? error.message : `The API does not answer.${since} Trying again.`);
    // Figures of another address would pass for those of this one.
    if (isKnown) this.#hide();
    this.#bar.show(this.#filters, this.#comparison);
    if (this.#comparison) return;
    say(byId("summary"), isKnown ? "There is nothing to show at this address." : "No figures yet.");
  }

  #hide(): void {
    this.#comparison = null;
    this.#etag = null;
    for (const id of ["figures", "note", "empty"]) toggle(byId(id), false);
  }
}

function summary({ models }: ModelComparison): string {
  if (!models.length) return "Score against cost and latency, model by model.";
  const real = models.filter(({ kind }) => kind === "model");
  if (!real.length)
    return "Reference tutors alone: what they cost and how long they take is simulated.";
  const priced = real.filter((model) => COST.of(model) !== null).length;
  const none = priced ? "" : " No price is known: give each model a price in the configuration.";
  return `${counted(real.length, "model")}, the cost of ${priced} known.${none}`;
}

function findingOf(price: Price, points: readonly Point[], comparison: ModelComparison): string {
  if (!points.length) {
    return price === COST
      ? "No cost is known. A model has one where the configuration names its price."
      : "No latency is known.";
  }
  if (comparison.mixed_conditions) {
    return "There is no frontier across different test conditions: choose one experiment.";
  }
  const real = points.filter(({ isReal }) => isReal);
  if (!real.length) return `There is no frontier: every ${price.key} here is simulated.`;
  const on = real.filter(({ isOn }) => isOn);
  const names = named(on.map(({ model }) => model));
  if (real.length === 1) return `${names} is the only model with a known ${price.key}.`;
  const are = on.length === 1 ? "is" : "are";
  return `${names} ${are} on the frontier: no other of ${counted(real.length, "model")} is both ${price.less} and more Socratic.`;
}

function named(models: readonly ModelFigures[]): string {
  const names = models.slice(0, MOST_NAMED).map(({ model_name: name }) => shortened(name, 40));
  const more = models.length - names.length;
  return listed(more > 0 ? [...names, `${more} more`] : names);
}

new FrontierPage().start();
