// The page of experiments: all of them, or one in detail, live; dead letters; and the start of one.

import { showDeadLetters } from "../components/experiments/dead_letters";
import { showDetail } from "../components/experiments/detail";
import { connectKeys, keyGiven, showKeys } from "../components/experiments/keys";
import { showList, showListSummary } from "../components/experiments/list";
import { Pending } from "../components/experiments/pending";
import { connectStart } from "../components/experiments/start";
import { ApiProblem, change, problemOf, read } from "../lib/api";
import type { ExperimentDetail, ExperimentStatus } from "../lib/api_types";
import { capabilities } from "../lib/capabilities";
import { byId, element, say, toggle } from "../lib/dom";
import { clockTime } from "../lib/format";
import { experimentPage } from "../lib/links";
import { Live } from "../lib/live";

const RUNNING_MS = 2_000;
const RESTING_MS = 10_000;
const PAGE = 100;
const MOST = 500;
const PATH = "/api/experiments/{experiment_id}";

class ExperimentsPage {
  #live: Live | null = null;
  #id = "";
  #etag: string | null = null;
  #limit = PAGE;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #round = 0;
  readonly #pending = new Pending();

  start(): void {
    connectKeys();
    void this.#offer();
    connectStart((experiment) => {
      history.pushState(null, "", experimentPage(experiment));
      this.#show();
    });
    for (const button of document.querySelectorAll<HTMLButtonElement>("[data-state]")) {
      button.addEventListener("click", () => void this.#changeState(button));
    }
    byId("delete").addEventListener("click", () => void this.#delete());
    byId("more").addEventListener("click", () => {
      this.#limit = MOST;
      this.#etag = null;
      void this.#refreshList();
    });
    addEventListener("popstate", () => {
      this.#show();
    });
    this.#show();
  }

  /** Shows what the address names: one experiment, or all. */
  #show(): void {
    const wanted = new URLSearchParams(location.search).get("experiment") ?? "";
    this.#live?.stop();
    this.#live = null;
    clearTimeout(this.#timer);
    this.#round += 1;
    toggle(byId("away"), false);
    toggle(byId("crumbs"), wanted !== "");
    toggle(byId("list"), wanted === "");
    toggle(byId("detail"), false);
    toggle(byId("control-told"), false);
    if (wanted) {
      this.#live = new Live(wanted, {
        changed: (detail) => {
          this.#showDetail(detail);
        },
        unchanged: () => {
          this.#answered();
        },
        away: (error) => {
          this.#showAway(error);
        },
      });
      return;
    }
    say(byId("title"), "Experiments");
    document.title = "Experiments · Socratic Bench";
    this.#etag = null;
    void this.#refreshList();
    void this.#refreshDeadLetters();
  }

  /** Offers what the API does, and nothing else. */
  async #offer(): Promise<void> {
    try {
      const { starts, changes, needs_key: needsKey } = await capabilities();
      toggle(byId("starts"), starts);
      toggle(byId("starts-none"), !starts);
      for (const node of document.querySelectorAll<HTMLElement>(".changes")) toggle(node, changes);
      showKeys(needsKey && (starts || changes));
    } catch {
      setTimeout(() => void this.#offer(), RESTING_MS);
    }
  }

  #showDetail(detail: ExperimentDetail): void {
    this.#id = detail.experiment_id;
    this.#answered();
    toggle(byId("detail"), true);
    showDetail(detail);
    this.#pending.show(detail);
  }

  async #refreshList(): Promise<void> {
    clearTimeout(this.#timer);
    const mine = (this.#round += 1);
    let wait = RESTING_MS;
    try {
      const query = { limit: String(this.#limit) };
      const { etag, data } = await read("/api/experiments", query, this.#etag);
      if (mine !== this.#round) return;
      this.#etag = etag;
      this.#answered();
      if (data) this.#showList(data.experiments, data.total);
      if (document.querySelector("tr[data-state='running']")) wait = RUNNING_MS;
    } catch (error) {
      if (mine !== this.#round) return;
      this.#showAway(error);
    }
    if (document.hidden) wait = RESTING_MS;
    this.#timer = setTimeout(() => void this.#refreshList(), wait);
  }

  #showList(experiments: readonly ExperimentStatus[], total: number): void {
    toggle(byId("empty"), total === 0);
    toggle(byId("table"), total > 0);
    toggle(byId("more"), total > experiments.length && experiments.length < MOST);
    showListSummary(experiments, total);
    showList(experiments);
  }

  async #refreshDeadLetters(): Promise<void> {
    await showDeadLetters();
    setTimeout(() => {
      if (!byId("list").hidden && !document.hidden) void this.#refreshDeadLetters();
    }, RESTING_MS);
  }

  async #changeState(button: HTMLButtonElement): Promise<void> {
    const state = button.dataset.state ?? "";
    await this.#act(button, async () => {
      await change("PATCH", PATH, { experiment_id: this.#id }, { state }, keyGiven());
      this.#live?.refresh();
      return state === "resumed"
        ? "Resumed. Services request its pending runs within seconds."
        : "No further call begins. Calls in flight finish, and their responses are stored.";
    });
  }

  async #delete(): Promise<void> {
    const title = byId("title").textContent;
    if (!confirm(`Delete ${title} with all its results, for good?`)) return;
    await this.#act(byId("delete", HTMLButtonElement), async () => {
      this.#live?.stop();
      await change("DELETE", PATH, { experiment_id: this.#id }, null, keyGiven());
      history.replaceState(null, "", location.pathname);
      this.#show();
      return "";
    });
  }

  /** Does what a button is for, and tells its outcome. */
  async #act(button: HTMLButtonElement, action: () => Promise<string>): Promise<void> {
    button.disabled = true;
    let told = "";
    try {
      told = await action();
    } catch (error) {
      told = problemOf(error);
      if (error instanceof ApiProblem && error.status === 401) {
        byId("controls").querySelector<HTMLInputElement>(".key")?.focus();
      }
    } finally {
      button.disabled = false;
    }
    say(byId("control-told"), told);
    toggle(byId("control-told"), told !== "");
  }

  #answered(): void {
    const now = new Date();
    const exact = now.toISOString();
    document.body.classList.remove("stale");
    toggle(byId("away"), false);
    const time = element("time", { datetime: exact, title: exact }, clockTime(now));
    byId("updated").replaceChildren("Up to date as of ", time);
  }

  #showAway(error: unknown): void {
    const isKnown = error instanceof ApiProblem && error.status < 500;
    document.body.classList.toggle("stale", !isKnown);
    toggle(byId("away"), true);
    say(
      byId("away"),
      isKnown
        ? error.message
        : "The API does not answer. What is shown may have changed; this page asks again by itself.",
    );
    if (byId("detail").hidden && byId("table").hidden) {
      say(
        byId("summary"),
        isKnown ? "There is nothing to show at this address." : "No figures yet.",
      );
    }
  }
}

new ExperimentsPage().start();
