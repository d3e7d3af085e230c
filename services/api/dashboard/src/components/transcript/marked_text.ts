// A response with the spans of its evidence marked in place, as the legend of its profile says.

import type { LegendEntry, Mark, ShownEvidence, ShownSpan } from "../../lib/api_types";
import { element } from "../../lib/dom";
import { plainText } from "./plain_text";

export type Kind = Pick<LegendEntry, "kind" | "name" | "mark">;

const MARKS: readonly string[] = ["raises", "lowers", "neutral", "passage"] satisfies Mark[];

/** The kinds of spans by their key: those of the legend, then any others that `evidence` has. */
export function kindsOf(evidence: ShownEvidence, legend: readonly Kind[]): Map<string, Kind> {
  const kinds = new Map(legend.map((each) => [each.kind, each]));
  for (const { kind } of evidence.spans) {
    if (!kinds.has(kind)) kinds.set(kind, { kind, name: kind, mark: "neutral" });
  }
  return kinds;
}

/** `content` marked as a span of this kind. */
export function marked({ name, mark }: Kind, content: Node | string): HTMLElement {
  const look = MARKS.includes(mark) ? mark : "neutral";
  return element(look === "passage" ? "span" : "mark", { class: look, title: name }, content);
}

/** The text as nodes. Positions in `evidence` count code points, the end exclusive; spans may overlap. */
export function markedText(
  text: string,
  evidence: ShownEvidence,
  legend: readonly Kind[],
): HTMLElement[] {
  const letters = Array.from(text);
  const kinds = kindsOf(evidence, legend);
  const cuts = new Set([0, letters.length]);
  for (const span of evidence.spans) cuts.add(span.start).add(span.end);
  const places = [...cuts].sort((a, b) => a - b);
  const byStart = evidence.spans.toSorted((a, b) => a.start - b.start);
  let next = 0;
  let open: ShownSpan[] = [];
  return places.slice(0, -1).map((start, index) => {
    for (let span = byStart[next]; span && span.start <= start; span = byStart[next]) {
      open.push(span);
      next += 1;
    }
    open = open.filter((span) => span.end > start);
    const part = element(
      "span",
      {},
      ...plainText(letters.slice(start, places[index + 1]).join("")),
    );
    const innermostFirst = open.toSorted((a, b) => a.end - a.start - (b.end - b.start));
    return innermostFirst.reduce<HTMLElement>((inner, span) => {
      const kind = kinds.get(span.kind);
      return kind ? marked(kind, inner) : inner;
    }, part);
  });
}
