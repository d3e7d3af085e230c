// One turn of a run: what the student and the tutor said, the marks, and the arithmetic beside it.

import type { DescribedProfile, RunTurn } from "../../lib/api_types";
import { element } from "../../lib/dom";
import { amount, count, counted, dollars, score } from "../../lib/format";
import { moment } from "../../lib/moment";
import { fact } from "../fact";
import { isLapse, lapseNote } from "./lapses";
import { plainText } from "./plain_text";
import { scoredText } from "./scored_text";

/** Longer texts scroll in a window of their own. */
const LONG_LETTERS = 4_000;

export interface TurnContext {
  profile: DescribedProfile | null;
  isLatencySimulated: boolean;
}

/** Text of a student or a tutor; `dir` keeps its direction, and control characters, to itself. */
function said(label: string, ...content: (Node | string)[]): HTMLElement {
  const text = element("div", { class: "said-text", dir: "auto" }, ...content);
  if (text.textContent.length > LONG_LETTERS) {
    text.classList.add("long");
    text.tabIndex = 0;
    text.role = "region";
    text.ariaLabel = label;
  }
  return text;
}

function tokenCount(turn: RunTurn): string {
  if (turn.visible_output_tokens !== null) {
    return `${counted(turn.visible_output_tokens, "token")} by the provider’s count`;
  }
  const counts = Object.values(turn.score.evidence.facts).map(({ values }) => values.token_count);
  const estimate = counts.find((value) => typeof value === "number");
  return estimate === undefined
    ? "unknown"
    : `about ${counted(Math.round(estimate), "token")}, estimated from the words`;
}

function facts(turn: RunTurn, { isLatencySimulated }: TurnContext): HTMLElement {
  const reasoned = turn.reasoning_tokens;
  const first =
    turn.first_token_ms === null ? "" : `, the first token after ${count(turn.first_token_ms)} ms`;
  const simulated = isLatencySimulated && turn.latency_ms !== null ? ", simulated" : "";
  const stopped = turn.stop_reason === null ? [] : [fact("Stopped", named(turn.stop_reason))];
  const version = turn.model_version === null ? [] : [fact("Version", named(turn.model_version))];
  const routed = turn.routed_to === null ? [] : [fact("Routed to", named(turn.routed_to))];
  return element(
    "dl",
    { class: "facts turn-facts" },
    fact("Status", turn.score.status, turn.error_kind === null ? "" : `: ${turn.error_kind}`),
    fact("Output", tokenCount(turn)),
    ...(reasoned ? [fact("Reasoning", counted(reasoned, "token"))] : []),
    fact("Input", amount(turn.input_tokens, "tokens")),
    fact("Latency", amount(turn.latency_ms, "ms"), simulated, first),
    fact("Cost", turn.cost_usd === null ? "unknown" : dollars(turn.cost_usd)),
    fact("Attempts", count(turn.attempts)),
    ...stopped,
    ...version,
    ...routed,
    fact("Recorded", moment(turn.recorded_at)),
  );
}

function named(text: string): HTMLElement {
  return element("bdi", { class: "identifier" }, text);
}

function thoughts(turn: RunTurn): HTMLElement[] {
  if (turn.reasoning === null) {
    return [];
  }
  const label = `The tutor’s thoughts in turn ${turn.turn}`;
  const text = said(label, ...plainText(turn.reasoning));
  return [element("details", {}, element("summary", {}, "Thoughts, not scored"), text)];
}

function notes(turn: RunTurn): HTMLElement[] {
  if (turn.notes.length === 0) {
    return [];
  }
  const items = turn.notes.map((note) => element("li", {}, note));
  return [element("ul", { class: "quiet", "aria-label": "Notes on the answer" }, ...items)];
}

export function turnArticle(turn: RunTurn, context: TurnContext): HTMLElement {
  const id = `turn-${turn.turn}`;
  const parts = scoredText(turn.text, turn.score, context.profile);
  const nothing = element("p", { class: "quiet" }, "The tutor said nothing.");
  const response =
    turn.text === "" ? nothing : said(`The tutor’s response in turn ${turn.turn}`, ...parts.text);
  response.classList.add("response");
  return element(
    "article",
    {
      class: isLapse(turn) ? "turn lapsed" : "turn",
      id,
      "aria-labelledby": `${id}-heading`,
      tabindex: -1,
    },
    element(
      "h2",
      { id: `${id}-heading` },
      element("a", { href: `#${id}` }, `Turn ${turn.turn}`),
      element("span", { class: "turn-score" }, score(turn.score.overall)),
    ),
    ...lapseNote(turn),
    element(
      "div",
      { class: "conversation" },
      element("h3", {}, "Student"),
      said(`The student’s message in turn ${turn.turn}`, ...plainText(turn.student_message)),
      element("h3", {}, "Tutor"),
      response,
      element("ul", { class: "legend", "aria-label": "Marks" }, ...parts.legend),
      ...notes(turn),
      ...thoughts(turn),
    ),
    element(
      "aside",
      { "aria-label": `Score of turn ${turn.turn}` },
      ...parts.figures,
      facts(turn, context),
    ),
  );
}
