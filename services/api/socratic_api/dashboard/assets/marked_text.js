// A response with the spans of its evidence marked in place, as the legend of its profile says.

import { element } from "./dom.js";

const MARKS = new Set(["raises", "lowers", "neutral", "passage"]);

/** The kinds of spans by their key: those of the legend, then any others that `evidence` has. */
export function kindsOf(evidence, legend) {
  const kinds = new Map(legend.map((each) => [each.kind, each]));
  for (const { kind } of evidence.spans) {
    if (!kinds.has(kind)) kinds.set(kind, { kind, name: kind, mark: "neutral" });
  }
  return kinds;
}

/** `content` marked as a span of this kind. */
export function marked({ name, mark }, content) {
  const look = MARKS.has(mark) ? mark : "neutral";
  return element(look === "passage" ? "span" : "mark", { class: look, title: name }, content);
}

/** The text as nodes. Positions in `evidence` count code points, the end exclusive; spans may overlap. */
export function markedText(text, evidence, legend) {
  const letters = Array.from(text);
  const kinds = kindsOf(evidence, legend);
  const cuts = new Set([0, letters.length]);
  for (const span of evidence.spans) cuts.add(span.start).add(span.end);
  const places = [...cuts].sort((a, b) => a - b);
  const coming = [...evidence.spans].sort((a, b) => b.start - a.start);
  let open = [];
  return places.slice(0, -1).map((start, index) => {
    while (coming.length && coming.at(-1).start <= start) open.push(coming.pop());
    open = open.filter((span) => span.end > start);
    const part = letters.slice(start, places[index + 1]).join("");
    const innermostFirst = [...open].sort((a, b) => a.end - a.start - (b.end - b.start));
    return innermostFirst.reduce((inner, span) => marked(kinds.get(span.kind), inner), element("span", {}, part));
  });
}
