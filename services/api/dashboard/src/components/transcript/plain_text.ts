// Text from models as nodes, its bidirectional control characters visible and without effect.

import { element } from "../../lib/dom";

/** Embeddings, overrides and isolates: they make text look other than it was scored. */
const CONTROLS = /([\u202a-\u202e\u2066-\u2069])/u;

/** The text unchanged; each control stands alone in a node that keeps its effect to itself. */
export function plainText(text: string): (HTMLElement | string)[] {
  return text.split(CONTROLS).flatMap((part, at): (HTMLElement | string)[] => {
    if (at % 2 === 0) return part === "" ? [] : [part];
    const code = `U+${(part.codePointAt(0) ?? 0).toString(16).toUpperCase()}`;
    const title = `${code}, a control of the direction of text`;
    return [element("span", { class: "control", "data-code": code, title }, part)];
  });
}
