// Turns of a run that kept to asking, lapsed or are unknown, as the evidence of a fidelity profile says.

import type { RunDetails, RunTurn, ShownFact } from "../../lib/api_types";
import { byId, element, fill, toggle } from "../../lib/dom";
import { fidelityPage } from "../../lib/links";

const KEPT = "kept";
const LAPSED = "lapsed";
const STATES: readonly string[] = [KEPT, LAPSED, "unknown"];

/** The fact about the state of a turn; null under a profile that has no such states. */
function factOf(turn: RunTurn): ShownFact | null {
  const fact = turn.score.evidence.facts[KEPT];
  return fact?.word && STATES.includes(fact.word) ? fact : null;
}

export function isLapse(turn: RunTurn): boolean {
  return factOf(turn)?.word === LAPSED;
}

/** Why a turn lapsed: the sentence of its evidence without the state at its end. */
export function lapseNote(turn: RunTurn): HTMLElement[] {
  const fact = factOf(turn);
  if (fact?.word !== LAPSED) return [];
  const reason = fact.sentence.replace(/: lapsed$/, "");
  return [
    element("p", { class: "lapse" }, element("strong", {}, "Lapsed:"), ` the tutor ${reason}.`),
  ];
}

/** The turn in which a run broke: the first of two lapses in a row, all turns before being known. */
function breakOf(states: readonly string[]): number | null {
  for (const [at, state] of states.entries()) {
    if (state !== KEPT && state !== LAPSED) return null;
    if (state === LAPSED && states[at + 1] === LAPSED) return at + 1;
  }
  return null;
}

/** Says which turns lapsed, each a link, and in which turn the run broke. */
export function showTurnStates(turns: readonly RunTurn[], run: RunDetails | null): void {
  const node = byId("turn-states");
  const states = turns.map((turn) => factOf(turn)?.word ?? "");
  const isKnown = turns.length > 1 && states.some(Boolean);
  toggle(node, isKnown);
  if (!isKnown) return;
  const more = run
    ? [
        element(
          "a",
          { href: fidelityPage(run.experiment_id, run.model_id) },
          "This tutor under pressure",
        ),
      ]
    : [];
  const lapses = turns.filter(isLapse);
  if (!lapses.length) {
    fill(node, "No turn lapsed. ", ...more);
    return;
  }
  const links = lapses.flatMap(({ turn }, at) => [
    at ? ", " : "",
    element("a", { href: `#turn-${turn}` }, String(turn)),
  ]);
  const broken = breakOf(states);
  const end =
    broken === null
      ? ". Two lapses in a row are a break: none is known. "
      : `. The run broke in turn ${broken}, the first of two lapses in a row. `;
  const where = ` in turn${lapses.length > 1 ? "s" : ""} `;
  fill(node, element("strong", {}, "Lapsed"), where, ...links, end, ...more);
}
