// The page of scores, or another figure, over time: one tutor in full, all of them at a glance.

import { copyButton } from "../components/copy_button";
import { Frame } from "../components/figures/frame";
import { sourceOf, type Cited } from "../components/figures/source";
import {
  figureTold,
  marksOf,
  newestOf,
  shownTold,
  trendsTold,
  TURNS_KEPT,
} from "../components/trends/series";
import { drawSmall, drawTrend } from "../components/trends/trend_figure";
import { trendCsv, trendTable } from "../components/trends/trend_table";
import { ApiProblem, read } from "../lib/api";
import type { ModelSeries, Timeseries } from "../lib/api_types";
import { byId, element, say, toggle } from "../lib/dom";
import { clockTime, counted, interval, score, shortened, signed } from "../lib/format";
import { Refreshing } from "../lib/refreshing";

const FILTER_FROM = 10;
const FIELDS = ["model", "figure", "turn", "dimension", "profile", "changed", "q"] as const;

/** Turns kept are those of whole runs, and another profile has other vectors. */
const RESETS: Readonly<Record<string, Partial<View>>> = {
  figure: { turn: "" },
  profile: { figure: "", turn: "" },
};

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

class TrendsPage {
  #view = readView();
  #every: Timeseries | null = null;
  #chosen: ModelSeries | null = null;
  #etags: (string | null)[] = [null, null];
  #answeredAt: Date | null = null;
  readonly #frame = new Frame();
  readonly #refreshing = new Refreshing({
    ask: (isCurrent) => this.#ask(isCurrent),
    away: (error) => {
      this.#showAway(error);
    },
  });

  start(): void {
    byId("chart").append(this.#frame.node);
    byId("points-head").append(
      copyButton(() => (this.#chosen && this.#every ? trendCsv(this.#chosen, this.#every) : [])),
    );
    for (const name of ["model", "figure", "turn", "dimension", "profile"] as const) {
      const select = byId(name, HTMLSelectElement);
      select.addEventListener("change", () => {
        this.#choose({ ...this.#view, ...RESETS[name], [name]: select.value });
      });
    }
    const changed = byId("changed", HTMLInputElement);
    changed.addEventListener("change", () => {
      this.#choose({ ...this.#view, changed: changed.value });
    });
    const filter = byId("filter", HTMLInputElement);
    filter.addEventListener("input", () => {
      this.#view.q = filter.value;
      history.replaceState(null, "", addressOf(this.#view));
      this.#showAll();
    });
    addEventListener("popstate", () => {
      this.#view = readView();
      this.#askAnew();
    });
    this.#askAnew();
    void this.#showProfiles();
  }

  #choose(view: View): void {
    this.#view = view;
    history.pushState(null, "", addressOf(view));
    this.#askAnew();
  }

  #askAnew(): void {
    this.#etags = [null, null];
    byId("filter", HTMLInputElement).value = this.#view.q;
    byId("profile", HTMLSelectElement).value = this.#view.profile;
    byId("changed", HTMLInputElement).value = this.#view.changed;
    void this.#refreshing.now();
  }

  async #showProfiles(): Promise<void> {
    try {
      const { data } = await read("/api/profiles");
      const names = data?.profiles.map(({ name }) => name) ?? [];
      const own = element("option", { value: "" }, "each experiment’s own");
      const options = names.map((name) => element("option", { value: name }, name));
      byId("profile", HTMLSelectElement).replaceChildren(own, ...options);
      byId("profile", HTMLSelectElement).value = this.#view.profile;
      toggle(byId("profile-choice"), names.length > 1 || this.#view.profile !== "");
    } catch {
      toggle(byId("profile-choice"), false);
    }
  }

  /** Versions are known of one model alone, so that one is asked for by itself. */
  async #ask(isCurrent: () => boolean): Promise<void> {
    const { profile, changed, figure, turn, dimension } = this.#view;
    const shown = { profile, figure, turn, dimension };
    const all = await read("/api/timeseries", shown, this.#etags[0] ?? null);
    if (!isCurrent()) return;
    if (all.data) this.#every = all.data;
    const every = this.#every;
    if (!every) return;
    const model = this.#view.model || foremost(every);
    if (model) {
      const one = await read(
        "/api/timeseries",
        { ...shown, model, changed },
        this.#etags[1] ?? null,
      );
      if (!isCurrent()) return;
      if (one.data) this.#chosen = one.data.models[0] ?? null;
      if (all.data || one.data) this.#show(every, model);
      this.#etags = [all.etag, one.etag];
    } else this.#show(every, "");
    this.#answeredAt = new Date();
    toggle(byId("away"), false);
    document.body.classList.remove("stale");
    const exact = this.#answeredAt.toISOString();
    const time = element("time", { datetime: exact, title: exact }, clockTime(this.#answeredAt));
    byId("updated").replaceChildren("Up to date as of ", time);
  }

  #show(every: Timeseries, model: string): void {
    const isEmpty = every.models.length === 0;
    toggle(byId("empty"), isEmpty);
    for (const id of ["trends", "toolbar"]) toggle(byId(id), !isEmpty);
    say(byId("summary"), summary(every));
    if (isEmpty) return;
    const select = byId("model", HTMLSelectElement);
    const options = byName(every.models).map(({ model_id: id, model_name: name, kind }) =>
      element(
        "option",
        { value: id },
        shortened(name, 50) + (kind === "model" ? "" : ` (${kind})`),
      ),
    );
    select.replaceChildren(...options);
    select.value = model;
    this.#showChoices(every);
    if (this.#chosen) this.#showChosen(this.#chosen, every);
    this.#showAll();
  }

  /** The figures, turns and dimensions that there are; a choice of one is none. */
  #showChoices({
    known_figures: figures,
    known_turns: turns,
    known_dimensions: all,
  }: Timeseries): void {
    const { figure, turn, dimension } = this.#view;
    const numbers = Array.from({ length: turns }, (_, at) => String(at + 1));
    const choices = {
      figure: figures.map((name) => [name === "overall" ? "" : name, figureTold(name)] as const),
      turn: [["", "all"] as const, ...numbers.map((each) => [each, each] as const)],
      dimension: [["", "all"] as const, ...all.map((each) => [each, shortened(each, 30)] as const)],
    };
    for (const [name, options] of Object.entries(choices)) {
      const select = byId(name, HTMLSelectElement);
      select.replaceChildren(...options.map(([value, text]) => element("option", { value }, text)));
    }
    byId("figure", HTMLSelectElement).value = figure === "overall" ? "" : figure;
    byId("turn", HTMLSelectElement).value = turn;
    byId("dimension", HTMLSelectElement).value = dimension;
    toggle(byId("turn-choice"), turns > 1 && figure !== TURNS_KEPT);
    toggle(byId("dimension-choice"), all.length > 1);
  }

  #showChosen(series: ModelSeries, every: Timeseries): void {
    const name = element("bdi", { title: series.model_id }, shortened(series.model_name, 60));
    const tag =
      series.kind === "model" ? [] : [element("small", { class: "tag" }, ` ${series.kind}`)];
    byId("chosen-heading").replaceChildren(name, ...tag);
    say(byId("notes"), every.notes.join(" "));
    toggle(byId("lone"), series.points.length === 1);
    const trends = trendsTold(series);
    byId("told-trends").replaceChildren(...trends.map((text) => element("li", {}, text)));
    const marks = marksOf(series);
    byId("told-changes").replaceChildren(
      ...marks.map(({ letter, kind, told }) =>
        element("li", { class: kind }, element("b", {}, letter), ` ${told}`),
      ),
    );
    byId("points").replaceChildren(trendTable(series, every));
    const points: Cited[] = series.points.toReversed();
    const profiles = [...new Set(series.points.map(({ profile }) => profile))];
    const newest = newestOf(series);
    const latest = newest ? `, the newest ${score(newest.value)}` : "";
    this.#frame.show({
      file: `socratic-bench-trend-${series.model_id.replaceAll(/[^\w.-]+/g, "-")}`,
      title: `${series.model_name}${series.kind === "model" ? "" : ` (${series.kind})`}: ${shownTold(every)} over time`,
      about: `${shownTold(every)} over time in ${counted(points.length, "point")}${latest}. The table below has every figure.`,
      source: [
        ...every.notes,
        ...trends,
        ...marks.map(({ letter, told }) => `${letter}: ${told}`),
        "Dots are means, the band is their 95 % interval; pale lines are the other tutors. Lines join points under the same conditions alone.",
        ...sourceOf(points, profiles, every.version),
      ],
      draw: (width) => drawTrend(series, every, width),
    });
    say(
      byId("provenance"),
      `Scored by ${profiles.join(", ")} · ${counted(points.length, "experiment")}`,
    );
  }

  #showAll(): void {
    const every = this.#every;
    if (!every) return;
    const { models } = every;
    const wanted = this.#view.q.trim().toLowerCase();
    const found = byScore(models).filter(({ model_name: name, model_id: id, kind }) =>
      `${name} ${id} ${kind}`.toLowerCase().includes(wanted),
    );
    toggle(byId("filter-choice"), models.length >= FILTER_FROM || wanted !== "");
    toggle(byId("nothing-found"), found.length === 0);
    byId("multiples").replaceChildren(...found.map((series) => this.#multiple(series, every)));
  }

  #multiple(series: ModelSeries, every: Timeseries): HTMLElement {
    const newest = newestOf(series);
    const isChosen = series.model_id === this.#chosen?.model_id;
    const bounds = newest?.confidence_interval ? ` (${interval(newest.confidence_interval)})` : "";
    const change = newest?.change
      ? `${signed(newest.change.difference)}${newest.change.is_real ? ", these two experiments differ" : ""}`
      : "";
    const link = element(
      "a",
      {
        href: addressOf({ ...this.#view, model: series.model_id }),
        ...(isChosen ? { "aria-current": "true" } : {}),
      },
      element("bdi", { title: series.model_id }, shortened(series.model_name, 26)),
    );
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      this.#choose({ ...this.#view, model: series.model_id });
      byId("chosen-heading").scrollIntoView({ block: "start" });
    });
    const kind = series.kind === "model" ? null : element("small", { class: "tag" }, series.kind);
    const told = `${score(newest?.value ?? null)}${bounds}${change ? ` · ${change}` : ""}`;
    return element(
      "li",
      { "data-model": series.model_id },
      element("p", {}, link, " ", kind),
      drawSmall(series, every),
      element("p", { class: "quiet small" }, told),
    );
  }

  #showAway(error: unknown): void {
    const isKnown = error instanceof ApiProblem && error.status < 500;
    document.body.classList.toggle("stale", this.#every !== null && !isKnown);
    // The figures below are none of what was asked for.
    if (isKnown) toggle(byId("trends"), false);
    toggle(byId("away"), true);
    const since = this.#answeredAt
      ? ` The figures below are those of ${clockTime(this.#answeredAt)}.`
      : "";
    say(byId("away"), isKnown ? error.message : `The API does not answer.${since} Trying again.`);
    if (this.#every) return;
    say(byId("summary"), isKnown ? "There is nothing to show at this address." : "No figures yet.");
  }
}

/** The model with the most points; of several that with the highest newest score. */
function foremost({ models }: Timeseries): string {
  const real = models.filter(({ kind }) => kind === "model");
  const most = Math.max(...models.map(({ points }) => points.length));
  const candidates = byScore(real.length ? real : models);
  const longest = candidates.find(({ points }) => points.length === most);
  return (longest ?? candidates[0])?.model_id ?? "";
}

function byScore(models: readonly ModelSeries[]): ModelSeries[] {
  const key = (series: ModelSeries) => newestOf(series)?.value ?? -1;
  return models.toSorted((a, b) => key(b) - key(a));
}

function byName(models: readonly ModelSeries[]): ModelSeries[] {
  return models.toSorted((a, b) => a.model_name.localeCompare(b.model_name));
}

function summary({ models, experiments, left_out: older }: Timeseries): string {
  if (!models.length) return "How each tutor’s score moves from one occasion to the next.";
  const left = older ? ` ${counted(older, "older experiment")} left out.` : "";
  return `${counted(models.length, "tutor")} in ${counted(experiments, "experiment")}, one point for each.${left}`;
}

new TrendsPage().start();
