// A response with its markers and its final sentence marked in place.

import { element } from "./dom.js";

const KNOWN_KINDS = new Set(["exploratory", "directive"]);

export function classOfKind(kind) {
  return KNOWN_KINDS.has(kind) ? kind : "other";
}

/** The text as nodes. Positions in `evidence` count code points, the end exclusive. */
export function markedText(text, evidence) {
  const letters = Array.from(text);
  const last = evidence.final_sentence;
  const cuts = new Set([0, letters.length]);
  for (const span of [...evidence.markers, ...(last ? [last] : [])]) cuts.add(span.start).add(span.end);
  const places = [...cuts].sort((a, b) => a - b);
  const markers = [...evidence.markers];
  return places.slice(0, -1).map((start, index) => {
    const end = places[index + 1];
    const part = letters.slice(start, end).join("");
    while (markers.length && markers[0].end <= start) markers.shift();
    const marker = markers.length && markers[0].start <= start ? markers[0] : null;
    const inner = marker ? element("mark", { class: classOfKind(marker.kind), title: marker.kind }, part) : part;
    const final = last && start >= last.start && end <= last.end;
    return final ? element("span", { class: "final" }, inner) : element("span", {}, inner);
  });
}
