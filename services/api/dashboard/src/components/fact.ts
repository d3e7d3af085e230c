// A term and what is known of it, for a list of facts.

import { element } from "../lib/dom";

export function fact(term: string, ...description: (Node | string)[]): HTMLElement {
  return element("div", {}, element("dt", {}, term), element("dd", {}, ...description));
}
