// A scored text: its markers in place, their legend, and how every figure was computed.

import type { DescribedProfile, ScoreAnswer } from "../../lib/api_types";
import { byId, element, toggle } from "../../lib/dom";
import { score } from "../../lib/format";
import { kindsOf, marked, markedText } from "./marked_text";
import { inWords } from "../profile";

/** A scored text in parts, to be laid out by a page. */
export interface ScoredText {
  text: HTMLElement[];
  /** The kinds of marks, each with its number in the text. */
  legend: HTMLElement[];
  /** Each vector with its arithmetic and its score, and what is to be said besides. */
  figures: HTMLElement[];
}

/** The answer for a text; without a profile it has the vectors that the evidence names. */
export function scoredText(
  text: string,
  answer: ScoreAnswer,
  profile: DescribedProfile | null,
): ScoredText {
  const { evidence } = answer;
  const legend = profile?.legend ?? [];
  const numberOf = (kind: string) => evidence.spans.filter((span) => span.kind === kind).length;
  const kinds = [...kindsOf(evidence, legend).values()];
  const told =
    answer.overall !== null
      ? evidence.notes
      : [`Status “${answer.status}”: unscored, which is not zero.`];
  const names = profile?.vectors.map((each) => each.name) ?? Object.keys(evidence.facts);
  return {
    text: markedText(text, evidence, legend),
    legend: kinds.map((kind) => {
      const number = kind.mark === "passage" ? "" : ` ${numberOf(kind.kind)}`;
      return element("li", {}, marked(kind, kind.name), number);
    }),
    figures: [
      sums(answer, names, profile?.overall_formula ?? null),
      ...told.map((note) => element("p", { class: "quiet" }, note)),
    ],
  };
}

/** Shows the answer for a text in the box of the method page. */
export function showScore(
  text: string,
  answer: ScoreAnswer,
  profile: DescribedProfile | null,
): void {
  const parts = scoredText(answer.visible_text ?? text, answer, profile);
  byId("marked").replaceChildren(...parts.text);
  byId("marks").replaceChildren(...parts.legend);
  byId("figures").replaceChildren(...parts.figures);
  toggle(byId("result"), true);
}

function sums(answer: ScoreAnswer, names: readonly string[], formula: string | null): HTMLElement {
  const isScored = answer.overall !== null;
  const arithmetic = (name: string) => {
    const fact = answer.evidence.facts[name];
    return fact && isScored ? inWords(fact.word, fact.sentence) : "";
  };
  // A vector that does not apply to the text enters no mean.
  const applicable = names.map((name) => figure(answer, name)).filter((value) => value !== null);
  const combined = formula ?? `mean of ${applicable.map(score).join(", ")}`;
  return element(
    "dl",
    { class: "sums" },
    ...names.flatMap((name) => sum(name, figure(answer, name), arithmetic(name))),
    ...sum("overall", answer.overall, isScored ? combined : "", "total"),
  );
}

function figure(answer: ScoreAnswer, vector: string): number | null {
  const value = answer[vector];
  return typeof value === "number" ? value : null;
}

function sum(name: string, value: number | null, arithmetic: string, kind = ""): HTMLElement[] {
  return [
    element("dt", { class: kind }, name),
    element("dd", { class: `figure ${kind}` }, score(value)),
    element("dd", { class: `arithmetic ${kind}` }, arithmetic),
  ];
}
