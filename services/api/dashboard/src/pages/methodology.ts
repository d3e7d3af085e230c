// The method page: the profile as the scorer describes it, and the box that scores a text.

import { connectIntervalForm } from "../components/interval_form";
import { describedVector, weighing } from "../components/profile";
import { showScore } from "../components/transcript/scored_text";
import { validityTable } from "../components/validity";
import { ApiProblem, read, send } from "../lib/api";
import type {
  DescribedProfile,
  ScoreAnswer,
  ScoreOrBatchAnswer,
  ScoreRequest,
  Status,
} from "../lib/api_types";
import { capabilities } from "../lib/capabilities";
import { byId, element, say, toggle } from "../lib/dom";

const TYPING_PAUSE_MS = 300;
const STATUSES: Status[] = ["ok", "truncated", "refused", "empty", "error"];

/** Describes the profiles on the page and returns them, the default one first; none where the API does not answer. */
async function showProfiles(): Promise<DescribedProfile[]> {
  const node = byId("profile");
  try {
    const profiles = (await read("/api/profiles")).data?.profiles ?? [];
    const profile = profiles.find((each) => each.canonical) ?? profiles[0] ?? null;
    if (!profile) throw new TypeError("the API lists no profile");
    const words = element("p", { class: "weighing" }, weighing(profile));
    node.replaceChildren(...profile.vectors.map(describedVector), words);
    const others = profiles.filter((each) => each !== profile);
    byId("other-profiles").replaceChildren(...others.map(otherProfile));
    return [profile, ...others];
  } catch {
    const told =
      "The API does not answer, so the vectors cannot be described here. Load the page again in a moment.";
    node.replaceChildren(element("p", { class: "notice" }, told));
    return [];
  }
}

/** A profile beside the default one, closed until it is opened. */
function otherProfile(profile: DescribedProfile): HTMLElement {
  const name = element("summary", {}, `Profile ${profile.name}`);
  const words = element("p", { class: "weighing" }, weighing(profile));
  return element("details", {}, name, words, ...profile.vectors.map(describedVector));
}

async function showValidity(): Promise<void> {
  const node = byId("validity-table");
  try {
    const report = (await read("/api/validity")).data;
    if (!report) throw new TypeError("the API has no figures");
    node.replaceChildren(validityTable(report));
  } catch {
    const told = "The API does not answer. Load the page again in a moment.";
    node.replaceChildren(element("p", { class: "notice" }, told));
  }
}

/** The box: a text is scored on the button, and a moment after the last key. */
class Scorer {
  readonly #text = byId("text", HTMLTextAreaElement);
  readonly #tokens = byId("tokens", HTMLInputElement);
  readonly #status = byId("status", HTMLSelectElement);
  readonly #student = byId("student", HTMLTextAreaElement);
  readonly #profile = byId("score-profile", HTMLSelectElement);
  readonly #key = byId("key", HTMLInputElement);
  #needsKey = false;
  #profiles: readonly DescribedProfile[] = [];
  #asked: AbortController | null = null;
  #pause: ReturnType<typeof setTimeout> | undefined;

  constructor() {
    byId("scorer").addEventListener("submit", (event) => {
      event.preventDefault();
      void this.score();
    });
    const fields = [
      this.#text,
      this.#tokens,
      this.#status,
      this.#student,
      this.#profile,
      this.#key,
    ];
    for (const node of fields) {
      node.addEventListener("input", () => {
        clearTimeout(this.#pause);
        this.#pause = setTimeout(() => void this.score(), TYPING_PAUSE_MS);
      });
    }
  }

  /** Lets a person choose among the profiles, which name their vectors and marks. */
  offer(profiles: readonly DescribedProfile[]): void {
    this.#profiles = profiles;
    const names = profiles.map(({ name }) => element("option", { value: name }, name));
    this.#profile.replaceChildren(...names);
  }

  /** Asks for the key where scoring takes one: without it the API would only refuse. */
  takesKey(needed: boolean): void {
    this.#needsKey = needed;
    toggle(byId("key-choice"), needed);
  }

  async score(): Promise<void> {
    clearTimeout(this.#pause);
    this.#asked?.abort();
    if (this.#needsKey && this.#key.value === "") {
      toggle(byId("problem"), true);
      say(byId("problem"), "Scoring on this server takes its key. The examples above need none.");
      return;
    }
    const asked = (this.#asked = new AbortController());
    const request = this.#request();
    try {
      const answer = await send("/api/score", request, this.#key.value, asked.signal);
      toggle(byId("problem"), false);
      if (isScore(answer)) showScore(request.text, answer, this.#chosen(request.profile));
    } catch (error) {
      if (asked.signal.aborted) return;
      toggle(byId("problem"), true);
      const away = "The API does not answer. Try again in a moment.";
      say(byId("problem"), error instanceof ApiProblem ? error.message : away);
    }
  }

  #chosen(wanted: string | null | undefined): DescribedProfile | null {
    return this.#profiles.find(({ name }) => name === wanted) ?? null;
  }

  #request(): ScoreRequest {
    const status = STATUSES.find((each) => each === this.#status.value) ?? "ok";
    const said = this.#student.value === "" ? {} : { student_message: this.#student.value };
    const by = this.#profile.value === "" ? {} : { profile: this.#profile.value };
    const request: ScoreRequest = { text: this.#text.value, status, ...said, ...by };
    const tokens = this.#tokens.value;
    return tokens === "" ? request : { ...request, output_tokens: Number(tokens) };
  }
}

function isScore(answer: ScoreOrBatchAnswer): answer is ScoreAnswer {
  return "evidence" in answer;
}

byId("status").append(...STATUSES.map((status) => element("option", { value: status }, status)));
const scorer = new Scorer();
void showValidity();
connectIntervalForm();
scorer.offer(await showProfiles());
await capabilities().then(
  ({ needs_key: needed }) => {
    scorer.takesKey(needed);
  },
  () => undefined,
);
await scorer.score();
