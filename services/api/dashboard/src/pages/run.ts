// The page of one run: the conversation with every mark in place, and the arithmetic of each score.

import { connectProfiles, sayProblem, showProfiles } from "../components/profile_choice";
import { showTurnStates } from "../components/transcript/lapses";
import { showRunHead } from "../components/transcript/run_head";
import { isPlanned, plannedRun } from "../components/transcript/planned_run";
import { turnArticle } from "../components/transcript/turn";
import { addressOf, ApiProblem, read } from "../lib/api";
import type { DescribedProfile, RunDetails, RunTurn } from "../lib/api_types";
import { byId, element, say, toggle } from "../lib/dom";

const TURNS_A_PAGE = 100;
const AWAY_MS = 5_000;
const GROWING_MS = 2_000;
/** A run that does not change is looked at less and less often. */
const RESTING_MS = 16_000;

/** Whether a further response may come. */
function mayGrow({ context, failure, turns }: RunDetails): boolean {
  return context !== null && failure === null && turns < context.scenario.turns;
}

class RunPage {
  #run = new URLSearchParams(location.search).get("run") ?? "";
  #turns: RunTurn[] = [];
  #total = 0;
  #details: RunDetails | null = null;
  #etag: string | null = null;
  #profiles: readonly DescribedProfile[] | null = null;
  #wait = GROWING_MS;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #round = 0;

  start(): void {
    byId("more").addEventListener("click", () => void this.#showFurtherTurns());
    byId("raw").addEventListener("toggle", () => {
      this.#showRaw();
    });
    connectProfiles((profile) => {
      const address = new URL(location.href);
      address.searchParams.set("profile", profile);
      history.pushState(null, "", address);
      this.#restart();
    });
    addEventListener("popstate", () => {
      if (this.#details && this.#chosenProfile() !== this.#details.profile) this.#restart();
    });
    addEventListener("hashchange", () => void this.#goToTurn());
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden && this.#timer !== undefined) void this.#show();
    });
    if (this.#run || isPlanned()) void this.#show();
    else this.#showNothing("No such run", "The address names no run. Choose one in the ranking.");
  }

  /** The profile in the address, or else the own one of the run. */
  #chosenProfile(): string {
    const named = new URLSearchParams(location.search).get("profile");
    return named ?? this.#details?.profiles[0] ?? "";
  }

  #fields(): Record<string, string> {
    const profile = new URLSearchParams(location.search).get("profile") ?? "";
    return { run_id: this.#run, profile };
  }

  /** Reads the run anew: every score changes with the profile. */
  #restart(): void {
    this.#turns = [];
    this.#etag = null;
    byId("turns").replaceChildren();
    void this.#show();
  }

  /** Shows the run, and looks again while it may grow. */
  async #show(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const mine = (this.#round += 1);
    let wait: number | null = AWAY_MS;
    try {
      wait = await this.#ask(mine);
    } catch (error) {
      if (mine === this.#round) wait = this.#showAway(error);
    }
    if (mine !== this.#round || wait === null) return;
    this.#timer = setTimeout(() => void this.#show(), document.hidden ? RESTING_MS : wait);
  }

  /** Returns the milliseconds until the next look; null for a run that has ended. */
  async #ask(mine: number): Promise<number | null> {
    this.#profiles ??= (await read("/api/profiles")).data?.profiles ?? [];
    if (!this.#run) {
      this.#run = await plannedRun();
      if (mine !== this.#round) return null;
    }
    const { etag, data } = await read("/runs/{run_id}/summary", this.#fields(), this.#etag);
    if (mine !== this.#round) return null;
    toggle(byId("away"), false);
    if (data) {
      const isFirst = this.#turns.length === 0;
      const showedAll = this.#turns.length === this.#total;
      this.#details = data;
      if (isFirst || showedAll) await this.#readTurns(mine);
      else this.#total = data.turns;
      if (mine !== this.#round) return null;
      this.#etag = etag;
      this.#showAll(data);
      if (isFirst) await this.#goToTurn();
    }
    this.#wait = data ? GROWING_MS : Math.min(2 * this.#wait, RESTING_MS);
    return this.#details && mayGrow(this.#details) ? this.#wait : null;
  }

  #showAll(details: RunDetails): void {
    showRunHead(details);
    showProfiles(details.profile, details.profiles);
    this.#showTurns();
    if (this.#turns.length === 0) {
      const verb = mayGrow(details) ? "has given" : "gave";
      say(byId("turns"), `The tutor ${verb} no response${mayGrow(details) ? " yet" : ""}.`);
    }
    toggle(byId("raw"), true);
    byId("raw-summary", HTMLAnchorElement).href = this.#address("/runs/{run_id}/summary");
    byId("raw-turns", HTMLAnchorElement).href = this.#address("/runs/{run_id}/turns");
    this.#showRaw();
  }

  #address(path: "/runs/{run_id}/summary" | "/runs/{run_id}/turns"): string {
    return addressOf(path, this.#fields());
  }

  async #readTurns(mine = this.#round): Promise<void> {
    const offset = String(this.#turns.length);
    const fields = { ...this.#fields(), offset, limit: String(TURNS_A_PAGE) };
    const page = (await read("/runs/{run_id}/turns", fields)).data;
    if (mine !== this.#round) return;
    this.#turns.push(...(page?.turns ?? []));
    this.#total = page?.total ?? 0;
  }

  async #showFurtherTurns(): Promise<void> {
    try {
      await this.#readTurns();
      this.#showTurns();
    } catch (error) {
      this.#showAway(error);
    }
  }

  /** Adds the turns that are not shown yet: those above stay as they are, with focus and scroll. */
  #showTurns(): void {
    const name = this.#details?.profile;
    const context = {
      profile: this.#profiles?.find((each) => each.name === name) ?? null,
      isLatencySimulated: Boolean(this.#details?.context?.simulated_latency_ms),
    };
    const node = byId("turns");
    if (this.#turns.length && !node.childElementCount) node.replaceChildren();
    for (const turn of this.#turns.slice(node.childElementCount)) {
      node.append(turnArticle(turn, context));
    }
    showTurnStates(this.#turns, this.#details);
    toggle(byId("more"), this.#turns.length < this.#total);
  }

  /** Shows the turn that the address names, and reads as far as it if need be. */
  async #goToTurn(): Promise<void> {
    const id = location.hash.slice(1);
    while (/^turn-\d+$/.test(id) && !document.getElementById(id)) {
      if (this.#turns.length >= this.#total) break;
      const known = this.#turns.length;
      await this.#showFurtherTurns();
      if (this.#turns.length === known) break;
    }
    for (const turn of byId("turns").children) turn.classList.toggle("here", turn.id === id);
    const wanted = document.getElementById(id);
    if (!wanted?.classList.contains("turn")) return;
    wanted.scrollIntoView({ behavior: "instant" });
    wanted.focus({ preventScroll: true });
  }

  #showRaw(): void {
    if (!byId("raw", HTMLDetailsElement).open) return;
    const whole = { summary: this.#details, turns: this.#turns };
    say(byId("raw-text"), JSON.stringify(whole, null, 2));
  }

  /** Returns the milliseconds until the next look; null where a later one would find the same. */
  #showAway(error: unknown): number | null {
    if (error instanceof ApiProblem && error.status < 500) {
      const isUnknown = error.status === 404;
      this.#showNothing(isUnknown ? "No such run" : "No such scores", error.message);
      // A planned run has no address before its first response.
      if (!isUnknown) return null;
      this.#wait = Math.min(2 * this.#wait, RESTING_MS);
      return this.#wait;
    }
    toggle(byId("away"), true);
    say(byId("away"), `The API does not answer. Trying again every ${AWAY_MS / 1000} seconds.`);
    if (!this.#details) say(byId("summary"), "The run cannot be read yet.");
    return AWAY_MS;
  }

  #showNothing(title: string, reason: string): void {
    this.#details = null;
    say(byId("title"), title);
    for (const id of ["plan", "neighbours", "raw", "more", "profile-choice", "turn-states"]) {
      toggle(byId(id), false);
    }
    byId("turns").replaceChildren();
    if (title === "No such scores") {
      sayProblem(byId("summary"), reason);
      return;
    }
    const back = element("a", { href: "research.html" }, "Go to the ranking");
    byId("summary").replaceChildren(reason, " ", back, ".");
  }
}

new RunPage().start();
