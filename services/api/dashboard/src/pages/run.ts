// The page of one run: the conversation with every mark in place, and the arithmetic of each score.

import { showRunHead } from "../components/transcript/run_head";
import { turnArticle } from "../components/transcript/turn";
import { addressOf, ApiProblem, read } from "../lib/api";
import type { DescribedProfile, RunDetails, RunTurn } from "../lib/api_types";
import { byId, element, say, toggle } from "../lib/dom";

const TURNS_A_PAGE = 100;
const AWAY_MS = 5_000;

class RunPage {
  readonly #run = new URLSearchParams(location.search).get("run") ?? "";
  readonly #turns: RunTurn[] = [];
  #total = 0;
  #details: RunDetails | null = null;
  #profile: DescribedProfile | null = null;

  start(): void {
    byId("more").addEventListener("click", () => void this.#showFurtherTurns());
    byId("raw").addEventListener("toggle", () => {
      this.#showRaw();
    });
    addEventListener("hashchange", () => void this.#goToTurn());
    if (this.#run) void this.#show();
    else this.#showNothing("The address names no run. Choose one in the ranking.");
  }

  async #show(): Promise<void> {
    try {
      const fields = { run_id: this.#run };
      const [details, profiles] = await Promise.all([
        read("/runs/{run_id}/summary", fields),
        read("/api/profiles"),
      ]);
      const name = details.data?.context?.profile;
      this.#details = details.data;
      this.#profile = profiles.data?.profiles.find((each) => each.name === name) ?? null;
      await this.#readTurns();
    } catch (error) {
      this.#showAway(error);
      return;
    }
    toggle(byId("away"), false);
    if (this.#details) showRunHead(this.#details);
    if (this.#turns.length === 0) say(byId("turns"), "The tutor gave no response.");
    this.#showTurns();
    toggle(byId("raw"), true);
    byId("raw-summary", HTMLAnchorElement).href = this.#address("/runs/{run_id}/summary");
    byId("raw-turns", HTMLAnchorElement).href = this.#address("/runs/{run_id}/turns");
    await this.#goToTurn();
  }

  #address(path: "/runs/{run_id}/summary" | "/runs/{run_id}/turns"): string {
    return addressOf(path, { run_id: this.#run });
  }

  async #readTurns(): Promise<void> {
    const offset = String(this.#turns.length);
    const fields = { run_id: this.#run, offset, limit: String(TURNS_A_PAGE) };
    const page = (await read("/runs/{run_id}/turns", fields)).data;
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

  #showTurns(): void {
    const context = {
      profile: this.#profile,
      isLatencySimulated: Boolean(this.#details?.context?.simulated_latency_ms),
    };
    const node = byId("turns");
    for (const turn of this.#turns.slice(node.childElementCount)) {
      node.append(turnArticle(turn, context));
    }
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
    const isFilled = byId("raw-text").textContent !== "";
    if (!byId("raw", HTMLDetailsElement).open || isFilled) return;
    const whole = { summary: this.#details, turns: this.#turns };
    say(byId("raw-text"), JSON.stringify(whole, null, 2));
  }

  #showAway(error: unknown): void {
    if (error instanceof ApiProblem && error.status < 500) {
      this.#showNothing(error.message);
      return;
    }
    toggle(byId("away"), true);
    say(byId("away"), `The API does not answer. Trying again every ${AWAY_MS / 1000} seconds.`);
    if (this.#details) return;
    say(byId("summary"), "The run cannot be read yet.");
    setTimeout(() => void this.#show(), AWAY_MS);
  }

  #showNothing(reason: string): void {
    say(byId("title"), "No such run");
    const back = element("a", { href: "research.html" }, "Go to the ranking");
    byId("summary").replaceChildren(reason, " ", back, ".");
  }
}

new RunPage().start();
